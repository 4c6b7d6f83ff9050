#include "sim/collective/rounds.h"

#include <math.h>

#include "sim/collective/rounds_messages.h"

static bool is_followed(const struct dl_estimator *e, uint32_t n_lanes, uint32_t n_ranks)
{
    const double most_messages = 65536; /* of a round: beyond that, memory */
    return e->transport->holds_ports || (!e->fluid && (double)n_lanes * n_ranks <= most_messages);
}

static void begin(struct dl_rounds *sum, const struct dl_estimator *e, const struct dl_collective *c)
{
    *sum = (struct dl_rounds){.n_ranks = dl_collective_ranks(c), .n_lanes = dl_collective_lanes(c)};
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

static void end(struct dl_rounds *sum)
{
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        dl_clocks_release(&sum->lanes[i].alone);
        dl_clocks_release(&sum->lanes[i].beside);
    }
    void *const blocks[] = {sum->lanes,    sum->work_s, sum->round_work_s, sum->hop_s,
                            sum->messages, sum->passes, sum->held,         sum->n_incoming};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
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
static void follow(struct dl_clocks *clocks, const struct dl_round_lane *lane, const struct dl_rounds *sum,
                   const struct span *span, struct dl_link_clock *links)
{
    const double repeat = lane->round.repeat;
    if (lane->at_once || !dl_round_can_be_repeated(sum, repeat))
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
                        const struct dl_round *round, const struct dl_pace *pace, struct dl_rounds *sum,
                        struct dl_error *err)
{
    struct dl_round_lane *const lane = &sum->lanes[index];
    const struct dl_round_message m = dl_round_message(c, index, round, pace);
    const double work_s = m.pack_s + fmax(round->fan_in, 1) * m.work_s;
    if (!round->together) lane->together_latency_s = lane->together_move_s = 0;
    if (!round->together || sum->n_lanes > 1 || sum->held)
        dl_tally_clear(&e->lane); /* of several, the slowest round counts */
    lane->round = *round;
    lane->at_once = !sum->held && is_at_once(c, index, k, round);
    lane->first_message = sum->n_messages;
    const double latency_s = dl_round_book(e, c, index, k, pace, sum, err);
    const double move_s = dl_tally_seconds(&e->lane, e->bytes_per_s);
    lane->n_messages = sum->n_messages - lane->first_message;
    const struct span more = {fmax(latency_s - lane->together_latency_s, 0), fmax(move_s - lane->together_move_s, 0),
                              work_s};
    if (sum->follows) {
        dl_round_time_moves(e, &e->lane, lane, sum);
        follow(&lane->alone, lane, sum, &more, sum->n_lanes > 1 ? NULL : e->link_clocks);
    }
    lane->latency_s += round->repeat * more.latency_s;
    lane->together_latency_s = fmax(latency_s, lane->together_latency_s);
    lane->move_s += more.move_s;
    lane->together_move_s = fmax(move_s, lane->together_move_s);
    lane->reduce_s += round->repeat * work_s;
    lane->n_steps += round->repeat;
    lane->n_sequential += round->together ? 0 : round->repeat;
    sum->most_sent += round->repeat * m.payload * c->chunks;
}

/* The messages of all lanes in a round, on links that all of them load. */
static void follow_beside(const struct dl_estimator *e, struct dl_rounds *sum)
{
    const double move_s = dl_tally_seconds(&e->round, e->bytes_per_s);
    for (size_t i = 0; i < sum->n_messages; i++) sum->messages[i].pack_s = sum->messages[i].work_s = 0;
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        struct dl_round_lane *const lane = &sum->lanes[i];
        if (!lane->n_messages) continue;
        dl_round_time_moves(e, &e->round, lane, sum);
        follow(&lane->beside, lane, sum, &(struct span){lane->together_latency_s, move_s, 0}, NULL);
    }
}

/* Of the busiest rank in a round. */
static double finish_works(struct dl_rounds *sum)
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
                      struct dl_rounds *sum, struct dl_error *err)
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

static struct dl_clock slowest(const struct dl_rounds *sum, bool beside)
{
    struct dl_clock slowest = {0};
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        const struct dl_clock at = dl_clocks_latest(beside ? &sum->lanes[i].beside : &sum->lanes[i].alone);
        if (at.at_s > slowest.at_s) slowest = at;
    }
    return slowest;
}

/* Rounds only add to it, so that those to come need not be looked at. */
static double slowest_lane_s(const struct dl_rounds *sum)
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
static void take_parts(const struct dl_rounds *sum, struct dl_estimate *out, double *moves_s, double *least_latency_s)
{
    for (uint32_t i = 0; i < sum->n_lanes; i++) {
        out->latency_s = fmax(out->latency_s, sum->lanes[i].latency_s);
        out->reduction_s = fmax(out->reduction_s, sum->lanes[i].reduce_s);
    }
    *moves_s = out->latency_s + sum->move_s;
    *least_latency_s = out->latency_s;
}

static void take_clocks(const struct dl_rounds *sum, struct dl_estimate *out, double *moves_s, double *least_latency_s)
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
static double most_held_s(const struct dl_rounds *sum)
{
    double most_s = 0;
    for (uint32_t rank = 0; sum->held && rank < sum->n_ranks; rank++)
        most_s = fmax(most_s, fmax(sum->held[rank].out.held_s, sum->held[rank].in.held_s));
    return most_s;
}

/* Lanes go on by themselves: while one reduces, others move. All take as long as the slowest of them by itself, or as
 * their moves together, or as the busiest rank works. Chunks follow each other: each rank's port is busy for all of
 * them, the last one still has its way to go. */
static void add_up(const struct dl_estimator *e, const struct dl_collective *c, const struct dl_rounds *sum,
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
    struct dl_rounds sum;
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
