/* explain_rounds.c - what a collective counts round by round: the slowest latency of a lane, the most loaded link of
 * all lanes, what is added. */
#include <math.h>

#include "sim/report/explain_parts.h"

/* Rounds of messages that hold ports follow each other in any case. */
static bool goes_together(const struct dl_counted *x, const struct dl_round *round)
{
    return round->together && !x->pace->holds_ports;
}

/* Chunks follow each other, but ports that are held have all of them one by one. */
static double repetitions(const struct dl_counted *x) { return x->pace->holds_ports ? x->collective->chunks : 1; }

/* ---- latencies, lane by lane ---- */

/* The slowest message of a round; where it is repeated, the mean of the hops that a piece meets. */
static struct dl_alpha slowest_of(struct dl_counted *x, uint32_t lane, uint32_t k, const struct dl_round *round)
{
    const struct dl_collective *const c = x->collective;
    const double payload = dl_round_payload_bytes(x, lane, round);
    struct dl_alpha slowest = {0}, one;
    double all_s = 0;
    for (uint32_t rank = 0; rank < dl_collective_ranks(c); rank++) {
        const uint32_t to = c->algorithm->peer(c, lane, k, rank);
        if (to == DL_NOBODY || !dl_alpha_of(x, rank, to, payload, NULL, &one)) continue;
        if (one.seconds >= slowest.seconds) slowest = one;
        all_s += one.seconds;
    }
    const double mean_s = dl_round_latency_s(round, dl_collective_ranks(c), slowest.seconds, all_s);
    slowest.is_mean = mean_s < slowest.seconds;
    slowest.seconds = mean_s;
    return slowest;
}

/* Of rounds that go together the slowest counts. Returns the latency of the lane. */
static double count_lane(struct dl_counted *x, uint32_t lane)
{
    const struct dl_collective *const c = x->collective;
    struct dl_alpha together = {0};
    struct dl_round round;
    double sum_s = 0;
    for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round) && !x->err->status; k++) {
        struct dl_alpha one = slowest_of(x, lane, k, &round);
        one.n = round.repeat * repetitions(x);
        if (!goes_together(x, &round)) {
            sum_s += together.n * together.seconds;
            dl_count_alpha(x, &together, together.n);
            together = one;
        } else if (one.n * one.seconds > together.n * together.seconds) {
            together = one;
        }
    }
    dl_count_alpha(x, &together, together.n);
    return sum_s + together.n * together.seconds;
}

void dl_count_latencies(struct dl_counted *x)
{
    double slowest_s = -1;
    for (uint32_t lane = 0; lane < dl_collective_lanes(x->collective) && !x->err->status; lane++) {
        struct dl_counted one = {.of = x->of, .collective = x->collective, .pace = x->pace, .err = x->err};
        const double lane_s = count_lane(&one, lane);
        struct dl_alpha *const others = lane_s > slowest_s ? x->alphas : one.alphas;
        if (lane_s > slowest_s) {
            x->alphas = one.alphas;
            x->n_alphas = one.n_alphas;
            slowest_s = lane_s;
        }
        dl_free(others);
        dl_route_release(&one.route);
    }
}

/* ---- bytes and work, all lanes together ---- */

static void book_messages(struct dl_counted *x, uint32_t lane, uint32_t k, const struct dl_round *round)
{
    struct dl_estimator *const e = x->of->estimator;
    const struct dl_collective *const c = x->collective;
    const double payload = dl_round_payload_bytes(x, lane, round);
    struct dl_booked booked = {.tally = &e->round,
                               .topology = e->topology,
                               .message_bytes = round->repeat * payload / dl_pace_fraction(x->pace, payload)};
    const struct dl_load load = {.wanted_bytes_per_s = dl_booked_bytes_per_s, .user = &booked};
    struct dl_alpha unused;
    for (uint32_t rank = 0; rank < dl_collective_ranks(c); rank++) {
        const uint32_t to = c->algorithm->peer(c, lane, k, rank);
        if (to == DL_NOBODY || !dl_alpha_of(x, rank, to, payload, &load, &unused)) continue;
        const double bytes = round->repeat * dl_pace_wire_bytes(x->pace, &x->route, payload, payload);
        for (size_t i = 0; i < x->route.n_hops; i++) {
            dl_tally_add(&e->round, x->route.hops[i].link, bytes * x->route.hops[i].weight);
            dl_tally_add(&e->all, x->route.hops[i].link, bytes * x->route.hops[i].weight);
        }
    }
}

/* The k-th round of all lanes; false: there is none. */
static bool add_round(struct dl_counted *x, uint32_t k, double *repeat)
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
        x->sent_bytes += round.repeat * dl_round_payload_bytes(x, lane, &round) * c->chunks;
        book_messages(x, lane, k, &round);
    }
    x->n_steps += steps;
    x->added_bytes += repetitions(x) * most.added_bytes;
    x->packed_bytes += repetitions(x) * most.packed_bytes;
    *repeat = fmax(*repeat, steps);
    return steps > 0;
}

/* Whether the k-th round goes together with the one before in all lanes that have it. */
static bool is_together(const struct dl_counted *x, uint32_t k)
{
    const struct dl_collective *const c = x->collective;
    struct dl_round round;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        if (c->algorithm->round(c, lane, k, &round) && !goes_together(x, &round)) return false;
    return k > 0;
}

static void end_group(struct dl_counted *x, double *repeat)
{
    struct dl_tally *const tally = &x->of->estimator->round;
    if (*repeat > 0) dl_count_load(x, tally, *repeat);
    dl_tally_clear(tally);
    *repeat = 0;
}

void dl_count_rounds(struct dl_counted *x)
{
    double repeat = 0;
    dl_tally_clear(&x->of->estimator->round);
    dl_tally_clear(&x->of->estimator->all);
    for (uint32_t k = 0; !x->err->status; k++) {
        if (!is_together(x, k)) end_group(x, &repeat);
        if (!add_round(x, k, &repeat)) break;
    }
    end_group(x, &repeat);
    for (size_t i = 0; i < x->n_loads; i++) x->loads[i].n *= repetitions(x);
    x->busiest = dl_most_loaded(x, &x->of->estimator->all, 1);
    dl_count_latencies(x);
}
