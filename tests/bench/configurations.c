/* configurations.c - how many strategies a second the analytic engine prices in one process: GPT 22B on 8 devices of
 * selene and GPT 1T on 512 and 3,072, from a lowered model on: programs made and played; and whole points as `search`
 * does them.
 *
 * bench_configurations [ROUNDS [ROW]]: so many of each instead of a second's worth, to count instructions; of this row
 * only. */
#define _GNU_SOURCE /* fork, pipe, clock_gettime */
#include <stdio.h>
#include <time.h>

#include "sim/plan/plan.h"
#include "sim/engine/engines.h"
#include "sim/study/search_point.h"
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
                                        .device_of_rank = t->device_of_rank,
                                        .schedules = t->schedules},
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

static struct {
    long rounds, row, next; /* rounds 0: for a second; row -1: all */
} asked = {.row = -1};

/* Whether the row is wanted; they are counted from 0. */
static bool is_next_wanted(void)
{
    const long row = asked.next++;
    return asked.row < 0 || asked.row == row;
}

static bool goes_on(int n_done, double begin_s)
{
    const double enough_s = 1;
    return asked.rounds ? n_done < asked.rounds : cpu_s() - begin_s < enough_s;
}

static void measure(const char *name, const char *workload, const char *strategy)
{
    if (!is_next_wanted()) return;
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
    for (; goes_on(n, begin_s); n++) lower_and_play(&t);
    printf("%-34s %8.0f configurations a second\n", name, n / (cpu_s() - begin_s));
    dl_session_close(&t);
}

/* Those that are refused or do not fit count too: a search looks at them as well. */
static void measure_points(const char *name, const char *workload, uint64_t devices, uint64_t global_batch)
{
    if (!is_next_wanted()) return;
    struct dl_search search;
    struct dl_error err = {0};
    if (dl_search_open(&search,
                       &(struct dl_search_wanted){.session = {.topo = {.name = "selene"},
                                                              .workload = {.name = workload},
                                                              .software = {.name = "megatron-2021"},
                                                              .devices = devices},
                                                  .global_batch = global_batch},
                       &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(EXIT_FAILURE);
    }
    search.engine = dl_engine_alone.name;
    const size_t stride = 7919; /* a prime, so that all kinds of points come early */
    const double begin_s = cpu_s();
    int n = 0;
    for (; goes_on(n, begin_s); n++) {
        void *const point =
            dl_search_open_point(&search, search.space.points[(size_t)n * stride % search.space.n_points]);
        json_decref(dl_search_run_point(point));
        dl_search_close_point(point);
    }
    printf("%-34s %8.0f points a second\n", name, n / (cpu_s() - begin_s));
    dl_search_close(&search);
}

int main(int argc, char **argv)
{
    if (argc > 1) asked.rounds = strtol(argv[1], NULL, 10);
    if (argc > 2) asked.row = strtol(argv[2], NULL, 10);
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
    measure("GPT 1T, 3,072 devices, 512 micro", "gpt-1t-korthikanti",
            "{'schema':'dlsim/strategy/1','source':'bench','workload':'x','devices':3072,'global_batch':3072,"
            "'recompute':'full','stack':[{'name':'tensor','ways':8},{'name':'pipeline','ways':64},{'name':'data'}]}");
    measure_points("GPT 22B, 8 devices, search", "gpt-22b", 8, 16);
    measure_points("GPT 1T, 3,072 devices, search", "gpt-1t-korthikanti", 3072, 3072);
    return 0;
}
