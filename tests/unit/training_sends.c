/* training_sends.c - pipeline sends that nobody waits for, that are batched, and that block; and their host. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "tests/unit/hand_made_step.h"

static const double tolerance = 1e-9;

#define SEND_S 0.25
static const struct step two_stages = {.schedule = "gpipe",
                                       .stages = 2,
                                       .replicas = 1,
                                       .micros = 6,
                                       .chunks = 1,
                                       .forward_s = 1,
                                       .backward_s = 2,
                                       .send_bytes = SEND_S * BYTES_PER_S,
                                       .barrier = true};

static void check_close(double is, double should)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fmax(fabs(should), 1), "is %.17g, not %.17g", is, should);
}

static double both_s(const struct step *s) { return s->forward_s + s->backward_s; }

/* One of each way is on the path that all wait for. */
START_TEST(asynchronous_sends_go_on_beside_the_work)
{
    const struct dl_training_result r = play(&two_stages);
    check_close(r.step_s, (two_stages.micros + 1) * both_s(&two_stages) + 2 * SEND_S);
}
END_TEST

/* A slow network sets the pace: forwards have arrived when their sends are over, in the order in which they were sent;
 * the first of the gradients leaves after them all, and goes the other way. */
START_TEST(sends_that_go_the_same_way_go_one_after_the_other)
{
    struct step s = two_stages;
    const double slow_s = 3 * s.backward_s;
    s.send_bytes = slow_s * BYTES_PER_S;
    const double forwards_s = s.forward_s + s.micros * slow_s + s.forward_s;
    check_close(play(&s).step_s, forwards_s + s.backward_s + s.micros * slow_s + s.backward_s);
}
END_TEST

/* All forwards, then all backwards: every one of them is followed by its send. */
START_TEST(a_stage_waits_until_its_sends_are_delivered)
{
    struct step s = two_stages;
    for (s.sends = DL_SENDS_BATCHED; s.sends <= DL_SENDS_BLOCKING; s.sends++) {
        const struct dl_training_result r = play(&s);
        check_close(r.step_s, (s.micros + 1) * both_s(&s) + 2 * s.micros * SEND_S);
        check_close(sum_of_causes(&r), r.step_s);
        check_close(r.exposed_s[DL_CAUSE_PIPELINE], 2 * s.micros * SEND_S); /* its own, and those of the other */
    }
}
END_TEST

/* From the third micro-batch on, activations and gradients meet: they go together, or one waits for the other. */
START_TEST(batched_sends_go_both_ways_at_once)
{
    struct step s = two_stages;
    s.schedule = "1f1b";
    s.sends = DL_SENDS_BATCHED;
    const double batched_s = (s.micros + 1) * (both_s(&s) + SEND_S);
    check_close(play(&s).step_s, batched_s);
    s.sends = DL_SENDS_BLOCKING;
    check_close(play(&s).step_s, batched_s + (s.micros - 2) * SEND_S);
}
END_TEST

/* Two launches an item, and a call for each send and receive. */
START_TEST(a_slow_host_sets_the_pace)
{
    struct step s = two_stages;
    s.launch_host_s = 4;
    s.send_host_s = 3;
    s.micros = 1;
    const double item_s = 2 * s.launch_host_s, call_s = s.send_host_s;
    /* The second stage has launched everything up to its send before its input is there, the first all of its rest. */
    const double sent_s = item_s + call_s, sent_back_s = call_s + 2 * item_s + call_s;
    const struct dl_training_result r = play(&s);
    check_close(r.step_s, sent_back_s + SEND_S + s.backward_s);
    check_close(r.elapsed_s[DL_PHASE_FORWARD], sent_s); /* of the first stage; the other's lies between them */
    check_close(r.elapsed_s[DL_PHASE_BACKWARD], sent_back_s - (sent_s + SEND_S + s.forward_s));
    /* Nothing is launched before the input is there: its call runs beside the wait. */
    s.drains_at_sends = true;
    check_close(play(&s).step_s,
                (item_s + call_s + SEND_S) + (2 * item_s + call_s + SEND_S) + item_s + s.backward_s / 2);
}
END_TEST

/* The receiver's host sees its input come and then launches; the sender's goes on. */
START_TEST(hosts_may_wait_for_what_they_receive_alone)
{
    struct step s = two_stages;
    s.launch_host_s = 4;
    s.send_host_s = 3;
    s.micros = 1;
    const double item_s = 2 * s.launch_host_s, call_s = s.send_host_s;
    s.drains_at_receives = true;
    check_close(play(&s).step_s,
                (item_s + call_s + SEND_S) + (2 * item_s + call_s + SEND_S) + item_s + s.backward_s / 2);
}
END_TEST

START_TEST(every_schedule_ends_however_it_sends)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i);
    struct step s = two_stages;
    s.schedule = kind->name;
    s.chunks = kind->min_chunks;
    s.stages = 4;
    s.micros = 8;
    s.weight_s = kind->splits_backward ? 1 : 0;
    s.launch_host_s = 0.1;
    s.send_host_s = 0.05;
    s.taken_by_sends = taken_alike(0.1);
    s.barrier = false;
    s.iterations = 2;
    for (s.sends = DL_SENDS_ASYNCHRONOUS; s.sends <= DL_SENDS_BLOCKING; s.sends++)
        for (int drains = 0; drains < 3; drains++) {
            s.drains_at_sends = drains == 1;
            s.drains_at_receives = drains == 2;
            const struct dl_training_result r = play(&s);
            check_close(sum_of_causes(&r), r.step_s);
        }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("sends");
    tcase_add_test(tests, asynchronous_sends_go_on_beside_the_work);
    tcase_add_test(tests, sends_that_go_the_same_way_go_one_after_the_other);
    tcase_add_test(tests, a_stage_waits_until_its_sends_are_delivered);
    tcase_add_test(tests, batched_sends_go_both_ways_at_once);
    tcase_add_test(tests, a_slow_host_sets_the_pace);
    tcase_add_test(tests, hosts_may_wait_for_what_they_receive_alone);
    tcase_add_loop_test(tests, every_schedule_ends_however_it_sends, 0, (int)dl_schedule_count());
    return run_steps(tests, "training_sends");
}
