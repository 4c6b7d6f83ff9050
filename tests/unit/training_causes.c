/* training_causes.c - why a crew waits: for a partner that has not come, or for the network. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "tests/unit/hand_made_step.h"

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
    s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','crews':[{'replica':1,'slowdown':1.5}]}";
    const struct dl_training_result r = play(&s);
    const double late_s = 0.5 * s.micros * (s.forward_s + s.backward_s);
    check_close(r.exposed_s[DL_CAUSE_BUBBLE], late_s / 2); /* one of two */
    check_close(r.exposed_s[DL_CAUSE_DATA], 3);
}
END_TEST

/* Stage 1 waits for the first forward and until its activations have come. */
START_TEST(waiting_for_input_is_the_partner_s_until_it_is_sent)
{
    struct step s = two_replicas;
    s.stages = 2;
    s.replicas = 1;
    s.micros = 1;
    s.gradient_bytes = 0;
    s.send_bytes = 0.25 * BYTES_PER_S;
    const double send_s = s.send_bytes / BYTES_PER_S, work_s = s.forward_s + s.backward_s;
    const struct dl_training_result r = play(&s);
    check_close(r.step_s, 2 * (work_s + send_s));
    check_close(r.exposed_s[DL_CAUSE_PIPELINE], send_s); /* each waits for the other once */
    check_close(r.exposed_s[DL_CAUSE_BUBBLE], r.step_s - send_s - work_s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("causes");
    tcase_add_test(tests, exchanges_that_queue_are_waited_for_on_the_network);
    tcase_add_test(tests, who_comes_first_waits_for_its_partner);
    tcase_add_test(tests, waiting_for_input_is_the_partner_s_until_it_is_sent);
    return run_steps(tests, "training_causes");
}
