/* zero.c - replicas keep and update a part each of what they hold in common (ZeRO, SC20).
 *
 * Stages 1 and 2 scatter the sums of gradients, once a step, and gather updated parameters; stage 2 keeps of the sums
 * only its own part. Stage 3 has a bucket for each layer, whose parameters it gathers before every use and forgets
 * after, and whose gradients it scatters after every backward. All of this goes on beside the work. */
#include <string.h>

#include "validation/mpi/queue.h"

static void scatter(struct dl_train *t, struct dl_bucket *b, const struct dl_team *team)
{
    dl_ring_scatter(team, b->gradients, b->n);
    if (t->s->zero_stage < 2) return;
    for (size_t i = 0; i < b->own.n; i++) b->own_gradients[i] += b->gradients[b->own.from + i];
    if (t->s->zero_stage < 3) memset(b->gradients, 0, b->n * sizeof *b->gradients);
}

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    if (t->s->shard_ways && t->s->shard_ways != t->s->ways[DL_AXIS_DATA])
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'shard_ways' is not trained; leave it out");
    if (dl_option_number(level, "gather_bits") > 0)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'gather_bits' is not trained; leave it out");
    if (t->s->secondary_ways)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'secondary_ways' is not trained; leave it out");
    if (t->s->zero_stage == 3 && !dl_option_number(level, "reshard"))
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'reshard' must be true to be trained");
    if (t->s->zero_stage == 2 && dl_keeps_shards(t->s))
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "stage 2 is trained with data's 'when' end only");
    if (t->s->zero_stage == 3 && dl_accumulated(t->s) != DL_ACCUMULATES_SHARDS)
        return dl_fail(err, DL_IMPOSSIBLE, level->where,
                       "stage 3 scatters in every micro-batch; leave out data's 'when'");
    if (dl_check_buckets(t, level, err)) return err->status;
    t->by_layer = t->s->zero_stage == 3;
    t->gathers_ahead = dl_option_number(level, "prefetch");
    t->exchange = scatter;
    t->exchange_op = DL_REDUCESCATTER;
    return DL_OK;
}

static dl_real *own_copy(const struct dl_bucket *b, const dl_real *all)
{
    dl_real *const own = dl_alloc((b->own.n + 1) * sizeof *own);
    if (all) memcpy(own, all + b->own.from, b->own.n * sizeof *own);
    return own;
}

static void prepare(struct dl_train *t)
{
    for (size_t i = 0; i < t->n_buckets; i++) {
        struct dl_bucket *const b = &t->buckets[i];
        const struct dl_team *const team = &t->replicas[b->set];
        b->own = dl_part_of(b->n, (size_t)team->rank, (size_t)team->n);
        if (t->s->zero_stage >= 2) b->own_gradients = own_copy(b, NULL);
        if (t->s->zero_stage < 3) continue;
        b->own_values = own_copy(b, b->values);
        dl_free(b->values);
        dl_free(b->gradients);
        b->values = b->gradients = NULL;
    }
    if (t->by_layer && !t->queue) t->queue = dl_queue_new(t);
}

/* ---- stage 3: on the queue, so that layers ahead are gathered while this one is at work ---- */

static void gather(struct dl_train *t, struct dl_bucket *b)
{
    const double from_s = dl_now_s(&t->timeline);
    b->values = dl_room(b->n);
    memcpy(b->values + b->own.from, b->own_values, b->own.n * sizeof *b->values);
    dl_ring_gather(dl_exchange_team(t, b->set), b->values, b->n);
    if (t->replicas[b->set].n > 1) dl_note_exchange(t, b, DL_ALLGATHER, from_s);
}

static void give_away(struct dl_train *t, struct dl_bucket *b)
{
    if (t->replicas[b->set].n > 1)
        dl_exchange_now(t, b);
    else
        scatter(t, b, dl_exchange_team(t, b->set));
    dl_free(b->gradients);
    b->gradients = NULL;
}

/* Buckets of a layer, of which there is one for each set that it has parameters of. */
static struct dl_bucket *next_bucket(struct dl_train *t, const struct dl_real_layer *layer, struct dl_bucket *after)
{
    for (struct dl_bucket *b = after ? after + 1 : t->buckets; b < t->buckets + t->n_buckets; b++)
        if (t->stage_layers[b->first_layer] == layer) return b;
    return NULL;
}

/* The position that holds the layer. */
static const struct dl_position *position_of(const struct dl_train *t, size_t layer)
{
    const struct dl_position *p = t->positions;
    while (layer >= p->end_layer) p++;
    return p;
}

/* This layer, and those that follow in the pass at this position: they come in the same item. */
static void ask(struct dl_train *t, const struct dl_real_layer *layer, enum dl_item_kind pass)
{
    const size_t at = (size_t)(layer - t->layers);
    const struct dl_position *const p = position_of(t, at);
    const size_t follow = pass == DL_ITEM_F ? p->end_layer - 1 - at : at - p->first_layer;
    const size_t ahead = t->gathers_ahead < 0 ? follow : (size_t)t->gathers_ahead;
    for (size_t i = 0; i <= ahead && i <= follow; i++) {
        const struct dl_real_layer *const next = pass == DL_ITEM_F ? layer + i : layer - i;
        for (struct dl_bucket *b = next_bucket(t, next, NULL); b; b = next_bucket(t, next, b)) {
            if (!b->asked) dl_queue_add(t->queue, gather, b);
            b->asked = true;
        }
    }
}

static void need(struct dl_train *t, struct dl_real_layer *layer, enum dl_item_kind pass)
{
    const bool makes_gradients = t->schedule.splits_backward ? pass == DL_ITEM_W : pass == DL_ITEM_B;
    if (!t->by_layer) return;
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_DATA);
    if (pass != DL_ITEM_W) ask(t, layer, pass);
    for (struct dl_bucket *b = next_bucket(t, layer, NULL); b; b = next_bucket(t, layer, b))
        dl_queue_wait(t->queue, b); /* for gradients of the micro-batch before, too */
    dl_switch_cause(&t->timeline, before);
    for (struct dl_bucket *b = next_bucket(t, layer, NULL); b; b = next_bucket(t, layer, b)) {
        if (makes_gradients) b->gradients = dl_alloc(b->n * sizeof *b->gradients);
        dl_bucket_point(t, b);
    }
}

static void leave(struct dl_train *t, struct dl_real_layer *layer, enum dl_item_kind pass)
{
    if (!t->by_layer || pass == DL_ITEM_W) return;
    for (struct dl_bucket *b = next_bucket(t, layer, NULL); b; b = next_bucket(t, layer, b)) {
        dl_free(b->values);
        b->values = NULL;
        b->asked = false;
    }
}

static void layer_done(struct dl_train *t, struct dl_real_layer *layer)
{
    if (!t->by_layer) return;
    for (struct dl_bucket *b = next_bucket(t, layer, NULL); b; b = next_bucket(t, layer, b))
        dl_queue_add(t->queue, give_away, b);
}

/* ---- stages 1 and 2: all updated parameters at once ---- */

/* The part of a member, bucket by bucket; to `packed` or from it. */
static size_t copy_part(struct dl_train *t, enum dl_set set, size_t member, dl_real *packed, bool back)
{
    size_t at = 0;
    for (size_t i = 0; i < t->n_buckets; i++) {
        const struct dl_bucket *const b = &t->buckets[i];
        if (b->set != set) continue;
        const struct dl_range part = dl_part_of(b->n, member, (size_t)t->replicas[set].n);
        dl_real *const there = b->values + part.from;
        if (packed) memcpy(back ? there : packed + at, back ? packed + at : there, part.n * sizeof *there);
        at += part.n;
    }
    return at;
}

static void gather_set(struct dl_train *t, enum dl_set set)
{
    const struct dl_team *const team = &t->replicas[set];
    const size_t members = (size_t)team->n, me = (size_t)team->rank;
    size_t *const bytes = dl_alloc(2 * members * sizeof *bytes), *const offset = bytes + members;
    size_t all = 0;
    for (size_t i = 0; i < members; i++) {
        offset[i] = all;
        bytes[i] = copy_part(t, set, i, NULL, false) * sizeof(dl_real);
        all += bytes[i];
    }
    if (members > 1 && all) {
        dl_real *const packed = dl_room(all / sizeof *packed);
        copy_part(t, set, me, packed + offset[me] / sizeof *packed, false);
        dl_pacer_reach(t->timeline.pacer, DL_START, DL_CAUSE_DATA);
        dl_ring_gather_bytes(team, packed, bytes, offset);
        for (size_t i = 0; i < members; i++) copy_part(t, set, i, packed + offset[i] / sizeof *packed, true);
        dl_free(packed);
    }
    dl_free(bytes);
}

static void updated(struct dl_train *t)
{
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_DATA);
    for (int set = 0; set < DL_N_SETS && t->s->zero_stage < 3; set++) gather_set(t, (enum dl_set)set);
    dl_switch_cause(&t->timeline, before);
}

const struct dl_real_strategy dl_real_zero = {.name = "zero",
                                              .begin = begin,
                                              .prepare = prepare,
                                              .need = need,
                                              .leave = leave,
                                              .layer_done = layer_done,
                                              .updated = updated};
