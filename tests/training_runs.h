/* training_runs.h - training steps for tests: everything up to the programs in this process, where a test can look at
 * it, and the simulation in a child, because SimGrid allows only one simulation a process.
 *
 * Every input is a text that begins with { (written with ' for ") or the name of a shipped file. The devices of shipped
 * systems are equally fast here. */
#ifndef DL_TESTS_TRAINING_RUNS_H
#define DL_TESTS_TRAINING_RUNS_H

#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "sim/core/random.h"
#include "sim/session/pool.h"
#include "sim/session/session.h"
#include "sim/program/segments.h"
#include "strategies/in_step.h"
#include "tests/collective_runs.h"

struct training_inputs {
    const char *system, *device, *software, *workload, *strategy;
    const char *transport; /* a name; NULL: the system's own */
    const char *set;       /* as --set, with ' for "; NULL: nothing */
    struct dl_most most;
};

/* A machine without limits but those that a test names: no latency, no launch time, links and memory that are never in
 * the way. */
#define IDEAL_HOST "{'link_bandwidth_bytes_per_s':1e9,'link_latency_s':0,'memory_bytes_per_s':1e18}"
#define IDEAL_SYSTEM(bandwidth, latency)                                                                               \
    "{'schema':'dlsim/system/1','source':'a test','nodes':4096,'transport':'ideal','node':{'device':'a test',"         \
    "'devices':1,'parts':[],'host':" IDEAL_HOST                                                                        \
    ",'storage':{'write_bytes_per_s':1e18}},'storage':{'write_bytes_per_s':1e18},'network':{'kind':'crossbar','link':" \
    "'ideal','bandwidth_bytes_per_s':" bandwidth ",'latency_s':" latency "}}"
#define IDEAL_DEVICE_WITH(keys)                                                                                        \
    "{'schema':'dlsim/device/1','source':'a "                                                                          \
    "test','model':'roofline','peak_flop_per_s':{'fp32':1e15,'fp16':1e15,'bf16':1e15},"                                \
    "'memory_bytes':1e18,'memory_bytes_per_s':1e18,'launch_s':0" keys ",'figures':{'compute_fraction':1,"              \
    "'bandwidth_fraction':1}}"
/* What is taken from kernels beside something, the same of all. */
#define TAKEN(fraction)                                                                                                \
    "{'product_fraction':" fraction ",'attention_fraction':" fraction ",'memory_fraction':" fraction "}"
#define IDEAL_DEVICE IDEAL_DEVICE_WITH("")
/* No host, and every kernel as the workload lists it: nothing fused, nothing beside anything else. */
#define PLAIN_SOFTWARE                                                                                                 \
    "{'schema':'dlsim/software/1','source':'a "                                                                        \
    "test','gradient_bytes':2,'drains_at_end':false,'drains_at_batches':false}"

struct training_outcome {
    struct dl_training_result result;
    double schedule_bubble_s;
    double busiest_s;     /* bytes over bandwidth of the link that was busy longest */
    uint64_t report_hash; /* of the JSON report without `host` */
    struct dl_error err;
};

/* ---- in this process ---- */

static inline const char *training_text(const char *input, struct dl_arena *arena)
{
    char *const text = dl_arena_string(arena, input);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}

static inline struct dl_input training_input(const char *input, struct dl_arena *arena)
{
    if (!input || *input != '{') return (struct dl_input){.name = input};
    return (struct dl_input){.name = "test.json", .text = training_text(input, arena)};
}

/* Whether it is a shipped system that says how its devices differ. */
static inline bool training_differs(const char *system, struct dl_arena *arena)
{
    const char *path;
    struct dl_json doc = {0};
    struct dl_error err = {0};
    const bool is_read =
        *system != '{' && !dl_find_file("topologies/systems", "topology", system, arena, &path, &err) &&
        !dl_json_load(path, arena, &doc, &err) && !dl_json_inherit(doc, "topologies/systems", "topology", arena, &err);
    const bool differs = is_read && json_object_get(doc.value, "variability");
    json_decref(doc.value);
    return differs;
}

/* A refusal is in s->err. Close it in any case. */
static inline enum dl_status training_open(struct dl_session *s, const struct training_inputs *in)
{
    struct dl_arena *const texts = dl_arena_new();
    struct dl_session_request request = {.topo = training_input(in->system, texts),
                                         .strategy = training_input(in->strategy, texts),
                                         .workload = training_input(in->workload, texts),
                                         .software = training_input(in->software, texts),
                                         .device = training_input(in->device, texts),
                                         .transport = in->transport,
                                         .most = in->most};
    if (training_differs(in->system, texts)) request.set.items[request.set.n++] = "-topo.variability";
    if (in->set) request.set.items[request.set.n++] = training_text(in->set, texts);
    dl_session_open(s, &request);
    for (uint32_t i = s->lowered.n_positions; i-- > 0;) /* so that tests see every instruction */
        for (int kind = 0; kind < DL_N_TEMPLATES; kind++) dl_template_unfold(&s->lowered.positions[i].items[kind]);
    dl_arena_free(texts);
    return s->err.status;
}

/* The same with a strategy of these parts: keys of the file but for the stack, and entries of the stack. */
static inline enum dl_status training_open_stack(struct dl_session *s, struct training_inputs in, const char *head,
                                                 const char *stack)
{
    char strategy[1000];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none',%s,'stack':[%s]}", head, stack);
    in.strategy = strategy;
    return training_open(s, &in);
}

/* What of a template is neither a start nor a wait in lockstep, and the work that those are if they are priced. */
static inline const struct dl_template *training_priced(const struct dl_session *s, const struct dl_template *t)
{
    const struct dl_comm *const calls = s->lowered.calls;
    struct dl_template *const out = dl_arena_alloc(s->arena, sizeof *out);
    out->instructions = dl_arena_alloc(s->arena, (2 * t->n_instructions + 1) * sizeof *out->instructions);
    for (size_t i = 0; i < t->n_instructions; i++) {
        struct dl_priced_work work;
        dl_priced_work(t, i, calls, &work);
        for (size_t k = 0; k < work.n; k++) out->instructions[out->n_instructions++] = work.items[k];
        const bool is_as_written = t->instructions[i].kind != DL_DO && !dl_may_be_priced(&t->instructions[i], calls);
        if (is_as_written) out->instructions[out->n_instructions++] = t->instructions[i];
    }
    return out;
}

/* Bytes that a rank of the stage sends in collectives in step that are played; without overlapped gradients. */
static inline double training_played_in(const struct dl_session *s, const struct dl_template *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->planned.n; i++) {
        if (t->planned.items[i].kind != DL_START) continue;
        const struct dl_comm *const what = &s->lowered.calls[t->planned.items[i].call];
        if (what->channel != DL_CHANNEL_LOCKSTEP) continue;
        const double n = dl_ranks_count(&s->job.setting.ranks, what->members.digits);
        sum += (what->op == DL_ALLREDUCE ? 2 : 1) * what->bytes * (n - 1) / n;
    }
    return sum;
}

static inline double training_played_bytes(const struct dl_session *s, uint32_t stage)
{
    const struct dl_schedule *const schedule = &s->lowered.schedule;
    double sum = 0;
    for (uint32_t i = 0; i < schedule->n_items[stage]; i++) {
        const struct dl_item *const item = &schedule->items[stage][i];
        sum += training_played_in(s, s->lowered.programs[stage].items[item->chunk * DL_N_TEMPLATES + item->kind]);
    }
    return sum;
}

/* ---- in the child ---- */

static inline uint64_t report_hash(const struct dl_session *s)
{
    json_t *const json = dl_run_report_json(&s->report);
    json_object_del(json, "host");
    const char *const text = json_dumps(json, JSON_SORT_KEYS);
    uint64_t hash = 0;
    for (const char *c = text; *c; c++) hash = dl_mix(hash ^ (unsigned char)*c);
    return hash;
}

static inline void training_simulate_here(void *user, size_t job, void *result)
{
    (void)job;
    struct dl_session *const s = user;
    struct training_outcome *const out = result;
    dl_session_run(s);
    *out = (struct training_outcome){.result = s->report.result,
                                     .schedule_bubble_s = s->report.schedule_bubble_s,
                                     .busiest_s = s->report.links.n ? s->report.links.items[0].busy_s : 0,
                                     .report_hash = s->err.status ? 0 : report_hash(s),
                                     .err = s->err};
}

/* ---- for the tests ---- */

/* Play the step. Stops the program if the child dies; an error of the simulation is in the outcome. */
static inline struct training_outcome training_simulate(struct dl_session *s, const char *engine)
{
    struct training_outcome out = {0};
    struct dl_error err = {0};
    s->request.engine = engine;
    dl_pool_run(
        &(struct dl_pool_request){
            .n_jobs = 1, .n_workers = 1, .result_bytes = sizeof out, .run = training_simulate_here, .user = s},
        &out, &err);
    stop_unless(!err.status, err.text);
    return out;
}

#endif
