/* training_causes.c - why a lockstep group waits: for one that a scenario has slowed, for the network, or for the
 * schedule. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "tests/unit/hand_made_step.h"

#define STRAGGLER(lockstep_group) "{'schema':'dlsim/scenario/1','source':'a test','replicas':[{" lockstep_group "}]}"

static const double tolerance = 1e-9;

static const struct step two_replicas = {.schedule = "1f1b",
                                         .stages = 1,
                                         .replicas = 2,
                                         .micros = 4,
                                         .chunks = 1,
                                         .forward_s = 1,
                                         .backward_s = 2,
                                         .gradient_bytes = BYTES_PER_S,
                                         .barrier = true};

static void check_close(double is, double should)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fmax(fabs(should), 1), "is %.17g, not %.17g", is, should);
}

/* An all-reduce among two moves as many bytes as there are, each way. */
START_TEST(exchanges_that_queue_are_waited_for_on_the_network)
{
    struct step s = two_replicas;
    for (s.more_exchanges = 0; s.more_exchanges < 4; s.more_exchanges++) {
        const struct dl_training_result r = play(&s);
        check_close(r.exposed_s[DL_CAUSE_DATA], 1 + s.more_exchanges);
        check_close(r.exposed_s[DL_CAUSE_BUBBLE], 0);
        check_close(sum_of_causes(&r), r.step_s);
    }
}
END_TEST

START_TEST(who_comes_first_waits_for_its_partner)
{
    struct step s = two_replicas;
    s.more_exchanges = 2;
    s.scenario = STRAGGLER("'replica':1,'slowdown':1.5");
    const struct dl_training_result r = play(&s);
    const double late_s = 0.5 * s.micros * (s.forward_s + s.backward_s);
    check_close(r.exposed_s[DL_CAUSE_STRAGGLER], late_s / 2); /* one of two */
    check_close(r.exposed_s[DL_CAUSE_BUBBLE], 0);
    check_close(r.exposed_s[DL_CAUSE_DATA], 3);
}
END_TEST

/* Work beside the exchange first takes what is left of the straggler's delay, then the exchange's own time. */
START_TEST(work_beside_an_exchange_hides_the_straggler_first)
{
    struct step s = two_replicas;
    s.overlap = true;
    s.scenario = STRAGGLER("'replica':1,'slowdown':1.5");
    const double late_s = 0.5 * s.micros * (s.forward_s + s.backward_s), exchange_s = 1;
    for (s.update_s = 1; s.update_s < 8; s.update_s += 2) {
        const struct dl_training_result r = play(&s);
        const double slow_update_s = 1.5 * s.update_s, first_s = fmax(s.update_s, late_s + exchange_s);
        const double last_s = late_s + fmax(slow_update_s, exchange_s);
        check_close(r.exposed_s[DL_CAUSE_DATA],
                    (fmin(exchange_s, first_s - s.update_s) + last_s - late_s - slow_update_s) / 2);
        check_close(r.exposed_s[DL_CAUSE_STRAGGLER],
                    (fmax(late_s - s.update_s, 0) + last_s - fmax(first_s, s.update_s)) / 2);
        check_close(sum_of_causes(&r), r.step_s);
    }
}
END_TEST

static struct step pipeline_of(uint32_t stages, uint32_t micros)
{
    struct step s = two_replicas;
    s.stages = stages;
    s.replicas = 1;
    s.micros = micros;
    s.gradient_bytes = 0;
    return s;
}

static double item_s(const struct step *s) { return s->forward_s + s->backward_s; }

/* The first micro-batch goes down and its gradients come back: whoever waits meanwhile waits for messages as long as
 * one is on its way, wherever that is, and for the schedule otherwise. */
START_TEST(all_stages_wait_for_the_messages_of_a_single_micro_batch)
{
    for (uint32_t stages = 2; stages < 6; stages++) {
        struct step s = pipeline_of(stages, 1);
        s.send_bytes = 0.25 * BYTES_PER_S;
        const struct dl_training_result r = play(&s);
        const double sends_s = 2 * (stages - 1) * s.send_bytes / BYTES_PER_S;
        check_close(r.step_s, stages * item_s(&s) + sends_s);
        check_close(r.exposed_s[DL_CAUSE_PIPELINE], sends_s);
        check_close(r.exposed_s[DL_CAUSE_BUBBLE], (stages - 1) * item_s(&s));
    }
}
END_TEST

/* The other stages wait longer by what a slow one adds to the step, and as ever for the schedule; it waits only for
 * that. It adds what its work takes longer, less what fits into its bubble: nothing of it where forwards come first. */
START_TEST(others_wait_for_a_slow_stage_by_the_seconds_that_it_adds)
{
    static const char *const slow[] = {"'stage':0,", "'stage':1,", "'stage':3,"};
    static const char *const schedules[] = {"gpipe", "1f1b"};
    for (size_t i = 0; i < DL_COUNT(slow) * DL_COUNT(schedules); i++) {
        struct step s = pipeline_of(4, 8);
        s.schedule = schedules[i / DL_COUNT(slow)];
        const double factor = 1.5, work_s = s.micros * item_s(&s), usual_s = work_s + (s.stages - 1) * item_s(&s);
        char scenario[200];
        snprintf(scenario, sizeof scenario, STRAGGLER("%s'slowdown':%g"), slow[i % DL_COUNT(slow)], factor);
        s.scenario = scenario;
        const struct dl_training_result r = play(&s);
        const double others = (s.stages - 1.0) / s.stages, bubble_s = usual_s - work_s;
        check_close(r.exposed_s[DL_CAUSE_STRAGGLER], (r.step_s - usual_s) * others);
        check_close(r.exposed_s[DL_CAUSE_BUBBLE], bubble_s * others + (r.step_s - factor * work_s) / s.stages);
        if (strcmp(s.schedule, "gpipe") == 0) check_close(r.step_s, usual_s + (factor - 1) * work_s);
        ck_assert_double_gt(r.exposed_s[DL_CAUSE_STRAGGLER], 0);
    }
}
END_TEST

/* The link takes a second for a byte. Forwards come through it one by one, a second each: the last
 * stage, which it feeds, works as fast as they come. */
START_TEST(waiting_for_a_slow_link_between_stages_is_the_pipeline_s)
{
    struct step s = pipeline_of(3, 4);
    s.schedule = "gpipe";
    s.send_bytes = 1;
    const double sends_s = 2 * (1 + s.send_bytes / BYTES_PER_S);
    s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','links':[{'link':'node1.device0 -> "
                 "switch','at_s':0,'bandwidth_fraction':1e-9}]}";
    const struct dl_training_result r = play(&s);
    check_close(r.step_s, (s.micros + s.stages - 1) * item_s(&s) + sends_s);
    check_close(r.exposed_s[DL_CAUSE_PIPELINE], sends_s); /* of all: down once, and back once */
    check_close(r.exposed_s[DL_CAUSE_BUBBLE], (s.stages - 1) * item_s(&s));
    ck_assert_double_eq(r.exposed_s[DL_CAUSE_STRAGGLER], 0);
}
END_TEST

/* Also of those that wait at the end of the step for stages whose exchange takes longer. */
START_TEST(waiting_for_a_slow_link_between_replicas_is_the_exchange_s)
{
    struct step s = two_replicas;
    s.stages = 4;
    const double exchange_s = s.gradient_bytes / BYTES_PER_S;
    s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','links':[{'link':'node5.device0 -> "
                 "switch','at_s':0,'bandwidth_fraction':0.1}]}";
    const struct dl_training_result r = play(&s);
    const double bubble_s = (s.stages - 1) * item_s(&s), begins_s = bubble_s + s.micros * item_s(&s);
    check_close(r.step_s,
                begins_s - 2 * s.backward_s + 10 * exchange_s); /* of stage 2, which ends two backwards earlier */
    check_close(r.exposed_s[DL_CAUSE_DATA] + r.exposed_s[DL_CAUSE_BUBBLE], r.step_s - s.micros * item_s(&s));
    ck_assert_double_le(r.exposed_s[DL_CAUSE_BUBBLE], bubble_s * (1 + tolerance));
    ck_assert_double_eq(r.exposed_s[DL_CAUSE_STRAGGLER], 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("causes");
    tcase_add_test(tests, exchanges_that_queue_are_waited_for_on_the_network);
    tcase_add_test(tests, who_comes_first_waits_for_its_partner);
    tcase_add_test(tests, work_beside_an_exchange_hides_the_straggler_first);
    tcase_add_test(tests, all_stages_wait_for_the_messages_of_a_single_micro_batch);
    tcase_add_test(tests, others_wait_for_a_slow_stage_by_the_seconds_that_it_adds);
    tcase_add_test(tests, waiting_for_a_slow_link_between_stages_is_the_pipeline_s);
    tcase_add_test(tests, waiting_for_a_slow_link_between_replicas_is_the_exchange_s);
    return run_steps(tests, "training_causes");
}
