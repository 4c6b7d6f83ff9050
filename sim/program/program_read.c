/* program_read.c - the programs of a step from text: see program_text.h. */
#include <string.h>

#include "sim/program/program_text.h"
#include "sim/program/segments.h"
#include "sim/program/words.h"

struct reader {
    struct dl_line_words w;
    struct dl_arena *arena;
    struct dl_read_step *out;
    struct dl_program *program;   /* that is being read; NULL: none yet */
    struct dl_template *into;     /* the block, or the end; NULL: none yet */
    struct dl_memory_ops *memory; /* of it, or of the begin; NULL: none yet */
    size_t capacity;              /* of programs */
    size_t sequence_capacity;
    size_t calls_capacity; /* of is_simulated */
};

static enum dl_cause cause_of(struct reader *r)
{
    const char *names[DL_N_CAUSES + 1] = {NULL};
    for (int i = 0; i < DL_N_CAUSES; i++) names[i] = dl_cause_name((enum dl_cause)i);
    return (enum dl_cause)dl_word_choice(&r->w, dl_required_word(&r->w, "cause"), names);
}

/* ---- the step ---- */

static void read_digit(struct reader *r)
{
    struct dl_ranks *const ranks = &r->out->ranks;
    struct dl_step *const step = &r->out->step;
    if (ranks->n_digits == DL_MOST_DIGITS) {
        dl_refuse_words(&r->w, "there are more digits than can be");
        return;
    }
    const uint32_t i = ranks->n_digits++;
    ranks->digits[i] = (struct dl_digit){.name = dl_arena_string(r->arena, dl_second_word(&r->w)),
                                         .n = dl_whole_after(&r->w, "values", UINT32_MAX),
                                         .stride = dl_whole_after(&r->w, "stride", UINT32_MAX)};
    if (!ranks->digits[i].n || !ranks->digits[i].stride) dl_refuse_words(&r->w, "values and stride must be 1 at least");
    if (dl_has_word(&r->w, "lockstep")) step->in_lockstep |= 1u << i;
    if (dl_has_word(&r->w, "replicas")) step->replicas |= 1u << i;
    if (dl_has_word(&r->w, "stages")) step->stages |= 1u << i;
}

static void read_sends(struct reader *r)
{
    struct dl_step *const step = &r->out->step;
    step->sends = (enum dl_sends)dl_word_choice(&r->w, dl_second_word(&r->w), dl_sends_names);
    step->send_host_s = dl_number_after(&r->w, "host_s");
    step->send_messages = dl_number_after(&r->w, "messages");
    step->drains_at_sends = dl_has_word(&r->w, "drains");
}

static void read_servers(struct reader *r)
{
    r->out->step.n_servers = dl_whole_word(&r->w, dl_second_word(&r->w), 1 << 20);
}

static void read_barrier(struct reader *r) { r->out->step.has_barrier = true; }

static void read_simulates(struct reader *r)
{
    const char *const word = dl_second_word(&r->w);
    bool *const planned = dl_arena_alloc(r->arena, strlen(word) + 1);
    for (size_t i = 0; word[i]; i++) planned[i] = word[i] == '1';
    const struct dl_ranks *const ranks = &r->out->ranks;
    if (strlen(word) != dl_ranks_count(ranks, r->out->step.stages | r->out->step.replicas))
        dl_refuse_words(&r->w, "needs a 0 or 1 for each stage of each replica");
    r->out->step.plan.lockstep_groups = planned;
}

/* ---- collectives ---- */

static dl_digits digits_of(struct reader *r, const char *list)
{
    const struct dl_ranks *const ranks = &r->out->ranks;
    dl_digits digits = 0;
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        uint32_t i = 0;
        while (i < ranks->n_digits && (strlen(ranks->digits[i].name) != n || strncmp(ranks->digits[i].name, at, n)))
            i++;
        if (i == ranks->n_digits) return dl_refuse_words(&r->w, "there is no digit '%.60s'", at), 0;
        digits |= 1u << i;
        at += n + (at[n] == ',');
    }
    return digits;
}

static struct dl_members members_of(struct reader *r, enum dl_channel channel)
{
    const struct dl_step *const step = &r->out->step;
    struct dl_members m = {.digits = digits_of(r, dl_required_word(&r->w, "over")),
                           .is_pair = channel == DL_CHANNEL_STAGES};
    const uint32_t n_stages = dl_ranks_count(&r->out->ranks, step->stages);
    if (m.is_pair ? m.digits != step->stages : (m.digits & ~(step->in_lockstep | step->replicas)) != 0)
        dl_refuse_words(&r->w, "its digits do not belong to its channel");
    if (!m.is_pair || r->w.err->status) return m;
    m.pair[0] = dl_whole_after(&r->w, "first", n_stages);
    m.pair[1] = dl_whole_after(&r->w, "second", n_stages);
    if (m.pair[0] >= m.pair[1]) dl_refuse_words(&r->w, "the first stage must be before the second");
    return m;
}

static struct dl_payload payload_of(struct reader *r)
{
    const double bits = dl_number_after(&r->w, "bits"), ratio = dl_number_after(&r->w, "ratio");
    if (bits > 0) return (struct dl_payload){.kind = DL_QUANTIZED, .bits = bits};
    if (ratio > 0) return (struct dl_payload){.kind = DL_TOPK, .ratio = ratio};
    return (struct dl_payload){.kind = DL_DENSE};
}

/* In which iterations it takes place. */
static void read_turns(struct reader *r, struct dl_comm *comm)
{
    const char *const every = dl_word_after(&r->w, "every");
    if (!every) return;
    comm->every = dl_whole_word(&r->w, every, UINT32_MAX);
    if (!comm->every) dl_refuse_words(&r->w, "'every' must be at least 1");
    comm->turn = dl_whole_after(&r->w, "turn", comm->every);
    if (comm->channel != DL_CHANNEL_REPLICAS) dl_refuse_words(&r->w, "only collectives of replicas take turns");
}

/* What only those of ranks in lockstep have; returns whether it is simulated. */
static bool read_lockstep(struct reader *r, struct dl_comm *comm)
{
    comm->once = dl_has_word(&r->w, "once");
    comm->alone_s = dl_number_after(&r->w, "alone_s");
    comm->taken_s = dl_number_after(&r->w, "taken_s");
    comm->n_bundles = dl_number_after(&r->w, "bundles");
    return !comm->once && dl_has_word(&r->w, "simulated");
}

static void add_call(struct reader *r, const struct dl_comm *comm, bool is_simulated)
{
    struct dl_read_step *const out = r->out;
    size_t n = out->n_calls;
    if (dl_whole_word(&r->w, dl_second_word(&r->w), UINT32_MAX) != n)
        dl_refuse_words(&r->w, "'%.60s' is not the next number", r->w.words[1]);
    if (r->w.err->status) return;
    out->is_simulated = n < r->calls_capacity
                            ? out->is_simulated
                            : dl_grow(out->is_simulated, n, &r->calls_capacity, sizeof *out->is_simulated);
    out->is_simulated[n] = is_simulated;
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls++] = *comm;
}

/* The word after the number; "": it is not there. */
static const char *third_word(struct reader *r, const char *missing)
{
    if (r->w.n_words < 3) return dl_refuse_words(&r->w, "needs its number and %s", missing), "";
    r->w.used[2] = true;
    return r->w.words[2];
}

static void read_collective(struct reader *r)
{
    const char *const operation = third_word(r, "operation");
    if (r->w.err->status) return;
    const enum dl_op op = dl_op_named(operation);
    if (op == DL_N_OPS) dl_refuse_words(&r->w, "there is no operation '%.60s'", operation);
    const enum dl_channel channel =
        (enum dl_channel)dl_word_choice(&r->w, dl_required_word(&r->w, "channel"), dl_channel_names);
    const char *const algorithm = dl_word_after(&r->w, "algorithm");
    struct dl_comm comm = {.op = op,
                           .channel = channel,
                           .members = members_of(r, channel),
                           .bytes = dl_number_after(&r->w, "bytes"),
                           .payload = payload_of(r),
                           .algorithm = algorithm ? dl_arena_string(r->arena, algorithm) : NULL,
                           .cause = cause_of(r)};
    bool is_simulated = false;
    if (channel == DL_CHANNEL_LOCKSTEP) is_simulated = read_lockstep(r, &comm);
    read_turns(r, &comm);
    add_call(r, &comm, is_simulated);
}

static void read_copy(struct reader *r)
{
    const char *const way = third_word(r, "whether it goes out or in");
    if (r->w.err->status) return;
    const struct dl_comm comm = {.op = DL_COPY,
                                 .channel =
                                     DL_CHANNEL_COPIES_OUT + (enum dl_channel)dl_word_choice(&r->w, way, dl_copy_names),
                                 .bytes = dl_number_after(&r->w, "bytes"),
                                 .cause = cause_of(r),
                                 .most_bytes_per_s = dl_number_after(&r->w, "most_bytes_per_s"),
                                 .alone_s = dl_number_after(&r->w, "alone_s")};
    add_call(r, &comm, dl_has_word(&r->w, "simulated"));
}

/* ---- programs ---- */

static void read_stage(struct reader *r)
{
    struct dl_read_step *const out = r->out;
    const uint32_t stage = dl_whole_word(&r->w, dl_second_word(&r->w), UINT32_MAX), most_chunks = 1 << 16;
    const char *const chunks = dl_word_after(&r->w, "chunks");
    const struct dl_program program = {.stage = stage,
                                       .n_chunks = chunks ? dl_whole_word(&r->w, chunks, most_chunks) : 1,
                                       .n_tags = dl_whole_after(&r->w, "tags", 1u << 30),
                                       .send_bytes = dl_number_after(&r->w, "sends_bytes")};
    if (stage != out->n_programs || !program.n_chunks)
        dl_refuse_words(&r->w, "'%.60s' is not the next stage", r->w.words[1]);
    if (r->w.err->status) return;
    size_t n = out->n_programs;
    out->programs = n < r->capacity ? out->programs : dl_grow(out->programs, n, &r->capacity, sizeof *out->programs);
    r->program = &out->programs[out->n_programs++];
    *r->program = program;
    r->program->items = dl_alloc((size_t)program.n_chunks * DL_N_TEMPLATES * sizeof *program.items);
    r->into = NULL;
    r->memory = NULL;
    r->sequence_capacity = 0;
}

static void read_block(struct reader *r)
{
    const uint32_t block = dl_whole_word(&r->w, dl_second_word(&r->w), r->program->n_chunks * DL_N_TEMPLATES);
    if (r->w.err->status) return;
    r->into = &r->program->items[block];
    r->memory = &r->into->memory;
}

static void read_end(struct reader *r)
{
    r->into = &r->program->end;
    r->memory = &r->into->memory;
}

static void read_begin(struct reader *r)
{
    r->into = NULL;
    r->memory = &r->program->begin;
}

static void read_memory_op(struct reader *r, bool frees)
{
    const uint32_t most_layers = 1 << 17;
    const struct dl_memory_op op = {
        .frees = frees,
        .tensor = (enum dl_tensor_kind)dl_word_choice(&r->w, dl_second_word(&r->w), dl_tensor_names),
        .layer = dl_whole_after(&r->w, "layer", most_layers),
        .bytes = frees ? 0 : dl_number_after(&r->w, "bytes"),
        .at = r->into ? r->into->n_instructions : 0};
    if (!r->memory)
        dl_refuse_words(&r->w, "'%s' must be in a block", r->w.words[0]);
    else if (!r->into && frees)
        dl_refuse_words(&r->w, "nothing is there to free before the first step");
    else if (!r->w.err->status)
        dl_memory_ops_add(r->memory, op);
}

static void read_alloc(struct reader *r) { read_memory_op(r, false); }
static void read_free(struct reader *r) { read_memory_op(r, true); }

static void read_work(struct reader *r)
{
    const char *const ground = dl_word_after(&r->w, "ground");
    const char *grounds[DL_N_GROUNDS + 1] = {NULL};
    for (int i = 0; i < DL_N_GROUNDS; i++) grounds[i] = dl_ground_name((enum dl_ground)i);
    const struct dl_instruction work = {.cause = cause_of(r),
                                        .device_s = dl_number_after(&r->w, "device_s"),
                                        .host_s = dl_number_after(&r->w, "host_s"),
                                        .flop = dl_number_after(&r->w, "flop"),
                                        .bytes = dl_number_after(&r->w, "bytes"),
                                        .counted_flop = {[DL_FLOP_CAUSAL] = dl_number_after(&r->w, "causal_flop"),
                                                         [DL_FLOP_FULL] = dl_number_after(&r->w, "full_flop")},
                                        .ground = ground ? (enum dl_ground)dl_word_choice(&r->w, ground, grounds)
                                                         : DL_GROUND_NONE,
                                        .name = dl_arena_string(r->arena, dl_required_word(&r->w, "name"))};
    dl_template_add(r->into, &work);
}

static uint32_t call_of(struct reader *r, const char *word)
{
    const uint32_t n = (uint32_t)r->out->n_calls;
    if (!n) dl_refuse_words(&r->w, "there is no collective to %s", r->w.words[0]);
    return n ? dl_whole_word(&r->w, word, n) : 0;
}

static void read_start(struct reader *r)
{
    const uint32_t call = call_of(r, dl_second_word(&r->w));
    if (r->w.err->status) return;
    dl_template_add(r->into, &(struct dl_instruction){.kind = DL_START,
                                                      .name = dl_op_name(r->out->calls[call].op),
                                                      .host_s = dl_number_after(&r->w, "host_s"),
                                                      .call = call});
}

static void read_wait(struct reader *r)
{
    const char *const which = dl_second_word(&r->w);
    const uint32_t call = strcmp(which, "all") == 0 ? DL_EVERY_CALL : call_of(r, which);
    dl_template_add(r->into,
                    &(struct dl_instruction){
                        .kind = DL_WAIT, .name = "wait", .host_s = dl_number_after(&r->w, "host_s"), .call = call});
}

static void read_drain(struct reader *r)
{
    dl_template_add(r->into, &(struct dl_instruction){
                                 .kind = DL_DRAIN, .name = "drain", .host_s = dl_number_after(&r->w, "host_s")});
}

static void read_item(struct reader *r)
{
    struct dl_program *const p = r->program;
    const uint32_t n_stages = dl_ranks_count(&r->out->ranks, r->out->step.stages);
    const char *const wants = dl_word_after(&r->w, "wants"), *const gives = dl_word_after(&r->w, "gives");
    struct dl_sequenced item = {
        .item = {.kind = (enum dl_item_kind)dl_word_choice(&r->w, dl_second_word(&r->w), dl_item_names),
                 .micro = dl_whole_after(&r->w, "micro", UINT32_MAX),
                 .chunk = dl_whole_after(&r->w, "chunk", p->n_chunks),
                 .with_next = dl_has_word(&r->w, "with_next")},
        .block = &p->items[dl_whole_after(&r->w, "block", p->n_chunks * DL_N_TEMPLATES)],
        .wants = wants && p->n_tags ? dl_whole_word(&r->w, wants, p->n_tags) : DL_NO_TAG,
        .gives = gives ? dl_whole_word(&r->w, gives, DL_NO_TAG) : DL_NO_TAG};
    if (wants) item.from = dl_whole_after(&r->w, "from", n_stages);
    if (gives) item.to = dl_whole_after(&r->w, "to", n_stages);
    size_t n = p->n_sequence;
    p->sequence =
        n < r->sequence_capacity ? p->sequence : dl_grow(p->sequence, n, &r->sequence_capacity, sizeof *p->sequence);
    p->sequence[p->n_sequence++] = item;
}

/* ---- lines ---- */

static const struct {
    const char *word;
    void (*read)(struct reader *r);
    bool in_stage, in_block;
} lines[] = {{"digit", read_digit, false, false},
             {"sends", read_sends, false, false},
             {"servers", read_servers, false, false},
             {"barrier", read_barrier, false, false},
             {"simulates", read_simulates, false, false},
             {"collective", read_collective, false, false},
             {"copy", read_copy, false, false},
             {"stage", read_stage, false, false},
             {"block", read_block, true, false},
             {"begin", read_begin, true, false},
             {"alloc", read_alloc, true, false},
             {"free", read_free, true, false},
             {"end", read_end, true, false},
             {"work", read_work, true, true},
             {"start", read_start, true, true},
             {"wait", read_wait, true, true},
             {"drain", read_drain, true, true},
             {"item", read_item, true, false}};

static void read_line(struct reader *r, char *line)
{
    dl_split_words(&r->w, line);
    if (!r->w.n_words || r->w.words[0][0] == '#') return;
    size_t i = 0;
    while (i < DL_COUNT(lines) && strcmp(lines[i].word, r->w.words[0]) != 0) i++;
    if (i == DL_COUNT(lines)) {
        dl_refuse_words(&r->w, "'%.60s' begins no line of a program", r->w.words[0]);
        return;
    }
    if ((lines[i].in_stage && !r->program) || (lines[i].in_block && !r->into)) {
        dl_refuse_words(&r->w, r->program ? "'%s' must be in a block" : "'%s' must be in a stage", r->w.words[0]);
        return;
    }
    lines[i].read(r);
    for (size_t word = 1; word < r->w.n_words; word++)
        if (!r->w.used[word]) dl_refuse_words(&r->w, "'%.60s' means nothing here", r->w.words[word]);
}

static void read_lines(struct reader *r, char *text)
{
    static const char head[] = "dlsim program 1";
    for (char *line = text, *next; line && !r->w.err->status; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        r->w.line++;
        if (r->w.line > 1)
            read_line(r, line);
        else if (strcmp(line, head) != 0)
            dl_refuse_words(&r->w, "a program begins with the line \"%s\"", head);
    }
}

/* ---- what must fit together ---- */

/* Each tag of a stage is given once and wanted once, by the stage that it is said to come from, or not at all; messages
 * go to neighbours. */
static void check_tags(struct reader *r, const struct dl_program *p)
{
    const struct dl_read_step *const out = r->out;
    uint32_t *const given = dl_alloc((p->n_tags + 1) * sizeof *given), *const wanted = dl_alloc((p->n_tags + 1) * 4);
    for (uint32_t stage = 0; stage < out->n_programs; stage++)
        for (uint32_t i = 0; i < out->programs[stage].n_sequence; i++) {
            const struct dl_sequenced *const s = &out->programs[stage].sequence[i];
            if (s->gives == DL_NO_TAG || s->to != p->stage) continue;
            const uint32_t n = out->n_programs, apart = (p->stage + n - stage) % n;
            if (s->gives >= p->n_tags || given[s->gives]++ || (apart > 1 && apart < n - 1))
                dl_refuse_words(&r->w,
                                "item: a tag is given twice, is too large or goes to a stage that is no neighbour");
        }
    for (uint32_t i = 0; i < p->n_sequence; i++)
        if (p->sequence[i].wants != DL_NO_TAG && wanted[p->sequence[i].wants]++)
            dl_refuse_words(&r->w, "item: a tag is wanted twice");
    for (uint32_t i = 0; i < p->n_tags; i++)
        if (given[i] != wanted[i])
            dl_refuse_words(&r->w, "item: a tag is wanted and not given, or given and not wanted");
    dl_free(given);
    dl_free(wanted);
}

static void fuse(const struct dl_read_step *s, struct dl_template *t)
{
    dl_template_sum(t, s->calls);
    dl_template_fuse(t, s->calls, &s->step.plan);
}

static void finish(struct reader *r)
{
    struct dl_read_step *const out = r->out;
    out->step.plan.calls = out->is_simulated;
    const uint32_t n_stages = dl_ranks_count(&out->ranks, out->step.stages);
    if (!r->w.err->status && out->n_programs != n_stages)
        dl_refuse_words(&r->w, "must have as many stages as its digits say");
    for (uint32_t i = 0; i < out->n_programs && !r->w.err->status; i++) {
        struct dl_program *const p = &out->programs[i];
        if (p->n_sequence && p->sequence[p->n_sequence - 1].item.with_next)
            dl_refuse_words(&r->w, "the last item of a stage goes with one after it");
        check_tags(r, p);
        for (uint32_t k = 0; k < p->n_chunks * DL_N_TEMPLATES; k++) fuse(out, &p->items[k]);
        fuse(out, &p->end);
    }
    out->step.ranks = &out->ranks;
    out->step.programs = out->programs;
    out->step.calls = out->calls;
    out->step.n_calls = out->n_calls;
}

enum dl_status dl_step_read(char *text, const char *file, struct dl_arena *arena, struct dl_read_step *out,
                            struct dl_error *err)
{
    struct reader r = {.w = {.file = file, .err = err}, .arena = arena, .out = out};
    *out = (struct dl_read_step){0};
    read_lines(&r, text);
    finish(&r);
    return err->status;
}

void dl_read_step_release(struct dl_read_step *s)
{
    for (uint32_t i = 0; i < s->n_programs; i++) {
        struct dl_program *const p = &s->programs[i];
        for (uint32_t k = 0; k < p->n_chunks * DL_N_TEMPLATES; k++) dl_template_release(&p->items[k]);
        dl_program_release(p);
    }
    dl_free(s->programs);
    dl_free(s->calls);
    dl_free(s->is_simulated);
    *s = (struct dl_read_step){0};
}
