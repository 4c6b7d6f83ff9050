/* data.c - gradients are summed over replicas, at the end or bucket by bucket while the last backward goes on. */
#include <math.h>

#include "strategies/choices.h"
#include "validation/mpi/queue.h"

static void sum_bucket(struct dl_train *t, struct dl_bucket *b, const struct dl_team *team)
{
    const double bytes = (double)(b->n * sizeof(dl_real));
    const bool in_parts = !t->overlap && t->bucket_bytes > 0;
    const size_t parts = in_parts ? (size_t)ceil(bytes / t->bucket_bytes) : 1;
    for (size_t i = 0; i < parts; i++) {
        const struct dl_range part = dl_part_of(b->n, i, parts);
        if (i) dl_pacer_reach(t->timeline.pacer, DL_START, DL_CAUSE_DATA);
        t->of_gradients->sum(team, b->gradients + part.from, part.n);
    }
}

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    const double exchange = dl_option_number(level, "exchange");
    if (t->s->sums_when == DL_WHEN_MICRO)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'when' must be end to be trained");
    if (exchange > DL_SUM_SERVERS)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'exchange' must be allreduce or parameter_server");
    if (exchange == DL_SUM_SERVERS && t->s->expert_ways > 1)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'exchange' must be allreduce beside expert to be trained");
    t->of_gradients = exchange == DL_SUM_SERVERS ? &dl_sum_parameter_server : t->algorithm;
    t->overlap = dl_option_number(level, "overlap") != 0;
    t->bucket_bytes = dl_option_number(level, "bucket_bytes");
    t->exchange = sum_bucket;
    return DL_OK;
}

enum dl_status dl_check_buckets(const struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    if (t->overlap || t->bucket_bytes <= 0) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, level->where, "beside it data's bucket_bytes needs overlap to be trained");
}

static void prepare(struct dl_train *t)
{
    if (t->overlap) t->queue = dl_queue_new(t);
}

void dl_note_exchange(struct dl_train *t, const struct dl_bucket *b, enum dl_op op, double from_s)
{
    if (!t->timeline.records) return;
    dl_add_moment(&t->timeline.exchanges, (struct dl_moment){.kind = DL_SLICE_EXCHANGE,
                                                             .stage = t->at[DL_AXIS_PIPELINE],
                                                             .replica = t->at[DL_AXIS_DATA],
                                                             .item = DL_END_OF_STEP,
                                                             .cause = DL_CAUSE_DATA,
                                                             .op = op,
                                                             .from_s = from_s,
                                                             .to_s = dl_now_s(&t->timeline),
                                                             .bytes = (double)(b->n * sizeof(dl_real))});
}

const struct dl_team *dl_exchange_team(const struct dl_train *t, enum dl_set set)
{
    return t->queue ? &t->beside[set] : &t->replicas[set];
}

void dl_exchange_now(struct dl_train *t, struct dl_bucket *b)
{
    const struct dl_team *const team = dl_exchange_team(t, b->set);
    const double from_s = dl_now_s(&t->timeline);
    if (team->n == 1) return;
    t->exchange(t, b, team);
    dl_note_exchange(t, b, t->exchange_op, from_s);
}

static bool is_complete(const struct dl_train *t, const struct dl_bucket *b)
{
    for (uint32_t i = 0; i < b->n_layers; i++)
        if (t->stage_layers[b->first_layer + i]->n_backwards) return false;
    return true;
}

/* The layer that completes a bucket sends it on its way. */
static void layer_done(struct dl_train *t, struct dl_real_layer *layer)
{
    if (!t->queue || t->by_layer) return;
    for (size_t i = 0; i < t->n_buckets; i++) {
        struct dl_bucket *const b = &t->buckets[i];
        for (uint32_t j = b->first_layer; j < b->first_layer + b->n_layers; j++)
            if (t->stage_layers[j] == layer && is_complete(t, b)) dl_queue_add(t->queue, dl_exchange_now, b);
    }
}

static void sum(struct dl_train *t)
{
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_DATA);
    if (t->queue) dl_queue_wait(t->queue, NULL);
    for (size_t i = 0; i < t->n_buckets && !t->queue && !t->by_layer; i++) {
        if (t->replicas[t->buckets[i].set].n > 1) dl_pacer_reach(t->timeline.pacer, DL_START, DL_CAUSE_DATA);
        dl_exchange_now(t, &t->buckets[i]);
    }
    dl_switch_cause(&t->timeline, before);
}

const struct dl_real_strategy dl_real_data = {
    .name = "data", .begin = begin, .prepare = prepare, .layer_done = layer_done, .sum = sum};
