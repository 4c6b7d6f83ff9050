/* step.c - a training step: the items of dlsim's schedule for this stage, one after the other, then the sums of
 * gradients and the update. */
#include <assert.h>
#include <string.h>

#include "strategies/recompute.h"
#include "validation/mpi/layers/units.h"

/* ---- what a micro-batch leaves behind ---- */

static void release_memo(struct dl_memo *memo)
{
    dl_rows_free(&memo->given);
    dl_rows_free(&memo->gradient);
    dl_free(memo->more);
    dl_free(memo->counts);
    *memo = (struct dl_memo){0};
}

static void release_units(const struct dl_real_layer *layer, struct dl_memo *memos)
{
    for (size_t i = 0; i < layer->n_units; i++) release_memo(&memos[i]);
}

static bool recomputes(const struct dl_train *t, const struct dl_position *p, size_t layer)
{
    return t->layers[layer].is->is_block &&
           dl_recompute_of(t->recomputed, (uint32_t)(layer - p->first_block)) == DL_RECOMPUTE_BLOCKS;
}

/* ---- strategies ---- */

static void need(struct dl_train *t, struct dl_real_layer *layer, enum dl_item_kind pass)
{
    for (size_t i = 0; i < t->n_strategies; i++)
        if (t->strategies[i]->need) t->strategies[i]->need(t, layer, pass);
}

static void leave(struct dl_train *t, struct dl_real_layer *layer, enum dl_item_kind pass)
{
    for (size_t i = 0; i < t->n_strategies; i++)
        if (t->strategies[i]->leave) t->strategies[i]->leave(t, layer, pass);
}

static void layer_done(struct dl_train *t, struct dl_real_layer *layer)
{
    layer->n_backwards--;
    for (size_t i = 0; i < t->n_strategies; i++)
        if (t->strategies[i]->layer_done) t->strategies[i]->layer_done(t, layer);
}

/* ---- passes through a layer ---- */

static struct dl_rows run_units(struct dl_train *t, const struct dl_real_layer *layer, struct dl_memo *memos,
                                struct dl_rows x)
{
    for (size_t i = 0; i < layer->n_units; i++) x = layer->units[i].kind->forward(t, &layer->units[i], &memos[i], x);
    return x;
}

static struct dl_rows forward(struct dl_train *t, const struct dl_position *p, size_t index, struct dl_memo *memos,
                              struct dl_rows x)
{
    struct dl_real_layer *const layer = &t->layers[index];
    const bool again = recomputes(t, p, index);
    need(t, layer, DL_ITEM_F);
    if (again) memos[layer->n_units].given = dl_rows_copy(x);
    x = run_units(t, layer, memos, x);
    if (again) release_units(layer, memos);
    leave(t, layer, DL_ITEM_F);
    return x;
}

static void recompute(struct dl_train *t, const struct dl_real_layer *layer, struct dl_memo *memos)
{
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_RECOMPUTE);
    t->again = true;
    struct dl_rows made = run_units(t, layer, memos, memos[layer->n_units].given);
    t->again = false;
    memos[layer->n_units].given = (struct dl_rows){0};
    dl_rows_free(&made);
    dl_switch_cause(&t->timeline, before);
}

static struct dl_rows backward(struct dl_train *t, const struct dl_position *p, size_t index, struct dl_memo *memos,
                               struct dl_rows dy)
{
    struct dl_real_layer *const layer = &t->layers[index];
    const bool splits = t->schedule.splits_backward;
    need(t, layer, DL_ITEM_B);
    if (recomputes(t, p, index)) recompute(t, layer, memos);
    for (size_t i = layer->n_units; i-- > 0;) {
        const struct dl_unit *const u = &layer->units[i];
        dy = u->kind->backward(t, u, &memos[i], dy);
        if (!splits && u->kind->weights) u->kind->weights(t, u, &memos[i]);
    }
    leave(t, layer, DL_ITEM_B);
    if (splits) return dy;
    release_units(layer, memos);
    layer_done(t, layer);
    return dy;
}

static void weights(struct dl_train *t, size_t index, struct dl_memo *memos)
{
    struct dl_real_layer *const layer = &t->layers[index];
    need(t, layer, DL_ITEM_W);
    for (size_t i = layer->n_units; i-- > 0;)
        if (layer->units[i].kind->weights) layer->units[i].kind->weights(t, &layer->units[i], &memos[i]);
    leave(t, layer, DL_ITEM_W);
    release_units(layer, memos);
    layer_done(t, layer);
}

/* ---- items ---- */

enum { most_together = 3 }; /* a forward with a backward and its weight gradients */

struct work {
    const struct dl_item *item;
    uint32_t index, position;
    const struct dl_position *at;
    struct dl_memo **memos; /* by layer of the position */
    struct dl_rows rows;    /* that came, then those that go */
};

/* What the first position begins with: rows as its first unit wants them. */
static struct dl_rows begin_with(const struct dl_train *t)
{
    struct dl_rows all = dl_inputs(t);
    if (t->input_is_whole) return all;
    const struct dl_range rows = dl_rows_outside(t), cols = dl_cols_outside(t, all.width);
    const struct dl_rows part = dl_rows_new(rows.n, cols.n);
    for (size_t i = 0; i < rows.n; i++)
        memcpy(part.at + i * cols.n, all.at + (rows.from + i) * all.width + cols.from, cols.n * sizeof *part.at);
    dl_rows_free(&all);
    return part;
}

static void receive(struct dl_train *t, struct work *w)
{
    const bool first = w->position == 0, last = w->position + 1 == t->schedule.n_positions;
    if (w->item->kind == DL_ITEM_F)
        w->rows = first ? begin_with(t) : dl_pipeline_receive(t, w->index, w->position - 1);
    else if (w->item->kind == DL_ITEM_B && !last)
        w->rows = dl_pipeline_receive(t, w->index, w->position + 1);
}

static void compute(struct dl_train *t, struct work *w)
{
    const size_t first = w->at->first_layer, end = w->at->end_layer;
    if (w->item->kind == DL_ITEM_F)
        for (size_t i = first; i < end; i++) w->rows = forward(t, w->at, i, w->memos[i - first], w->rows);
    else
        for (size_t i = end; i-- > first;)
            if (w->item->kind == DL_ITEM_B)
                w->rows = backward(t, w->at, i, w->memos[i - first], w->rows);
            else
                weights(t, i, w->memos[i - first]);
}

static void hand_on(struct dl_train *t, struct work *w)
{
    const bool first = w->position == 0, last = w->position + 1 == t->schedule.n_positions;
    if (w->item->kind == DL_ITEM_F && !last)
        dl_pipeline_send(t, w->index, w->position + 1, w->rows);
    else if (w->item->kind == DL_ITEM_B && !first)
        dl_pipeline_send(t, w->index, w->position - 1, w->rows);
    else
        dl_rows_free(&w->rows);
}

static void note_work(struct dl_train *t, uint32_t item, double from_s, const double before[DL_N_CAUSES])
{
    struct dl_rank_timeline *const l = &t->timeline;
    struct dl_moment work = {.kind = DL_SLICE_WORK,
                             .stage = t->at[DL_AXIS_PIPELINE],
                             .replica = t->at[DL_AXIS_DATA],
                             .item = item,
                             .from_s = from_s,
                             .to_s = l->since_s};
    for (int i = 0; i < DL_N_CAUSES; i++) work.by_cause[i] = l->by_cause[i] - before[i];
    if (l->records) dl_add_moment(&l->moments, work);
}

static struct work prepare_work(struct dl_train *t, uint32_t index)
{
    const struct dl_item *const item = &t->schedule.items[t->at[DL_AXIS_PIPELINE]][index];
    const struct dl_position *const at = dl_position_of(t, item->chunk);
    struct work w = {.item = item,
                     .index = index,
                     .position = (uint32_t)(at - t->positions),
                     .at = at,
                     .memos = t->memos[item->chunk * t->s->micros + item->micro]};
    t->micro = item->micro;
    receive(t, &w);
    return w;
}

static void do_work(struct dl_train *t, struct work *w)
{
    double before[DL_N_CAUSES];
    t->micro = w->item->micro;
    dl_switch_cause(&t->timeline, DL_CAUSE_COMPUTE);
    memcpy(before, t->timeline.by_cause, sizeof before);
    const double from_s = t->timeline.since_s;
    dl_pacer_begin(t->timeline.pacer, w->item);
    compute(t, w);
    dl_pacer_end(t->timeline.pacer);
    dl_switch_cause(&t->timeline, DL_CAUSE_COMPUTE);
    t->timeline.by_item[w->item->kind] += t->timeline.since_s - from_s;
    note_work(t, w->index, from_s, before);
}

static void finish_work(struct dl_train *t, struct work *w)
{
    t->micro = w->item->micro;
    hand_on(t, w);
}

/* Items of one step start when all that they need is there and hand on when all is done. Returns how many there are. */
static uint32_t run_items(struct dl_train *t, uint32_t index)
{
    const struct dl_item *const items = &t->schedule.items[t->at[DL_AXIS_PIPELINE]][index];
    struct work together[most_together];
    uint32_t n = 1;
    while (items[n - 1].with_next) n++;
    assert(n <= most_together);
    for (uint32_t i = 0; i < n; i++) together[i] = prepare_work(t, index + i);
    for (uint32_t i = 0; i < n; i++) do_work(t, &together[i]);
    for (uint32_t i = 0; i < n; i++) finish_work(t, &together[i]);
    return n;
}

/* ---- the step ---- */

static void begin_step(struct dl_train *t)
{
    t->loss = 0;
    for (uint32_t i = 0; i < t->n_stage_layers; i++)
        t->stage_layers[i]->n_backwards = t->s->micros / t->schedule.n_paths;
    for (size_t i = 0; i < t->n_buckets; i++) {
        struct dl_bucket *const b = &t->buckets[i];
        if (b->gradients) memset(b->gradients, 0, b->n * sizeof *b->gradients);
        if (b->own_gradients) memset(b->own_gradients, 0, b->own.n * sizeof *b->own_gradients);
    }
}

static void end_step(struct dl_train *t)
{
    double before[DL_N_CAUSES];
    dl_switch_cause(&t->timeline, DL_CAUSE_COMPUTE);
    memcpy(before, t->timeline.by_cause, sizeof before);
    const double from_s = t->timeline.since_s;
    dl_pacer_begin(t->timeline.pacer, NULL);
    for (size_t i = t->n_strategies; i-- > 0;)
        if (t->strategies[i]->sum) t->strategies[i]->sum(t);
    dl_switch_cause(&t->timeline, DL_CAUSE_OPTIMIZER);
    const double update_s = t->timeline.since_s;
    dl_optimizer_update(t);
    dl_switch_cause(&t->timeline, DL_CAUSE_COMPUTE);
    t->timeline.optimizer_s += t->timeline.since_s - update_s;
    for (size_t i = 0; i < t->n_strategies; i++)
        if (t->strategies[i]->updated) t->strategies[i]->updated(t);
    dl_pipeline_finish(t);
    dl_pacer_end(t->timeline.pacer);
    dl_switch_cause(&t->timeline, DL_CAUSE_COMPUTE);
    note_work(t, DL_END_OF_STEP, from_s, before);
}

void dl_train_items(struct dl_train *t)
{
    begin_step(t);
    const uint32_t n = t->schedule.n_items[t->at[DL_AXIS_PIPELINE]];
    for (uint32_t i = 0; i < n;) i += run_items(t, i);
}

void dl_train_step(struct dl_train *t)
{
    dl_train_items(t);
    end_step(t);
    t->step++;
}

/* ---- memos ---- */

void dl_train_prepare_memos(struct dl_train *t)
{
    const size_t micros = t->s->micros;
    t->memos = dl_arena_alloc(t->arena, t->s->chunks * micros * sizeof *t->memos);
    for (uint32_t chunk = 0; chunk < t->s->chunks; chunk++) {
        const struct dl_position *const p = dl_position_of(t, chunk);
        for (size_t micro = 0; micro < micros; micro++) {
            struct dl_memo **const layers = dl_arena_alloc(t->arena, (p->end_layer - p->first_layer) * sizeof *layers);
            for (size_t i = p->first_layer; i < p->end_layer; i++) {
                const size_t bytes = (t->layers[i].n_units + 1) * sizeof **layers;
                layers[i - p->first_layer] = dl_arena_alloc(t->arena, bytes);
                memset(layers[i - p->first_layer], 0, bytes);
            }
            t->memos[chunk * micros + micro] = layers;
        }
    }
}
