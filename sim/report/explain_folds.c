/* explain_folds.c - what a fold counts: the bytes of the most loaded link of all lanes, and the latencies that one
 * piece meets on its way. */
#include <math.h>

#include "sim/report/explain_parts.h"

static void book_folds(struct dl_counted *x)
{
    struct dl_estimator *const e = x->of->estimator;
    const struct dl_collective *const c = x->collective;
    dl_tally_clear(&e->all);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        double sent = 0;
        for (uint32_t which = 0; which < dl_fold_count(c, lane) && !x->err->status; which++) {
            struct dl_fold fold;
            dl_fold_lane(c, (struct dl_fold_of){lane, which, &e->all}, x->pace, &e->round, &fold, x->err);
            dl_fold_book(&fold, &e->all);
            sent = fmax(sent, fold.sent_bytes);
            x->n_steps = fmax(x->n_steps, fold.n_steps);
            if (dl_fold_kind(c) == DL_FOLD_SWITCH)
                dl_count_alpha(x, &(struct dl_alpha){.seconds = fold.latency_s, .is_mean = true}, 1);
            dl_fold_release(&fold);
        }
        x->sent_bytes += sent; /* a device serves all lanes */
    }
    dl_count_load(x, &e->all, 1);
}

/* A rank of a ring works in every round; of a tree once on the way up and once on the way down. */
static void add_work(struct dl_counted *x, uint32_t lane)
{
    const struct dl_collective *const c = x->collective;
    const bool once = dl_fold_kind(c) == DL_FOLD_TREE;
    struct dl_round_work sums[2] = {0};
    struct dl_round round;
    for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round); k++) {
        const struct dl_round_work one = dl_round_work(x, lane, &round);
        const double times = c->chunks * (once ? 1 : round.repeat);
        struct dl_round_work *const sum = &sums[round.reduce];
        if (once) *sum = (struct dl_round_work){0};
        sum->added_bytes += times * one.added_bytes;
        sum->packed_bytes += times * one.packed_bytes;
    }
    x->added_bytes += sums[0].added_bytes + sums[1].added_bytes;
    x->packed_bytes += sums[0].packed_bytes + sums[1].packed_bytes;
}

/* Where the slowest stretch of `rest` hops of a ring begins, and its latency. */
static double slowest_stretch(const struct dl_alpha *hops, uint32_t n, uint32_t rest, uint32_t *first)
{
    double window_s = 0, slowest_s;
    for (uint32_t i = 0; i < rest; i++) window_s += hops[i].seconds;
    slowest_s = window_s;
    *first = 0;
    for (uint32_t i = 0; i < n; i++) {
        window_s += hops[(i + rest) % n].seconds - hops[i].seconds;
        if (window_s <= slowest_s) continue;
        slowest_s = window_s;
        *first = i + 1;
    }
    return slowest_s;
}

static double payload_of_ring(const struct dl_counted *x, uint32_t lane)
{
    struct dl_round round;
    x->collective->algorithm->round(x->collective, lane, 0, &round);
    return dl_round_payload_bytes(x, lane, &round);
}

/* The hops that a piece meets, in the lane where they take longest. */
static void count_ring(struct dl_counted *x)
{
    const struct dl_collective *const c = x->collective;
    const uint32_t n = c->group->n, rest = (uint32_t)fmod(x->n_steps, n);
    const double turns = floor(x->n_steps / n);
    struct dl_alpha *hops = dl_alloc(n * sizeof *hops), *slowest = dl_alloc(n * sizeof *slowest);
    double slowest_s = -1;
    uint32_t slowest_first = 0;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c) && !x->err->status; lane++) {
        const double message = payload_of_ring(x, lane);
        double all_s = 0;
        uint32_t first;
        for (uint32_t i = 0, rank = 0; i < n; i++, rank = c->algorithm->peer(c, lane, 0, rank)) {
            if (!dl_alpha_of(x, rank, c->algorithm->peer(c, lane, 0, rank), message, NULL, &hops[i])) break;
            all_s += hops[i].seconds;
        }
        const double lane_s = turns * all_s + slowest_stretch(hops, n, rest, &first);
        if (lane_s <= slowest_s) continue;
        slowest_s = lane_s;
        slowest_first = first;
        struct dl_alpha *const other = slowest;
        slowest = hops;
        hops = other;
    }
    for (uint32_t i = 0; i < n && !x->err->status; i++)
        dl_count_alpha(x, &slowest[i], turns + ((i + n - slowest_first % n) % n < rest));
    dl_free(hops);
    dl_free(slowest);
}

void dl_count_fold(struct dl_counted *x)
{
    book_folds(x);
    if (dl_fold_kind(x->collective) == DL_FOLD_SWITCH) return; /* it has no rounds; its latency is that of the bundle */
    for (uint32_t lane = 0; lane < dl_collective_lanes(x->collective); lane++) add_work(x, lane);
    if (dl_fold_kind(x->collective) == DL_FOLD_RING)
        count_ring(x);
    else
        dl_count_latencies(x);
}
