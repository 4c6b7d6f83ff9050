#include "sim/collective/estimate.h"

#include <math.h>

void dl_estimator_init(struct dl_estimator *e, const struct dl_topology *t, const struct dl_transport *transport,
                       const double *bytes_per_s)
{
    *e = (struct dl_estimator){.topology = t, .transport = transport, .bytes_per_s = bytes_per_s};
    dl_tally_init(&e->round, t->n_links);
    dl_tally_init(&e->all, t->n_links);
    dl_tally_init(&e->lane, t->n_links);
}

void dl_estimator_release(struct dl_estimator *e)
{
    dl_tally_release(&e->round);
    dl_tally_release(&e->all);
    dl_tally_release(&e->lane);
}

static struct dl_pace pace_of(const struct dl_transport *t, const struct dl_protocol *p, enum dl_family family)
{
    struct dl_pace pace = {.protocol = p->name,
                           .start_s = p->start_s[family],
                           .wire_latency_factor = t->adds_wire_latency,
                           .bandwidth_fraction = p->bandwidth_fraction,
                           .above = p->above,
                           .relay_efficiency = t->relay_efficiency,
                           .rate_cap_bytes_per_s = INFINITY,
                           .reduction_s_per_byte = t->reduction_s_per_byte,
                           .pack_s_per_byte = t->pack_s_per_byte};
    for (int reach = 0; reach < DL_N_REACHES; reach++) pace.step_latency_s[reach] = p->step_s[family][reach];
    pace.step_latency_s[DL_REACH_NETWORK] += p->network_s;
    return pace;
}

struct sums {
    double sent_bytes; /* payload that the busiest rank sends */
    double work_s;     /* that it spends adding, packing and unpacking */
    double n_steps;
};

/* The group's NICs in its first node; nodes are alike. */
static uint32_t count_nics(const struct dl_group *g)
{
    const struct dl_node *const node = &g->topology->node;
    uint32_t n = 0;
    for (uint32_t nic = 0; nic < node->n_nics; nic++) {
        bool is_used = false;
        for (uint32_t i = g->node_first[0]; i < g->node_first[1] && !is_used; i++)
            is_used = node->device_nic[g->device[g->node_ranks[i]] % node->n_devices] == nic;
        n += is_used;
    }
    return n;
}

static double presumed_bytes_per_s(const struct dl_group *g, const struct dl_protocol *p, enum dl_family family)
{
    const uint32_t n_nics = g->n_nodes > 1 && g->topology ? count_nics(g) : 0;
    return n_nics ? n_nics * p->presumed_channel_bytes_per_s[family] : INFINITY;
}

/* The pump with its fill: see transport.h. */
static double pump_s(const struct dl_estimator *e, const struct dl_estimate *out, const struct sums *sums, bool rings,
                     double pump_bytes_per_s)
{
    if (isinf(pump_bytes_per_s) || sums->sent_bytes <= 0) return 0;
    const double drain = rings ? e->transport->drain / sums->n_steps : 0;
    const double pumping_s = sums->sent_bytes * (1 + drain) / pump_bytes_per_s;
    return pumping_s + e->transport->fill * sqrt((out->pace.start_s + out->latency_s) * pumping_s);
}

static void finish(const struct dl_estimator *e, const struct dl_collective *c, const struct sums *sums,
                   const struct dl_protocol *protocol, struct dl_estimate *out)
{
    struct dl_pace *const pace = &out->pace;
    const enum dl_family family = c->algorithm->family;
    pace->pump_s = pump_s(e, out, sums, c->algorithm->fold == DL_FOLD_RING, protocol->pump_bytes_per_s[family]);
    if (pace->pump_s > 0)
        pace->rate_cap_bytes_per_s =
            sums->sent_bytes / pace->bandwidth_fraction / pace->pump_s / dl_collective_lanes(c);
    const double moving_s = fmax(out->wire_s, pace->pump_s), rest_s = pace->start_s + out->latency_s + out->reduction_s;
    const double presumed_s = sums->sent_bytes / presumed_bytes_per_s(c->group, protocol, family);
    out->time_s = rest_s + moving_s;
    out->presumed_s = rest_s + fmax(moving_s, presumed_s);
}

/* ---- by folds ---- */

static void add_fold(struct dl_estimator *e, const struct dl_fold *fold, struct dl_estimate *out, struct sums *sums)
{
    dl_fold_book(fold, &e->all);
    dl_fold_book(fold, &e->lane);
    out->latency_s = fmax(out->latency_s, fold->latency_s);
    sums->n_steps = fmax(sums->n_steps, fold->n_steps);
}

static double count_reducing(const struct dl_collective *c)
{
    struct dl_round round;
    double n = 0;
    for (uint32_t k = 0; c->algorithm->round(c, 0, k, &round); k++) n += round.reduce ? round.repeat : 0;
    return n;
}

static enum dl_status estimate_by_folds(struct dl_estimator *e, const struct dl_collective *c,
                                        const struct dl_protocol *protocol, struct dl_estimate *out,
                                        struct dl_error *err)
{
    struct sums sums = {0};
    double lane_s = 0, longest_work_s = 0; /* the slowest lane by itself, without latency */
    dl_tally_clear(&e->all);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        double sent = 0, work_s = 0;
        const uint32_t n_bundles = dl_fold_count(c, lane);
        dl_tally_clear(&e->lane);
        for (uint32_t which = 0; which < n_bundles; which++) {
            struct dl_fold fold;
            dl_fold_lane(c, (struct dl_fold_of){lane, which, &e->all}, &out->pace, &e->round, &fold, err);
            add_fold(e, &fold, out, &sums);
            sent = fmax(sent, fold.sent_bytes);
            work_s = fmax(work_s, fold.work_s);
            dl_fold_release(&fold);
            if (err->status) return err->status;
        }
        sums.sent_bytes += sent; /* a device serves all lanes */
        sums.work_s += work_s;
        longest_work_s = fmax(longest_work_s, work_s);
        lane_s = fmax(lane_s, dl_tally_seconds(&e->lane, e->bytes_per_s) + work_s);
    }
    out->wire_s = dl_tally_seconds(&e->all, e->bytes_per_s);
    out->reduction_s = sums.work_s;
    if (!dl_folds(c, e->fluid) &&
        sums.work_s > 0) { /* message by message: lanes move while others reduce, see add_up */
        const double n_reducing = fmax(count_reducing(c), 1), after_s = out->wire_s * (1 - n_reducing / sums.n_steps);
        const double step_s = out->wire_s / sums.n_steps, work_step_s = sums.work_s / n_reducing;
        const double all_s = fmax(lane_s, fmax(out->wire_s + work_step_s, step_s + sums.work_s + after_s));
        out->reduction_s = longest_work_s;
        out->wire_s = fmax(all_s - longest_work_s, 0);
    }
    finish(e, c, &sums, protocol, out);
    return DL_OK;
}

/* ---- by rounds ---- */

/* A lane by itself, one chunk through the rounds so far. */
struct lane {
    double latency_s, move_s, reduce_s, n_steps;
    double together_latency_s, together_move_s; /* of the rounds that go together with the last one */
};

struct rounds {
    double move_s;    /* one chunk of all lanes through all rounds, each after the one before it */
    double after_s;   /* of it, in rounds after the last that reduces */
    double longest_s; /* message of a chunk */
    double first_s;   /* move of the first round */
    double together_move_s, together_work_s;
    double most_sent;              /* payload of one rank, if it sends in every round */
    double last_work_s;            /* of the busiest rank in the last round that reduces */
    double *work_s, *round_work_s; /* by rank: what it has to reduce and to pack */
    double *hop_s;                 /* by rank: latency of its message in this round */
    uint32_t n_ranks, n_lanes;
    struct lane *lanes;
};

static double send_work_s(const struct dl_collective *c, const struct dl_pace *pace, double dense)
{
    return dl_payload_is_packed(&c->payload) ? dense * pace->pack_s_per_byte : 0;
}

static double receive_work_s(const struct dl_collective *c, const struct dl_pace *pace, const struct dl_round *round,
                             double dense, double payload)
{
    return (round->reduce ? payload * pace->reduction_s_per_byte : 0) + send_work_s(c, pace, dense);
}

static void add_work(struct rounds *sum, uint32_t rank, double repeat, double once_s)
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

/* A round that is repeated passes pieces on from rank to rank: each meets the latencies of the hops on its own way. The
 * mean of a hop on the slowest way. */
static double repeated_latency_s(const struct dl_collective *c, uint32_t lane, uint32_t k, double repeat,
                                 const struct rounds *sum)
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

/* All messages of a lane in a round; returns its latency. */
static double book_messages(struct dl_estimator *e, const struct dl_collective *c, uint32_t lane, uint32_t k,
                            const struct dl_round *round, const struct dl_pace *pace, struct rounds *sum,
                            struct dl_error *err)
{
    const double dense = round->blocks * dl_collective_block_bytes(c, lane);
    const double payload = dl_payload_bytes(&c->payload, dense, round->merged);
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
        tally_everywhere(e, &route, round->repeat * dl_pace_wire_bytes(pace, &route, payload, payload));
        add_work(sum, rank, round->repeat, send_work_s(c, pace, dense));
        add_work(sum, to, round->repeat, receive_work_s(c, pace, round, dense, payload));
    }
    dl_route_release(&route);
    const double most_hops = 1e7; /* more would take too long to follow */
    if (round->repeat > 1 && round->repeat * sum->n_ranks <= most_hops)
        return repeated_latency_s(c, lane, k, round->repeat, sum);
    return dl_round_latency_s(round, sum->n_ranks, latency_s, all_s);
}

static void add_to_lane(struct dl_estimator *e, const struct dl_collective *c, uint32_t index, uint32_t k,
                        const struct dl_round *round, const struct dl_pace *pace, struct rounds *sum,
                        struct dl_error *err)
{
    struct lane *const lane = &sum->lanes[index];
    const double dense = round->blocks * dl_collective_block_bytes(c, index);
    const double payload = dl_payload_bytes(&c->payload, dense, round->merged);
    const double work_s =
        send_work_s(c, pace, dense) + fmax(round->fan_in, 1) * receive_work_s(c, pace, round, dense, payload);
    if (!round->together) lane->together_latency_s = lane->together_move_s = 0;
    if (!round->together || sum->n_lanes > 1) dl_tally_clear(&e->lane); /* of several, the slowest round counts */
    const double latency_s = book_messages(e, c, index, k, round, pace, sum, err);
    const double move_s = dl_tally_seconds(&e->lane, e->bytes_per_s);
    lane->latency_s += round->repeat * fmax(latency_s - lane->together_latency_s, 0);
    lane->together_latency_s = fmax(latency_s, lane->together_latency_s);
    lane->move_s += fmax(move_s - lane->together_move_s, 0);
    lane->together_move_s = fmax(move_s, lane->together_move_s);
    lane->reduce_s += round->repeat * work_s;
    lane->n_steps += round->repeat;
    sum->most_sent += round->repeat * payload * c->chunks;
}

/* Of the busiest rank in a round. */
static double finish_works(struct rounds *sum)
{
    double most_s = 0;
    for (uint32_t rank = 0; rank < sum->n_ranks; rank++) {
        most_s = fmax(most_s, sum->round_work_s[rank]);
        sum->round_work_s[rank] = 0;
    }
    if (most_s > 0) sum->last_work_s = most_s;
    return most_s;
}

static bool goes_together(const struct dl_collective *c, uint32_t k)
{
    struct dl_round round;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        if (c->algorithm->round(c, lane, k, &round) && !round.together) return false;
    return k > 0;
}

/* All messages of one round at once, and with those of the rounds before that go together with it; returns whether some
 * lane has that round. */
static bool add_round(struct dl_estimator *e, const struct dl_collective *c, uint32_t k, const struct dl_pace *pace,
                      struct rounds *sum, struct dl_error *err)
{
    double repeat = 0;
    struct dl_round round;
    if (!goes_together(c, k)) {
        dl_tally_clear(&e->round);
        sum->together_move_s = sum->together_work_s = 0;
    }
    for (uint32_t lane = 0; lane < sum->n_lanes; lane++) {
        if (!c->algorithm->round(c, lane, k, &round)) continue;
        repeat = fmax(repeat, round.repeat);
        add_to_lane(e, c, lane, k, &round, pace, sum, err);
    }
    if (repeat <= 0) return false;
    const double move_s = dl_tally_seconds(&e->round, e->bytes_per_s);
    const double more_s = move_s - sum->together_move_s, work_s = finish_works(sum);
    sum->move_s += more_s;
    sum->after_s = work_s > 0 ? 0 : sum->after_s + more_s;
    sum->together_move_s = move_s;
    sum->together_work_s += work_s;
    if (!k) sum->first_s = move_s / repeat;
    sum->longest_s = fmax(sum->longest_s, fmax(move_s / repeat, sum->together_work_s));
    return true;
}

/* Rounds only add to it, so that those to come need not be looked at. */
static double slowest_lane_s(const struct rounds *sum)
{
    double slowest_s = 0;
    for (uint32_t i = 0; i < sum->n_lanes; i++)
        slowest_s = fmax(slowest_s, sum->lanes[i].latency_s + sum->lanes[i].move_s + sum->lanes[i].reduce_s);
    return slowest_s;
}

static double most(const double *values, uint32_t n)
{
    double result = 0;
    for (uint32_t i = 0; i < n; i++) result = fmax(result, values[i]);
    return result;
}

/* Lanes go on by themselves: while one reduces, others move. All take as long as the slowest of them by itself, or as
 * their moves together, or as the busiest rank works. Chunks follow each other: each rank's port is busy for all of
 * them, the last one still has its way to go. */
static void add_up(const struct dl_estimator *e, const struct dl_collective *c, const struct rounds *sum,
                   struct dl_estimate *out, double *n_steps)
{
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        out->latency_s = fmax(out->latency_s, sum->lanes[i].latency_s);
        out->reduction_s = fmax(out->reduction_s, sum->lanes[i].reduce_s);
        *n_steps = fmax(*n_steps, sum->lanes[i].n_steps);
    }
    const double chunks_s = (c->chunks - 1) * sum->longest_s;
    const double busy_s = c->chunks * dl_tally_seconds(&e->all, e->bytes_per_s);
    const double work_s = c->chunks * most(sum->work_s, sum->n_ranks);
    const double lane_s = slowest_lane_s(sum) + chunks_s;
    const double moves_s = out->latency_s + fmax(sum->move_s + chunks_s, busy_s) + sum->last_work_s;
    const double works_s = work_s > 0 ? out->latency_s + sum->first_s + work_s + sum->after_s : 0;
    out->wire_s = fmax(fmax(lane_s, fmax(moves_s, works_s)) - out->latency_s - out->reduction_s, 0);
}

static enum dl_status estimate_by_rounds(struct dl_estimator *e, const struct dl_collective *c,
                                         const struct dl_protocol *protocol, double most_s, struct dl_estimate *out,
                                         struct dl_error *err)
{
    const double rounding = 1e-9; /* far above that of the sums */
    const double limit_s = most_s * (1 + rounding) - out->pace.start_s;
    struct rounds sum = {.n_ranks = dl_collective_ranks(c), .n_lanes = dl_collective_lanes(c)};
    sum.lanes = dl_alloc(sum.n_lanes * sizeof *sum.lanes);
    sum.work_s = dl_alloc(sum.n_ranks * sizeof *sum.work_s);
    sum.round_work_s = dl_alloc(sum.n_ranks * sizeof *sum.round_work_s);
    sum.hop_s = dl_alloc(sum.n_ranks * sizeof *sum.hop_s);
    bool beyond = false;
    double n_steps = 0;
    dl_tally_clear(&e->all);
    for (uint32_t k = 0; !beyond && add_round(e, c, k, &out->pace, &sum, err) && !err->status; k++)
        beyond = slowest_lane_s(&sum) > limit_s;
    add_up(e, c, &sum, out, &n_steps);
    dl_free(sum.lanes);
    dl_free(sum.work_s);
    dl_free(sum.round_work_s);
    dl_free(sum.hop_s);
    if (err->status) return err->status;
    if (beyond)
        out->time_s = out->presumed_s = INFINITY;
    else
        finish(e, c, &(struct sums){.sent_bytes = sum.most_sent, .n_steps = n_steps}, protocol, out);
    return DL_OK;
}

/* Where the fold is what will be run, or the same: a ring in one piece. */
static bool prices_by_fold(const struct dl_estimator *e, const struct dl_collective *c)
{
    if (dl_fold_kind(c) == DL_FOLD_ROUNDS) return false;
    if (e->fluid || c->pipelined || dl_folds_always(c)) return true;
    return c->algorithm->fold == DL_FOLD_RING && c->chunks == 1;
}

enum dl_status dl_estimate(struct dl_estimator *e, const struct dl_collective *c, const struct dl_protocol *protocol,
                           struct dl_estimate *out, struct dl_error *err)
{
    return dl_estimate_up_to(e, c, protocol, INFINITY, out, err);
}

enum dl_status dl_estimate_up_to(struct dl_estimator *e, const struct dl_collective *c,
                                 const struct dl_protocol *protocol, double most_s, struct dl_estimate *out,
                                 struct dl_error *err)
{
    *out = (struct dl_estimate){.pace = pace_of(e->transport, protocol, c->algorithm->family)};
    if (c->group->n == 1) {
        out->time_s = out->presumed_s = out->pace.start_s;
        return DL_OK;
    }
    if (prices_by_fold(e, c)) return estimate_by_folds(e, c, protocol, out, err);
    return estimate_by_rounds(e, c, protocol, most_s, out, err);
}

double dl_estimate_crowded_s(const struct dl_estimate *e, double crowding)
{
    const double alone_s = fmax(e->wire_s, e->pace.pump_s), crowded_s = fmax(crowding * e->wire_s, e->pace.pump_s);
    return e->time_s - alone_s + crowded_s;
}

/* Of a byte from every rank of these groups to the next. */
static double ring_s(struct dl_estimator *e, const struct dl_group *groups, uint32_t n, struct dl_error *err)
{
    struct dl_route route = {0};
    dl_tally_clear(&e->all);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t rank = 0; rank < groups[i].n && groups[i].n > 1 && !err->status; rank++) {
            const uint32_t *const device = groups[i].device;
            dl_topology_route(e->topology, device[rank], device[(rank + 1) % groups[i].n], 0, NULL, &route, err);
            for (size_t k = 0; k < route.n_hops; k++) dl_tally_add(&e->all, route.hops[k].link, route.hops[k].weight);
        }
    dl_route_release(&route);
    return dl_tally_seconds(&e->all, e->bytes_per_s);
}

enum dl_status dl_estimator_crowding(struct dl_estimator *e, const struct dl_group *groups, uint32_t n, double *out,
                                     struct dl_error *err)
{
    const double first_s = n > 1 ? ring_s(e, groups, 1, err) : 0;
    *out = first_s > 0 ? ring_s(e, groups, n, err) / first_s : 1;
    return err->status;
}
