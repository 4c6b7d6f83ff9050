/* training_copies.c - copies between the devices of a lockstep group, their hosts and storage, as bundles on the links
 * between them. Those of all its devices are one bundle: they go in step. */
#include <math.h>

#include "sim/engine/training_parts.h"
#include "topologies/copy_paths.h"

static bool is_simulated(const struct dl_step *s, size_t call)
{
    return s->calls[call].channel == DL_CHANNEL_AHEAD || (s->plan.calls && s->plan.calls[call]);
}

bool dl_training_simulates(const struct dl_training *t, enum dl_channel first)
{
    const struct dl_step *const s = &t->request.step;
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].channel >= first && is_simulated(s, i)) return true;
    return false;
}

/* Nodes are alike: what the first device has, all have. */
enum dl_status dl_training_check_copies(const struct dl_training *t, struct dl_error *err)
{
    const struct dl_topology *const topology = t->request.estimator->topology;
    const struct dl_step *const s = &t->request.step;
    struct dl_route route = {0};
    if (topology->node.device_host[0] == UINT32_MAX && dl_training_simulates(t, DL_CHANNEL_COPIES_OUT))
        return dl_fail(err, DL_IMPOSSIBLE, "run",
                       "copies need a host, and the machine has none; the node of %s needs \"host\" with "
                       "\"link_bandwidth_bytes_per_s\"",
                       topology->name);
    for (size_t i = 0; i < s->n_calls && !err->status; i++)
        if (s->calls[i].op == DL_COPY && is_simulated(s, i) &&
            !dl_copy_route(topology, s->calls[i].path, 0, false, &route))
            dl_copy_refuse(topology, s->calls[i].path, "run", err);
    dl_route_release(&route);
    return err->status;
}

/* The links of all members' paths. */
static struct channel *find_paths(struct dl_training *t, const struct communicator *at, enum dl_path path)
{
    const struct dl_topology *const topology = t->request.estimator->topology;
    struct dl_tally *const tally = dl_wire_scratch(t->request.wire, DL_SCRATCH_BUNDLE);
    struct channel *const out = dl_arena_alloc(t->request.arena, sizeof *out);
    struct dl_route route = {0};
    dl_tally_clear(tally);
    for (uint32_t i = 0; i < t->n_members; i++) {
        const uint32_t device = device_of(t, &t->lockstep_groups[at->first], i);
        dl_copy_route(topology, path, device, at->channel != DL_CHANNEL_COPIES_OUT, &route);
        for (size_t h = 0; h < route.n_hops; h++) dl_tally_add(tally, route.hops[h].link, route.hops[h].weight);
        out->latency_s = fmax(out->latency_s, route.latency_s);
    }
    out->n_hops = tally->n_touched;
    struct dl_hop *const hops = dl_arena_alloc(t->request.arena, out->n_hops * sizeof *hops);
    for (size_t i = 0; i < out->n_hops; i++) hops[i] = tally->touched[i];
    out->hops = hops;
    out->alone_bytes_per_s = dl_wire_alone(t->request.wire, out->hops, out->n_hops);
    dl_route_release(&route);
    return out;
}

/* With all others that copy at the same time, as it is priced. */
static double alone_bytes_per_s(const struct channel *paths, const struct dl_comm *comm)
{
    return comm->alone_s > paths->latency_s ? comm->bytes / (comm->alone_s - paths->latency_s)
                                            : paths->alone_bytes_per_s;
}

void dl_training_start_copy(struct dl_training *t, struct communicator *at, const struct dl_comm *comm,
                            dl_event_fn done)
{
    if (!at->copies[comm->path]) at->copies[comm->path] = find_paths(t, at, comm->path);
    struct channel *const paths = at->copies[comm->path];
    dl_wire_book_hops(t->request.wire, paths->hops, paths->n_hops, comm->bytes);
    t->request.engine->kind->start(
        t->request.engine,
        &(struct dl_bundle){.hops = paths->hops,
                            .n_hops = paths->n_hops,
                            .way = &paths->way,
                            .latency_s = paths->latency_s,
                            .bytes = comm->bytes,
                            .rate_cap_bytes_per_s = comm->most_bytes_per_s > 0 ? comm->most_bytes_per_s : INFINITY,
                            .alone_bytes_per_s = alone_bytes_per_s(paths, comm),
                            .done = done,
                            .user = t,
                            .tag = (uint32_t)(at - t->communicators)});
}
