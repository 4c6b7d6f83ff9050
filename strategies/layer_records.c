#include "strategies/layer_records.h"

#include <string.h>

#include "strategies/position_records.h"

/* What a layer has added to a template; `at` of its memory counts from its first instruction. */
struct written {
    const struct dl_instruction *instructions;
    size_t n_instructions;
    const struct dl_memory_op *memory;
    size_t n_memory;
};

struct dl_layer_record {
    struct dl_layer_key key;
    struct written into, weights;
    const struct dl_sink_draw *draws;
    size_t n_draws;
    struct dl_layer_record *next; /* of the same class */
};

/* ---- classes ---- */

static bool are_alike(const struct dl_layer *a, const struct dl_layer *b)
{
    return memcmp(&a->name, &b->name, sizeof *a - offsetof(struct dl_layer, name)) == 0;
}

/* A class is the first of its layers. Kinds of blocks take turns, so it is enough to look a few layers back. */
void dl_layer_records_init(struct dl_sink *s)
{
    enum { most_kinds = 8 };
    const size_t n = s->request->model->n_layers;
    const struct dl_layer *const layers = s->out->layers;
    struct dl_layer_classes *const c = &s->classes;
    c->of = dl_arena_alloc(s->arena, n * sizeof *c->of);
    c->sizes = dl_arena_alloc(s->arena, n * sizeof *c->sizes);
    c->records = dl_arena_alloc(s->arena, n * sizeof *c->records);
    memset(c->sizes, 0, n * sizeof *c->sizes);
    for (size_t i = 0; i < n; i++) {
        c->of[i] = (uint32_t)i;
        for (size_t back = 1; back <= most_kinds && back <= i && c->of[i] == i; back++)
            if (are_alike(&layers[i], &layers[i - back])) c->of[i] = c->of[i - back];
        c->sizes[c->of[i]]++;
    }
    dl_layer_records_forget(s);
}

void dl_layer_records_forget(struct dl_sink *s)
{
    memset(s->classes.records, 0, s->request->model->n_layers * sizeof *s->classes.records);
}

/* Memory without a layer looks like that of the first, which is left out. */
bool dl_layer_may_come_again(const struct dl_sink *s, const struct dl_layer_key *key)
{
    const uint32_t index = key->layer->index;
    return !key->is_own && !s->request->layer_by_layer && index > 0 && s->classes.sizes[s->classes.of[index]] > 1;
}

struct dl_layer_key dl_layer_key_of(const struct dl_sink *s, const struct dl_event *layer, bool splits)
{
    struct dl_layer_key key = {.layer = layer->layer,
                               .pass = layer->pass,
                               .first_micro = layer->first_micro,
                               .last_micro = layer->last_micro,
                               .splits = splits};
    key.is_own = !dl_stack_place(s->request->job->stack, layer, &key.place);
    return key;
}

/* ---- what is noted ---- */

void dl_layer_note_begin(struct dl_sink *s)
{
    struct dl_sink_note *const note = &s->note;
    s->position.is_its_own |= note->is_its_own; /* by what came before the layer */
    note->into_from = s->into->n_instructions;
    note->into_memory_from = s->into->memory.n;
    note->weights_from = s->weights ? s->weights->n_instructions : 0;
    note->weights_memory_from = s->weights ? s->weights->memory.n : 0;
    note->n_draws = 0;
    note->is_open = true;
    note->is_its_own = false;
}

static void *copy(struct dl_arena *arena, const void *from, size_t bytes)
{
    return bytes ? memcpy(dl_arena_alloc(arena, bytes), from, bytes) : NULL;
}

static struct written memory_since(struct dl_arena *arena, const struct dl_memory_ops *ops, size_t from, size_t place)
{
    struct written out = {.n_memory = ops->n - from};
    struct dl_memory_op *const memory = copy(arena, ops->items + from, out.n_memory * sizeof *out.memory);
    for (size_t i = 0; i < out.n_memory; i++) memory[i].at -= place;
    out.memory = memory;
    return out;
}

static struct written since(struct dl_arena *arena, const struct dl_template *t, size_t from, size_t memory_from)
{
    if (!t) return (struct written){0};
    struct written out = memory_since(arena, &t->memory, memory_from, from + t->length - t->n_instructions);
    out.n_instructions = t->n_instructions - from;
    out.instructions = copy(arena, t->instructions + from, out.n_instructions * sizeof *out.instructions);
    return out;
}

static bool has_memory_of_others(const struct written *w, uint32_t layer)
{
    for (size_t i = 0; i < w->n_memory; i++)
        if (w->memory[i].layer != layer) return true;
    return false;
}

static struct dl_layer_record **list_of(const struct dl_sink *s, const struct dl_layer_key *key)
{
    return &s->classes.records[s->classes.of[key->layer->index]];
}

bool dl_layer_note_end(struct dl_sink *s, const struct dl_layer_key *key)
{
    struct dl_sink_note *const note = &s->note;
    note->is_open = false;
    if (note->is_its_own || !dl_layer_may_come_again(s, key)) return false;
    struct dl_layer_record *const record = dl_arena_alloc(s->arena, sizeof *record);
    struct dl_layer_record **const list = list_of(s, key);
    *record =
        (struct dl_layer_record){.key = *key,
                                 .into = since(s->arena, s->into, note->into_from, note->into_memory_from),
                                 .weights = since(s->arena, s->weights, note->weights_from, note->weights_memory_from),
                                 .draws = copy(s->arena, note->draws, note->n_draws * sizeof *note->draws),
                                 .n_draws = note->n_draws,
                                 .next = *list};
    if (has_memory_of_others(&record->into, key->layer->index) ||
        has_memory_of_others(&record->weights, key->layer->index))
        return false;
    *list = record;
    dl_template_note(s->into, record->into.n_instructions, &record->into);
    if (s->weights) dl_template_note(s->weights, record->weights.n_instructions, &record->weights);
    dl_position_note_draws(s, record->draws, record->n_draws);
    return true;
}

void dl_layer_note_held(struct dl_sink *s, const struct dl_layer_key *key, const struct dl_memory_ops *ops, size_t from,
                        size_t at)
{
    if (!dl_layer_may_come_again(s, key)) return;
    struct dl_layer_record *const record = dl_arena_alloc(s->arena, sizeof *record);
    struct dl_layer_record **const list = list_of(s, key);
    *record = (struct dl_layer_record){.key = *key, .into = memory_since(s->arena, ops, from, at), .next = *list};
    if (!has_memory_of_others(&record->into, key->layer->index)) *list = record;
}

/* ---- once more ---- */

static void write_memory(const struct written *w, uint32_t layer, size_t from, struct dl_memory_ops *to)
{
    if (!w->n_memory) return;
    struct dl_memory_op *const ops = dl_memory_ops_append(to, w->n_memory);
    memcpy(ops, w->memory, w->n_memory * sizeof *ops);
    for (size_t i = 0; i < w->n_memory; i++) {
        ops[i].at += from;
        ops[i].layer = layer;
    }
}

static void write(const struct written *w, uint32_t layer, struct dl_template *t)
{
    const size_t from = t->length;
    if (!dl_template_again(t, w)) {
        dl_template_append(t, w->instructions, w->n_instructions);
        dl_template_note(t, w->n_instructions, w);
    }
    write_memory(w, layer, from, &t->memory);
}

static bool fits(const struct dl_layer_key *a, const struct dl_layer_key *b)
{
    return a->pass == b->pass && a->place == b->place && a->first_micro == b->first_micro &&
           a->last_micro == b->last_micro && a->splits == b->splits;
}

bool dl_layers_alike(const struct dl_sink *s, const struct dl_layer_key *a, const struct dl_layer_key *b)
{
    return s->classes.of[a->layer->index] == s->classes.of[b->layer->index] && fits(a, b);
}

/* NULL: there is none. */
static const struct dl_layer_record *find(const struct dl_sink *s, const struct dl_layer_key *key)
{
    const struct dl_layer_record *record = dl_layer_may_come_again(s, key) ? *list_of(s, key) : NULL;
    while (record && !fits(&record->key, key)) record = record->next;
    return record;
}

bool dl_layer_hold_again(struct dl_sink *s, const struct dl_layer_key *key, struct dl_memory_ops *ops, size_t at)
{
    const struct dl_layer_record *const record = find(s, key);
    if (!record) return false;
    write_memory(&record->into, key->layer->index, at, ops);
    s->out->n_layers_again++;
    return true;
}

bool dl_layer_write_again(struct dl_sink *s, const struct dl_layer_key *key)
{
    const uint32_t index = key->layer->index;
    const struct dl_layer_record *const record = find(s, key);
    if (!record) return false;
    write(&record->into, index, s->into);
    if (s->weights) write(&record->weights, index, s->weights);
    dl_sink_count_draws(s, record->draws, record->n_draws);
    dl_position_note_draws(s, record->draws, record->n_draws);
    s->out->n_layers_again++;
    return true;
}
