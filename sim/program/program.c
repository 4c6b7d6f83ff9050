#include "sim/program/program.h"

#include <assert.h>
#include <string.h>

const char *const dl_flop_counts[] = {"causal", "full", NULL};

const char *dl_ground_name(enum dl_ground ground)
{
    static const char *const names[DL_N_GROUNDS] = {[DL_GROUND_NONE] = "none",
                                                    [DL_GROUND_MEASURED] = "measured",
                                                    [DL_GROUND_INTERPOLATED] = "interpolated",
                                                    [DL_GROUND_MODELLED] = "modelled"};
    return names[ground];
}

void dl_template_add(struct dl_template *t, const struct dl_instruction *instruction)
{
    assert(!t->like);
    DL_GROW(t->instructions, t->n_instructions, t->capacity);
    t->instructions[t->n_instructions++] = *instruction;
    t->length++;
}

void dl_template_append(struct dl_template *t, const struct dl_instruction *instructions, size_t n)
{
    assert(!t->like);
    if (!n) return;
    t->instructions = dl_reserve(t->instructions, t->n_instructions + n, &t->capacity, sizeof *t->instructions);
    memcpy(&t->instructions[t->n_instructions], instructions, n * sizeof *instructions);
    t->n_instructions += n;
    t->length += n;
}

void dl_template_insert(struct dl_template *t, size_t at, const struct dl_instruction *instruction)
{
    const size_t place = at + t->length - t->n_instructions;
    const struct dl_repeated *const last = t->n_repeated ? &t->repeated[t->n_repeated - 1] : NULL;
    assert(!last || last->first + last->n <= at);
    dl_template_add(t, instruction);
    memmove(&t->instructions[at + 1], &t->instructions[at], (t->n_instructions - 1 - at) * sizeof *t->instructions);
    t->instructions[at] = *instruction;
    for (size_t i = t->memory.n; i-- > 0 && t->memory.items[i].at > place;) t->memory.items[i].at++;
}

void dl_template_release(struct dl_template *t)
{
    if (!t->like) {
        dl_free(t->memory.items);
        dl_free(t->instructions);
        dl_free(t->repeated);
        dl_free(t->planned.items);
        dl_free(t->priced.items);
    }
    *t = (struct dl_template){0};
}

void dl_template_share(struct dl_template *t, const struct dl_template *other, uint32_t further)
{
    assert(!t->length && !t->memory.n && !other->like);
    *t = *other;
    t->memory.further += further;
    t->like = other;
}

void dl_program_make_items(struct dl_program *p)
{
    p->items = dl_alloc(dl_program_n_items(p) * sizeof(struct dl_template *));
}

void dl_program_make_own_items(struct dl_program *p)
{
    dl_program_make_items(p);
    p->own = dl_alloc(dl_program_n_items(p) * sizeof *p->own);
    for (uint32_t i = 0; i < dl_program_n_items(p); i++) p->items[i] = &p->own[i];
}

void dl_program_note_sequence(struct dl_program *p)
{
    const size_t n_blocks = (size_t)p->n_chunks * DL_N_TEMPLATES;
    dl_free(p->uses);
    dl_free(p->blocks);
    p->uses = dl_alloc((n_blocks + 1) * sizeof *p->uses);
    p->blocks = dl_alloc((n_blocks + 1) * sizeof *p->blocks);
    p->n_blocks = 0;
    for (uint32_t i = 0; i < p->n_sequence; i++)
        if (!p->uses[p->sequence[i].block]++) p->blocks[p->n_blocks++] = p->sequence[i].block;
}

void dl_program_share_sequence(struct dl_program *p, const struct dl_program *other)
{
    dl_program_release_sequence(p);
    p->sequence = other->sequence;
    p->n_sequence = other->n_sequence;
    p->n_tags = other->n_tags;
    p->uses = other->uses;
    p->blocks = other->blocks;
    p->n_blocks = other->n_blocks;
    p->repeats = other->repeats;
    p->shares_sequence = true;
}

void dl_program_release_sequence(struct dl_program *p)
{
    if (!p->shares_sequence) {
        dl_free(p->sequence);
        dl_free(p->uses);
        dl_free(p->blocks);
    }
    p->sequence = NULL;
    p->uses = p->blocks = NULL;
    p->n_sequence = p->n_blocks = 0;
    p->shares_sequence = false;
}

void dl_program_release(struct dl_program *p)
{
    for (uint32_t i = 0; p->own && i < dl_program_n_items(p); i++) dl_template_release(&p->own[i]);
    dl_free(p->own);
    dl_free(p->items);
    dl_program_release_sequence(p);
    dl_free(p->begin.items);
    dl_template_release(&p->end);
    *p = (struct dl_program){0};
}
