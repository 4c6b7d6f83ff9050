/* choices.c - the algorithm that is chosen, against all estimates from their first to their last round. */
#include <check.h>
#include <math.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const char *const systems[] = {"tpu-v4", "aurora", "selene", "crossbar", "fugaku"};
static const enum dl_op ops[] = {DL_ALLREDUCE, DL_ALLGATHER, DL_REDUCESCATTER, DL_ALLTOALL};
static const uint32_t ranks[] = {2, 6, 16, 45};
static const double sizes[] = {1e3, 1e6, 1e9};

/* As the transport does it, by every protocol. */
static double least_s(struct dl_estimator *e, const struct dl_wish *wish, const struct dl_algorithm *a,
                      struct dl_arena *arena)
{
    struct dl_collective c = {.op = wish->op, .algorithm = a, .group = wish->group, .bytes = wish->bytes, .chunks = 1};
    struct dl_error err = {0};
    double least = INFINITY;
    if (!a->automatic || !dl_transport_has(e->transport, dl_op_name(a->op), a->name)) return least;
    if (a->prepare && a->prepare(&c, arena, &err)) return least;
    c.pipelined = e->transport->pipelines && a->fold == DL_FOLD_TREE;
    for (size_t i = 0; i < e->transport->n_protocols; i++) {
        struct dl_estimate estimate;
        if (!e->transport->protocols[i].has_family[a->family]) continue;
        ck_assert(!dl_estimate(e, &c, &e->transport->protocols[i], &estimate, &err));
        least = fmin(least, estimate.presumed_s);
    }
    return least;
}

static void check_wish(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena)
{
    struct dl_error err = {0};
    struct dl_choice choice;
    double least = INFINITY;
    for (size_t i = 0; i < dl_algorithm_count(); i++)
        if (dl_algorithm_get(i)->op == wish->op) least = fmin(least, least_s(e, wish, dl_algorithm_get(i), arena));
    ck_assert_msg(!dl_choose(e, wish, arena, &choice, &err), "%s", err.text);
    ck_assert_double_eq(choice.estimate.presumed_s, least);
}

START_TEST(nothing_that_is_not_looked_at_to_its_end_would_be_faster)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_machine m = {0};
    struct dl_error err = {0};
    const struct dl_texts none = {0};
    ck_assert_msg(!dl_machine_open((struct dl_input){.name = systems[_i]}, &none, arena, &m, &err), "%s", err.text);
    ck_assert_msg(!dl_machine_use_transport(&m, NULL, ranks[DL_COUNT(ranks) - 1], &none, arena, &err), "%s", err.text);
    struct dl_estimator estimator;
    dl_estimator_init(&estimator, m.topology, &m.transport, m.bytes_per_s);
    for (size_t i = 0; i < DL_COUNT(ops) * DL_COUNT(ranks) * DL_COUNT(sizes); i++) {
        const struct job job = {.n = ranks[i / DL_COUNT(ops) % DL_COUNT(ranks)]};
        struct job_run run;
        place_job(m.topology, &job, &run, arena);
        check_wish(&estimator,
                   &(struct dl_wish){.op = ops[i % DL_COUNT(ops)],
                                     .algorithm = "auto",
                                     .protocol = "auto",
                                     .group = &run.group,
                                     .bytes = sizes[i / DL_COUNT(ops) / DL_COUNT(ranks)]},
                   arena);
    }
    dl_estimator_release(&estimator);
    dl_machine_close(&m);
    dl_arena_free(arena);
}
END_TEST

/* ---- what decided ---- */

static double least_time_s(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i);
        struct dl_wish alone = *wish;
        struct dl_choice choice;
        struct dl_error err = {0};
        if (a->op != wish->op || !a->automatic || !dl_transport_has(e->transport, dl_op_name(a->op), a->name)) continue;
        alone.algorithm = a->name;
        for (size_t k = 0; k < e->transport->n_protocols; k++) {
            alone.protocol = e->transport->protocols[k].name;
            err = (struct dl_error){0};
            if (!dl_choose(e, &alone, arena, &choice, &err)) least_s = fmin(least_s, choice.estimate.time_s);
        }
    }
    return least_s;
}

/* A tuner's figure decides, and what is estimated to be faster is named; without a tuner nothing is faster. */
static void check_who_decides(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena)
{
    struct dl_error err = {0};
    struct dl_choice choice;
    ck_assert_msg(!dl_choose(e, wish, arena, &choice, &err), "%s", err.text);
    ck_assert_int_eq(choice.by, e->transport->tuner ? DL_BY_TUNER : DL_BY_LEAST_ESTIMATE);
    const double least_s = least_time_s(e, wish, arena);
    if (choice.faster.algorithm) {
        ck_assert_ptr_nonnull(e->transport->tuner);
        ck_assert_double_eq(choice.faster.time_s, least_s);
        ck_assert_double_ge(e->note.time_s - e->note.faster.time_s, choice.estimate.time_s - least_s);
    } else {
        ck_assert_double_le(choice.estimate.time_s, 1.01 * least_s);
    }
}

static const char *const deciders[] = {"perlmutter", "frontier", "summit", "selene", "aurora", "tpu-v5e", "crossbar"};

START_TEST(a_choice_says_what_decided_and_what_would_be_faster)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_machine m = {0};
    struct dl_error err = {0};
    const struct dl_texts none = {0};
    ck_assert(!dl_machine_open((struct dl_input){.name = deciders[_i]}, &none, arena, &m, &err));
    ck_assert(!dl_machine_use_transport(&m, NULL, 2, &none, arena, &err));
    struct dl_estimator estimator;
    dl_estimator_init(&estimator, m.topology, &m.transport, m.bytes_per_s);
    for (size_t i = 0; i < DL_COUNT(ops) * DL_COUNT(sizes); i++) {
        const struct job job = {.n = 8};
        struct job_run run;
        place_job(m.topology, &job, &run, arena);
        check_who_decides(&estimator,
                          &(struct dl_wish){.op = ops[i % DL_COUNT(ops)],
                                            .algorithm = "auto",
                                            .protocol = "auto",
                                            .group = &run.group,
                                            .bytes = sizes[i / DL_COUNT(ops)]},
                          arena);
    }
    if (strcmp(deciders[_i], "perlmutter") == 0) ck_assert_str_eq(estimator.note.faster.algorithm, "node_tree");
    dl_estimator_release(&estimator);
    dl_machine_close(&m);
    dl_arena_free(arena);
}
END_TEST

/* ---- against the simulation, where no tuner is imitated ---- */

static const struct setting simulated[] = {
    {.system = "crossbar", .engine = "simgrid", .set = {{"topo.nodes=17"}, 1}},
    {.system = "tpu-v5e",
     .engine = "simgrid",
     .set = {{"topo.nodes=3", "topo.network.dimensions=[4,6]", "topo.network.wrap=[false,false]"}, 3}},
    {.system = "tpu-v4", .engine = "simgrid", .set = {{"topo.nodes=16", "topo.network.dimensions=[4,4,4]"}, 2}},
};

START_TEST(auto_takes_no_longer_than_the_best)
{
    enum { most = 32, n = 16 };
    const double tolerance = 0.05, small_and_large[] = {1e6, 1e9};
    for (size_t i = 0; i < DL_COUNT(ops) * DL_COUNT(small_and_large); i++) {
        struct job jobs[most];
        struct outcome outcomes[most];
        size_t n_jobs = 0;
        const struct job job = {.op = ops[i % DL_COUNT(ops)],
                                .algorithm = "auto",
                                .n = n,
                                .bytes = small_and_large[i / DL_COUNT(ops)],
                                .refusable = true};
        jobs[n_jobs++] = job;
        for (size_t k = 0; k < dl_algorithm_count(); k++) {
            const struct dl_algorithm *const a = dl_algorithm_get(k);
            if (a->op != job.op || !a->automatic) continue;
            jobs[n_jobs] = job;
            jobs[n_jobs++].algorithm = a->name;
        }
        run_jobs(&simulated[_i], jobs, n_jobs, outcomes);
        for (size_t k = 1; k < n_jobs; k++)
            if (!outcomes[k].refused)
                ck_assert_msg(outcomes[0].result.time_s <= (1 + tolerance) * outcomes[k].result.time_s,
                              "%s, %s of %g bytes: auto takes %g s, %s %g s", simulated[_i].system, dl_op_name(job.op),
                              job.bytes, outcomes[0].result.time_s, jobs[k].algorithm, outcomes[k].result.time_s);
    }
}
END_TEST

/* ---- what is too much to be looked at ---- */

/* Of everybody to everybody: quadratic in ranks, and as many times as there are groups. */
START_TEST(of_too_many_messages_none_is_priced)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_machine m = {0};
    struct dl_error err = {0};
    const struct dl_texts none = {0};
    ck_assert(!dl_machine_open((struct dl_input){.name = "crossbar"}, &none, arena, &m, &err));
    ck_assert(!dl_machine_use_transport(&m, NULL, 1, &none, arena, &err));
    struct dl_estimator estimator;
    dl_estimator_init(&estimator, m.topology, &m.transport, m.bytes_per_s);
    const uint32_t alike[] = {1, 100000};
    for (size_t i = 0; i < DL_COUNT(alike); i++) {
        const struct job job = {.n = 16};
        struct job_run run;
        struct dl_choice choice;
        place_job(m.topology, &job, &run, arena);
        const struct dl_wish wish = {.op = DL_ALLREDUCE,
                                     .algorithm = "auto",
                                     .protocol = "auto",
                                     .group = &run.group,
                                     .bytes = 1,
                                     .n_alike = alike[i]};
        ck_assert(!dl_choose(&estimator, &wish, arena, &choice, &err));
        ck_assert_int_eq(strcmp(choice.collective.algorithm->name, "direct") == 0, i == 0);
    }
    dl_estimator_release(&estimator);
    dl_machine_close(&m);
    dl_arena_free(arena);
}
END_TEST

/* ---- links of a route ---- */

START_TEST(a_link_is_found_on_a_route_of_any_length)
{
    struct dl_route route = {0};
    for (uint32_t length = 1; length < 3000;
         length = 2 * length + 1) { /* and again on what is left of the one before */
        dl_route_clear(&route);
        for (uint32_t i = 0; i < length; i++) {
            ck_assert_uint_eq(dl_route_find(&route, 7 * i), route.n_hops);
            dl_route_add(&route, 7 * i, 1);
        }
        for (uint32_t i = 0; i < length; i++) ck_assert_uint_eq(dl_route_find(&route, 7 * i), i);
        ck_assert_uint_eq(dl_route_find(&route, 7 * length), length);
    }
    dl_route_release(&route);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("choices");
    TCase *const tests = tcase_create("choices");
    tcase_add_loop_test(tests, nothing_that_is_not_looked_at_to_its_end_would_be_faster, 0, (int)DL_COUNT(systems));
    tcase_add_loop_test(tests, a_choice_says_what_decided_and_what_would_be_faster, 0, (int)DL_COUNT(deciders));
    tcase_add_loop_test(tests, auto_takes_no_longer_than_the_best, 0, (int)DL_COUNT(simulated));
    tcase_add_test(tests, of_too_many_messages_none_is_priced);
    tcase_add_test(tests, a_link_is_found_on_a_route_of_any_length);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
