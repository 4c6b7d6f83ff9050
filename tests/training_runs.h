/* training_runs.h - training steps for tests: everything up to the programs in this process, where a test can look at
 * it, and the simulation in a child, because SimGrid allows only one simulation a process.
 *
 * Every input is a text that begins with { (written with ' for ") or the name of a shipped file. */
#ifndef DL_TESTS_TRAINING_RUNS_H
#define DL_TESTS_TRAINING_RUNS_H

#include "sim/core/files.h"
#include "sim/core/random.h"
#include "sim/report/run_report.h"
#include "tests/collective_runs.h"
#include "topologies/placement.h"

struct training_inputs {
    const char *system, *transport, *device, *software, *workload, *strategy; /* transport NULL: the system's own */
};

/* A machine without limits but those that a test names: no latency, no launch time, links and memory that are never in
 * the way. */
#define IDEAL_SYSTEM(bandwidth, latency)                                                                               \
    "{'schema':'dlsim/system/1','source':'a test','nodes':4096,'transport':'ideal','node':{'device':'a test',"         \
    "'devices':1,'parts':[]},'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':" bandwidth           \
    ",'latency_s':" latency "}}"
#define IDEAL_DEVICE                                                                                                   \
    "{'schema':'dlsim/device/1','source':'a "                                                                          \
    "test','model':'roofline','peak_flop_per_s':{'fp32':1e15,'fp16':1e15,'bf16':1e15},"                                \
    "'memory_bytes':1e18,'memory_bytes_per_s':1e18,'launch_s':0,'figures':{'compute_fraction':1,"                      \
    "'bandwidth_fraction':1}}"

struct training {
    struct dl_arena *arena;
    struct dl_error err;
    struct dl_json docs[5];
    size_t n_docs;
    struct dl_machine machine;
    struct dl_job job;
    struct dl_software software;
    struct dl_model model;
    struct dl_device device;
    uint32_t *device_of_rank;
    struct dl_estimator estimator;
    struct dl_lowered lowered;
    struct dl_memory_use *memory; /* by stage */
};

struct training_outcome {
    struct dl_training_result result;
    double busiest_s;     /* bytes over bandwidth of the link that was busy longest */
    uint64_t report_hash; /* of the JSON report without `host` */
    struct dl_error err;
};

/* ---- in this process ---- */

static inline const struct dl_texts *no_assignments(void)
{
    static const struct dl_texts none = {0};
    return &none;
}

static inline enum dl_status training_read(struct training *t, const char *folder, const char *input,
                                           struct dl_json *doc)
{
    const char *path;
    if (*input != '{') {
        if (dl_find_file(folder, "file", input, t->arena, &path, &t->err) || dl_json_load(path, t->arena, doc, &t->err))
            return t->err.status;
    } else {
        char *const text = dl_arena_string(t->arena, input);
        for (char *c = text; *c; c++)
            if (*c == '\'') *c = '"';
        if (dl_json_parse(text, strlen(text), "test.json", t->arena, doc, &t->err)) return t->err.status;
    }
    t->docs[t->n_docs++] = *doc;
    return DL_OK;
}

static inline enum dl_status training_read_job(struct training *t, const struct training_inputs *in)
{
    struct dl_json doc;
    if (training_read(t, DL_STRATEGIES, in->strategy, &doc) || dl_job_read(doc, 0, t->arena, &t->job, &t->err) ||
        training_read(t, DL_SOFTWARE, in->software, &doc) || dl_software_read(doc, t->arena, &t->software, &t->err) ||
        training_read(t, DL_WORKLOADS, in->workload, &doc))
        return t->err.status;
    t->job.setting.software = &t->software;
    return dl_workload_read(doc, t->job.setting.microbatch, t->software.attention, t->arena, &t->model, &t->err);
}

static inline enum dl_status training_read_machine(struct training *t, const struct training_inputs *in)
{
    struct dl_json doc;
    const uint32_t n = t->job.n_devices;
    if (training_read(t, DL_SYSTEMS, in->system, &doc)) return t->err.status;
    t->machine.system_doc = doc;
    json_incref(doc.value); /* the machine releases it too */
    if (dl_topology_read(doc, t->arena, &t->machine.topology, &t->err) ||
        training_read(t, DL_DEVICES, in->device, &doc) || dl_device_read(doc, t->arena, &t->device, &t->err))
        return t->err.status;
    const uint32_t per_node = t->machine.topology->node.n_devices;
    t->device_of_rank = dl_alloc(n * sizeof *t->device_of_rank);
    if (dl_place(t->machine.topology, "packed", 0, n, t->device_of_rank, &t->err) ||
        dl_machine_use_transport(&t->machine, in->transport, (n + per_node - 1) / per_node, no_assignments(), t->arena,
                                 &t->err))
        return t->err.status;
    dl_estimator_init(&t->estimator, t->machine.topology, &t->machine.transport, t->machine.bytes_per_s);
    t->estimator.fluid = true;
    return DL_OK;
}

/* A refusal is in t->err. Close it in any case. */
static inline enum dl_status training_open(struct training *t, const struct training_inputs *in)
{
    *t = (struct training){.arena = dl_arena_new()};
    if (training_read_job(t, in) || training_read_machine(t, in) ||
        dl_lower(&(struct dl_lower_request){.job = &t->job,
                                            .model = &t->model,
                                            .device = &t->device,
                                            .estimator = &t->estimator,
                                            .device_of_rank = t->device_of_rank},
                 t->arena, &t->lowered, &t->err))
        return t->err.status;
    t->memory = dl_alloc(t->job.setting.ways[DL_AXIS_PIPELINE] * sizeof *t->memory);
    dl_memory_of_stages(&t->job.setting, &t->model, &t->lowered, t->memory);
    return DL_OK;
}

static inline void training_close(struct training *t)
{
    dl_lowered_release(&t->lowered, t->job.setting.ways[DL_AXIS_PIPELINE]);
    if (t->estimator.topology) dl_estimator_release(&t->estimator);
    dl_machine_close(&t->machine);
    dl_free(t->device_of_rank);
    dl_free(t->memory);
    for (size_t i = 0; i < t->n_docs; i++) json_decref(t->docs[i].value);
    dl_arena_free(t->arena);
}

/* ---- in the child ---- */

static inline uint64_t report_hash(const struct training *t, const struct dl_training_result *result,
                                   const char *engine, uint64_t n_events)
{
    const struct dl_run_report report = {.topology = t->machine.topology,
                                         .transport = &t->machine.transport,
                                         .job = &t->job,
                                         .model = &t->model,
                                         .device = &t->device,
                                         .lowered = &t->lowered,
                                         .result = *result,
                                         .memory = t->memory,
                                         .engine = engine,
                                         .n_events = n_events};
    json_t *const json = dl_run_report_json(&report);
    json_object_del(json, "host");
    const char *const text = json_dumps(json, JSON_SORT_KEYS);
    uint64_t hash = 0;
    for (const char *c = text; *c; c++) hash = dl_mix(hash ^ (unsigned char)*c);
    return hash;
}

/* What is left unfreed goes with the process. */
static inline void training_simulate_here(struct training *t, const char *engine_name, struct training_outcome *out)
{
    const struct dl_topology *const topology = t->machine.topology;
    struct dl_engine_link *const links = dl_machine_links(&t->machine);
    struct dl_engine *const engine = dl_engine_find(engine_name)->create(links, topology->n_links);
    struct dl_wire *const wire = dl_wire_new(engine, topology, links, &t->err);
    struct dl_training *const training =
        dl_training_start(&(struct dl_training_request){.engine = engine,
                                                        .wire = wire,
                                                        .estimator = &t->estimator,
                                                        .setting = &t->job.setting,
                                                        .lowered = &t->lowered,
                                                        .device_of_rank = t->device_of_rank,
                                                        .arena = t->arena},
                          &t->err);
    if (!t->err.status) engine->kind->run(engine);
    out->result = dl_training_result(training, &t->err);
    dl_training_free(training); /* exchanges book their bytes when they are freed */
    (void)dl_wire_busiest(wire, &out->busiest_s);
    out->report_hash = report_hash(t, &out->result, engine_name, engine->kind->n_events(engine));
    out->err = t->err;
}

/* ---- for the tests ---- */

/* Play the step. Stops the program if the child dies; an error of the simulation is in the outcome. */
static inline struct training_outcome training_simulate(struct training *t, const char *engine)
{
    int ends[2], status;
    struct training_outcome out = {0};
    fflush(NULL); /* or the child would print it again */
    stop_unless(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    if (child == 0) {
        training_simulate_here(t, engine, &out);
        if (write(ends[1], &out, sizeof out) != sizeof out) _exit(EXIT_FAILURE);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    const bool complete = read(ends[0], &out, sizeof out) == sizeof out;
    close(ends[0]);
    stop_unless(waitpid(child, &status, 0) == child && status == 0 && complete, "a simulation failed");
    return out;
}

#endif
