/* estimates_systems.c - on every shipped system, with its own software, each algorithm by itself: how far the estimate
 * may be from the simulation.
 *
 * Ranks are followed round by round, each by itself. What is not in the estimate: where ranks drift apart, messages of
 * different rounds share links, so that the one that all wait for is late (the estimate is below), or they do not meet
 * at all on a link that they share in the same round (above). */
#include <check.h>

#include "sim/core/files.h"
#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double sizes[] = {1e3, 1e6, 1e8}; /* small first: see collective_runs.h */
enum { most_ranks = 12, most_jobs = 256 };

/* Allowed estimate / simulation. */
static double least_of(const struct dl_algorithm *a)
{
    const double ring = 0.75, drifting = 0.45;
    return a->fold == DL_FOLD_RING ? ring : drifting;
}

static double most_above(const struct dl_algorithm *a)
{
    const double at_once = 1.12; /* one or two rounds: nothing to be late for */
    const double unequal_rounds = 1.35;
    /* Lanes that share links are taken to be in the same step half of the time. */
    const double ring_of_unequal_hops = 1.2;
    if (strcmp(a->name, "direct") == 0) return at_once;
    return a->fold == DL_FOLD_RING ? ring_of_unequal_hops : unequal_rounds;
}

static uint32_t count_ranks(const char *system)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_machine m = {0};
    struct dl_error err = {0};
    const struct dl_texts none = {0};
    ck_assert_msg(!dl_machine_open((struct dl_input){.name = system}, &none, arena, &m, &err), "%s", err.text);
    const uint32_t n = m.topology->n_devices;
    dl_machine_close(&m);
    dl_arena_free(arena);
    return n > most_ranks ? most_ranks : n - 1; /* one more is wanted for a server */
}

static size_t list_jobs(uint32_t n_ranks, struct job *jobs, const struct dl_algorithm **algorithms)
{
    size_t n = 0;
    for (size_t i = 0; i < DL_COUNT(sizes) * dl_algorithm_count(); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i % dl_algorithm_count());
        const double bytes = a->op == DL_BARRIER ? 0 : sizes[i / dl_algorithm_count()];
        algorithms[n] = a;
        jobs[n++] = (struct job){.op = a->op, .algorithm = a->name, .n = n_ranks, .bytes = bytes, .refusable = true};
    }
    return n;
}

static void check_system(const char *system, uint32_t n_ranks)
{
    static struct job jobs[most_jobs];
    static struct outcome outcomes[most_jobs];
    static const struct dl_algorithm *algorithms[most_jobs];
    ck_assert_uint_le(DL_COUNT(sizes) * dl_algorithm_count(), most_jobs);
    const size_t n = list_jobs(n_ranks, jobs, algorithms);
    const struct setting setting = {.system = system, .engine = "simgrid"};
    run_jobs(&setting, jobs, n, outcomes);
    for (size_t i = 0; i < n; i++) {
        const double s = outcomes[i].result.time_s, estimate_s = outcomes[i].estimate_s;
        ck_assert_msg(outcomes[i].refused ||
                          (estimate_s <= s * most_above(algorithms[i]) && estimate_s >= s * least_of(algorithms[i])),
                      "%s %s of %u on %s, %g bytes: estimate %.6g s, simulation %.6g s", dl_op_name(jobs[i].op),
                      jobs[i].algorithm, n_ranks, system, jobs[i].bytes, outcomes[i].estimate_s,
                      outcomes[i].result.time_s);
    }
}

static const char **names;

START_TEST(estimates_are_near_the_simulation)
{
    const uint32_t n_ranks = count_ranks(names[_i]);
    if (n_ranks > 1) check_system(names[_i], n_ranks);
}
END_TEST

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    const int n_systems = (int)dl_list_folder("topologies/systems", arena, &names);
    Suite *const s = suite_create("estimates_systems");
    TCase *const tests = tcase_create("systems");
    tcase_add_loop_test(tests, estimates_are_near_the_simulation, 0, n_systems);
    suite_add_tcase(s, tests);
    const int failed = run_suite(s);
    dl_arena_free(arena);
    return failed;
}
