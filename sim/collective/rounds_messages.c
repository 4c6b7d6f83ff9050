#include "sim/collective/rounds_messages.h"

#include <math.h>

#include "sim/collective/shapes.h"

static double send_work_s(const struct dl_collective *c, const struct dl_pace *pace, double dense)
{
    return dl_payload_packs(&c->payload) ? dense * pace->pack_s_per_byte : 0;
}

struct dl_round_message dl_round_message(const struct dl_collective *c, uint32_t lane, const struct dl_round *round,
                                         const struct dl_pace *pace)
{
    const double dense = round->blocks * dl_collective_block_bytes(c, lane);
    const double payload = dl_payload_bytes(&c->payload, dense, round->merged), pack_s = send_work_s(c, pace, dense);
    return (struct dl_round_message){.payload = payload,
                                     .pack_s = pack_s,
                                     .work_s = (round->reduce ? payload * pace->reduction_s_per_byte : 0) + pack_s};
}

static void add_work(struct dl_rounds *sum, uint32_t rank, double repeat, double once_s)
{
    sum->round_work_s[rank] += once_s;
    sum->work_s[rank] += repeat * once_s;
}

static void tally_everywhere(struct dl_estimator *e, const struct dl_route *route, double bytes)
{
    for (size_t i = 0; i < route->n_hops; i++) {
        const double on_link = bytes * route->hops[i].weight;
        dl_tally_add(&e->lane, route->hops[i].link, on_link);
        dl_tally_add(&e->round, route->hops[i].link, on_link);
        dl_tally_add(&e->all, route->hops[i].link, on_link);
    }
}

static void keep_message(struct dl_rounds *sum, const struct dl_estimator *e, const struct dl_sending *message,
                         const struct dl_route *route, double bytes)
{
    DL_GROW(sum->messages, sum->n_messages, sum->messages_capacity);
    struct dl_sending *const kept = &sum->messages[sum->n_messages++];
    *kept = *message;
    kept->first_pass = sum->n_passes;
    kept->n_passes = route->n_hops;
    for (size_t i = 0; i < route->n_hops; i++) {
        const uint32_t link = route->hops[i].link;
        DL_GROW(sum->passes, sum->n_passes, sum->passes_capacity);
        sum->passes[sum->n_passes++] =
            (struct dl_clock_pass){link, bytes * route->hops[i].weight / e->bytes_per_s[link]};
    }
}

/* Where ports are held those for one rank come one after the other: its links have one of them at a time. */
static void share_among_incoming(const struct dl_round_lane *lane, struct dl_rounds *sum)
{
    struct dl_sending *const first = &sum->messages[lane->first_message];
    for (size_t i = 0; i < lane->n_messages; i++) sum->n_incoming[first[i].to]++;
    for (size_t i = 0; i < lane->n_messages; i++) {
        first[i].move_s /= sum->n_incoming[first[i].to];
        sum->longest_s = fmax(sum->longest_s, first[i].latency_s + first[i].move_s);
    }
    for (size_t i = 0; i < lane->n_messages; i++) sum->n_incoming[first[i].to] = 0;
}

void dl_round_time_moves(const struct dl_estimator *e, const struct dl_tally *tally, const struct dl_round_lane *lane,
                         struct dl_rounds *sum)
{
    for (size_t i = lane->first_message; i < lane->first_message + lane->n_messages; i++) {
        struct dl_sending *const m = &sum->messages[i];
        double move_s = 0;
        for (size_t k = m->first_pass; k < m->first_pass + m->n_passes; k++)
            move_s = fmax(move_s, dl_tally_at(tally, sum->passes[k].link) / e->bytes_per_s[sum->passes[k].link]);
        m->move_s = move_s / lane->round.repeat;
    }
    if (sum->held) share_among_incoming(lane, sum);
}

/* A round that is repeated passes pieces on from rank to rank: each meets the latencies of the hops on its own way. The
 * mean of a hop on the slowest way. */
static double repeated_latency_s(const struct dl_collective *c, uint32_t lane, uint32_t k, double repeat,
                                 const struct dl_rounds *sum)
{
    double slowest_s = 0;
    for (uint32_t first = 0; first < sum->n_ranks; first++) {
        double way_s = 0;
        uint32_t rank = first;
        for (double i = 0; i < repeat && rank != DL_NOBODY; i++) {
            way_s += sum->hop_s[rank];
            rank = c->algorithm->peer(c, lane, k, rank);
        }
        slowest_s = fmax(slowest_s, way_s);
    }
    return slowest_s / repeat;
}

bool dl_round_can_be_repeated(const struct dl_rounds *sum, double repeat)
{
    const double most_hops = 1e7; /* more would take too long to follow */
    return repeat * sum->n_ranks <= most_hops;
}

/* All messages of a lane in a round; returns its latency. */
static double book_messages(struct dl_estimator *e, const struct dl_collective *c, uint32_t lane, uint32_t k,
                            const struct dl_round *round, const struct dl_round_message *m, const struct dl_pace *pace,
                            struct dl_rounds *sum, struct dl_error *err)
{
    const double payload = m->payload;
    struct dl_booked booked = {.tally = &e->round,
                               .topology = e->topology,
                               .message_bytes = round->repeat * payload / dl_pace_fraction(pace, payload)};
    const struct dl_load load = {.wanted_bytes_per_s = dl_booked_bytes_per_s, .user = &booked};
    struct dl_route route = {0};
    double latency_s = 0, all_s = 0;
    for (uint32_t rank = 0; rank < sum->n_ranks; rank++) {
        const uint32_t to = c->algorithm->peer(c, lane, k, rank);
        if (to == DL_NOBODY) continue;
        if (dl_topology_route(e->topology, c->group->device[rank], c->group->device[to], 0, &load, &route, err)) break;
        const double message_s = dl_pace_latency_s(pace, &route, payload);
        latency_s = fmax(latency_s, message_s);
        all_s += message_s;
        sum->hop_s[rank] = message_s;
        const double bytes = dl_pace_wire_bytes(pace, &route, payload, payload);
        tally_everywhere(e, &route, round->repeat * bytes);
        add_work(sum, rank, round->repeat, m->pack_s);
        add_work(sum, to, round->repeat, m->work_s);
        if (sum->follows && !sum->lanes[lane].at_once)
            keep_message(sum, e,
                         &(struct dl_sending){
                             .from = rank, .to = to, .latency_s = message_s, .pack_s = m->pack_s, .work_s = m->work_s},
                         &route, bytes);
    }
    dl_route_release(&route);
    if (round->repeat > 1 && !sum->follows && dl_round_can_be_repeated(sum, round->repeat))
        return repeated_latency_s(c, lane, k, round->repeat, sum);
    return dl_round_latency_s(round, sum->n_ranks, latency_s, all_s);
}

/* Who is not followed need not be known one by one. */
static bool is_booked_by_shape(const struct dl_collective *c, uint32_t k, const struct dl_round *round,
                               const struct dl_rounds *sum)
{
    const bool passes_on = round->repeat > 1 && dl_round_can_be_repeated(sum, round->repeat);
    return !sum->follows && sum->n_lanes == 1 && !passes_on && c->bytes > 0 && dl_has_shape(c, 0, k);
}

/* As book_messages, of the only lane. */
static double book_shape(struct dl_estimator *e, const struct dl_collective *c, uint32_t k,
                         const struct dl_round *round, const struct dl_round_message *m, const struct dl_pace *pace,
                         struct dl_rounds *sum, struct dl_error *err)
{
    const double payload = m->payload;
    const struct dl_shape *const shape = dl_shape_of(c, 0, k, pace, &e->round, err);
    if (!shape) return 0;
    const struct dl_route all = {.hops = shape->hops, .n_hops = shape->n_hops};
    tally_everywhere(e, &all, round->repeat * payload / dl_pace_fraction(pace, payload));
    for (uint32_t rank = 0; rank < sum->n_ranks && m->pack_s + m->work_s > 0; rank++) {
        const uint32_t to = c->algorithm->peer(c, 0, k, rank);
        if (to == DL_NOBODY) continue;
        add_work(sum, rank, round->repeat, m->pack_s);
        add_work(sum, to, round->repeat, m->work_s);
    }
    return dl_shape_latency_s(shape, c, round, pace, payload);
}

double dl_round_book(struct dl_estimator *e, const struct dl_collective *c, uint32_t lane, uint32_t k,
                     const struct dl_pace *pace, struct dl_rounds *sum, struct dl_error *err)
{
    const struct dl_round *const round = &sum->lanes[lane].round;
    const struct dl_round_message m = dl_round_message(c, lane, round, pace);
    return is_booked_by_shape(c, k, round, sum) ? book_shape(e, c, k, round, &m, pace, sum, err)
                                                : book_messages(e, c, lane, k, round, &m, pace, sum, err);
}
