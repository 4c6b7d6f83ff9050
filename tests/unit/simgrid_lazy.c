/* simgrid_lazy.c - pins the bug in SimGrid's lazy update for which CM02 gives every flow a private first link.
 *
 * SimGrid marks only the first link of a flow that starts, and from it the links of the flows that move there already.
 * Link b is full with flow 0 when flows 1 (over a) and 2 (over a, then b) start at the same instant: a is marked for
 * flow 1 before flow 2 is on it, and not looked at again for flow 2. So b is not solved again: flow 0 keeps all of it
 * and flow 2 gets as much on top. Each test is a process of its own, as SimGrid needs it. */
#include <check.h>
#include <math.h>

#include "sim/engine/simgrid.h"
#include "tests/unit/suite.h"

static const double a_bytes_per_s = 10e9, b_bytes_per_s = 1e9;
static const double bytes_on_b = 1e9, bytes_on_a = 20e9;
static const double latency_s = 1e-6, start_s = 1e-3;

static double end_s[3];

static void note_end(void *user, uint32_t tag)
{
    (void)user;
    end_s[tag] = dl_simgrid()->cm02_now_s();
}

static void start_flow(void *user, uint32_t flow)
{
    (void)user;
    static const uint32_t path[][2] = {{1}, {0}, {0, 1}};
    static const size_t n_links[] = {1, 1, 2};
    dl_simgrid()->cm02_flow(path[flow], n_links[flow],
                            &(struct dl_bundle){.latency_s = latency_s,
                                                .bytes = flow == 1 ? bytes_on_a : bytes_on_b,
                                                .rate_cap_bytes_per_s = INFINITY,
                                                .done = note_end,
                                                .tag = flow});
}

static void run(bool guarded)
{
    dl_simgrid()->cm02_open((struct dl_engine_link[]){{a_bytes_per_s, false}, {b_bytes_per_s, false}}, 2, guarded);
    start_flow(NULL, 0);
    dl_simgrid()->cm02_timer(start_s, start_flow, NULL, 1);
    dl_simgrid()->cm02_timer(start_s, start_flow, NULL, 2);
    dl_simgrid()->cm02_run();
}

static double close_to(double want) { return 1e-9 * want; }

START_TEST(private_first_links_make_cm02_right)
{
    run(true);
    const double moved_alone = start_s * b_bytes_per_s; /* of flow 0, before flow 2 joins it on b */
    const double first_end_s = latency_s + start_s + (bytes_on_b - moved_alone) / (b_bytes_per_s / 2);
    ck_assert_double_eq_tol(end_s[0], first_end_s, close_to(first_end_s));
    const double last_end_s = first_end_s + moved_alone / b_bytes_per_s;
    ck_assert_double_eq_tol(end_s[2], last_end_s, close_to(last_end_s));
}
END_TEST

START_TEST(without_them_simgrid_overbooks_a_link)
{
    run(false);
    const double both_over_b_s = 2 * bytes_on_b / b_bytes_per_s; /* no solver may end earlier */
    ck_assert_msg(fmax(end_s[0], end_s[2]) < both_over_b_s,
                  "SimGrid does not overbook link b any more (last end at %g s): its lazy update was mended. Take the "
                  "private links out of cm02_open, and this file with them.",
                  fmax(end_s[0], end_s[2]));
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("simgrid_lazy");
    TCase *const tests = tcase_create("guard");
    tcase_add_test(tests, private_first_links_make_cm02_right);
    tcase_add_test(tests, without_them_simgrid_overbooks_a_link);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
