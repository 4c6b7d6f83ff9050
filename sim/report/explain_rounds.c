/* explain_rounds.c - what a collective counts round by round: the slowest latency, the most loaded link, what is added.
 */
#include <math.h>

#include "sim/report/explain_parts.h"

/* Rounds that go together: the slowest latency of them, all of their bytes. */
struct group {
    struct dl_alpha alpha;
    double latency_s, repeat;
};

/* All messages of a lane's round, on the links of all lanes. */
static void add_messages(struct dl_counted *x, uint32_t lane, uint32_t k, const struct dl_round *round, struct group *g)
{
    struct dl_estimator *const e = x->of->estimator;
    const struct dl_collective *const c = x->collective;
    const double payload = dl_round_payload_bytes(x, lane, round);
    struct dl_booked booked = {.tally = &e->round,
                               .topology = e->topology,
                               .message_bytes = round->repeat * payload / dl_pace_fraction(x->pace, payload)};
    const struct dl_load load = {.wanted_bytes_per_s = dl_booked_bytes_per_s, .user = &booked};
    struct dl_alpha slowest = {0}, one;
    double all_s = 0;
    for (uint32_t rank = 0; rank < dl_collective_ranks(c); rank++) {
        const uint32_t to = c->algorithm->peer(c, lane, k, rank);
        if (to == DL_NOBODY) continue;
        if (!dl_alpha_of(x, rank, to, payload, &load, &one)) return;
        if (one.seconds >= slowest.seconds) slowest = one;
        all_s += one.seconds;
        const double bytes = round->repeat * dl_pace_wire_bytes(x->pace, &x->route, payload, payload);
        for (size_t i = 0; i < x->route.n_hops; i++) {
            dl_tally_add(&e->round, x->route.hops[i].link, bytes * x->route.hops[i].weight);
            dl_tally_add(&e->all, x->route.hops[i].link, bytes * x->route.hops[i].weight);
        }
    }
    const double mean_s = dl_round_latency_s(round, dl_collective_ranks(c), slowest.seconds, all_s);
    slowest.is_mean = mean_s < slowest.seconds;
    slowest.seconds = mean_s;
    if (round->repeat * mean_s < g->latency_s) return;
    g->latency_s = round->repeat * mean_s;
    g->alpha = slowest;
    g->repeat = round->repeat;
}

static void add_lanes(struct dl_counted *x, uint32_t k, bool only_latencies, struct group *g)
{
    const struct dl_collective *const c = x->collective;
    struct dl_round_work most = {0};
    double steps = 0;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c) && !x->err->status; lane++) {
        struct dl_round round;
        if (!c->algorithm->round(c, lane, k, &round)) continue;
        const struct dl_round_work one = dl_round_work(x, lane, &round);
        steps = fmax(steps, round.repeat);
        most.added_bytes = fmax(most.added_bytes, round.repeat * one.added_bytes);
        most.packed_bytes = fmax(most.packed_bytes, round.repeat * one.packed_bytes);
        if (!only_latencies) x->sent_bytes += round.repeat * dl_round_payload_bytes(x, lane, &round) * c->chunks;
        add_messages(x, lane, k, &round, g);
    }
    if (only_latencies) return;
    x->n_steps += steps;
    x->added_bytes += most.added_bytes;
    x->packed_bytes += most.packed_bytes;
}

static void end_group(struct dl_counted *x, bool only_latencies, struct group *g)
{
    struct dl_tally *const tally = &x->of->estimator->round;
    dl_count_alpha(x, &g->alpha, g->repeat);
    if (!only_latencies) dl_count_load(x, tally, fmax(g->repeat, 1));
    dl_tally_clear(tally);
    *g = (struct group){0};
}

/* Whether some lane has that round, and whether it goes together with the one before in all of them. */
static bool find_round(const struct dl_collective *c, uint32_t k, bool *is_together)
{
    struct dl_round round;
    bool has_any = false;
    *is_together = k > 0;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        if (!c->algorithm->round(c, lane, k, &round)) continue;
        has_any = true;
        *is_together = *is_together && round.together;
    }
    return has_any;
}

void dl_count_rounds(struct dl_counted *x, bool only_latencies)
{
    struct group g = {0};
    bool is_together;
    dl_tally_clear(&x->of->estimator->round);
    dl_tally_clear(&x->of->estimator->all);
    for (uint32_t k = 0; find_round(x->collective, k, &is_together) && !x->err->status; k++) {
        if (k > 0 && !is_together) end_group(x, only_latencies, &g);
        add_lanes(x, k, only_latencies, &g);
    }
    end_group(x, only_latencies, &g);
    x->busiest = dl_most_loaded(x, &x->of->estimator->all, 1);
}
