/* training_scenario.c - slow replicas and jitter in a training step. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "tests/unit/hand_made_step.h"

#define SCENARIO(rest) "{'schema':'dlsim/scenario/1','source':'a test'," rest "}"

static const double tolerance = 1e-9;

static const struct step replicas = {.schedule = "1f1b",
                                     .stages = 1,
                                     .replicas = 4,
                                     .micros = 8,
                                     .chunks = 1,
                                     .forward_s = 1,
                                     .backward_s = 2,
                                     .update_s = 0.5,
                                     .gradient_bytes = BYTES_PER_S,
                                     .barrier = true};

static double work_s(const struct step *s) { return s->micros * (s->forward_s + s->backward_s); }

static void check_close(double is, double should)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fabs(should), "is %.17g, not %.17g", is, should);
}

/* All others wait for it before the exchange and, at the barrier, for its update. */
START_TEST(slow_replica_slows_the_step_by_its_share)
{
    struct step s = replicas;
    const struct dl_training_result usual = play(&s);
    s.scenario = SCENARIO("'replicas':[{'replica':1,'slowdown':1.25}]");
    const struct dl_training_result slow = play(&s);
    const double more_s = 0.25 * (work_s(&s) + s.update_s);
    check_close(slow.step_s, usual.step_s + more_s);
    check_close(slow.exposed_s[DL_CAUSE_STRAGGLER], more_s * 3 / 4);
    ck_assert_double_eq(usual.exposed_s[DL_CAUSE_STRAGGLER], 0);
    ck_assert_double_eq(slow.exposed_s[DL_CAUSE_BUBBLE], usual.exposed_s[DL_CAUSE_BUBBLE]);
    check_close(slow.exposed_s[DL_CAUSE_COMPUTE], usual.exposed_s[DL_CAUSE_COMPUTE] * (1 + 0.25 / 4));
    check_close(sum_of_causes(&slow), slow.step_s);
}
END_TEST

START_TEST(all_slow_replicas_are_a_slow_machine)
{
    struct step s = replicas;
    s.stages = 2;
    const struct dl_training_result usual = play(&s);
    s.scenario = SCENARIO("'replicas':[{'slowdown':2},{'stage':0,'slowdown':1.5},{'stage':1,'slowdown':1.5}]");
    const struct dl_training_result slow = play(&s);
    check_close(slow.step_s - slow.exposed_s[DL_CAUSE_DATA], 3 * (usual.step_s - usual.exposed_s[DL_CAUSE_DATA]));
}
END_TEST

static bool same_bits(const struct dl_training_result *a, const struct dl_training_result *b)
{
    return a->step_s == b->step_s && !memcmp(a->exposed_s, b->exposed_s, sizeof a->exposed_s) &&
           !memcmp(a->busy_s, b->busy_s, sizeof a->busy_s);
}

/* Of two stages with four replicas each, which are ranks by themselves. */
START_TEST(slow_ranks_are_slow_replicas)
{
    struct step s = replicas;
    s.stages = 2;
    s.scenario = SCENARIO("'replicas':[{'replica':1,'slowdown':1.25},{'stage':1,'replica':2,'slowdown':1.5}]");
    const struct dl_training_result told = play(&s);
    static const double of_rank[] = {1, 1.25, 1, 1, 1, 1.25, 1.5, 1};
    s.scenario = NULL;
    s.slowdown_of_rank = of_rank;
    const struct dl_training_result by_rank = play(&s);
    ck_assert(same_bits(&told, &by_rank));
    ck_assert_double_gt(by_rank.exposed_s[DL_CAUSE_STRAGGLER], 0);
}
END_TEST

START_TEST(no_jitter_changes_nothing)
{
    struct step s = replicas;
    const struct dl_training_result usual = play(&s);
    s.scenario = SCENARIO("'jitter':{'fraction':0},'replicas':[{'slowdown':1}]");
    const struct dl_training_result none = play(&s);
    ck_assert(same_bits(&usual, &none));
}
END_TEST

START_TEST(jitter_is_the_seed_s)
{
    struct step s = replicas;
    s.scenario = SCENARIO("'jitter':{'fraction':0.1}");
    const struct dl_training_result first = play(&s), again = play(&s);
    s.seed = 1;
    const struct dl_training_result other = play(&s);
    ck_assert(same_bits(&first, &again));
    ck_assert(!same_bits(&first, &other));
    check_close(sum_of_causes(&first), first.step_s);
}
END_TEST

/* Work takes as long on average, but everybody waits for the slowest. */
START_TEST(jitter_keeps_the_mean_and_costs_waiting)
{
    const double fraction = 0.1, deviations = 4;
    struct step s = replicas;
    s.micros = 500;
    s.scenario = SCENARIO("'jitter':{'fraction':0.1}");
    const struct dl_training_result r = play(&s);
    const double mean_s = r.exposed_s[DL_CAUSE_COMPUTE] + r.exposed_s[DL_CAUSE_TENSOR];
    const double error_s = fraction * sqrt(s.micros * 1.0 / s.replicas) * hypot(s.forward_s, s.backward_s);
    ck_assert_double_eq_tol(mean_s, work_s(&s), deviations * error_s);
    check_close(r.exposed_s[DL_CAUSE_STRAGGLER],
                r.step_s - mean_s - r.exposed_s[DL_CAUSE_OPTIMIZER] - r.exposed_s[DL_CAUSE_DATA]);
}
END_TEST

START_TEST(link_that_fails_stops_the_step_with_who_waits)
{
    struct step s = replicas;
    s.stages = 2;
    s.replicas = 1;
    s.send_bytes = BYTES_PER_S;
    s.scenario = SCENARIO("'links':[{'link':'node0.device0 -> switch','at_s':2.5,'bandwidth_fraction':0}]");
    struct hand_made h;
    make_by_hand(&h, &s);
    const struct dl_training_result r = play_here(&h);
    ck_assert(!r.complete);
    ck_assert_int_eq(h.err.status, DL_STALLED);
    release_by_hand(&h);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("scenario");
    tcase_add_test(tests, slow_replica_slows_the_step_by_its_share);
    tcase_add_test(tests, all_slow_replicas_are_a_slow_machine);
    tcase_add_test(tests, slow_ranks_are_slow_replicas);
    tcase_add_test(tests, no_jitter_changes_nothing);
    tcase_add_test(tests, jitter_is_the_seed_s);
    tcase_add_test(tests, jitter_keeps_the_mean_and_costs_waiting);
    tcase_add_test(tests, link_that_fails_stops_the_step_with_who_waits); /* the only one that simulates here: last */
    return run_steps(tests, "training_scenario");
}
