/* run_command.c - a whole training step: files -> workload -> programs -> simulation -> report, from top to bottom. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/inputs.h"
#include "sim/core/files.h"
#include "sim/engine/engines.h"
#include "sim/engine/tap.h"
#include "sim/report/run_report.h"
#include "sim/report/progress.h"
#include "sim/report/trace.h"
#include "topologies/placement.h"

struct request {
    const char *topo, *strategy, *workload, *transport, *placement, *software, *engine, *json, *scenario, *trace;
    uint64_t devices, seed, iterations;
    bool print_program;
    struct dl_texts set;
};

static const char *const engines[] = {"simgrid", "cm02", "analytic", NULL};

static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, offsetof(struct request, topo), true, 0, 0, NULL},
    {"strategy", DL_OPT_TEXT, offsetof(struct request, strategy), true, 0, 0, NULL},
    {"workload", DL_OPT_TEXT, offsetof(struct request, workload), false, 0, 0, NULL},
    {"devices", DL_OPT_COUNT, offsetof(struct request, devices), false, 1, 2147483647.0, NULL},
    {"placement", DL_OPT_TEXT, offsetof(struct request, placement), false, 0, 0, NULL},
    {"software", DL_OPT_TEXT, offsetof(struct request, software), false, 0, 0, NULL},
    {"transport", DL_OPT_TEXT, offsetof(struct request, transport), false, 0, 0, NULL},
    {"engine", DL_OPT_CHOICE, offsetof(struct request, engine), false, 0, 0, engines},
    {"scenario", DL_OPT_TEXT, offsetof(struct request, scenario), false, 0, 0, NULL},
    {"iterations", DL_OPT_COUNT, offsetof(struct request, iterations), false, 1, 10000, NULL},
    {"seed", DL_OPT_COUNT, offsetof(struct request, seed), false, 0, 9007199254740992.0, NULL},
    {"json", DL_OPT_TEXT, offsetof(struct request, json), false, 0, 0, NULL},
    {"trace", DL_OPT_TEXT, offsetof(struct request, trace), false, 0, 0, NULL},
    {"print-program", DL_OPT_FLAG, offsetof(struct request, print_program), false, 0, 0, NULL},
    {"set", DL_OPT_TEXTS, offsetof(struct request, set), false, 0, 0, NULL},
};

struct run {
    struct request request;
    struct dl_arena *arena;
    struct dl_machine machine;
    struct dl_json strategy_doc, workload_doc, device_doc, software_doc, scenario_doc;
    struct dl_scenario scenario;
    struct dl_job job;
    struct dl_software software;
    struct dl_model model;
    struct dl_device device;
    uint32_t *device_of_rank;
    struct dl_estimator estimator;
    struct dl_lowered lowered;
    struct dl_memory_use *memory;
    struct dl_run_report report;
    struct dl_trace *trace; /* NULL: not wanted */
};

static enum dl_status read_strategy(struct run *r, struct dl_error *err)
{
    const struct request *const q = &r->request;
    const struct dl_want strategy = {DL_STRATEGIES, "strategy", q->strategy, "strategy", NULL};
    if (dl_load_document(&strategy, &q->set, r->arena, &r->strategy_doc, err) ||
        dl_job_read(r->strategy_doc, (uint32_t)q->devices, r->arena, &r->job, err))
        return err->status;
    const struct dl_want software = {DL_SOFTWARE, "software", q->software ? q->software : r->job.software, "software",
                                     dl_place_of_name(q->software, r->strategy_doc, "software", r->arena)};
    if (dl_load_document(&software, &q->set, r->arena, &r->software_doc, err) ||
        dl_software_read(r->software_doc, r->arena, &r->software, err))
        return err->status;
    r->job.setting.software = &r->software;
    return DL_OK;
}

static enum dl_status build_model(struct run *r, struct dl_error *err)
{
    const struct request *const q = &r->request;
    const struct dl_want want = {DL_WORKLOADS, "workload", q->workload ? q->workload : r->job.workload, "workload",
                                 dl_place_of_name(q->workload, r->strategy_doc, "workload", r->arena)};
    if (dl_load_document(&want, &q->set, r->arena, &r->workload_doc, err)) return err->status;
    return dl_workload_read(r->workload_doc, r->job.setting.microbatch, r->software.attention, r->arena, &r->model,
                            err);
}

static enum dl_status place_ranks(struct run *r, struct dl_error *err)
{
    const struct request *const q = &r->request;
    const struct dl_topology *const t = r->machine.topology;
    const uint32_t n = r->job.n_devices;
    if (n > t->n_devices)
        return dl_fail(err, DL_IMPOSSIBLE,
                       q->devices ? "--devices" : dl_json_member(r->strategy_doc, "devices", r->arena).where,
                       "%s has %u devices, got %u", t->name, t->n_devices, n);
    r->device_of_rank = dl_alloc(n * sizeof *r->device_of_rank);
    return dl_place(t, q->placement, q->seed, n, r->device_of_rank, err);
}

static enum dl_status read_device(struct run *r, struct dl_error *err)
{
    const struct dl_json node = dl_json_member(r->machine.system_doc, "node", r->arena);
    const struct dl_want want = {DL_DEVICES, "device", r->machine.topology->node.device, "device",
                                 dl_json_member(node, "device", r->arena).where};
    const enum dl_precision precision = r->job.setting.precision;
    if (dl_load_document(&want, &r->request.set, r->arena, &r->device_doc, err) ||
        dl_device_read(r->device_doc, r->arena, &r->device, err))
        return err->status;
    if (dl_device_supports(&r->device, precision)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(r->strategy_doc, "precision", r->arena).where,
                   "%s has no %s; it has %s", r->device.name, dl_precision_name(precision),
                   dl_device_precisions(&r->device, r->arena));
}

static enum dl_status open_machine(struct run *r, struct dl_error *err)
{
    const struct request *const q = &r->request;
    if (dl_machine_open(q->topo, &q->set, r->arena, &r->machine, err) || place_ranks(r, err) || read_device(r, err))
        return err->status;
    const uint32_t n = r->job.n_devices, per_node = r->machine.topology->node.n_devices;
    return dl_machine_use_transport(&r->machine, q->transport, (n + per_node - 1) / per_node, &q->set, r->arena, err);
}

static bool is_analytic(const struct run *r) { return strcmp(r->request.engine, "analytic") == 0; }

static enum dl_status read_scenario(struct run *r, struct dl_error *err)
{
    if (!r->request.scenario) return DL_OK;
    if (is_analytic(r))
        return dl_fail(err, DL_IMPOSSIBLE, "--scenario", "needs a simulation; use --engine simgrid or cm02");
    const struct dl_scenario_scope scope = {.topology = r->machine.topology,
                                            .n_stages = r->job.setting.ways[DL_AXIS_PIPELINE],
                                            .n_replicas = r->job.setting.ways[DL_AXIS_DATA]};
    if (dl_json_load(r->request.scenario, r->arena, &r->scenario_doc, err)) return err->status;
    return dl_scenario_read(r->scenario_doc, &scope, r->arena, &r->scenario, err);
}

static enum dl_status lower(struct run *r, struct dl_error *err)
{
    dl_estimator_init(&r->estimator, r->machine.topology, &r->machine.transport, r->machine.bytes_per_s);
    r->estimator.fluid = true;
    return dl_lower(&(struct dl_lower_request){.job = &r->job,
                                               .model = &r->model,
                                               .device = &r->device,
                                               .estimator = &r->estimator,
                                               .device_of_rank = r->device_of_rank},
                    r->arena, &r->lowered, err);
}

static struct dl_engine *make_engine(struct run *r, const struct dl_engine_link *links)
{
    const struct dl_topology *const t = r->machine.topology;
    const struct dl_engine_kind *const kind = is_analytic(r) ? &dl_engine_alone : dl_engine_find(r->request.engine);
    struct dl_engine *const engine = kind->create(links, t->n_links);
    engine->progress = dl_progress();
    if (!r->request.trace) return engine;
    r->trace =
        dl_trace_new(&(struct dl_trace_request){.setting = &r->job.setting, .lowered = &r->lowered, .topology = t});
    return dl_tap_new(engine, t->n_links);
}

static enum dl_status simulate(struct run *r, struct dl_error *err)
{
    const struct dl_topology *const t = r->machine.topology;
    struct dl_engine_link *const links = dl_machine_links(&r->machine);
    struct dl_engine *const engine = make_engine(r, links);
    struct dl_wire *const wire = dl_wire_new(engine, t, links, err);
    struct dl_training *const training =
        dl_training_start(&(struct dl_training_request){.engine = engine,
                                                        .wire = wire,
                                                        .estimator = &r->estimator,
                                                        .setting = &r->job.setting,
                                                        .lowered = &r->lowered,
                                                        .device_of_rank = r->device_of_rank,
                                                        .arena = r->arena,
                                                        .iterations = (uint32_t)r->request.iterations,
                                                        .scenario = &r->scenario,
                                                        .seed = r->request.seed,
                                                        .recorder = r->trace ? dl_trace_recorder(r->trace) : NULL,
                                                        .one_replica = is_analytic(r)},
                          err);
    dl_scenario_start(&r->scenario, engine, links);
    if (!err->status) engine->kind->run(engine);
    dl_progress_end();
    r->report.result = dl_training_result(training, err);
    r->report.n_events = engine->kind->n_events(engine);
    if (r->trace) dl_trace_count_links(r->trace, engine);
    dl_training_free(training);
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    dl_free(links);
    return err->status;
}

static enum dl_status tell(struct run *r, struct dl_error *err)
{
    struct dl_run_report *const report = &r->report;
    report->topology = r->machine.topology;
    report->transport = &r->machine.transport;
    report->job = &r->job;
    report->model = &r->model;
    report->device = &r->device;
    report->lowered = &r->lowered;
    report->engine = r->request.engine;
    r->memory = dl_alloc(r->job.setting.ways[DL_AXIS_PIPELINE] * sizeof *r->memory);
    dl_memory_of_stages(&r->job.setting, &r->model, &r->lowered, r->memory);
    report->memory = r->memory;
    const struct dl_json docs[] = {r->machine.system_doc, r->machine.transport_doc, r->device_doc, r->software_doc};
    for (size_t i = 0; i < DL_COUNT(docs); i++) dl_assumptions_add(&report->assumptions, docs[i], r->arena);
    if (r->request.json) return dl_write_json(r->request.json, dl_run_report_json(report), err);
    dl_run_report_text(report);
    return DL_OK;
}

static enum dl_status write_trace(struct run *r, struct dl_error *err)
{
    struct dl_trace_left_out left_out;
    if (!r->trace || dl_trace_write(r->trace, r->request.trace, &left_out, err)) return err->status;
    if (left_out.instructions)
        fprintf(stderr, "dlsim: --trace: single instructions are left out: %ju more slices\n",
                (uintmax_t)left_out.instructions);
    if (left_out.slices)
        fprintf(stderr, "dlsim: --trace: the last %ju slices are left out\n", (uintmax_t)left_out.slices);
    return DL_OK;
}

static void print_programs(const struct run *r)
{
    for (uint32_t i = 0; i < r->job.setting.ways[DL_AXIS_PIPELINE]; i++)
        dl_program_print(&r->lowered.programs[i], r->lowered.calls, stdout);
}

static void release(struct run *r)
{
    dl_trace_free(r->trace);
    dl_lowered_release(&r->lowered, r->job.setting.ways[DL_AXIS_PIPELINE]);
    dl_estimator_release(&r->estimator);
    dl_assumptions_release(&r->report.assumptions);
    dl_machine_close(&r->machine);
    dl_free(r->device_of_rank);
    dl_free(r->memory);
    json_decref(r->strategy_doc.value);
    json_decref(r->workload_doc.value);
    json_decref(r->device_doc.value);
    json_decref(r->software_doc.value);
    json_decref(r->scenario_doc.value);
    dl_arena_free(r->arena);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct run r = {.request = {.placement = "packed", .engine = "simgrid", .iterations = 1}, .arena = dl_arena_new()};
    int code = 0;
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &r.request, NULL, err) && !read_strategy(&r, err) &&
        !build_model(&r, err) && !open_machine(&r, err) && !read_scenario(&r, err) && !lower(&r, err)) {
        if (r.request.print_program)
            print_programs(&r);
        else if (!simulate(&r, err) && !write_trace(&r, err) && !tell(&r, err))
            code = dl_run_fits(&r.report) ? 0 : 1;
    }
    release(&r);
    return code;
}

const struct dl_command dl_command_run = {
    .name = "run",
    .doc = "simulate a training step (the word `run` may be left out)",
    .usage = "[run] --topo T --strategy S [--workload W] [--devices N] [--scenario FILE] [--iterations N] [--seed N] "
             "[--json FILE|-] [--trace FILE] [--print-program] [--set PATH=JSON]...",
    .run = run,
};
