#include "sim/app/collective_run.h"

#include <math.h>
#include <stdio.h>

#include "sim/collective/effort.h"
#include "sim/collective/shapes.h"
#include "sim/core/files.h"
#include "sim/report/progress.h"
#include "sim/report/units.h"
#include "sim/session/fidelities.h"
#include "sim/session/own_memory.h"
#include "topologies/placement.h"

enum dl_status dl_collective_open(struct dl_collective_run *r, struct dl_error *err)
{
    struct dl_collective_request *const q = &r->request;
    dl_progress_begin();
    if (dl_only_machine_set(&q->set, err) ||
        dl_machine_open((struct dl_input){.name = q->topo}, &q->set, r->arena, &r->machine, err))
        return err->status;
    const struct dl_topology *const whole = r->machine.topology;
    if (!q->devices) q->devices = whole->n_devices;
    if (q->devices > whole->n_devices)
        return dl_fail(err, DL_RANGE, "--devices", "%s has %u devices, got %llu", whole->name, whole->n_devices,
                       (unsigned long long)q->devices);
    const uint32_t n = (uint32_t)q->devices;
    if (dl_machine_slice(&r->machine, n, q->placement, err)) return err->status;
    const struct dl_topology *const t = r->machine.topology;
    r->n_extra =
        n < t->n_devices &&
        !dl_placement_is_list(q->placement); /* one more device, if an algorithm wants a server beside its workers */
    r->device = dl_alloc((n + 1) * sizeof *r->device);
    const struct dl_places places = {n, r->n_extra};
    if (dl_place_with_servers(t, q->placement, q->seed, places, r->device, err)) return err->status;
    dl_group_init(&r->group, t, r->device, n, r->arena);
    r->group.shapes = dl_shapes_new();
    return dl_machine_use_transport(&r->machine, q->transport, r->group.n_nodes, &q->set, r->arena, err);
}

enum dl_status dl_collective_read_scenario(struct dl_collective_run *r, struct dl_error *err)
{
    const char *const path = r->request.scenario;
    if (!path) return DL_OK;
    if (dl_engine_find(r->request.engine)->alone)
        return dl_fail(err, DL_IMPOSSIBLE, "--scenario", "needs a simulation; use --engine simgrid or cm02");
    if (dl_json_load(path, r->arena, &r->scenario_doc, err)) return err->status;
    const struct dl_scenario_scope only_links = {
        .topology = r->machine.topology, .devices = r->device, .n_devices = (uint32_t)r->request.devices};
    return dl_scenario_read(r->scenario_doc, &only_links, r->arena, &r->scenario, err);
}

/* Its messages are empty. Scripts that go through all operations give bytes to all of them. */
static enum dl_status empty(struct dl_wish *wish, struct dl_error *err)
{
    static const char none[] = "a barrier has none";
    if (wish->bytes > 0) fprintf(stderr, "dlsim: --bytes: %s\n", none);
    wish->bytes = 0;
    if (dl_payload_is_packed(&wish->payload)) return dl_fail(err, DL_IMPOSSIBLE, "--payload", none);
    return wish->chunks > 1 ? dl_fail(err, DL_IMPOSSIBLE, "--chunks", none) : DL_OK;
}

/* All but the size. */
enum dl_status dl_collective_wish(struct dl_collective_run *r, struct dl_wish *out, struct dl_error *err)
{
    const struct dl_collective_request *const q = &r->request;
    *out = (struct dl_wish){.op = dl_op_named(q->op),
                            .algorithm = q->algo,
                            .protocol = q->protocol,
                            .group = &r->group,
                            .bytes = q->bytes,
                            .chunks = (uint32_t)q->chunks,
                            .servers = r->n_extra};
    if (out->op == DL_HALO) out->back_fraction = 0.5; /* as much to each neighbour */
    if (dl_payload_parse(q->payload, &out->payload, err)) return err->status;
    dl_estimator_init(&r->estimator, r->machine.topology, &r->machine.transport, r->machine.bytes_per_s);
    r->estimator.fluid = q->fidelity && dl_fidelity_is_fluid(q->fidelity);
    r->estimator.by_message = q->fidelity && !r->estimator.fluid;
    return DL_OK;
}

enum dl_status dl_collective_choose(struct dl_collective_run *r, struct dl_error *err)
{
    struct dl_wish wish;
    if (dl_collective_wish(r, &wish, err) || (wish.op == DL_BARRIER && empty(&wish, err))) return err->status;
    if (isnan(wish.bytes)) return dl_fail(err, DL_SYNTAX, "collective", "needs the option --bytes");
    return dl_choose(&r->estimator, &wish, r->arena, &r->choice, err);
}

static void note_links(struct dl_collective_run *r, const struct dl_wire *wire)
{
    struct dl_links *const links = &r->report.links;
    links->topology = r->machine.topology;
    links->simulated_s = links->told_s = r->report.result.time_s;
    links->n = dl_wire_busiest(wire, links->items, DL_MOST_LINKS);
    if (!r->request.svg) return;
    r->loads = dl_alloc(links->topology->n_links * sizeof *r->loads);
    r->n_loads = dl_wire_loads(wire, r->loads);
}

/* Only a scenario can stop a link for good. */
static void tell_stall(const struct dl_collective_run *r, size_t n_stuck, struct dl_error *err)
{
    char name[160] = "?";
    for (size_t i = 0; i < r->scenario.n_changes; i++)
        if (r->scenario.changes[i].bandwidth_fraction == 0)
            dl_topology_link_name(r->machine.topology, r->scenario.changes[i].link, name, sizeof name);
    dl_fail(err, DL_STALLED, "collective", "cannot end: %zu bundle%s for links that have failed, the last of them '%s'",
            n_stuck, n_stuck == 1 ? " waits" : "s wait", name);
}

/* A message takes some microseconds. Where many are under way together on links that routing by load spreads them over,
 * all of them get another rate when one ends, or, if all are, when many have. */
static double effort_s(const struct dl_collective_run *r, double n_messages)
{
    const struct dl_collective *const c = &r->choice.collective;
    const bool is_posted = c->algorithm->queue == DL_QUEUE_POSTED && !dl_folds(c, r->report.fluid);
    const double one_s = 3e-6, at_once_s = 1e-4, beside_each_s = 1e-6, n = c->group->n,
                 posted = dl_most_posted(c->group->n);
    if (!is_posted || !dl_network_reads_load(&r->machine.topology->network)) return n_messages * one_s;
    return n_messages * (posted >= n ? at_once_s : beside_each_s * n * posted);
}

/* Some take minutes or days, such as a ring over all of a large machine. */
static void announce_long_run(const struct dl_collective_run *r)
{
    const double a_minute_s = 60, n = dl_count_bundles(&r->choice.collective, r->report.fluid), s = effort_s(r, n);
    char count[DL_QUANTITY], time[DL_QUANTITY];
    if (s < a_minute_s) return;
    dl_progress_end();
    fprintf(stderr,
            "dlsim: %s messages are simulated one by one, which takes about %s; --fidelity fluid takes seconds\n",
            dl_format_count(n, count), dl_format_seconds(s, time));
}

static enum dl_status simulate(struct dl_collective_run *r, const struct dl_engine_kind *kind, struct dl_error *err)
{
    const struct dl_topology *const t = r->machine.topology;
    announce_long_run(r);
    struct dl_engine_link *const links = dl_machine_links(&r->machine);
    struct dl_engine *const engine = kind->create(links, t->n_links);
    engine->progress = dl_progress();
    struct dl_wire *const wire = dl_wire_new(engine, t, r->machine.bytes_per_s, err);
    dl_scenario_start(&r->scenario, wire);
    struct dl_exchange *const exchange = dl_exchange_start(&(struct dl_exchange_spec){
        .engine = engine,
        .wire = wire,
        .collective = &r->choice.collective,
        .pace = &r->choice.estimate.pace,
        .fluid = r->report.fluid,
    });
    const size_t n_stuck = kind->run(engine);
    r->report.result = dl_exchange_result(exchange);
    r->report.fluid = r->report.result.folded;
    r->report.n_events = kind->n_events(engine);
    dl_exchange_free(exchange);
    note_links(r, wire);
    if (!r->report.result.complete) tell_stall(r, n_stuck, err);
    dl_wire_free(wire);
    kind->destroy(engine);
    dl_free(links);
    return err->status;
}

static void estimate_only(struct dl_collective_run *r)
{
    const struct dl_estimate *const e = &r->choice.estimate;
    r->report.result = (struct dl_exchange_result){
        .complete = true,
        .time_s = e->time_s,
        .messages = (uint64_t)dl_count_messages(&r->choice.collective),
        .causes = {.start_s = e->pace.start_s,
                   .latency_s = e->latency_s,
                   .bandwidth_s = fmax(e->wire_s, e->pace.pump_s),
                   .reduction_s = e->reduction_s},
    };
}

void dl_collective_find_time(struct dl_collective_run *r, const struct dl_engine_kind *kind, struct dl_error *err)
{
    const struct dl_own_collective own = {&r->choice.collective, kind, r->report.fluid};
    if (dl_own_memory_check_collective(&own, err)) return;
    if (kind->alone)
        estimate_only(r);
    else
        simulate(r, kind, err);
}
