/* kernels_summary.c - the summary on a machine whose clock is made up: rounds have orders of their own, and what one
 * slow round does is seen in the spread and not in the share. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/profiling.h"
#include "tests/unit/suite.h"

enum { n_rounds = 5, n_points = 4, slow_round = 2, most_visits = 100 };

/* A visit is one shape in one round: as many as there are points make a round. */
static struct visit {
    const char *kernel;
    int64_t count;
} visits[most_visits];
static size_t n_visits;
static double issued_s;

static void *begin_visit(const struct dl_call *call, const char *kernel)
{
    ck_assert_uint_lt(n_visits, most_visits);
    visits[n_visits++] = (struct visit){kernel, call->dim[0]};
    return NULL;
}
static void *begin_copy(const struct dl_call *call) { return begin_visit(call, "copy"); }
static void *begin_relu(const struct dl_call *call) { return begin_visit(call, "relu"); }
static void end_visit(void *plan) { (void)plan; }

/* One byte in a nanosecond; in the slow round it takes half as long again. */
static void issue(const struct dl_call *call, double times)
{
    const double s_per_byte = 1e-9, bytes = 2 * sizeof(float) * (double)call->dim[0];
    issued_s += times * s_per_byte * bytes * ((n_visits - 1) / n_points == slow_round ? 1.5 : 1);
}
static void copy(const struct dl_call *call) { issue(call, 1); }
static void relu(const struct dl_call *call) { issue(call, 2); }

static void start(void) { issued_s = 0; }
static double stop(void) { return issued_s; }
static void describe(struct dl_device_facts *facts)
{
    *facts = (struct dl_device_facts){.name = "a machine", .versions = "none", .last_cache_bytes = 1000};
}

static const struct dl_routine routines[] = {
    {.problem = "copy",
     .pass = "forward",
     .way = "a",
     .precisions = 1,
     .run = copy,
     .open = begin_copy,
     .close = end_visit},
    {.problem = "relu",
     .pass = "forward",
     .way = "b",
     .precisions = 1,
     .run = relu,
     .open = begin_relu,
     .close = end_visit},
    {0},
};
static const struct dl_routine *const tables[] = {routines, NULL};

/* Of both kernels the shapes of 262144 and 500000 are large. */
static const char *summary(const char *only)
{
    static char text[4000];
    struct dl_backend machine = dl_backend_cpu;
    machine.tables = tables, machine.most_bytes = 4e6;
    machine.describe = describe, machine.start = start, machine.stop = stop;
    FILE *const to = tmpfile();
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    ck_assert(to && dup2(fileno(to), STDOUT_FILENO) >= 0);
    const struct dl_profile_options o = {
        .backend = &machine, .precisions = 1, .spread = 0.01, .n_shares = 1, .only = only};
    n_visits = 0;
    ck_assert_int_eq(dl_profile_summary(&o), 0);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = 0;
    fclose(to);
    return text;
}

START_TEST(a_slow_round_is_in_the_spread_and_not_in_the_share)
{
    const char *const text = summary(NULL);
    ck_assert_msg(strstr(text, "copy 1.0 GB/s") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "  100.0 %  50.0 %  100.0 %  50.0 %  ") != NULL, "%s", text); /* copy: best, worst */
    ck_assert_msg(strstr(text, "   50.0 %  50.0 %   50.0 %  50.0 %  ") != NULL, "%s", text); /* relu */
}
END_TEST

START_TEST(what_is_asked_for_is_shown_shape_by_shape_beside_the_copy)
{
    const char *const text = summary("relu");
    ck_assert_msg(strstr(text, "copy 1.0 GB/s") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "   50.0 %  50.0 %  262144\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "   50.0 %  50.0 %  500000\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\ncopy") == NULL, "%s", text);
}
END_TEST

static bool is_same(const struct visit *a, const struct visit *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && a->count == b->count;
}

START_TEST(every_round_has_every_shape_in_an_order_of_its_own)
{
    size_t n_moved = 0;
    summary(NULL);
    ck_assert_uint_eq(n_visits, n_rounds * n_points);
    for (size_t i = 0; i < n_visits; i++) {
        n_moved += !is_same(&visits[i], &visits[i % n_points]);
        for (size_t j = i / n_points * n_points; j < i; j++) ck_assert(!is_same(&visits[i], &visits[j]));
    }
    ck_assert_uint_gt(n_moved, 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("kernels");
    TCase *const all = tcase_create("summary");
    tcase_add_test(all, a_slow_round_is_in_the_spread_and_not_in_the_share);
    tcase_add_test(all, what_is_asked_for_is_shown_shape_by_shape_beside_the_copy);
    tcase_add_test(all, every_round_has_every_shape_in_an_order_of_its_own);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
