/* collective_command.c - one collective on one machine: choose, simulate, tell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/app/collective_sizes.h"
#include "sim/app/commands.h"
#include "sim/collective/effort.h"
#include "sim/collective/shapes.h"
#include "sim/core/files.h"
#include "sim/core/output.h"
#include "sim/draw/pictures.h"
#include "sim/engine/scenario.h"
#include "sim/report/asked.h"
#include "sim/report/collective_report.h"
#include "sim/report/explain_collective.h"
#include "sim/report/progress.h"
#include "sim/report/units.h"
#include "sim/session/fidelities.h"
#include "sim/session/inputs.h"
#include "sim/session/own_memory.h"
#include "topologies/placement.h"

struct request {
    const char *topo, *op, *algo, *protocol, *transport, *payload, *placement, *engine, *fidelity, *json, *scenario,
        *svg, *picture;
    double bytes;
    struct dl_sizes_range sizes;
    uint64_t devices, chunks, seed;
    bool links, explain;
    struct dl_texts set;
};

static const char *const ops[] = {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce",
                                  "gather",    "scatter",   "barrier",       "sendrecv", NULL};

static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, offsetof(struct request, topo), true, 0, 0, NULL,
     "the machine: a name of `dlsim list topologies`, or a file"},
    {"op", DL_OPT_CHOICE, offsetof(struct request, op), true, 0, 0, ops, "the operation"},
    {"bytes", DL_OPT_BYTES, offsetof(struct request, bytes), false, 0, 1e18, NULL,
     "size of the buffer as nccl-tests counts it; k, M, G or Ki, Mi, Gi may follow; a barrier has none"},
    {"sizes", DL_OPT_SIZES, offsetof(struct request, sizes), false, 1, 1e18, NULL,
     "in place of --bytes: a table over sizes and algorithms with the fastest and the cross-overs; two sizes a decade, "
     "or N"},
    {"algo", DL_OPT_TEXT, offsetof(struct request, algo), false, 0, 0, NULL,
     "a name of `dlsim list collectives`; auto, the fastest, if absent; of --sizes several with commas between, all if "
     "absent"},
    {"protocol", DL_OPT_TEXT, offsetof(struct request, protocol), false, 0, 0, NULL,
     "of the transport; auto if absent"},
    {"transport", DL_OPT_TEXT, offsetof(struct request, transport), false, 0, 0, NULL,
     "the communication library, in place of the machine's"},
    {"devices", DL_OPT_COUNT, offsetof(struct request, devices), false, 1, 2147483647.0, NULL,
     "how many take part; all if absent"},
    {"chunks", DL_OPT_COUNT, offsetof(struct request, chunks), false, 1, 65536, NULL,
     "pieces that follow each other along one path; as the transport does if absent"},
    {"payload", DL_OPT_TEXT, offsetof(struct request, payload), false, 0, 0, NULL,
     "dense, quantized:BITS or topk:RATIO; dense if absent"},
    {"placement", DL_OPT_TEXT, offsetof(struct request, placement), false, 0, 0, NULL,
     "packed, even, spread, random or list:DEVICE,...; packed if absent"},
    {"seed", DL_OPT_COUNT, offsetof(struct request, seed), false, 0, 9007199254740992.0, NULL,
     "seed of --placement random; 0 if absent"},
    {"engine", DL_OPT_CHOICE, offsetof(struct request, engine), false, 0, 0, dl_engine_names,
     "how time is simulated; simgrid if absent, analytic with --sizes"},
    {"fidelity", DL_OPT_CHOICE, offsetof(struct request, fidelity), false, 0, 0, dl_fidelities,
     "messages one by one, or as flows; step if absent, except for pipelined trees and sums made by switches"},
    {"scenario", DL_OPT_TEXT, offsetof(struct request, scenario), false, 0, 0, NULL,
     "a file of links that slow down, fail and come back"},
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
    {"svg", DL_OPT_OUTPUT, offsetof(struct request, svg), false, 0, 0, NULL,
     "draw who sends to whom in which step, and links by load; - is standard output, in place of the text"},
    {"picture", DL_OPT_CHOICE, offsetof(struct request, picture), false, 0, 0, dl_collective_pictures,
     "which picture --svg draws; all on one sheet if absent"},
    {"links", DL_OPT_FLAG, offsetof(struct request, links), false, 0, 0, NULL,
     "the ten links with the highest load, in the text too"},
    {"explain", DL_OPT_FLAG, offsetof(struct request, explain), false, 0, 0, NULL,
     "the formula with its numbers put in, their sources, and why the simulation differs from it"},
    {"set", DL_OPT_TEXTS, offsetof(struct request, set), false, 0, 0, NULL,
     "override a value of the machine or its transport: topo.nodes=4, transport.reduction_s_per_byte=0; may be "
     "repeated"},
};

struct run {
    struct request request;
    struct dl_arena *arena;
    struct dl_machine machine;
    uint32_t *device, n_extra;
    struct dl_group group;
    struct dl_estimator estimator;
    struct dl_choice choice;
    struct dl_json scenario_doc;
    struct dl_scenario scenario;
    struct dl_collective_report report;
    struct dl_explanation explanation;
    struct dl_link_load *loads; /* of all links that carried something, if they are drawn */
    size_t n_loads;
};

static enum dl_status open_machine(struct run *r, struct dl_error *err)
{
    struct request *const q = &r->request;
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

static enum dl_status read_scenario(struct run *r, struct dl_error *err)
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
static enum dl_status make_wish(struct run *r, struct dl_wish *out, struct dl_error *err)
{
    const struct request *const q = &r->request;
    *out = (struct dl_wish){.op = dl_op_named(q->op),
                            .algorithm = q->algo,
                            .protocol = q->protocol,
                            .group = &r->group,
                            .bytes = q->bytes,
                            .chunks = (uint32_t)q->chunks,
                            .servers = r->n_extra};
    if (dl_payload_parse(q->payload, &out->payload, err)) return err->status;
    dl_estimator_init(&r->estimator, r->machine.topology, &r->machine.transport, r->machine.bytes_per_s);
    r->estimator.fluid = q->fidelity && dl_fidelity_is_fluid(q->fidelity);
    r->estimator.by_message = q->fidelity && !r->estimator.fluid;
    return DL_OK;
}

static enum dl_status choose(struct run *r, struct dl_error *err)
{
    struct dl_wish wish;
    if (make_wish(r, &wish, err) || (wish.op == DL_BARRIER && empty(&wish, err))) return err->status;
    if (isnan(wish.bytes)) return dl_fail(err, DL_SYNTAX, "collective", "needs the option --bytes");
    return dl_choose(&r->estimator, &wish, r->arena, &r->choice, err);
}

static void note_links(struct run *r, const struct dl_wire *wire)
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
static void tell_stall(const struct run *r, size_t n_stuck, struct dl_error *err)
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
static double effort_s(const struct run *r, double n_messages)
{
    const struct dl_collective *const c = &r->choice.collective;
    const bool is_posted = c->algorithm->queue == DL_QUEUE_POSTED && !dl_folds(c, r->report.fluid);
    const double one_s = 3e-6, at_once_s = 1e-4, beside_each_s = 1e-6, n = c->group->n,
                 posted = dl_most_posted(c->group->n);
    if (!is_posted || !dl_network_reads_load(&r->machine.topology->network)) return n_messages * one_s;
    return n_messages * (posted >= n ? at_once_s : beside_each_s * n * posted);
}

/* Some take minutes or days, such as a ring over all of a large machine. */
static void announce_long_run(const struct run *r)
{
    const double a_minute_s = 60, n = dl_count_bundles(&r->choice.collective, r->report.fluid), s = effort_s(r, n);
    char count[DL_QUANTITY], time[DL_QUANTITY];
    if (s < a_minute_s) return;
    dl_progress_end();
    fprintf(stderr,
            "dlsim: %s messages are simulated one by one, which takes about %s; --fidelity fluid takes seconds\n",
            dl_format_count(n, count), dl_format_seconds(s, time));
}

static enum dl_status simulate(struct run *r, const struct dl_engine_kind *kind, struct dl_error *err)
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

static void estimate_only(struct run *r)
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

static void find_time(struct run *r, const struct dl_engine_kind *kind, struct dl_error *err)
{
    const struct dl_own_collective own = {&r->choice.collective, kind, r->report.fluid};
    if (dl_own_memory_check_collective(&own, err)) return;
    if (kind->alone)
        estimate_only(r);
    else
        simulate(r, kind, err);
}

static bool has_sizes(const struct request *q) { return q->sizes.to > 0; }

static void add_sizes(const struct dl_sizes_range *sizes, struct dl_fingerprint *f)
{
    dl_fingerprint_number(f, "sizes_from", sizes->from);
    dl_fingerprint_number(f, "sizes_to", sizes->to);
    dl_fingerprint_number(f, "sizes_n", (double)sizes->n);
}

static void find_fingerprint(const struct run *r, char sha256[DL_SHA256_HEX])
{
    const struct request *const q = &r->request;
    const char *const texts[][2] = {{"op", q->op},
                                    {"algorithm", q->algo},
                                    {"protocol", q->protocol},
                                    {"payload", q->payload},
                                    {"placement", q->placement},
                                    {"engine", q->engine},
                                    {"fidelity", q->fidelity}};
    const struct {
        const char *what;
        double x;
    } numbers[] = {{"bytes", r->choice.collective.bytes},
                   {"devices", (double)q->devices},
                   {"chunks", (double)q->chunks},
                   {"seed", (double)q->seed}};
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_machine_fingerprint(&r->machine, &f);
    dl_fingerprint_json(&f, "scenario", r->scenario_doc.value);
    for (size_t i = 0; i < DL_COUNT(texts); i++) dl_fingerprint_text(&f, texts[i][0], texts[i][1]);
    for (size_t i = 0; i < DL_COUNT(numbers); i++) dl_fingerprint_number(&f, numbers[i].what, numbers[i].x);
    if (has_sizes(q)) add_sizes(&q->sizes, &f);
    dl_fingerprint_end(&f, sha256);
}

static struct dl_asked what_was_asked(const struct run *r)
{
    const struct request *const q = &r->request;
    struct dl_asked asked = {.command = "collective",
                             .topology = r->machine.topology->name,
                             .transport = r->machine.transport.name,
                             .scenario = r->scenario_doc.value ? dl_document_name(r->scenario_doc, r->arena) : NULL,
                             .n_devices = (uint32_t)q->devices,
                             .placement = q->placement,
                             .seed = q->seed,
                             .engine = q->engine,
                             .fidelity = dl_fidelity_name(r->report.fluid),
                             .overrides = q->set.items,
                             .n_overrides = q->set.n};
    find_fingerprint(r, asked.sha256);
    return asked;
}

static enum dl_status explain(struct run *r, struct dl_error *err)
{
    dl_explanation_init(&r->explanation, r->arena);
    return dl_explain_collective(&r->explanation,
                                 &(struct dl_explained_collective){.report = &r->report,
                                                                   .estimator = &r->estimator,
                                                                   .system_doc = r->machine.system_doc,
                                                                   .transport_doc = r->machine.transport_doc,
                                                                   .has_scenario = r->scenario_doc.value != NULL},
                                 err);
}

static json_t *report_json(const struct run *r)
{
    json_t *const report = dl_collective_report_json(&r->report);
    if (r->request.explain) json_object_set_new(report, "explain", dl_explanation_json(&r->explanation));
    return report;
}

static enum dl_status draw(const struct run *r, struct dl_error *err)
{
    const struct request *const q = &r->request;
    const struct dl_collective_picture picture = {
        .report = &r->report,
        .load = {.topology = r->machine.topology,
                 .devices = r->device,
                 .n_devices = (uint32_t)q->devices,
                 .links = r->loads,
                 .n_links = r->n_loads,
                 .seconds = r->report.links.simulated_s,
                 .unknown = dl_engine_find(q->engine)->alone
                                ? "Loads are not known: the analytic engine puts nothing on links."
                                : NULL}};
    return q->svg ? dl_draw_collective(&picture, q->picture ? q->picture : dl_collective_pictures[0], q->svg, err)
                  : DL_OK;
}

static void list_inputs(const struct run *r, struct dl_assumptions *assumptions, struct dl_files_read *files)
{
    dl_assumptions_add_of_step(assumptions, r->machine.system_doc, r->arena);
    dl_assumptions_add(assumptions, r->machine.transport_doc, r->arena);
    dl_machine_list_files(&r->machine, r->arena, files);
}

static enum dl_status tell(struct run *r, struct dl_error *err)
{
    struct dl_collective_report *const report = &r->report;
    dl_progress_end();
    report->topology = r->machine.topology;
    report->transport = &r->machine.transport;
    report->choice = &r->choice;
    report->engine = r->request.engine;
    list_inputs(r, &report->assumptions, &report->files);
    const struct dl_asked asked = what_was_asked(r);
    const char *const json = r->request.json;
    if (r->request.explain && explain(r, err)) return err->status;
    if (json && dl_write_json(json, dl_answer(&asked, report_json(r)), err)) return err->status;
    if (draw(r, err)) return err->status;
    if (!dl_tells_text(json) || (r->request.svg && dl_is_same_file(r->request.svg, "-"))) return DL_OK;
    dl_collective_report_text(report, r->request.links);
    if (r->request.explain) dl_explanation_print(&r->explanation);
    return DL_OK;
}

static const struct dl_engine_kind *engine_of(const struct run *r) { return dl_engine_find(r->request.engine); }

static void answer_one(struct run *r, struct dl_error *err)
{
    if (choose(r, err)) return;
    r->report.fluid = r->estimator.fluid || dl_folds_always(&r->choice.collective);
    find_time(r, engine_of(r), err);
    if (!err->status) tell(r, err);
}

/* ---- over sizes ---- */

static double simulate_choice(void *user, const struct dl_choice *choice, struct dl_error *err)
{
    struct run *const r = user;
    r->choice = *choice;
    r->report.fluid = r->estimator.fluid || dl_folds_always(&choice->collective);
    find_time(r, engine_of(r), err);
    return r->report.result.time_s;
}

static enum dl_status tell_sizes(struct run *r, struct dl_sizes *sizes, struct dl_error *err)
{
    const char *const json = r->request.json;
    const struct dl_asked asked = what_was_asked(r);
    sizes->topology = r->machine.topology;
    sizes->transport = &r->machine.transport;
    sizes->op = dl_op_named(r->request.op);
    sizes->group = &r->group;
    sizes->engine = asked.engine;
    sizes->fidelity = asked.fidelity;
    dl_progress_end();
    list_inputs(r, &sizes->assumptions, &sizes->files);
    if (json && dl_write_json(json, dl_answer(&asked, dl_sizes_report_json(sizes)), err)) return err->status;
    if (dl_tells_text(json)) dl_sizes_report_text(sizes);
    return DL_OK;
}

static void answer_sizes(struct run *r, struct dl_error *err)
{
    struct dl_sizes sizes = {0};
    struct dl_sizes_request request = {.estimator = &r->estimator,
                                       .range = r->request.sizes,
                                       .simulate = engine_of(r)->alone ? NULL : simulate_choice,
                                       .user = r};
    if (!make_wish(r, &request.wish, err) && !dl_sizes_find(&request, r->arena, &sizes, err))
        tell_sizes(r, &sizes, err);
    dl_assumptions_release(&sizes.assumptions);
}

/* Nothing that is asked for in vain. */
static enum dl_status check_together(const struct request *q, struct dl_error *err)
{
    if (q->picture && !q->svg) return dl_fail(err, DL_IMPOSSIBLE, "--picture", "needs --svg FILE to draw to");
    if (!has_sizes(q)) return DL_OK;
    if (!isnan(q->bytes)) return dl_fail(err, DL_SYNTAX, "--bytes", "is one size; leave it out with --sizes");
    if (dl_op_named(q->op) == DL_BARRIER) return dl_fail(err, DL_IMPOSSIBLE, "--sizes", "a barrier has none");
    const char *const of_one = q->links      ? "--links"
                               : q->explain  ? "--explain"
                               : q->scenario ? "--scenario"
                               : q->svg      ? "--svg"
                                             : NULL;
    return of_one ? dl_fail(err, DL_IMPOSSIBLE, of_one, "is for one collective; use --bytes in place of --sizes")
                  : DL_OK;
}

static void answer(struct run *r, struct dl_error *err)
{
    struct request *const q = &r->request;
    if (!q->engine) q->engine = has_sizes(q) ? dl_engine_names[dl_engine_sharing_count()] : dl_engine_names[0];
    if (check_together(q, err) || open_machine(r, err) || read_scenario(r, err)) return;
    if (has_sizes(q))
        answer_sizes(r, err);
    else
        answer_one(r, err);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct run r = {
        .request = {.algo = "auto", .protocol = "auto", .payload = "dense", .placement = "packed", .bytes = NAN},
        .arena = dl_arena_new()};
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &r.request, NULL, err)) answer(&r, err);
    dl_estimator_release(&r.estimator);
    dl_shapes_free(r.group.shapes);
    dl_assumptions_release(&r.report.assumptions);
    dl_explanation_release(&r.explanation);
    dl_machine_close(&r.machine);
    json_decref(r.scenario_doc.value);
    dl_free(r.device);
    dl_free(r.loads);
    dl_arena_free(r.arena);
    return 0;
}

const struct dl_command dl_command_collective = {
    .name = "collective",
    .doc = "simulate one collective operation",
    .usage = "collective --topo T --op OP --bytes N|--sizes FROM:TO [--algo NAME|auto] [--devices N] [--json FILE|-] "
             "[--set PATH=JSON]...",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
