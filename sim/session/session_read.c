/* session_read.c - the files of a session: strategy, software, workload, machine, device and scenario. */
#include <assert.h>
#include <string.h>

#include "sim/session/session_parts.h"
#include "strategies/kept_schedules.h"
#include "topologies/placement.h"

/* Ranks that do not wait for all others at the end of a step, a host that does not wait for its device, or samples that
 * are read ahead begin the next one early: then the second is like all that follow. While the device waits for samples
 * the host gets ahead of it; in the first step it is not yet, which so ends late and makes the second too short: then
 * the third is. */
static void set_iterations(struct dl_session *s)
{
    const bool reads_ahead = s->job.setting.reads_ahead,
               host_is_ahead = s->software.host_s_per_launch > 0 && !s->software.drains_at_end;
    if (s->request.iterations) return;
    s->request.iterations = 1 + (!s->software.step_barrier || host_is_ahead || reads_ahead);
    if (reads_ahead && host_is_ahead) s->request.iterations++;
}

static enum dl_status read_strategy(struct dl_session *s)
{
    const struct dl_session_request *const q = &s->request;
    const struct dl_want strategy = {DL_STRATEGIES, "strategy", q->strategy, "strategy", NULL};
    return dl_load_document(&strategy, &q->set, s->arena, &s->strategy_doc, &s->err)
               ? s->err.status
               : dl_job_read(s->strategy_doc, (uint32_t)q->devices, s->arena, &s->job, &s->err);
}

static enum dl_status read_software(struct dl_session *s)
{
    const struct dl_session_request *const q = &s->request;
    const struct dl_want software = {DL_SOFTWARE, "software",
                                     dl_given_or(q->software, s->strategy_doc, s->job.software), "software",
                                     dl_place_of_name(q->software.name, s->strategy_doc, "software", s->arena)};
    if (dl_load_with_lineage(&software, &q->set, s->arena, &s->software_doc, &s->software_like, &s->err) ||
        dl_software_read(s->software_doc, s->arena, &s->written, &s->err))
        return s->err.status;
    dl_session_spread_hosts(s);
    return DL_OK;
}

static enum dl_status build_model(struct dl_session *s)
{
    const struct dl_session_request *const q = &s->request;
    const struct dl_want want = {DL_WORKLOADS, "workload", dl_given_or(q->workload, s->strategy_doc, s->job.workload),
                                 "workload", dl_place_of_name(q->workload.name, s->strategy_doc, "workload", s->arena)};
    if (dl_load_document(&want, &q->set, s->arena, &s->workload_doc, &s->err)) return s->err.status;
    return dl_workload_read(s->workload_doc, s->job.setting.microbatch, dl_job_model_code(&s->job, s->software.code),
                            s->arena, &s->model, &s->err);
}

static enum dl_status place_ranks(struct dl_session *s)
{
    struct dl_session_request *const q = &s->request;
    const struct dl_topology *const whole = s->machine.topology;
    const uint32_t n_servers = s->job.setting.servers, n = s->job.n_devices + n_servers;
    if (n > whole->n_devices)
        return dl_fail(&s->err, DL_IMPOSSIBLE,
                       q->devices ? "--devices" : dl_json_member(s->strategy_doc, "devices", s->arena).where,
                       "%s has %u devices, got %u%s", whole->name, whole->n_devices, n,
                       n_servers ? " with the servers" : "");
    if (dl_machine_slice(&s->machine, n, q->placement, &s->err)) return s->err.status;
    s->device_of_rank = dl_alloc(n * sizeof *s->device_of_rank);
    if (!q->placement) q->placement = n_servers ? "packed" : "even"; /* servers are beside the ranks of all nodes */
    return dl_place_with_servers(s->machine.topology, q->placement, q->seed,
                                 (struct dl_places){s->job.n_devices, n_servers}, s->device_of_rank, &s->err);
}

/* Values of --set that make it another device than the one that was timed. */
static bool is_other_device(const struct dl_session_request *q)
{
    for (size_t i = 0; i + q->n_doubts < q->set.n; i++)
        if (dl_set_is_for(q->set.items[i], "device")) return true;
    return false;
}

static enum dl_status load_device(struct dl_session *s, const struct dl_want *want)
{
    const struct dl_texts nothing = {0};
    if (dl_load_document(want, &s->request.set, s->arena, &s->device_doc, &s->err)) return s->err.status;
    if (!is_other_device(&s->request)) return dl_device_read(s->device_doc, s->arena, &s->device, &s->err);
    if (dl_load_document(want, &nothing, s->arena, &s->timed_doc, &s->err)) return s->err.status;
    return dl_device_read_other(s->device_doc, s->timed_doc, s->arena, &s->device, &s->err);
}

static bool is_convolution(const struct dl_kernel *k) { return k->kind == DL_KERNEL_CONV; }

/* The document of the device that a key of this one names. */
static enum dl_status load_named(struct dl_session *s, const char *key, const char *name, struct dl_json *doc)
{
    const struct dl_texts nothing = {0};
    const struct dl_want want = {
        DL_DEVICES, "device", {.name = name}, key, dl_json_member(s->device_doc, key, s->arena).where};
    return dl_load_document(&want, &nothing, s->arena, doc, &s->err);
}

/* Tables of another device are read only where some of their kernels may be asked for. */
static enum dl_status load_timed(struct dl_session *s)
{
    const char *const convolutions = s->device.convolutions_as, *const chip = s->device.same_chip_as,
                      *const instructions = s->device.instructions_as;
    if (convolutions && dl_model_find(&s->model, is_convolution) &&
        (load_named(s, "convolutions_as", convolutions, &s->convolutions_doc) ||
         dl_device_take_convolutions(&s->device, s->convolutions_doc, s->arena, &s->err)))
        return s->err.status;
    if (chip && (load_named(s, "same_chip_as", chip, &s->chip_doc) ||
                 dl_device_take_chip(&s->device, s->chip_doc, s->arena, &s->err)))
        return s->err.status;
    if (instructions && dl_kernel_rules_are_pytorchs(&s->written.kernels) &&
        (load_named(s, "instructions_as", instructions, &s->instructions_doc) ||
         dl_device_take_instructions(&s->device, s->instructions_doc, s->arena, &s->err)))
        return s->err.status;
    return DL_OK;
}

/* What software keeps for communication is not taken by it once more. Only of a device that was just read: that of
 * another session has lost it there. */
static void keep_units(struct dl_session *s)
{
    const double share = s->written.communication_fraction > 0 ? 0 : s->written.collective_units_fraction;
    for (int i = 0; i < DL_N_CLASSES; i++) {
        s->device.taken_by_exchanges.fraction[i] *= share;
        s->device.taken_by_sends.fraction[i] *= share;
    }
}

static enum dl_status read_device(struct dl_session *s)
{
    const struct dl_input given = s->request.device;
    const struct dl_json node = dl_json_member(s->machine.system_doc, "node", s->arena);
    const struct dl_want want = {DL_DEVICES, "device",
                                 dl_given_or(given, s->machine.system_doc, s->machine.topology->node.device), "device",
                                 dl_place_of_name(given.name, node, "device", s->arena)};
    if (load_device(s, &want)) return s->err.status;
    keep_units(s);
    return load_timed(s);
}

static enum dl_status suit_device(struct dl_session *s)
{
    const enum dl_precision precision = s->job.setting.precision;
    dl_job_suit_machine(&s->job, &s->device, s->machine.topology);
    if (dl_device_supports(&s->device, precision)) return DL_OK;
    return dl_fail(&s->err, DL_IMPOSSIBLE, dl_json_member(s->strategy_doc, "precision", s->arena).where,
                   "%s has no %s; it has %s", s->device.name, dl_precision_name(precision),
                   dl_device_precisions(&s->device, s->arena));
}

static enum dl_status open_machine_of(struct dl_session *s, const struct dl_session *other)
{
    const size_t n = s->job.n_devices + s->job.setting.servers;
    assert(!s->request.scenario && !s->request.ideal);
    dl_machine_borrow(&s->machine, &other->machine);
    s->request.placement = other->request.placement;
    s->device_of_rank = dl_alloc(n * sizeof *s->device_of_rank);
    memcpy(s->device_of_rank, other->device_of_rank, n * sizeof *s->device_of_rank);
    return read_device(s) ? s->err.status : suit_device(s);
}

static enum dl_status open_machine(struct dl_session *s)
{
    const struct dl_session_request *const q = &s->request;
    if (q->network) return open_machine_of(s, q->network);
    if (dl_machine_open(q->topo, &q->set, s->arena, &s->machine, &s->err) || place_ranks(s) || read_device(s) ||
        suit_device(s))
        return s->err.status;
    const uint32_t n = s->job.n_devices, per_node = s->machine.topology->node.n_devices;
    return dl_machine_use_transport(&s->machine, q->transport, (n + per_node - 1) / per_node, &q->set, s->arena,
                                    &s->err);
}

static enum dl_status read_all(struct dl_session *s)
{
    if (read_strategy(s) || read_software(s)) return s->err.status;
    set_iterations(s);
    if (build_model(s)) return s->err.status;
    dl_job_suit(&s->job, &s->software, &s->model);
    return open_machine(s);
}

/* Nothing but the strategy file is read. */
static enum dl_status read_like(struct dl_session *s, const struct dl_session *other)
{
    assert(s->machine.keeper && !s->request.ideal);
    if (read_strategy(s)) return s->err.status;
    s->software_doc = dl_json_shared(other->software_doc);
    s->software_like = other->software_like;
    s->written = other->written;
    dl_session_spread_hosts(s);
    s->workload_doc = dl_json_shared(other->workload_doc);
    s->model = *s->request.model;
    s->device_doc = dl_json_shared(other->device_doc);
    s->timed_doc = dl_json_shared(other->timed_doc);
    s->convolutions_doc = dl_json_shared(other->convolutions_doc);
    s->chip_doc = dl_json_shared(other->chip_doc);
    s->instructions_doc = dl_json_shared(other->instructions_doc);
    s->device = other->device;
    set_iterations(s);
    dl_job_suit(&s->job, &s->software, &s->model);
    if (dl_machine_open_as(&s->machine, &other->machine, &s->err) || place_ranks(s) || suit_device(s))
        return s->err.status;
    dl_machine_use_transport_of(&s->machine, &other->machine);
    return DL_OK;
}

static enum dl_status read_scenario(struct dl_session *s)
{
    if (!s->request.scenario) return DL_OK;
    if (is_analytic(s))
        return dl_fail(&s->err, DL_IMPOSSIBLE, "--scenario", "needs a simulation; use --engine simgrid or cm02");
    const struct dl_scenario_scope scope = {.topology = s->machine.topology,
                                            .n_stages = dl_n_stages(&s->job.setting),
                                            .n_replicas = dl_n_replicas(&s->job.setting),
                                            .devices = s->device_of_rank,
                                            .n_devices = s->job.n_devices + s->job.setting.servers};
    if (dl_json_load(s->request.scenario, s->arena, &s->scenario_doc, &s->err)) return s->err.status;
    return dl_scenario_read(s->scenario_doc, &scope, s->arena, &s->scenario, &s->err);
}

/* Flows have no ports that messages could hold. */
static enum dl_status choose_fidelity(struct dl_session *s)
{
    if (!s->request.fidelity) s->request.fidelity = dl_fidelity_name(!s->machine.transport.holds_ports);
    if (!s->machine.transport.holds_ports || dl_n_stages(&s->job.setting) == 1) return DL_OK;
    return dl_fail(&s->err, DL_IMPOSSIBLE, "--transport",
                   "%s has ports that messages hold (port_busy), but those between pipeline stages have lines of their "
                   "own; use another transport, or no pipeline",
                   s->machine.transport.name);
}

/* Software tells what it takes of the host that it was timed on, and what would overlap on most devices. */
static void suit_software(struct dl_session *s)
{
    const double slowdown = s->machine.topology->node.host.slowdown;
    if (slowdown > 0) dl_software_slow_hosts(&s->software, slowdown);
    s->software.waits_for_collectives |= s->device.waits_for_collectives;
}

enum dl_status dl_session_read(struct dl_session *s, const struct dl_session_request *request)
{
    *s = (struct dl_session){.request = *request, .arena = dl_arena_new()};
    if (!s->request.engine) s->request.engine = dl_engine_names[0];
    if (!request->like) s->schedules = dl_kept_schedules_new();
    if (!request->ideal) s->machine.keeper = request->machines; /* an ideal network changes the machine */
    if (request->like ? read_like(s, request->like) : read_all(s)) return s->err.status;
    suit_software(s);
    if (choose_fidelity(s)) return s->err.status;
    return read_scenario(s);
}
