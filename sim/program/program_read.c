/* program_read.c - the programs of a step from text: see program_text.h. */
#include <string.h>

#include "sim/program/program_reader.h"
#include "sim/program/repeats.h"
#include "sim/program/segments.h"

enum dl_cause dl_read_cause(struct dl_program_reader *r)
{
    const char *names[DL_N_CAUSES + 1] = {NULL};
    for (int i = 0; i < DL_N_CAUSES; i++) names[i] = dl_cause_name((enum dl_cause)i);
    return (enum dl_cause)dl_word_choice(&r->w, dl_required_word(&r->w, "cause"), names);
}

/* ---- the step ---- */

static void read_digit(struct dl_program_reader *r)
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

static void read_sends(struct dl_program_reader *r)
{
    struct dl_step *const step = &r->out->step;
    step->sends = (enum dl_sends)dl_word_choice(&r->w, dl_second_word(&r->w), dl_sends_names);
    step->send_host_s = dl_number_after(&r->w, "host_s");
    step->send_messages = dl_number_after(&r->w, "messages");
    step->drains_at_sends = dl_has_word(&r->w, "drains");
    step->drains_at_receives = step->drains_at_sends || dl_has_word(&r->w, "receives_drain");
}

static void read_servers(struct dl_program_reader *r)
{
    r->out->step.n_servers = dl_whole_word(&r->w, dl_second_word(&r->w), 1 << 20);
}

static void read_barrier(struct dl_program_reader *r) { r->out->step.has_barrier = true; }

static void read_simulates(struct dl_program_reader *r)
{
    const char *const word = dl_second_word(&r->w);
    bool *const planned = dl_arena_alloc(r->arena, strlen(word) + 1);
    for (size_t i = 0; word[i]; i++) planned[i] = word[i] == '1';
    const struct dl_ranks *const ranks = &r->out->ranks;
    if (strlen(word) != dl_ranks_count(ranks, r->out->step.stages | r->out->step.replicas))
        dl_refuse_words(&r->w, "needs a 0 or 1 for each stage of each replica");
    r->out->step.plan.lockstep_groups = planned;
}

/* ---- lines ---- */

static const struct {
    const char *word;
    void (*read)(struct dl_program_reader *r);
    bool in_stage, in_block;
} lines[] = {{"digit", read_digit, false, false},         {"sends", read_sends, false, false},
             {"servers", read_servers, false, false},     {"barrier", read_barrier, false, false},
             {"simulates", read_simulates, false, false}, {"collective", dl_read_collective, false, false},
             {"copy", dl_read_copy, false, false},        {"stage", dl_read_stage, false, false},
             {"block", dl_read_block, true, false},       {"begin", dl_read_begin, true, false},
             {"alloc", dl_read_alloc, true, false},       {"free", dl_read_free, true, false},
             {"end", dl_read_end, true, false},           {"work", dl_read_work, true, true},
             {"start", dl_read_start, true, true},        {"wait", dl_read_wait, true, true},
             {"drain", dl_read_drain, true, true},        {"item", dl_read_item, true, false},
             {"repeated", dl_read_repeated, true, true}};

static void read_line(struct dl_program_reader *r, char *line)
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

static void read_lines(struct dl_program_reader *r, char *text)
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
static void check_tags(struct dl_program_reader *r, const struct dl_program *p)
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

static void finish(struct dl_program_reader *r)
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
        dl_read_repeated_end(r);
        check_tags(r, p);
        dl_program_note_sequence(p);
        for (uint32_t k = 0; k < p->n_chunks * DL_N_TEMPLATES; k++) fuse(out, p->items[k]);
        fuse(out, &p->end);
    }
    if (!r->w.err->status) dl_repeats_note(out->programs, out->n_programs);
    out->step.ranks = &out->ranks;
    out->step.programs = out->programs;
    out->step.calls = out->calls;
    out->step.n_calls = out->n_calls;
}

enum dl_status dl_step_read(char *text, const char *file, struct dl_arena *arena, struct dl_read_step *out,
                            struct dl_error *err)
{
    struct dl_program_reader r = {.w = {.file = file, .err = err}, .arena = arena, .out = out};
    *out = (struct dl_read_step){0};
    read_lines(&r, text);
    finish(&r);
    return err->status;
}

void dl_read_step_release(struct dl_read_step *s)
{
    for (uint32_t i = 0; i < s->n_programs; i++) dl_program_release(&s->programs[i]);
    dl_free(s->programs);
    dl_free(s->calls);
    dl_free(s->is_simulated);
    *s = (struct dl_read_step){0};
}
