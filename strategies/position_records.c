#include "strategies/position_records.h"

#include <string.h>

#include "strategies/layer_records.h"
#include "strategies/lower_layers.h"

struct dl_position_keys {
    size_t n;
    struct dl_layer_key layers[]; /* in all passes */
};

struct dl_position_record {
    const struct dl_position *of;
    const struct dl_position_keys *keys;
    const struct dl_sink_draws *draws;
    size_t n_draws;
    struct dl_position_record *next;
};

/* As far as that can be told without asking the stack. */
static bool may_come_again(const struct dl_sink *s, const struct dl_position *p)
{
    if (s->out->n_positions == 1) return false;
    for (size_t i = p->first_layer; i < p->end_layer; i++)
        if (!dl_layer_may_come_again(s, &(struct dl_layer_key){.layer = &s->out->layers[i]})) return false;
    return true;
}

const struct dl_position_keys *dl_position_note_begin(struct dl_sink *s, const struct dl_position *p, bool splits)
{
    enum { most_passes = 4 };
    struct dl_position_note *const note = &s->position;
    note->n_draws = 0;
    note->is_its_own = true;
    s->note.is_its_own = false;
    if (!may_come_again(s, p)) return NULL;
    struct dl_position_keys *const keys =
        dl_arena_alloc(s->arena, sizeof *keys + most_passes * (p->end_layer - p->first_layer) * sizeof *keys->layers);
    keys->n = dl_position_keys(s, p, splits, keys->layers);
    for (size_t i = 0; i < keys->n; i++)
        if (!dl_layer_may_come_again(s, &keys->layers[i])) return NULL;
    note->is_its_own = false;
    return keys;
}

static void *copy(struct dl_arena *arena, const void *from, size_t bytes)
{
    return memcpy(dl_arena_alloc(arena, bytes), from, bytes);
}

void dl_position_note_draws(struct dl_sink *s, const struct dl_sink_draw *draws, size_t n)
{
    struct dl_position_note *const note = &s->position;
    if (note->is_its_own || !s->counted || !n) return;
    DL_GROW(note->draws, note->n_draws, note->draws_capacity);
    note->draws[note->n_draws++] = (struct dl_sink_draws){draws, n};
}

void dl_position_note_draw(struct dl_sink *s, const struct dl_sink_draw *draw)
{
    if (!s->position.is_its_own) dl_position_note_draws(s, copy(s->arena, draw, sizeof *draw), 1);
}

static bool has_memory_of_others(const struct dl_position *p)
{
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++) {
        const struct dl_memory_ops *const memory = &p->items[kind].memory;
        for (size_t i = 0; i < memory->n; i++)
            if (dl_memory_layer(memory, i) < p->first_layer || dl_memory_layer(memory, i) >= p->end_layer) return true;
    }
    return false;
}

void dl_position_note_end(struct dl_sink *s, const struct dl_position_keys *keys, const struct dl_position *p)
{
    struct dl_position_note *const note = &s->position;
    if (!keys || note->is_its_own || s->note.is_its_own || has_memory_of_others(p)) return;
    struct dl_position_record *const record = dl_arena_alloc(s->arena, sizeof *record);
    *record = (struct dl_position_record){.of = p, .keys = keys, .n_draws = note->n_draws, .next = note->records};
    if (note->n_draws) record->draws = copy(s->arena, note->draws, note->n_draws * sizeof *note->draws);
    note->records = record;
}

static bool fits(const struct dl_sink *s, const struct dl_position_record *r, const struct dl_position_keys *keys,
                 const struct dl_position *p)
{
    if (r->keys->n != keys->n || r->of->is_sent_input != p->is_sent_input ||
        r->of->is_sent_gradient != p->is_sent_gradient)
        return false;
    for (size_t i = 0; i < keys->n; i++)
        if (!dl_layers_alike(s, &r->keys->layers[i], &keys->layers[i])) return false;
    return true;
}

bool dl_position_write_again(struct dl_sink *s, const struct dl_position_keys *keys, struct dl_position *p)
{
    const struct dl_position_record *record = keys ? s->position.records : NULL;
    while (record && !fits(s, record, keys, p)) record = record->next;
    if (!record) return false;
    const uint32_t further = (uint32_t)(p->first_layer - record->of->first_layer);
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++)
        dl_template_share(&p->items[kind], &record->of->items[kind], further);
    for (size_t i = 0; i < record->n_draws; i++) dl_sink_count_draws(s, record->draws[i].items, record->draws[i].n);
    s->out->n_layers_again += keys->n;
    return true;
}
