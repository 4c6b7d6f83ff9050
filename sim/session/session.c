#include "sim/session/session.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/engine/engines.h"
#include "sim/engine/tap.h"
#include "sim/plan/plan.h"
#include "sim/session/ideal.h"
#include "sim/session/own_memory.h"
#include "strategies/kept_schedules.h"
#include "topologies/placement.h"

/* ---- reading ---- */

/* Ranks that do not wait for all others at the end of a step, or a host that does not wait for its device, begin the
 * next one early: then the second is like all that follow. */
static void set_iterations(struct dl_session *s)
{
    const bool runs_ahead =
        !s->software.step_barrier || (s->software.host_s_per_launch > 0 && !s->software.drains_at_end);
    if (!s->request.iterations) s->request.iterations = runs_ahead ? 2 : 1;
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
    if (dl_load_document(&software, &q->set, s->arena, &s->software_doc, &s->err) ||
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
    return dl_workload_read(s->workload_doc, s->job.setting.microbatch, s->software.code, s->arena, &s->model, &s->err);
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

static enum dl_status read_device(struct dl_session *s)
{
    const struct dl_input given = s->request.device;
    const struct dl_json node = dl_json_member(s->machine.system_doc, "node", s->arena);
    const struct dl_want want = {DL_DEVICES, "device",
                                 dl_given_or(given, s->machine.system_doc, s->machine.topology->node.device), "device",
                                 dl_place_of_name(given.name, node, "device", s->arena)};
    return load_device(s, &want);
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

static enum dl_status open_machine(struct dl_session *s)
{
    const struct dl_session_request *const q = &s->request;
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
    s->written = other->written;
    dl_session_spread_hosts(s);
    s->workload_doc = dl_json_shared(other->workload_doc);
    s->model = *s->request.model;
    s->device_doc = dl_json_shared(other->device_doc);
    s->timed_doc = dl_json_shared(other->timed_doc);
    s->device = other->device;
    set_iterations(s);
    dl_job_suit(&s->job, &s->software, &s->model);
    if (dl_machine_open_as(&s->machine, &other->machine, &s->err) || place_ranks(s) || suit_device(s))
        return s->err.status;
    dl_machine_use_transport_of(&s->machine, &other->machine);
    return DL_OK;
}

const struct dl_engine_kind *dl_session_engine(const struct dl_session *s) { return dl_engine_find(s->request.engine); }

static bool is_analytic(const struct dl_session *s) { return dl_session_engine(s)->alone; }

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

static bool is_fluid(const struct dl_session *s) { return dl_fidelity_is_fluid(s->request.fidelity); }

static double asked_or(double asked, double usual) { return asked > 0 ? asked : usual; }

/* In fluid fidelity no more than take some seconds. A bundle takes 0.5 to 3.5 microseconds where few share its links; a
 * collective of many ranks crosses those of many others. */
static struct dl_played most_played(const struct dl_session *s)
{
    const struct dl_played *const asked = &s->request.most.in_step;
    const double most_collectives = 1e6, most_bundles = 4e6;
    if (is_analytic(s)) return (struct dl_played){0};
    if (!is_fluid(s)) return (struct dl_played){INFINITY, INFINITY};
    return (struct dl_played){asked_or(asked->collectives, most_collectives), asked_or(asked->bundles, most_bundles)};
}

/* Of what is too much as a whole, a part that takes about half a second. A run with many messages between stages takes
 * longer already, and nothing is added. */
static double most_in_part(const struct dl_session *s)
{
    const double most_bundles = 2.5e5;
    return asked_or(s->request.most.in_part, most_bundles);
}

/* Nor exchanges over replicas that take longer than about a minute. */
static double most_effort(const struct dl_session *s)
{
    const double most_fluid = 2e11;
    return is_analytic(s) || !is_fluid(s) ? 0 : asked_or(s->request.most.effort, most_fluid);
}

static const uint32_t *changing_links(const struct dl_session *s)
{
    const struct dl_scenario *const scenario = &s->scenario;
    uint32_t *const links = dl_arena_alloc(s->arena, (scenario->n_changes + 1) * sizeof *links);
    for (size_t i = 0; i < scenario->n_changes; i++) links[i] = scenario->changes[i].link;
    return links;
}

static enum dl_status lower(struct dl_session *s)
{
    dl_estimator_init(&s->estimator, s->machine.topology, &s->machine.transport, s->machine.bytes_per_s);
    if (s->request.like) {
        s->estimator.kept = dl_machines_choices(s->machine.keeper, s->machine.topology, s->request.like);
        s->estimator.shares_kept = true;
    }
    s->estimator.fluid = is_fluid(s);
    s->estimator.by_message = !is_fluid(s);
    const struct dl_lower_request what = {.job = &s->job,
                                          .model = &s->model,
                                          .device = &s->device,
                                          .estimator = &s->estimator,
                                          .device_of_rank = s->device_of_rank,
                                          .schedules = s->request.like ? s->request.like->schedules : s->schedules};
    const struct dl_plan_request how = {.job = &s->job,
                                        .topology = s->machine.topology,
                                        .device_of_rank = s->device_of_rank,
                                        .most_played = most_played(s),
                                        .most_in_part = most_in_part(s),
                                        .changing = changing_links(s),
                                        .n_changing = s->scenario.n_changes};
    return dl_lower(&what, s->arena, &s->lowered, &s->err) ? s->err.status
                                                           : dl_plan_lowered(&how, s->arena, &s->lowered, &s->err);
}

static void count_memory(struct dl_session *s)
{
    const uint32_t n_stages = dl_n_stages(&s->job.setting);
    s->memory = dl_alloc(n_stages * sizeof *s->memory);
    dl_memory_of_programs(dl_session_step(s).programs, n_stages, s->job.setting.software, s->memory);
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

enum dl_status dl_session_read(struct dl_session *s, const struct dl_session_request *request)
{
    *s = (struct dl_session){.request = *request, .arena = dl_arena_new()};
    if (!s->request.engine) s->request.engine = dl_engine_names[0];
    if (!request->like) s->schedules = dl_kept_schedules_new();
    if (!request->ideal) s->machine.keeper = request->machines; /* an ideal network changes the machine */
    if ((request->like ? read_like(s, request->like) : read_all(s)) || choose_fidelity(s)) return s->err.status;
    return read_scenario(s);
}

/* For an engine that shares links; NULL: the machine is not kept, or the engine needs none. */
static const struct dl_engine_link *kept_links(const struct dl_session *s)
{
    if (!s->machine.keeper || is_analytic(s)) return NULL;
    return dl_machines_links(s->machine.keeper, s->machine.topology);
}

enum dl_status dl_session_open(struct dl_session *s, const struct dl_session_request *request)
{
    if (dl_session_read(s, request) ||
        dl_own_memory_check(
            &(struct dl_own_run){s->machine.topology, &s->job, dl_session_engine(s), s->request.timeline},
            s->request.memory_bytes, &s->err))
        return s->err.status;
    dl_session_idealize(s);
    kept_links(s); /* so that children that run it find them */
    if (lower(s) || dl_session_read_program(s)) return s->err.status;
    count_memory(s);
    return DL_OK;
}

bool dl_session_has_experts(const struct dl_session *s)
{
    double parameters = 0;
    for (size_t i = 0; i < s->model.n_layers; i++) parameters += s->model.layers[i].expert_parameters;
    return parameters > 0;
}

/* ---- playing ---- */

static struct dl_engine *make_engine(struct dl_session *s, const struct dl_engine_link *links)
{
    const struct dl_topology *const t = s->machine.topology;
    struct dl_engine *const engine = dl_session_engine(s)->create(links, links ? t->n_links : 0);
    engine->progress = s->request.progress;
    if (!s->request.timeline) return engine;
    s->timeline = dl_timeline_new(
        &(struct dl_timeline_request){.step = dl_session_step(s), .software = &s->software, .topology = t});
    return dl_tap_new(engine, t->n_links);
}

static struct dl_training *start(struct dl_session *s, struct dl_engine *engine, struct dl_wire *wire)
{
    return dl_training_start(
        &(struct dl_training_request){.engine = engine,
                                      .wire = wire,
                                      .estimator = &s->estimator,
                                      .step = dl_session_step(s),
                                      .device_of_rank = s->device_of_rank,
                                      .arena = s->arena,
                                      .iterations = (uint32_t)s->request.iterations,
                                      .scenario = &s->scenario,
                                      .seed = s->request.seed,
                                      .slowdown_of_rank = dl_session_slowdown_of_rank(s),
                                      .recorder = s->timeline ? dl_timeline_recorder(s->timeline) : NULL,
                                      .device = &s->device,
                                      .by_message = !is_fluid(s),
                                      .most_effort = most_effort(s),
                                      .extrapolates = true,
                                      .one_replica = is_analytic(s)},
        &s->err);
}

static const struct dl_stage_causes *causes_by_stage(const struct dl_session *s, const struct dl_training *training)
{
    const uint32_t n = dl_n_stages(&s->job.setting);
    struct dl_stage_causes *const stages = dl_arena_alloc(s->arena, n * sizeof *stages);
    for (uint32_t i = 0; i < n; i++) stages[i] = dl_training_stage_causes(training, i);
    return stages;
}

/* Stages whose programs have the same call choose alike. */
static void keep_choices(struct dl_session *s, const struct dl_training *training)
{
    const struct dl_lowered *const l = &s->lowered;
    s->choices = dl_arena_alloc(s->arena, (l->n_calls + 1) * sizeof *s->choices);
    for (size_t i = 0; i < l->n_calls; i++) s->choices[i] = (struct dl_choice){0};
    for (uint32_t stage = 0; stage < dl_n_stages(&s->job.setting); stage++)
        for (size_t i = 0; i < l->n_calls; i++)
            if (!s->choices[i].collective.algorithm) dl_training_choice(training, stage, &l->calls[i], &s->choices[i]);
}

static bool names_software(const struct dl_session *s)
{
    return s->request.software.name || json_object_get(s->strategy_doc.value, "software");
}

/* As far as ranks have waited at all. */
static double schedule_bubble_s(const struct dl_session *s, const struct dl_training_result *result)
{
    const bool one_by_one = s->request.iterations <= 1 || s->job.setting.software->step_barrier;
    return fmin(dl_schedule_bubble_s(&s->lowered.schedule, result->item_s, one_by_one),
                result->exposed_s[DL_CAUSE_BUBBLE]);
}

static void fill_report(struct dl_session *s, struct dl_engine *engine, struct dl_training *training)
{
    s->report = (struct dl_run_report){.topology = s->machine.topology,
                                       .transport = &s->machine.transport,
                                       .job = &s->job,
                                       .model = &s->model,
                                       .device = &s->device,
                                       .lowered = &s->lowered,
                                       .memory = s->memory,
                                       .engine = s->request.engine,
                                       .fidelity = s->request.fidelity,
                                       .names_software = names_software(s),
                                       .result = dl_training_result(training, &s->err),
                                       .stages = causes_by_stage(s, training),
                                       .n_events = engine->kind->n_events(engine),
                                       .tuner_note = s->estimator.note};
    s->report.schedule_bubble_s = schedule_bubble_s(s, &s->report.result);
}

/* Known only where all that may meet on links was simulated there. */
static void note_links(struct dl_session *s, const struct dl_wire *wire)
{
    struct dl_links *const links = &s->report.links;
    links->topology = s->machine.topology;
    links->n = dl_wire_busiest(wire, links->items, DL_MOST_LINKS);
    if (s->timeline) {
        s->loads = dl_alloc(links->topology->n_links * sizeof *s->loads);
        s->n_loads = dl_wire_loads(wire, s->loads);
    }
    if (is_analytic(s) || s->lowered.n_timed_alone + s->report.result.n_timed_alone > 0) return;
    links->simulated_s = s->report.result.end_s;
    links->told_s = s->report.result.step_s;
}

static void announce_long_run(const struct dl_session *s)
{
    if (s->request.is_long) s->request.is_long();
}

/* Figures that are each in their range may be out of reach together. */
static enum dl_status check_step(struct dl_session *s)
{
    const double step_s = s->report.result.step_s;
    if (s->err.status || (isfinite(step_s) && step_s > 0)) return s->err.status;
    return dl_fail(&s->err, DL_RANGE, s->device_doc.where,
                   "with these figures a step takes %g s, which is no time; change those that are very small or large",
                   step_s);
}

enum dl_status dl_session_run(struct dl_session *s)
{
    if (s->err.status) return s->err.status;
    if (s->lowered.plays_beyond) announce_long_run(s);
    const struct dl_engine_link *const kept = kept_links(s);
    struct dl_engine_link *const own = kept || is_analytic(s) ? NULL : dl_machine_links(&s->machine);
    struct dl_engine *const engine = make_engine(s, kept ? kept : own);
    struct dl_wire *const wire = dl_wire_new(engine, s->machine.topology, s->machine.bytes_per_s, &s->err);
    dl_scenario_start(&s->scenario, wire);
    struct dl_training *const training = start(s, engine, wire);
    if (!s->lowered.plays_beyond && dl_training_plays_beyond(training)) announce_long_run(s);
    if (!s->err.status) engine->kind->run(engine);
    fill_report(s, engine, training);
    if (s->request.explain) keep_choices(s, training);
    if (s->timeline) dl_timeline_end(s->timeline, engine);
    dl_training_free(training); /* exchanges book their bytes when they are freed */
    note_links(s, wire);
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    dl_free(own);
    return check_step(s);
}

void dl_session_list_assumptions(struct dl_session *s)
{
    const struct dl_json docs[] = {s->machine.system_doc, s->device_doc, s->software_doc, s->machine.transport_doc};
    const struct dl_json wishes[] = {s->workload_doc, s->strategy_doc};
    const size_t n_docs = DL_COUNT(docs) - (s->job.n_devices == 1); /* that one sends nothing */
    if (!s->report.campaign) s->report.assumptions.device = &s->device;
    for (size_t i = 0; i < n_docs; i++)
        (s->report.campaign ? dl_assumptions_add : dl_assumptions_add_of_step)(&s->report.assumptions, docs[i],
                                                                               s->arena);
    for (size_t i = 0; i < DL_COUNT(wishes); i++)
        dl_assumptions_add_stated(&s->report.assumptions, wishes[i], s->arena);
}

void dl_session_list_files(struct dl_session *s)
{
    struct dl_files_read *const files = &s->report.files;
    dl_machine_list_files(&s->machine, s->arena, files);
    dl_files_read_add(files, "device", DL_DEVICES, s->device_doc, s->arena);
    dl_files_read_add(files, "strategy", DL_STRATEGIES, s->strategy_doc, s->arena);
    dl_files_read_add(files, "workload", DL_WORKLOADS, s->workload_doc, s->arena);
    dl_files_read_add(files, "software", DL_SOFTWARE, s->software_doc, s->arena);
}

/* A longer pipeline or smaller micro-batches may have a schedule that is larger than this computer's memory. */
static bool has_room(const void *user, const struct dl_job *changed)
{
    const struct dl_session *const s = user;
    const struct dl_own_run run = {s->machine.topology, &s->job, dl_session_engine(s), s->request.timeline};
    return dl_own_memory_holds(&run, s->request.memory_bytes, changed);
}

void dl_session_find_remedies(struct dl_session *s)
{
    if (dl_run_fits(&s->report)) return;
    dl_remedies_find(&(struct dl_remedy_request){.strategy = s->strategy_doc,
                                                 .workload = s->workload_doc,
                                                 .n_devices = s->job.n_devices,
                                                 .software = &s->software,
                                                 .device = &s->device,
                                                 .estimator = &s->estimator,
                                                 .has_room = has_room,
                                                 .user = s},
                     s->arena, &s->remedies);
    s->report.remedies = &s->remedies;
}

void dl_session_close(struct dl_session *s)
{
    const struct dl_json docs[] = {s->strategy_doc, s->workload_doc, s->device_doc,
                                   s->timed_doc,    s->software_doc, s->scenario_doc};
    dl_timeline_free(s->timeline);
    dl_free(s->loads);
    dl_lowered_release(&s->lowered, dl_n_stages(&s->job.setting));
    dl_kept_schedules_free(s->schedules);
    dl_read_step_release(&s->program);
    if (s->estimator.topology) dl_estimator_release(&s->estimator);
    dl_assumptions_release(&s->report.assumptions);
    dl_sources_release(&s->report.failing_sources);
    dl_sources_release(&s->report.power_sources);
    dl_remedies_release(&s->remedies);
    dl_explanation_release(&s->explanation);
    dl_machine_close(&s->machine);
    dl_free(s->device_of_rank);
    dl_free(s->memory);
    for (size_t i = 0; i < DL_COUNT(docs); i++) json_decref(docs[i].value);
    dl_arena_free(s->arena);
}
