/* instances.c - a group has one instance for each value of the digits that its members agree in. Replicas wait for
 * those of their own instance alone: four of them, in two digits, of which the last is five times as slow. */
#define _GNU_SOURCE /* fork, mmap, strdup */
#include <math.h>

#include "sim/program/peers.h"
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

/* Pairs of eight replicas, in two digits, of which one is slow: a step is the work of the slower one and a sum of 1 s,
 * with partners that are drawn for each step; the same seed draws the same. */
enum { n_drawn = 8 };
#define EIGHT_REPLICAS                                                                                                 \
    "dlsim program 1\ndigit inner values 2 stride 1 replicas\ndigit outer values 4 stride 2 replicas\n"                \
    "digit stage values 1 stride 8 stages\nsends asynchronous\n"                                                       \
    "collective 0 allreduce channel replicas over inner,outer drawn bytes 1e9 cause data\n"

static void end_steps(const double *work_s, uint32_t n_steps, double *ended_s)
{
    double begun_s[n_drawn] = {0};
    uint32_t peer[n_drawn];
    for (uint32_t step = 0; step < n_steps; step++) {
        dl_peers_draw(n_drawn, step, program_seed, peer);
        for (int i = 0; i < n_drawn; i++)
            ended_s[i] = fmax(begun_s[i] + work_s[i], begun_s[peer[i]] + work_s[peer[i]]) + 1;
        memcpy(begun_s, ended_s, sizeof begun_s);
    }
}

START_TEST(drawn_pairs_end_at_their_own_dates)
{
    static const double work_s[n_drawn] = {1, 1, 1, 5, 1, 1, 1, 1};
    double ended_s[n_drawn];
    slowdown_of_rank = work_s;
    program_seed = (uint64_t)_i;
    const struct played_text one = play_program(EIGHT_REPLICAS WORK "start 0\nwait 0\n" FORWARD, n_drawn, 1),
                             three =
                                 play_program(EIGHT_REPLICAS "barrier\n" WORK "start 0\nwait 0\n" FORWARD, n_drawn, 3),
                             again =
                                 play_program(EIGHT_REPLICAS "barrier\n" WORK "start 0\nwait 0\n" FORWARD, n_drawn, 3);
    check_ok(&one.err);
    check_ok(&three.err);
    end_steps(work_s, 1, ended_s);
    for (int i = 0; i < n_drawn; i++) ck_assert_double_eq_tol(one.exchanged_s[i], ended_s[i], 1e-9);
    ck_assert(memcmp(three.exchanged_s, again.exchanged_s, sizeof again.exchanged_s) == 0);
    uint32_t peer[n_drawn];
    dl_peers_draw(n_drawn, 2, program_seed, peer); /* each step begins when all have ended the one before */
    for (int i = 0; i < n_drawn; i++)
        ck_assert_double_eq_tol(three.exchanged_s[i], 2 * 6 + fmax(work_s[i], work_s[peer[i]]) + 1, 1e-9);
}
END_TEST

/* Without a barrier each goes on with its next partner as soon as both are there: the slow one holds up whom it meets,
 * and these whom they meet. */
START_TEST(who_met_the_slow_one_is_late_for_the_next)
{
    static const double work_s[n_drawn] = {1, 1, 1, 5, 1, 1, 1, 1};
    double second_s[n_drawn], third_s[n_drawn];
    slowdown_of_rank = work_s;
    program_seed = (uint64_t)_i;
    const struct played_text two = play_program(EIGHT_REPLICAS WORK "start 0\nwait 0\n" FORWARD, n_drawn, 2);
    check_ok(&two.err);
    end_steps(work_s, 2, second_s);
    end_steps(work_s, 3, third_s); /* what comes to its end before the second has ended everywhere */
    double over_s = 0;
    for (int i = 0; i < n_drawn; i++) over_s = fmax(over_s, second_s[i]);
    for (int i = 0; i < n_drawn; i++)
        ck_assert_double_eq_tol(two.exchanged_s[i], third_s[i] < over_s - 1e-9 ? third_s[i] : second_s[i], 1e-9);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("instances");
    tcase_add_loop_test(tests, instances_end_at_their_own_dates, 0, DL_COUNT(steps));
    tcase_add_loop_test(tests, drawn_pairs_end_at_their_own_dates, 0, 3);
    tcase_add_loop_test(tests, who_met_the_slow_one_is_late_for_the_next, 0, 3);
    return run_steps(tests, "instances");
}
