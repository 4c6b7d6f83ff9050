/* calibrate_messages.c - calibration of messages: lines that made noisy times come back from them, and dlsim says
 * of messages what the fit says. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/calibration_fixture.h"

enum { n_sizes = 23 };
static const struct dl_line eager = {.intercept = 1.5e-6, .slope = 1 / 3e9};
static const struct dl_line rendezvous = {.intercept = 5e-6, .slope = 1 / 9e9};

static void make_messages(double *x, double *y, gsl_rng *rng)
{
    const struct dl_message_fit truth = {.small = eager, .large = rendezvous};
    for (int i = 0; i < n_sizes; i++) {
        x[i] = ldexp(1, i);
        y[i] = dl_message_s(&truth, x[i]) * (1 + gsl_ran_gaussian(rng, 0.01));
    }
}

static bool holds(const struct dl_line *l, const struct dl_line *truth)
{
    return fabs(l->intercept - truth->intercept) <= l->intercept_pm && fabs(l->slope - truth->slope) <= l->slope_pm;
}

/* Both intervals of a line at once, so somewhat less than 95 of 100; where the ways part is found from the same times.
 */
START_TEST(intervals_of_noisy_messages_hold_the_truth)
{
    const int trials = 300, least = 240;
    int held[2] = {0};
    double x[n_sizes], y[n_sizes];
    gsl_rng *const rng = dl_random_new(1, "messages", 0);
    for (int trial = 0; trial < trials; trial++) {
        make_messages(x, y, rng);
        const struct dl_message_fit fit = dl_fit_messages((struct dl_points){x, y, n_sizes});
        ck_assert(fit.two_ways);
        held[0] += holds(&fit.small, &eager);
        held[1] += holds(&fit.large, &rendezvous);
    }
    gsl_rng_free(rng);
    ck_assert_int_ge(held[0], least);
    ck_assert_int_ge(held[1], least);
}
END_TEST

/* In pieces messages may be slower or faster than as a whole. */
START_TEST(a_line_of_its_own_is_found_for_what_is_sent_in_pieces)
{
    static const struct dl_line pieces[] = {{.intercept = 4e-5, .slope = 1 / 12e9}, {.intercept = 0, .slope = 1 / 7e9}};
    const double limit_bytes = 1 << 19, close = 1e-9;
    const struct dl_message_fit truth = {
        .small = eager, .large = rendezvous, .pieces = pieces[_i], .pieces_above_bytes = limit_bytes};
    double x[n_sizes], y[n_sizes];
    for (int i = 0; i < n_sizes; i++) {
        x[i] = ldexp(1, i);
        y[i] = dl_message_s(&truth, x[i]);
    }
    const struct dl_message_fit fit = dl_fit_messages_and_pieces((struct dl_points){x, y, n_sizes}, limit_bytes);
    ck_assert(fit.two_ways);
    for (int i = 0; i < n_sizes; i++) ck_assert_double_eq_tol(dl_message_s(&fit, x[i]), y[i], close * y[i]);
    ck_assert_double_eq_tol(fit.pieces.slope, pieces[_i].slope, close * pieces[_i].slope);
    ck_assert_double_eq_tol(dl_message_bytes_per_s(&fit), _i ? 9e9 : 12e9, close * 12e9);
}
END_TEST

/* In and between nodes; bandwidths that are assumed and that are known; wires slower than the messages. */
static const struct {
    const char *system, *transport;
    bool in_node;
} pairs[] = {{"crossbar", "mpi", false}, {"localhost", "mpi", true},      {"localhost", "ideal", true},
             {"aurora", "mpi", true},    {"dgx-a100-hdr4", "mpi", false}, {"dgx-a100-hdr4", "ideal", true},
             {"cori", "mpi", false},     {"juwels-booster", "mpi", false}};

static void check_says_as_fitted(struct subject *s, const struct dl_message_fit *fit, const uint32_t *pair)
{
    struct dl_error err = {0};
    struct dl_topology *t = NULL;
    struct dl_group group;
    dl_topology_read(s->machine.system_doc, s->arena, &t, &err);
    stop_on_error(&err);
    dl_group_init(&group, t, pair, 2, s->arena);
    struct dl_timed_run runs[n_sizes];
    for (int i = 0; i < n_sizes; i++)
        runs[i] = (struct dl_timed_run){.op = DL_SENDRECV, .group = &group, .bytes = ldexp(1, i), .time_s = 1};
    struct dl_calibration c = {
        .topology = t, .transport = s->machine.transport_doc, .runs = runs, .n_runs = DL_COUNT(runs)};
    dl_calibration_estimate(&c, true, &err);
    stop_on_error(&err);
    for (int i = 0; i < n_sizes; i++) {
        const double fitted_s = dl_message_s(fit, runs[i].bytes);
        ck_assert_double_eq_tol(runs[i].after_s, fitted_s, 1e-9 * fitted_s);
    }
    dl_topology_free(t);
}

START_TEST(dlsim_says_of_messages_what_the_fit_says)
{
    const struct dl_texts nothing_set = {0};
    struct dl_error err = {0};
    double x[n_sizes], y[n_sizes];
    gsl_rng *const rng = dl_random_new(2, "messages", 0);
    struct subject s = {.arena = dl_arena_new()};
    dl_machine_open((struct dl_input){.name = pairs[_i].system}, &nothing_set, s.arena, &s.machine, &err);
    stop_on_error(&err);
    dl_machine_use_transport(&s.machine, pairs[_i].transport, 1, &nothing_set, s.arena, &err);
    stop_on_error(&err);
    make_messages(x, y, rng);
    const uint32_t pair[] = {0, pairs[_i].in_node ? 1 : s.machine.topology->node.n_devices};
    struct dl_message_calibration c = {.topology = s.machine.topology,
                                       .system = s.machine.system_doc,
                                       .transport = s.machine.transport_doc,
                                       .from = pair[0],
                                       .to = pair[1],
                                       .messages = {x, y, n_sizes},
                                       .source = "a table"};
    dl_calibrate_messages(&c, s.arena, &err);
    stop_on_error(&err);
    check_says_as_fitted(&s, &c.fit, pair);
    gsl_rng_free(rng);
    subject_close(&s);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("calibrate_messages");
    TCase *const tests = tcase_create("calibrate_messages");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, intervals_of_noisy_messages_hold_the_truth);
    tcase_add_loop_test(tests, a_line_of_its_own_is_found_for_what_is_sent_in_pieces, 0, 2);
    tcase_add_loop_test(tests, dlsim_says_of_messages_what_the_fit_says, 0, DL_COUNT(pairs));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
