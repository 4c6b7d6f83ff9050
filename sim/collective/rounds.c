#include "sim/collective/rounds.h"

#include <math.h>

#include "sim/collective/clocks.h"
#include "sim/collective/shapes.h"

/* A lane by itself, one chunk through the rounds so far. */
struct lane {
    double latency_s, move_s, reduce_s, n_steps;
    double n_sequential;                        /* of the steps, those that do not go together with the one before */
    double together_latency_s, together_move_s; /* of the rounds that go together with the last one */
    struct dl_clocks alone;                     /* where ranks are followed: with its own load on the links */
    struct dl_clocks beside;                    /* of several: with the load of all lanes, nothing to reduce */
    struct dl_round round;                      /* the present one, and its messages */
    size_t first_message, n_messages;
    bool at_once; /* all that a rank sends in this round and others is under way together */
};

struct rounds {
    bool follows;     /* each rank by itself; otherwise there is a barrier after each round */
    bool has_beside;  /* lanes share links; where ports are held they share those, and meet in their clocks */
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
    struct dl_sending *messages; /* of this round, where ranks are followed */
    size_t n_messages, messages_capacity;
    struct dl_clock_pass *passes; /* of their routes */
    size_t n_passes, passes_capacity;
    struct dl_held_ports *held; /* by rank; NULL: ports are not held by messages */
    uint32_t *n_incoming;       /* by rank: messages for it in this round, where they are */
    uint64_t first, number;     /* of the first round, of the present one: counted on from estimate to estimate */
};

static bool is_followed(const struct dl_estimator *e, uint32_t n_lanes, uint32_t n_ranks)
{
    const double most_messages = 65536; /* of a round: beyond that, memory */
    return e->transport->holds_ports || (!e->fluid && (double)n_lanes * n_ranks <= most_messages);
}

static void begin(struct rounds *sum, const struct dl_estimator *e, const struct dl_collective *c)
{
    *sum = (struct rounds){.n_ranks = dl_collective_ranks(c), .n_lanes = dl_collective_lanes(c)};
    sum->first = sum->number = e->n_rounds + 1;
    sum->follows = is_followed(e, sum->n_lanes, sum->n_ranks);
    sum->lanes = dl_alloc(sum->n_lanes * sizeof *sum->lanes);
    sum->work_s = dl_alloc(sum->n_ranks * sizeof *sum->work_s);
    sum->round_work_s = dl_alloc(sum->n_ranks * sizeof *sum->round_work_s);
    sum->hop_s = dl_alloc(sum->n_ranks * sizeof *sum->hop_s);
    if (e->transport->holds_ports) {
        sum->held = dl_alloc(sum->n_ranks * sizeof *sum->held);
        sum->n_incoming = dl_alloc(sum->n_ranks * sizeof *sum->n_incoming);
    }
    sum->has_beside = sum->follows && sum->n_lanes > 1 && !sum->held;
    for (uint32_t i = 0; sum->follows && i < sum->n_lanes; i++) {
        dl_clocks_init(&sum->lanes[i].alone, sum->n_ranks, c->algorithm->queue, sum->held);
        if (sum->has_beside) dl_clocks_init(&sum->lanes[i].beside, sum->n_ranks, c->algorithm->queue, NULL);
    }
}

static void end(struct rounds *sum)
{
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        dl_clocks_release(&sum->lanes[i].alone);
        dl_clocks_release(&sum->lanes[i].beside);
    }
    void *const blocks[] = {sum->lanes,    sum->work_s, sum->round_work_s, sum->hop_s,
                            sum->messages, sum->passes, sum->held,         sum->n_incoming};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
}

static double send_work_s(const struct dl_collective *c, const struct dl_pace *pace, double dense)
{
    return dl_payload_is_packed(&c->payload) ? dense * pace->pack_s_per_byte : 0;
}

static double receive_work_s(const struct dl_collective *c, const struct dl_pace *pace, const struct dl_round *round,
                             double dense, double payload)
{
    return (round->reduce ? payload * pace->reduction_s_per_byte : 0) + send_work_s(c, pace, dense);
}

/* ---- the messages of a round ---- */

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

static void keep_message(struct rounds *sum, const struct dl_estimator *e, const struct dl_sending *message,
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
static void share_among_incoming(const struct lane *lane, struct rounds *sum)
{
    struct dl_sending *const first = &sum->messages[lane->first_message];
    for (size_t i = 0; i < lane->n_messages; i++) sum->n_incoming[first[i].to]++;
    for (size_t i = 0; i < lane->n_messages; i++) {
        first[i].move_s /= sum->n_incoming[first[i].to];
        sum->longest_s = fmax(sum->longest_s, first[i].latency_s + first[i].move_s);
    }
    for (size_t i = 0; i < lane->n_messages; i++) sum->n_incoming[first[i].to] = 0;
}

/* A message has arrived when all have that share the most loaded link of its way. */
static void time_moves(const struct dl_estimator *e, const struct dl_tally *tally, const struct lane *lane,
                       struct rounds *sum)
{
    for (size_t i = lane->first_message; i < lane->first_message + lane->n_messages; i++) {
        struct dl_sending *const m = &sum->messages[i];
        double move_s = 0;
        for (size_t k = m->first_pass; k < m->first_pass + m->n_passes; k++)
            move_s = fmax(move_s, tally->sum[sum->passes[k].link] / e->bytes_per_s[sum->passes[k].link]);
        m->move_s = move_s / lane->round.repeat;
    }
    if (sum->held) share_among_incoming(lane, sum);
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

static bool can_be_repeated(const struct rounds *sum, double repeat)
{
    const double most_hops = 1e7; /* more would take too long to follow */
    return repeat * sum->n_ranks <= most_hops;
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
    const double pack_s = send_work_s(c, pace, dense), work_s = receive_work_s(c, pace, round, dense, payload);
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
        add_work(sum, rank, round->repeat, pack_s);
        add_work(sum, to, round->repeat, work_s);
        if (sum->follows && !sum->lanes[lane].at_once)
            keep_message(sum, e,
                         &(struct dl_sending){
                             .from = rank, .to = to, .latency_s = message_s, .pack_s = pack_s, .work_s = work_s},
                         &route, bytes);
    }
    dl_route_release(&route);
    if (round->repeat > 1 && !sum->follows && can_be_repeated(sum, round->repeat))
        return repeated_latency_s(c, lane, k, round->repeat, sum);
    return dl_round_latency_s(round, sum->n_ranks, latency_s, all_s);
}

/* Who is not followed need not be known one by one. */
static bool is_booked_by_shape(const struct dl_collective *c, uint32_t k, const struct dl_round *round,
                               const struct rounds *sum)
{
    const bool passes_on = round->repeat > 1 && can_be_repeated(sum, round->repeat);
    return !sum->follows && sum->n_lanes == 1 && !passes_on && c->bytes > 0 && dl_has_shape(c, 0, k);
}

/* As book_messages, of the only lane. */
static double book_shape(struct dl_estimator *e, const struct dl_collective *c, uint32_t k,
                         const struct dl_round *round, const struct dl_pace *pace, struct rounds *sum,
                         struct dl_error *err)
{
    const double dense = round->blocks * dl_collective_block_bytes(c, 0);
    const double payload = dl_payload_bytes(&c->payload, dense, round->merged);
    const double pack_s = send_work_s(c, pace, dense), work_s = receive_work_s(c, pace, round, dense, payload);
    const struct dl_shape *const shape = dl_shape_of(c, 0, k, pace, &e->round, err);
    if (!shape) return 0;
    const struct dl_route all = {.hops = shape->hops, .n_hops = shape->n_hops};
    tally_everywhere(e, &all, round->repeat * payload / dl_pace_fraction(pace, payload));
    for (uint32_t rank = 0; rank < sum->n_ranks && pack_s + work_s > 0; rank++) {
        const uint32_t to = c->algorithm->peer(c, 0, k, rank);
        if (to == DL_NOBODY) continue;
        add_work(sum, rank, round->repeat, pack_s);
        add_work(sum, to, round->repeat, work_s);
    }
    return dl_shape_latency_s(shape, c, round, pace, payload);
}

/* ---- lanes ---- */

/* They share all links until the last has arrived. */
static bool is_at_once(const struct dl_collective *c, uint32_t lane, uint32_t k, const struct dl_round *round)
{
    struct dl_round next;
    if (c->algorithm->queue != DL_QUEUE_POSTED || dl_collective_lanes(c) > 1) return false;
    return round->together || (c->algorithm->round(c, lane, k + 1, &next) && next.together);
}

/* What the round takes if all begin it together; what it adds, if it goes together with the one before. */
struct span {
    double latency_s, move_s, work_s;
};

/* links: that the rounds before have kept busy, NULL: these do not count. */
static void follow(struct dl_clocks *clocks, const struct lane *lane, const struct rounds *sum, const struct span *span,
                   struct dl_link_clock *links)
{
    const double repeat = lane->round.repeat;
    if (lane->at_once || !can_be_repeated(sum, repeat))
        dl_clocks_meet(clocks, repeat * span->latency_s, span->move_s, repeat * span->work_s);
    else
        dl_clocks_add(clocks, &(struct dl_sendings){.round = &lane->round,
                                                    .first = sum->first,
                                                    .number = sum->number,
                                                    .messages = &sum->messages[lane->first_message],
                                                    .n = lane->n_messages,
                                                    .passes = sum->passes,
                                                    .links = links});
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
    if (!round->together || sum->n_lanes > 1 || sum->held)
        dl_tally_clear(&e->lane); /* of several, the slowest round counts */
    lane->round = *round;
    lane->at_once = !sum->held && is_at_once(c, index, k, round);
    lane->first_message = sum->n_messages;
    const double latency_s = is_booked_by_shape(c, k, round, sum)
                                 ? book_shape(e, c, k, round, pace, sum, err)
                                 : book_messages(e, c, index, k, round, pace, sum, err);
    const double move_s = dl_tally_seconds(&e->lane, e->bytes_per_s);
    lane->n_messages = sum->n_messages - lane->first_message;
    const struct span more = {fmax(latency_s - lane->together_latency_s, 0), fmax(move_s - lane->together_move_s, 0),
                              work_s};
    if (sum->follows) {
        time_moves(e, &e->lane, lane, sum);
        follow(&lane->alone, lane, sum, &more, sum->n_lanes > 1 ? NULL : e->link_clocks);
    }
    lane->latency_s += round->repeat * more.latency_s;
    lane->together_latency_s = fmax(latency_s, lane->together_latency_s);
    lane->move_s += more.move_s;
    lane->together_move_s = fmax(move_s, lane->together_move_s);
    lane->reduce_s += round->repeat * work_s;
    lane->n_steps += round->repeat;
    lane->n_sequential += round->together ? 0 : round->repeat;
    sum->most_sent += round->repeat * payload * c->chunks;
}

/* The messages of all lanes in a round, on links that all of them load. */
static void follow_beside(const struct dl_estimator *e, struct rounds *sum)
{
    const double move_s = dl_tally_seconds(&e->round, e->bytes_per_s);
    for (size_t i = 0; i < sum->n_messages; i++) sum->messages[i].pack_s = sum->messages[i].work_s = 0;
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        struct lane *const lane = &sum->lanes[i];
        if (!lane->n_messages) continue;
        time_moves(e, &e->round, lane, sum);
        follow(&lane->beside, lane, sum, &(struct span){lane->together_latency_s, move_s, 0}, NULL);
    }
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
    sum->n_messages = sum->n_passes = 0;
    for (uint32_t lane = 0; lane < sum->n_lanes; lane++) {
        sum->lanes[lane].n_messages = 0;
        if (!c->algorithm->round(c, lane, k, &round)) continue;
        repeat = fmax(repeat, round.repeat);
        add_to_lane(e, c, lane, k, &round, pace, sum, err);
    }
    if (repeat <= 0) return false;
    if (sum->has_beside) follow_beside(e, sum);
    sum->number += (uint64_t)repeat;
    const double move_s = dl_tally_seconds(&e->round, e->bytes_per_s);
    const double more_s = move_s - sum->together_move_s, work_s = finish_works(sum);
    sum->move_s += more_s;
    sum->after_s = work_s > 0 ? 0 : sum->after_s + more_s;
    sum->together_move_s = move_s;
    sum->together_work_s += work_s;
    if (!k) sum->first_s = move_s / repeat;
    sum->longest_s = fmax(sum->longest_s, sum->held ? work_s : fmax(move_s / repeat, sum->together_work_s));
    return true;
}

/* ---- all of it ---- */

static struct dl_clock slowest(const struct rounds *sum, bool beside)
{
    struct dl_clock slowest = {0};
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        const struct dl_clock at = dl_clocks_latest(beside ? &sum->lanes[i].beside : &sum->lanes[i].alone);
        if (at.at_s > slowest.at_s) slowest = at;
    }
    return slowest;
}

/* Rounds only add to it, so that those to come need not be looked at. */
static double slowest_lane_s(const struct rounds *sum)
{
    double slowest_s = 0;
    if (sum->follows) return slowest(sum, false).at_s;
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

/* Of the slowest lane. All moves of a barrier's rounds wait for all latencies; of ranks that go on by themselves a busy
 * link may wait for no more than one. */
static void take_parts(const struct rounds *sum, struct dl_estimate *out, double *moves_s, double *least_latency_s)
{
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        out->latency_s = fmax(out->latency_s, sum->lanes[i].latency_s);
        out->reduction_s = fmax(out->reduction_s, sum->lanes[i].reduce_s);
    }
    *moves_s = out->latency_s + sum->move_s;
    *least_latency_s = out->latency_s;
}

static void take_clocks(const struct rounds *sum, struct dl_estimate *out, double *moves_s, double *least_latency_s)
{
    const struct dl_clock alone = slowest(sum, false);
    double n_sequential = 1;
    for (uint32_t i = 0; i < sum->n_lanes; i++) n_sequential = fmax(n_sequential, sum->lanes[i].n_sequential);
    out->latency_s = alone.latency_s;
    out->reduction_s = alone.work_s;
    *moves_s = sum->has_beside ? slowest(sum, true).at_s : 0;
    *least_latency_s = alone.latency_s / n_sequential;
}

/* Of one chunk. */
static double most_held_s(const struct rounds *sum)
{
    double most_s = 0;
    for (uint32_t rank = 0; sum->held && rank < sum->n_ranks; rank++)
        most_s = fmax(most_s, fmax(sum->held[rank].out.held_s, sum->held[rank].in.held_s));
    return most_s;
}

/* Lanes go on by themselves: while one reduces, others move. All take as long as the slowest of them by itself, or as
 * their moves together, or as the busiest rank works. Chunks follow each other: each rank's port is busy for all of
 * them, the last one still has its way to go. */
static void add_up(const struct dl_estimator *e, const struct dl_collective *c, const struct rounds *sum,
                   struct dl_estimate *out, double *n_steps)
{
    const bool overlaps = sum->n_lanes > 1 || c->chunks > 1 || !sum->follows;
    double moves_s, least_latency_s;
    for (uint32_t i = 0; i < sum->n_lanes; i++) *n_steps = fmax(*n_steps, sum->lanes[i].n_steps);
    if (sum->follows)
        take_clocks(sum, out, &moves_s, &least_latency_s);
    else
        take_parts(sum, out, &moves_s, &least_latency_s);
    if (c->chunks > 1) least_latency_s = out->latency_s;
    const double chunks_s = (c->chunks - 1) * sum->longest_s, last_s = overlaps ? sum->last_work_s : 0;
    const double busy_s = least_latency_s + c->chunks * dl_tally_seconds(&e->all, e->bytes_per_s) + last_s;
    const double work_s = overlaps ? c->chunks * most(sum->work_s, sum->n_ranks) : 0;
    const double works_s = work_s > 0 ? out->latency_s + sum->first_s + work_s + sum->after_s : 0;
    const double held_s = c->chunks * most_held_s(sum);
    const double all_s =
        fmax(fmax(slowest_lane_s(sum), moves_s + last_s) + chunks_s, fmax(fmax(busy_s, works_s), held_s));
    out->wire_s = fmax(all_s - out->latency_s - out->reduction_s, 0);
}

enum dl_status dl_estimate_rounds(struct dl_estimator *e, const struct dl_collective *c, double limit_s,
                                  struct dl_estimate *out, struct dl_rounds_sums *sums, struct dl_error *err)
{
    struct rounds sum;
    begin(&sum, e, c);
    dl_tally_clear(&e->all);
    for (uint32_t k = 0; !sums->beyond && add_round(e, c, k, &out->pace, &sum, err) && !err->status; k++)
        sums->beyond = slowest_lane_s(&sum) > limit_s;
    add_up(e, c, &sum, out, &sums->n_steps);
    sums->sent_bytes = sum.most_sent;
    e->n_rounds = sum.number;
    end(&sum);
    return err->status;
}
