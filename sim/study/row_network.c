/* row_network.c - a job that measured collectives over all its devices before it trained: the machine of its row is
 * made as slow as that.
 *
 * What the all-gather, a ring, takes longer than expected is shared by its hops through the network, one for each node.
 * What an all-reduce takes longer even so, which has fewer hops in a row, is the rate of the network: two times for two
 * unknowns. Where a hop would take longer than any network does, it is not the network: hosts agree, one after the
 * other, on each collective before it starts (PyTorch with TORCH_DISTRIBUTED_DEBUG=DETAIL), while the device is still
 * busy with the one before. The time between two collectives is then that of the hosts, n times what each rank adds,
 * and tells nothing of the network's rate. */
#include <math.h>
#include <string.h>

#include "sim/collective/choose.h"
#include "sim/study/training_row.h"
#include "topologies/placement.h"

/* NCCL's slowest protocol takes 72 us over EFA. Chosen by looking at the jobs of the Ultra-Scale benchmark, of which
 * there are two kinds: up to 0.95 ms, and 1.2 ms and more. */
static const double most_hop_s = 1e-3;

/* The machine of a row, with its overrides. */
struct tested {
    struct dl_arena *arena;
    struct dl_machine machine;
    struct dl_group group;
    const char *link; /* of its network; NULL: it has none */
    double bytes;     /* of the collectives that were measured */
};

static enum dl_status open_tested(struct tested *t, const struct dl_training_row *row, const struct dl_texts *set,
                                  struct dl_error *err)
{
    const uint32_t n = (uint32_t)row->devices;
    uint32_t *const device = dl_arena_alloc(t->arena, n * sizeof *device);
    struct dl_machine *const m = &t->machine;
    if (dl_machine_open(dl_row_input(row, row->topo), set, t->arena, m, err) || dl_machine_slice(m, n, NULL, err) ||
        dl_place(m->topology, "even", 0, n, device, err))
        return err->status;
    dl_group_init(&t->group, m->topology, device, n, t->arena);
    t->link = json_string_value(json_object_get(json_object_get(m->system_doc.value, "network"), "link"));
    return dl_machine_use_transport(m, NULL, t->group.n_nodes, set, t->arena, err);
}

static double expected_s(struct tested *t, enum dl_op op, struct dl_error *err)
{
    const struct dl_wish wish = {
        .op = op, .algorithm = "auto", .protocol = "auto", .group = &t->group, .bytes = t->bytes};
    struct dl_machine *const m = &t->machine;
    struct dl_estimator estimator;
    struct dl_choice choice;
    dl_estimator_init(&estimator, m->topology, &m->transport, m->bytes_per_s);
    const double seconds = dl_choose(&estimator, &wish, t->arena, &choice, err) ? NAN : choice.estimate.time_s;
    dl_estimator_release(&estimator);
    return seconds;
}

static enum dl_status add_set(struct dl_session_request *out, const char *assignment, struct dl_error *err)
{
    if (out->set.n == DL_COUNT(out->set.items))
        return dl_fail(err, DL_RANGE, "--set", "fewer are possible here, for what the row sets");
    out->set.items[out->set.n++] = assignment;
    return DL_OK;
}

/* ---- how slow ---- */

static void add_latency(struct tested *t, double more_s)
{
    struct dl_transport *const transport = &t->machine.transport;
    for (size_t i = 0; i < transport->n_protocols; i++) transport->protocols[i].network_s += more_s;
}

static void slow_links(struct tested *t, double times)
{
    const struct dl_topology *const topology = t->machine.topology;
    for (size_t i = 0; i < topology->n_links; i++)
        if (strcmp(topology->link_kinds[topology->links[i].kind], t->link) == 0) t->machine.bytes_per_s[i] /= times;
}

/* What of the network makes a collective slow: x, by which it is changed and changed back. */
struct slowness {
    enum dl_op op;
    void (*change)(struct tested *t, double x);
    double none;              /* the x that changes nothing */
    double (*back)(double x); /* the x that undoes it */
};

static double negative(double x) { return -x; }
static double inverse(double x) { return 1 / x; }
static const struct slowness hops = {DL_ALLGATHER, add_latency, 0, negative},
                             links = {DL_ALLREDUCE, slow_links, 1, inverse};

static double slowed_s(struct tested *t, const struct slowness *by, double x, struct dl_error *err)
{
    by->change(t, x);
    const double seconds = expected_s(t, by->op, err);
    by->change(t, by->back(x));
    return seconds;
}

/* How slow it is where the collective takes its time, nearly a line of x, so that few secants find it; none if it
 * takes less anyway. `guess` is more than none. */
static double find(struct tested *t, const struct slowness *by, double guess, double taken_s, struct dl_error *err)
{
    enum { n_secants = 5 };
    const double none_s = expected_s(t, by->op, err);
    double more = guess - by->none;
    if (!(taken_s > none_s)) return by->none;
    for (int i = 0; i < n_secants && !err->status; i++)
        more *= (taken_s - none_s) / (slowed_s(t, by, by->none + more, err) - none_s);
    return by->none + more;
}

static double hops_s(struct tested *t, double taken_s, struct dl_error *err)
{
    const double guess_s = (taken_s - expected_s(t, DL_ALLGATHER, err)) / t->group.n_nodes;
    return guess_s > 0 ? find(t, &hops, guess_s, taken_s, err) : 0;
}

/* How many times as slow the rate is, with hops as slow as they are. */
static double rate_times(struct tested *t, double hop_s, double reduce_s, struct dl_error *err)
{
    add_latency(t, hop_s);
    const double times = find(t, &links, 2, reduce_s, err);
    add_latency(t, -hop_s);
    return times;
}

/* ---- the row's overrides ---- */

/* More latency of the network by all protocols. */
static enum dl_status slow_hops(const struct tested *t, double more_s, struct dl_session_request *out,
                                struct dl_error *err)
{
    const struct dl_transport *const transport = &t->machine.transport;
    for (size_t i = 0; i < transport->n_protocols && more_s > 0 && !err->status; i++) {
        const struct dl_protocol *const p = &transport->protocols[i];
        const char *const set = "transport.protocols.%s.network_s.%s=%.17g";
        add_set(out, dl_arena_format(t->arena, set, p->name, t->link, p->network_s + more_s), err);
    }
    return err->status;
}

static enum dl_status set_rate(const struct tested *t, double times, struct dl_session_request *out,
                               struct dl_error *err)
{
    const struct dl_topology *const topology = t->machine.topology;
    for (uint16_t i = 0; i < topology->n_link_kinds && times > 1; i++)
        if (strcmp(topology->link_kinds[i], t->link) == 0)
            return add_set(out,
                           dl_arena_format(t->arena, "transport.efficiency.%s=%.17g", t->link,
                                           t->machine.transport.efficiency[i] / times),
                           err);
    return DL_OK;
}

static enum dl_status make_slow(struct tested *t, const struct dl_tested_network *tested,
                                struct dl_session_request *out, struct dl_error *err)
{
    const double n = t->group.n, gather_s = tested->bytes * (n - 1) / n / tested->allgather_bytes_per_s;
    const double hop_s = hops_s(t, gather_s, err);
    if (err->status) return err->status;
    if (hop_s > most_hop_s)
        return add_set(out, dl_arena_format(t->arena, "software.collective_rank_host_s=%.17g", gather_s / n), err);
    if (!(tested->allreduce_bytes_per_s > 0)) return slow_hops(t, hop_s, out, err);
    const double reduce_s = 2 * tested->bytes * (n - 1) / n / tested->allreduce_bytes_per_s;
    const double times = rate_times(t, hop_s, reduce_s, err);
    return err->status || slow_hops(t, hop_s, out, err) ? err->status : set_rate(t, times, out, err);
}

enum dl_status dl_row_network(const struct dl_training_row *row, struct dl_arena *arena, struct dl_session_request *out,
                              struct dl_error *err)
{
    const struct dl_tested_network *const tested = &row->tested;
    struct tested t = {.arena = arena, .bytes = tested->bytes};
    if (!(tested->bytes > 0 && tested->allgather_bytes_per_s > 0) || row->strategy) return DL_OK;
    if (!open_tested(&t, row, &out->set, err) && t.group.n_nodes > 1 && t.link) make_slow(&t, tested, out, err);
    dl_machine_close(&t.machine);
    return err->status;
}
