#include "sim/collective/estimate.h"

#include <math.h>

#include "sim/collective/clocks.h"
#include "sim/collective/kept.h"
#include "sim/collective/rounds.h"

void dl_estimator_init(struct dl_estimator *e, const struct dl_topology *t, const struct dl_transport *transport,
                       const double *bytes_per_s)
{
    *e = (struct dl_estimator){.topology = t, .transport = transport, .bytes_per_s = bytes_per_s};
    dl_tally_init(&e->round, t->n_links);
    dl_tally_init(&e->all, t->n_links);
    dl_tally_init(&e->lane, t->n_links);
    e->link_clocks = dl_alloc(t->n_links * sizeof *e->link_clocks);
}

void dl_estimator_release(struct dl_estimator *e)
{
    dl_tally_release(&e->round);
    dl_tally_release(&e->all);
    dl_tally_release(&e->lane);
    dl_free(e->link_clocks);
    if (!e->shares_kept) dl_kept_free(e->kept);
}

static struct dl_pace pace_of(const struct dl_transport *t, const struct dl_protocol *p, enum dl_family family)
{
    struct dl_pace pace = {.protocol = p->name,
                           .start_s = p->start_s[family],
                           .wire_latency_factor = t->adds_wire_latency,
                           .bandwidth_fraction = p->bandwidth_fraction,
                           .above = p->above,
                           .holds_ports = t->holds_ports,
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

/* What the lanes take by their folds, and what the busiest rank's work alone takes. */
struct lanes_time {
    double lane_s, longest_work_s; /* the slowest lane by itself, without latency */
    double works_s;                /* until the busiest rank has worked on all lanes, without latency */
};

static enum dl_status sum_folds(struct dl_estimator *e, const struct dl_collective *c, struct dl_estimate *out,
                                struct sums *sums, struct lanes_time *lanes, struct dl_error *err)
{
    dl_tally_clear(&e->all);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        double sent = 0, work_s = 0;
        const uint32_t n_bundles = dl_fold_count(c, lane);
        dl_tally_clear(&e->lane);
        for (uint32_t which = 0; which < n_bundles; which++) {
            struct dl_fold fold;
            dl_fold_lane(c, (struct dl_fold_of){lane, which, &e->all}, &out->pace, &e->round, &fold, err);
            add_fold(e, &fold, out, sums);
            sent = fmax(sent, fold.sent_bytes);
            work_s = fmax(work_s, fold.work_s);
            dl_fold_release(&fold);
            if (err->status) return err->status;
        }
        sums->sent_bytes += sent; /* a device serves all lanes */
        sums->work_s += work_s;
        lanes->longest_work_s = fmax(lanes->longest_work_s, work_s);
        lanes->lane_s = fmax(lanes->lane_s, dl_tally_seconds(&e->lane, e->bytes_per_s) + work_s);
    }
    out->wire_s = dl_tally_seconds(&e->all, e->bytes_per_s);
    out->reduction_s = sums->work_s;
    return DL_OK;
}

/* Message by message lanes move while others reduce, see add_up in rounds.c. */
static void overlap_work(const struct dl_collective *c, const struct sums *sums, struct lanes_time *lanes,
                         struct dl_estimate *out)
{
    const double n_reducing = fmax(count_reducing(c), 1), after_s = out->wire_s * (1 - n_reducing / sums->n_steps);
    const double step_s = out->wire_s / sums->n_steps, work_step_s = sums->work_s / n_reducing;
    lanes->works_s = step_s + sums->work_s + after_s;
    const double all_s = fmax(lanes->lane_s, fmax(out->wire_s + work_step_s, lanes->works_s));
    out->reduction_s = lanes->longest_work_s;
    out->wire_s = fmax(all_s - lanes->longest_work_s, 0);
}

/* The slowest lane of a ring, hop by hop, by which latencies pass while the slowest hop moves. */
static double slowest_ring_s(struct dl_estimator *e, const struct dl_collective *c, const struct dl_estimate *out,
                             double n_steps, struct dl_error *err)
{
    const uint32_t n = c->group->n;
    const struct dl_ring_loads loads = {&e->all, e->bytes_per_s};
    struct dl_ring_hop *const hops = dl_alloc(n * sizeof *hops);
    double slowest_s = 0;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c) && !err->status; lane++) {
        if (dl_fold_ring_hops(c, lane, &out->pace, &loads, &e->round, hops, err)) break;
        for (uint32_t i = 0; i < n; i++) {
            hops[i].alone_s = fmax(hops[i].alone_s, out->pace.pump_s / n_steps);
            hops[i].move_s = fmax(hops[i].move_s, hops[i].alone_s);
        }
        slowest_s = fmax(slowest_s, dl_ring_time_s(hops, n, n_steps));
    }
    dl_free(hops);
    return slowest_s;
}

static double take_away(double *from_s, double most_s)
{
    const double taken_s = fmin(*from_s, most_s);
    *from_s -= taken_s;
    return taken_s;
}

/* What links carry stays, since groups that share them wait for all of it. A library's tuner does not see what is
 * hidden: what it takes the ring for stays. */
static enum dl_status hide_latencies(struct dl_estimator *e, const struct dl_collective *c, const struct sums *sums,
                                     const struct lanes_time *lanes, struct dl_estimate *out, struct dl_error *err)
{
    const double works_s = lanes->works_s > 0 ? out->latency_s / sums->n_steps + lanes->works_s : 0;
    const double ring_s = fmax(slowest_ring_s(e, c, out, sums->n_steps, err), works_s);
    const double hidden_s = fmax(out->time_s - out->pace.start_s - ring_s, 0);
    if (err->status) return err->status;
    double rest_s = hidden_s - take_away(&out->latency_s, hidden_s);
    rest_s -= take_away(&out->reduction_s, rest_s);
    out->wire_s -= rest_s; /* of steps that lanes were taken to reduce in one after the other */
    out->time_s -= hidden_s;
    if (!e->transport->tuner) out->presumed_s -= hidden_s;
    return DL_OK;
}

static enum dl_status estimate_by_folds(struct dl_estimator *e, const struct dl_collective *c,
                                        const struct dl_protocol *protocol, struct dl_estimate *out,
                                        struct dl_error *err)
{
    struct sums sums = {0};
    struct lanes_time lanes = {0};
    const bool by_message = !dl_folds(c, e->fluid);
    if (sum_folds(e, c, out, &sums, &lanes, err)) return err->status;
    if (by_message && sums.work_s > 0) overlap_work(c, &sums, &lanes, out);
    finish(e, c, &sums, protocol, out);
    const bool is_ring = c->algorithm->fold == DL_FOLD_RING && c->chunks == 1;
    return by_message && is_ring ? hide_latencies(e, c, &sums, &lanes, out, err) : DL_OK;
}

/* ---- by rounds ---- */

static enum dl_status estimate_by_rounds(struct dl_estimator *e, const struct dl_collective *c,
                                         const struct dl_protocol *protocol, double most_s, struct dl_estimate *out,
                                         struct dl_error *err)
{
    const double rounding = 1e-9; /* far above that of the sums */
    struct dl_rounds_sums sums = {0};
    if (dl_estimate_rounds(e, c, most_s * (1 + rounding) - out->pace.start_s, out, &sums, err)) return err->status;
    if (sums.beyond)
        out->time_s = out->presumed_s = INFINITY;
    else
        finish(e, c, &(struct sums){.sent_bytes = sums.sent_bytes, .n_steps = sums.n_steps}, protocol, out);
    return DL_OK;
}

bool dl_estimates_by_fold(const struct dl_estimator *e, const struct dl_collective *c)
{
    if (dl_fold_kind(c) == DL_FOLD_ROUNDS || e->transport->holds_ports) return false;
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
    if (dl_estimates_by_fold(e, c)) return estimate_by_folds(e, c, protocol, out, err);
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
