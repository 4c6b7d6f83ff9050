/* row_network.c - a job that measured an all-gather over all its devices before it trained: the machine of its row is
 * made as slow as that.
 *
 * What the all-gather, a ring, takes longer than expected is shared by its hops through the network, one for each node.
 * Where a hop would then take longer than any network does, it is not the network: hosts agree, one after the other, on
 * each collective before it starts (PyTorch with TORCH_DISTRIBUTED_DEBUG=DETAIL), while the device is still busy with
 * the one before. The time between two collectives is then that of the hosts, n times what each rank adds. */
#include <math.h>

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

static double expected_s(struct tested *t, double bytes, struct dl_error *err)
{
    const struct dl_wish wish = {
        .op = DL_ALLGATHER, .algorithm = "auto", .protocol = "auto", .group = &t->group, .bytes = bytes};
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

/* With so much more latency of the network by all protocols. */
static double slowed_s(struct tested *t, double more_s, double bytes, struct dl_error *err)
{
    struct dl_transport *const transport = &t->machine.transport;
    for (size_t i = 0; i < transport->n_protocols; i++) transport->protocols[i].network_s += more_s;
    const double seconds = expected_s(t, bytes, err);
    for (size_t i = 0; i < transport->n_protocols; i++) transport->protocols[i].network_s -= more_s;
    return seconds;
}

/* The latency with which the all-gather takes its time: nearly a line, so that few secants find it. */
static double missing_s(struct tested *t, double bytes, double taken_s, struct dl_error *err)
{
    enum { n_secants = 4 };
    const double none_s = expected_s(t, bytes, err);
    double more_s = (taken_s - none_s) / t->group.n_nodes;
    for (int i = 0; i < n_secants && more_s > 0 && !err->status; i++)
        more_s *= (taken_s - none_s) / (slowed_s(t, more_s, bytes, err) - none_s);
    return more_s;
}

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

enum dl_status dl_row_network(const struct dl_training_row *row, struct dl_arena *arena, struct dl_session_request *out,
                              struct dl_error *err)
{
    const struct dl_tested_network *const tested = &row->tested;
    struct tested t = {.arena = arena};
    if (!(tested->bytes > 0 && tested->allgather_bytes_per_s > 0) || row->strategy) return DL_OK;
    const double n = (double)row->devices, taken_s = tested->bytes * (n - 1) / n / tested->allgather_bytes_per_s;
    if (!open_tested(&t, row, &out->set, err) && t.group.n_nodes > 1 && t.link) {
        const double hop_s = missing_s(&t, tested->bytes, taken_s, err);
        if (!err->status && hop_s <= most_hop_s) slow_hops(&t, hop_s, out, err);
        if (!err->status && hop_s > most_hop_s)
            add_set(out, dl_arena_format(arena, "software.collective_rank_host_s=%.17g", taken_s / n), err);
    }
    dl_machine_close(&t.machine);
    return err->status;
}
