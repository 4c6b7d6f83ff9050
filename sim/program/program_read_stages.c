/* program_read_stages.c - stages of a program's text: blocks, what is done in them, and the sequence of items. */
#include <string.h>

#include "sim/program/program_reader.h"

void dl_read_stage(struct dl_program_reader *r)
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
    dl_read_repeated_end(r);
    if (r->w.err->status) return;
    size_t n = out->n_programs;
    out->programs = n < r->capacity ? out->programs : dl_grow(out->programs, n, &r->capacity, sizeof *out->programs);
    r->program = &out->programs[out->n_programs++];
    *r->program = program;
    dl_program_make_own_items(r->program);
    r->into = NULL;
    r->memory = NULL;
    r->sequence_capacity = 0;
}

void dl_read_block(struct dl_program_reader *r)
{
    const uint32_t block = dl_whole_word(&r->w, dl_second_word(&r->w), r->program->n_chunks * DL_N_TEMPLATES);
    if (r->w.err->status) return;
    dl_read_repeated_end(r);
    r->into = r->program->items[block];
    r->memory = &r->into->memory;
}

void dl_read_end(struct dl_program_reader *r)
{
    dl_read_repeated_end(r);
    r->into = &r->program->end;
    r->memory = &r->into->memory;
}

void dl_read_begin(struct dl_program_reader *r)
{
    dl_read_repeated_end(r);
    r->into = NULL;
    r->memory = &r->program->begin;
}

static void read_memory_op(struct dl_program_reader *r, bool frees)
{
    const uint32_t most_layers = 1 << 17;
    const struct dl_memory_op op = {
        .frees = frees,
        .tensor = (enum dl_tensor_kind)dl_word_choice(&r->w, dl_second_word(&r->w), dl_tensor_names),
        .layer = dl_whole_after(&r->w, "layer", most_layers),
        .bytes = frees ? 0 : dl_number_after(&r->w, "bytes"),
        .at = dl_read_place(r)};
    if (!r->memory)
        dl_refuse_words(&r->w, "'%s' must be in a block", r->w.words[0]);
    else if (!r->into && frees)
        dl_refuse_words(&r->w, "nothing is there to free before the first step");
    else if (!r->w.err->status)
        dl_memory_ops_add(r->memory, op);
}

void dl_read_alloc(struct dl_program_reader *r) { read_memory_op(r, false); }
void dl_read_free(struct dl_program_reader *r) { read_memory_op(r, true); }

void dl_read_work(struct dl_program_reader *r)
{
    const char *const ground = dl_word_after(&r->w, "ground"), *const kernel = dl_word_after(&r->w, "kernel");
    const char *grounds[DL_N_GROUNDS + 1] = {NULL};
    for (int i = 0; i < DL_N_GROUNDS; i++) grounds[i] = dl_ground_name((enum dl_ground)i);
    const struct dl_instruction work = {
        .cause = dl_read_cause(r),
        .device_s = dl_number_after(&r->w, "device_s"),
        .host_s = dl_number_after(&r->w, "host_s"),
        .flop = dl_number_after(&r->w, "flop"),
        .bytes = dl_number_after(&r->w, "bytes"),
        .counted_flop = {[DL_FLOP_CAUSAL] = dl_number_after(&r->w, "causal_flop"),
                         [DL_FLOP_FULL] = dl_number_after(&r->w, "full_flop")},
        .kernel = kernel ? (enum dl_kernel_class)dl_word_choice(&r->w, kernel, dl_class_names) : DL_CLASS_NONE,
        .ground = ground ? (enum dl_ground)dl_word_choice(&r->w, ground, grounds) : DL_GROUND_NONE,
        .name = dl_arena_string(r->arena, dl_required_word(&r->w, "name"))};
    dl_read_instruction(r, &work);
}

static uint32_t call_of(struct dl_program_reader *r, const char *word)
{
    const uint32_t n = (uint32_t)r->out->n_calls;
    if (!n) dl_refuse_words(&r->w, "there is no collective to %s", r->w.words[0]);
    return n ? dl_whole_word(&r->w, word, n) : 0;
}

void dl_read_start(struct dl_program_reader *r)
{
    const uint32_t call = call_of(r, dl_second_word(&r->w));
    if (r->w.err->status) return;
    dl_read_instruction(r, &(struct dl_instruction){.kind = DL_START,
                                                    .name = dl_op_name(r->out->calls[call].op),
                                                    .host_s = dl_number_after(&r->w, "host_s"),
                                                    .call = call});
}

void dl_read_wait(struct dl_program_reader *r)
{
    const char *const which = dl_second_word(&r->w);
    const uint32_t call = strcmp(which, "all") == 0 ? DL_EVERY_CALL : call_of(r, which);
    dl_read_instruction(r,
                        &(struct dl_instruction){
                            .kind = DL_WAIT, .name = "wait", .host_s = dl_number_after(&r->w, "host_s"), .call = call});
}

void dl_read_drain(struct dl_program_reader *r)
{
    dl_read_instruction(
        r, &(struct dl_instruction){.kind = DL_DRAIN, .name = "drain", .host_s = dl_number_after(&r->w, "host_s")});
}

void dl_read_item(struct dl_program_reader *r)
{
    struct dl_program *const p = r->program;
    const uint32_t n_stages = dl_ranks_count(&r->out->ranks, r->out->step.stages);
    const char *const wants = dl_word_after(&r->w, "wants"), *const gives = dl_word_after(&r->w, "gives");
    struct dl_sequenced item = {
        .item = {.kind = (enum dl_item_kind)dl_word_choice(&r->w, dl_second_word(&r->w), dl_item_names),
                 .micro = dl_whole_after(&r->w, "micro", UINT32_MAX),
                 .chunk = dl_whole_after(&r->w, "chunk", p->n_chunks),
                 .with_next = dl_has_word(&r->w, "with_next")},
        .block = dl_whole_after(&r->w, "block", p->n_chunks * DL_N_TEMPLATES),
        .wants = wants && p->n_tags ? dl_whole_word(&r->w, wants, p->n_tags) : DL_NO_TAG,
        .gives = gives ? dl_whole_word(&r->w, gives, DL_NO_TAG) : DL_NO_TAG};
    if (wants) item.from = dl_whole_after(&r->w, "from", n_stages);
    if (gives) item.to = dl_whole_after(&r->w, "to", n_stages);
    size_t n = p->n_sequence;
    p->sequence =
        n < r->sequence_capacity ? p->sequence : dl_grow(p->sequence, n, &r->sequence_capacity, sizeof *p->sequence);
    p->sequence[p->n_sequence++] = item;
}
