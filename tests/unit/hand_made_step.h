/* hand_made_step.h - training steps whose programs are written by hand: equal stages that take so long and send so
 * much, on a crossbar. Every run is in a child, because SimGrid allows only one simulation a process. */
#ifndef DL_TESTS_HAND_MADE_STEP_H
#define DL_TESTS_HAND_MADE_STEP_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/engine/tap.h"
#include "sim/engine/training.h"
#include "sim/program/segments.h"
#include "sim/report/timeline.h"
#include "sim/session/inputs.h"
#include "strategies/sequence.h"
#include "tests/unit/suite.h"

#define BYTES_PER_S 1e9

struct step {
    const char *system; /* NULL: the crossbar */
    const char *schedule;
    uint32_t stages, replicas, micros, chunks, group;
    double forward_s, backward_s, weight_s, update_s;
    double send_bytes, gradient_bytes; /* gradient_bytes 0: replicas exchange nothing */
    uint32_t more_exchanges;           /* besides the one, started before anything is waited for */
    bool overlap;                      /* the update goes on beside the exchanges */
    enum dl_sends sends;
    double launch_host_s, send_host_s; /* of an instruction, of a send or receive */
    bool drains_at_sends, drains_at_receives, drains_at_end;
    struct dl_taken taken_by_exchanges, taken_by_sends;
    double update_class_s[DL_N_CLASSES]; /* instead of update_s, by class of kernel; all 0: it is a product */
    bool barrier;
    uint32_t iterations;
    const char *scenario; /* JSON with ' for ", NULL: none */
    uint64_t seed;
    const double *slowdown_of_rank; /* NULL: all are alike */
};

struct hand_made {
    const struct step *step;
    struct dl_arena *arena;
    struct dl_error err;
    struct dl_json scenario_doc;
    struct dl_machine machine;
    struct dl_software software;
    struct dl_device device;
    struct dl_setting setting;
    struct dl_lowered lowered;
    struct dl_scenario scenario;
    struct dl_estimator estimator;
    uint32_t *device_of_rank;
    struct dl_timeline *timeline; /* NULL: none; the test makes it, once there are programs, and frees it */
};

static inline void check_ok(const struct dl_error *err) { ck_assert_msg(!err->status, "%s", err->text); }

static inline struct dl_json parse(struct hand_made *h, const char *quoted, struct dl_json *doc)
{
    char *const text = dl_arena_string(h->arena, quoted);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    dl_json_parse(text, strlen(text), "test.json", h->arena, doc, &h->err);
    check_ok(&h->err);
    return *doc;
}

static inline void open_crossbar(struct hand_made *h)
{
    static const char crossbar[] =
        "{'schema':'dlsim/system/1','source':'a test','nodes':128,'transport':'ideal','node':{'device':'none',"
        "'devices':1,'parts':[]},'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e9,"
        "'latency_s':0}}";
    const struct dl_texts nothing_set = {0};
    const uint32_t n = h->step->stages * h->step->replicas;
    const char *const text = h->step->system ? h->step->system : crossbar;
    dl_topology_read(parse(h, text, &h->machine.system_doc), h->arena, &h->machine.topology, &h->err);
    dl_machine_use_transport(&h->machine, NULL, n, &nothing_set, h->arena, &h->err);
    check_ok(&h->err);
    dl_estimator_init(&h->estimator, h->machine.topology, &h->machine.transport, h->machine.bytes_per_s);
    h->estimator.fluid = true;
    h->device_of_rank = dl_alloc(n * sizeof *h->device_of_rank);
    for (uint32_t i = 0; i < n; i++) h->device_of_rank[i] = i;
}

static inline struct dl_schedule_request times_of(const struct step *s)
{
    return (struct dl_schedule_request){.stages = s->stages,
                                        .micros = s->micros,
                                        .chunks = s->chunks,
                                        .group = s->group,
                                        .forward_s = s->forward_s,
                                        .backward_s = s->backward_s,
                                        .weight_s = s->weight_s};
}

static inline void add_work(struct dl_template *t, const char *name, enum dl_cause cause, double seconds, double host_s)
{
    dl_template_add(
        t, &(struct dl_instruction){
               .name = name, .cause = cause, .device_s = seconds, .host_s = host_s, .kernel = DL_CLASS_PRODUCT});
}

/* The same of all kernels. */
static inline struct dl_taken taken_alike(double fraction)
{
    return (struct dl_taken){{0, fraction, fraction, fraction}};
}

/* Half of every item is computing, half is something else. */
static inline void fuse_by_hand(struct dl_template *t, const struct dl_comm *calls)
{
    dl_template_fuse(t, calls, &(struct dl_plan){0});
}

static inline void write_items(struct dl_template *items, const struct dl_comm *calls, const struct step *s)
{
    const double seconds[] = {s->forward_s, s->backward_s, s->weight_s};
    for (int kind = 0; kind <= DL_ITEM_W; kind++) {
        add_work(&items[kind], "half \"one\"", DL_CAUSE_COMPUTE, seconds[kind] / 2, s->launch_host_s);
        add_work(&items[kind], "half two", DL_CAUSE_TENSOR, seconds[kind] / 2, s->launch_host_s);
        fuse_by_hand(&items[kind], calls);
    }
}

static inline void add_update(struct dl_template *end, const struct step *s)
{
    if (s->update_s > 0) add_work(end, "update", DL_CAUSE_OPTIMIZER, s->update_s, s->launch_host_s);
    for (int i = 0; i < DL_N_CLASSES; i++) {
        if (s->update_class_s[i] == 0) continue;
        add_work(end, "update", DL_CAUSE_OPTIMIZER, s->update_class_s[i], s->launch_host_s);
        end->instructions[end->n_instructions - 1].kernel = (enum dl_kernel_class)i;
    }
}

static inline void write_end(struct dl_template *end, const struct dl_comm *calls, const struct step *s, uint32_t call)
{
    for (uint32_t i = 0; s->gradient_bytes > 0 && i <= s->more_exchanges; i++)
        dl_template_add(end, &(struct dl_instruction){.kind = DL_START, .name = "exchange", .call = call});
    if (s->overlap) add_update(end, s);
    if (s->gradient_bytes > 0)
        dl_template_add(end, &(struct dl_instruction){.kind = DL_WAIT, .name = "exchange", .call = DL_EVERY_CALL});
    if (!s->overlap) add_update(end, s);
    if (s->drains_at_end) dl_template_add(end, &(struct dl_instruction){.kind = DL_DRAIN, .name = "drain"});
    fuse_by_hand(end, calls);
}

static inline void write_programs(struct hand_made *h)
{
    const struct step *const s = h->step;
    struct dl_lowered *const l = &h->lowered;
    const struct dl_schedule_request times = times_of(s);
    dl_schedule_make(s->schedule, &times, h->arena, &l->schedule, &h->err);
    check_ok(&h->err);
    l->programs = dl_alloc(s->stages * sizeof *l->programs);
    l->n_calls = s->stages;
    l->calls = dl_alloc(s->stages * sizeof *l->calls);
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        struct dl_program *const p = &l->programs[stage];
        *p = (struct dl_program){.stage = stage, .n_chunks = s->chunks, .send_bytes = s->send_bytes};
        dl_program_make_own_items(p);
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++) write_items(&p->own[chunk * DL_N_TEMPLATES], l->calls, s);
        l->calls[stage] = (struct dl_comm){
            .bytes = s->gradient_bytes, .members = dl_holders(&h->setting, false), .cause = DL_CAUSE_DATA};
        write_end(&p->end, l->calls, s, stage);
    }
}

static inline void make_by_hand(struct hand_made *h, const struct step *s)
{
    *h = (struct hand_made){.step = s, .arena = dl_arena_new(), .software = {.name = "test"}};
    h->software.step_barrier = s->barrier;
    h->software.sends = s->sends;
    h->software.send_host_s = s->send_host_s;
    h->software.drains_at_sends = s->drains_at_sends;
    h->software.drains_at_receives = s->drains_at_receives;
    h->device = (struct dl_device){.taken_by_exchanges = s->taken_by_exchanges, .taken_by_sends = s->taken_by_sends};
    h->setting = (struct dl_setting){
        .chunks = s->chunks, .micros = s->micros, .grid = {1, 1, 1}, .expert_ways = 1, .software = &h->software};
    for (int axis = 0; axis < DL_N_AXES; axis++) {
        h->setting.ways[axis] = 1;
        h->setting.order[axis] = (enum dl_axis)axis;
    }
    h->setting.ways[DL_AXIS_DATA] = s->replicas;
    h->setting.ways[DL_AXIS_PIPELINE] = s->stages;
    dl_setting_number_ranks(&h->setting);
    open_crossbar(h);
    write_programs(h);
    const struct dl_scenario_scope scope = {
        .topology = h->machine.topology, .n_stages = s->stages, .n_replicas = s->replicas};
    if (s->scenario) dl_scenario_read(parse(h, s->scenario, &h->scenario_doc), &scope, h->arena, &h->scenario, &h->err);
    check_ok(&h->err);
}

static inline struct dl_training_request request_on(struct hand_made *h, struct dl_engine *engine, struct dl_wire *wire)
{
    return (struct dl_training_request){.engine = engine,
                                        .wire = wire,
                                        .estimator = &h->estimator,
                                        .step = dl_lowered_step(&h->lowered, &h->setting),
                                        .device_of_rank = h->device_of_rank,
                                        .arena = h->arena,
                                        .device = &h->device,
                                        .iterations = h->step->iterations,
                                        .scenario = &h->scenario,
                                        .seed = h->step->seed,
                                        .slowdown_of_rank = h->step->slowdown_of_rank};
}

static inline struct dl_training_result play_here(struct hand_made *h)
{
    const struct dl_topology *const t = h->machine.topology;
    struct dl_engine_link *const links = dl_machine_links(&h->machine);
    struct dl_engine *engine = dl_engine_get(0)->create(links, t->n_links);
    if (h->timeline) engine = dl_tap_new(engine, t->n_links);
    struct dl_wire *const wire = dl_wire_new(engine, t, h->machine.bytes_per_s, &h->err);
    dl_scenario_start(&h->scenario, wire);
    if (!h->err.status) dl_write_sequences(&h->lowered, &h->setting, &h->err);
    struct dl_training_request request = request_on(h, engine, wire);
    request.recorder = h->timeline ? dl_timeline_recorder(h->timeline) : NULL;
    struct dl_training *const training = dl_training_start(&request, &h->err);
    if (!h->err.status) engine->kind->run(engine);
    const struct dl_training_result result = dl_training_result(training, &h->err);
    if (h->timeline) dl_timeline_end(h->timeline, engine);
    dl_training_free(training);
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    dl_free(links);
    return result;
}

static inline void release_by_hand(struct hand_made *h)
{
    for (uint32_t stage = 0; stage < h->step->stages; stage++) dl_program_release(&h->lowered.programs[stage]);
    dl_free(h->lowered.programs);
    dl_free(h->lowered.calls);
    dl_estimator_release(&h->estimator);
    dl_machine_close(&h->machine);
    dl_free(h->device_of_rank);
    json_decref(h->scenario_doc.value);
    dl_arena_free(h->arena);
}

/* In a child; the test must run in a process that has simulated nothing itself. */
static inline struct dl_training_result play(const struct step *s)
{
    struct dl_training_result *const shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    struct hand_made h;
    int status;
    make_by_hand(&h, s);
    fflush(NULL); /* or the child would print it again */
    const pid_t child = fork();
    if (child == 0) {
        *shared = play_here(&h);
        if (h.err.status) fprintf(stderr, "%s\n", h.err.text);
        _exit(h.err.status != DL_OK);
    }
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    release_by_hand(&h);
    const struct dl_training_result result = *shared;
    munmap(shared, sizeof *shared);
    ck_assert(result.complete);
    return result;
}

static inline double sum_of_causes(const struct dl_training_result *r)
{
    double sum = 0;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) sum += r->exposed_s[cause];
    return sum;
}

static inline int run_steps(TCase *tests, const char *name)
{
    Suite *const suite = suite_create(name);
    suite_add_tcase(suite, tests);
    return run_without_forking(suite);
}

#endif
