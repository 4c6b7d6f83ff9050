/* configurations.c - how many strategies a second the analytic engine prices in one process: GPT 22B on 8 devices of
 * selene and GPT 1T on 512, from a lowered model on: programs made and played. */
#define _GNU_SOURCE /* fork, pipe, clock_gettime */
#include <stdio.h>
#include <time.h>

#include "sim/plan/plan.h"
#include "sim/engine/engines.h"
#include "tests/training_runs.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void lower_and_play(struct dl_session *t)
{
    const struct dl_topology *const topology = t->machine.topology;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_lowered lowered;
    dl_lower(&(struct dl_lower_request){.job = &t->job,
                                        .model = &t->model,
                                        .device = &t->device,
                                        .estimator = &t->estimator,
                                        .device_of_rank = t->device_of_rank},
             arena, &lowered, &t->err);
    dl_plan_nothing(&lowered);
    struct dl_engine *const engine = dl_engine_alone.create(NULL, 0);
    struct dl_wire *const wire = dl_wire_new(engine, topology, t->machine.bytes_per_s, &t->err);
    struct dl_training *const training =
        dl_training_start(&(struct dl_training_request){.engine = engine,
                                                        .wire = wire,
                                                        .estimator = &t->estimator,
                                                        .step = dl_lowered_step(&lowered, &t->job.setting),
                                                        .device_of_rank = t->device_of_rank,
                                                        .arena = arena,
                                                        .device = &t->device,
                                                        .extrapolates = true,
                                                        .one_replica = true},
                          &t->err);
    engine->kind->run(engine);
    dl_training_free(training);
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    dl_lowered_release(&lowered, t->job.setting.ways[DL_AXIS_PIPELINE]);
    dl_arena_free(arena);
}

static void measure(const char *name, const char *workload, const char *strategy)
{
    const double enough_s = 1;
    const struct training_inputs in = {.system = "selene",
                                       .device = "a100-80",
                                       .software = "megatron-2021",
                                       .workload = workload,
                                       .strategy = strategy};
    struct dl_session t;
    if (training_open(&t, &in)) {
        fprintf(stderr, "%s\n", t.err.text);
        exit(EXIT_FAILURE);
    }
    const double begin_s = cpu_s();
    int n = 0;
    for (; cpu_s() - begin_s < enough_s; n++) lower_and_play(&t);
    printf("%-34s %8.0f configurations a second\n", name, n / (cpu_s() - begin_s));
    dl_session_close(&t);
}

int main(void)
{
    dl_memory_begin(); /* as dlsim does */
    measure("GPT 22B, 8 devices, tensor 8", "gpt-22b",
            "{'schema':'dlsim/strategy/1','source':'bench','workload':'x','devices':8,'global_batch':4,'microbatch':4,"
            "'recompute':'full','stack':[{'name':'tensor','ways':8},{'name':'data'}]}");
    measure("GPT 22B, 8 devices, tensor 2, pp 4", "gpt-22b",
            "{'schema':'dlsim/strategy/1','source':'bench','workload':'x','devices':8,'global_batch':16,"
            "'stack':[{'name':'tensor','ways':2},{'name':'pipeline','ways':4},{'name':'data'}]}");
    measure("GPT 1T, 512 devices, 512 micro", "gpt-1t-korthikanti",
            "{'schema':'dlsim/strategy/1','source':'bench','workload':'x','devices':512,'global_batch':512,"
            "'recompute':'full','stack':[{'name':'tensor','ways':8},{'name':'pipeline','ways':64},{'name':'data'}]}");
    return 0;
}
