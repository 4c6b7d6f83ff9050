/* instances.c - a group has one instance for each value of the digits that its members agree in. Replicas wait for
 * those of their own instance alone: four of them, in two digits, of which the last is five times as slow. */
#define _GNU_SOURCE /* fork, mmap, strdup */
#include <math.h>

#include "tests/unit/played_program.h"

#define FOUR_REPLICAS                                                                                                  \
    "dlsim program 1\ndigit inner values 2 stride 1 replicas\ndigit outer values 2 stride 2 replicas\n"                \
    "digit stage values 1 stride 4 stages\nsends asynchronous\n"
#define SUM(number, over) "collective " number " allreduce channel replicas over " over " bytes 1e9 cause data\n"
#define WORK "stage 0 tags 0\nblock 0\nwork cause compute device_s 1 name a\n"
#define FORWARD "item forward micro 0 chunk 0 block 0\n"

/* A sum of two takes 1 s, of four 1.5 s. */
static const struct {
    const char *what, *program;
    uint32_t n_steps;
    double ended_s[4], step_s;
} steps[] = {
    {"two and two", FOUR_REPLICAS SUM("0", "inner") WORK "start 0\nwait 0\n" FORWARD, 1, {2, 2, 6, 6}, 6},
    {"across", FOUR_REPLICAS SUM("0", "outer") WORK "start 0\nwait 0\n" FORWARD, 1, {2, 6, 2, 6}, 6},
    {"all", FOUR_REPLICAS SUM("0", "inner,outer") WORK "start 0\nwait 0\n" FORWARD, 1, {6.5, 6.5, 6.5, 6.5}, 6.5},
    {"two and two, then all, one after the other",
     FOUR_REPLICAS SUM("0", "inner") SUM("1", "inner,outer") WORK "start 0\nstart 1\nwait all\n" FORWARD,
     1,
     {7.5, 7.5, 7.5, 7.5},
     7.5},
    /* 0 and 1 end at 2; 2 waits with 3 until 6, then each pair across takes 1 s. */
    {"two and two, then across",
     FOUR_REPLICAS SUM("0", "inner") SUM("1", "outer") WORK "start 0\nstart 1\nwait 1\n" FORWARD,
     1,
     {7, 7, 7, 7},
     7},
    /* The last of these is not looked at by who is through: 0 and 1 go on by themselves, and end a step more. */
    {"steps by themselves", FOUR_REPLICAS SUM("0", "inner") WORK "start 0\nwait 0\n" FORWARD, 2, {6, 6, 12, 12}, 6},
    {"a barrier holds them",
     FOUR_REPLICAS "barrier\n" SUM("0", "inner") WORK "start 0\nwait 0\n" FORWARD,
     2,
     {8, 8, 12, 12},
     6},
};

START_TEST(instances_end_at_their_own_dates)
{
    static const double slow[] = {1, 1, 1, 5};
    slowdown_of_rank = slow;
    const struct played_text played = play_program(steps[_i].program, 4, steps[_i].n_steps);
    check_ok(&played.err);
    for (int replica = 0; replica < 4; replica++)
        ck_assert_msg(fabs(played.exchanged_s[replica] - steps[_i].ended_s[replica]) < 1e-9,
                      "%s: replica %d ended at %g, not %g", steps[_i].what, replica, played.exchanged_s[replica],
                      steps[_i].ended_s[replica]);
    ck_assert_double_eq_tol(played.step_s, steps[_i].step_s, 1e-9);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("instances");
    tcase_add_loop_test(tests, instances_end_at_their_own_dates, 0, DL_COUNT(steps));
    return run_steps(tests, "instances");
}
