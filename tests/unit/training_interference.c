/* training_interference.c - work beside exchanges and sends takes longer, by closed forms. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "tests/unit/hand_made_step.h"

static const double tolerance = 1e-9;

static const struct step two_replicas = {.schedule = "1f1b",
                                         .stages = 1,
                                         .replicas = 2,
                                         .micros = 2,
                                         .chunks = 1,
                                         .forward_s = 1,
                                         .backward_s = 2,
                                         .gradient_bytes = BYTES_PER_S,
                                         .overlap = true,
                                         .barrier = true};

static void check_close(double is, double should)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fmax(fabs(should), 1), "is %.17g, not %.17g", is, should);
}

/* Exchanges of x seconds beside work of y, which meanwhile has 1 - f of its device: of y they leave y - (1 - f) x. */
START_TEST(work_beside_exchanges_has_the_rest_of_the_device)
{
    struct step s = two_replicas;
    const double f = 0.2, before_s = s.micros * (s.forward_s + s.backward_s);
    s.taken_by_exchanges = taken_alike(f);
    for (s.more_exchanges = 0; s.more_exchanges < 4; s.more_exchanges++)
        for (s.update_s = 0.5; s.update_s < 4; s.update_s += 0.75) {
            const double x = 1 + s.more_exchanges, y = s.update_s;
            const double work_s = (1 - f) * x < y ? y + f * x : y / (1 - f);
            const struct dl_training_result r = play(&s);
            check_close(r.step_s, before_s + fmax(work_s, x));
            check_close(r.exposed_s[DL_CAUSE_INTERFERENCE], work_s - y);
            check_close(r.exposed_s[DL_CAUSE_OPTIMIZER], y);
            check_close(r.exposed_s[DL_CAUSE_DATA], fmax(x - work_s, 0));
            check_close(r.elapsed_s[DL_PHASE_END], work_s);
        }
}
END_TEST

/* Kernels of a part that lose different shares: the part goes on at the mean of their rates, weighted by time, and what
 * is no kernel loses nothing. */
START_TEST(each_class_of_kernels_loses_its_own_share)
{
    struct step s = two_replicas;
    const double before_s = s.micros * (s.forward_s + s.backward_s);
    s.taken_by_exchanges = (struct dl_taken){{[DL_CLASS_PRODUCT] = 0.25, [DL_CLASS_ATTENTION] = 0.125}};
    const double other_s = s.update_class_s[DL_CLASS_NONE] = 0.5, product_s = s.update_class_s[DL_CLASS_PRODUCT] = 3,
                 attention_s = s.update_class_s[DL_CLASS_ATTENTION] = 1,
                 memory_s = s.update_class_s[DL_CLASS_MEMORY] = 0.5;
    const double all_s = other_s + product_s + attention_s + memory_s,
                 beside_s = other_s + product_s / 0.75 + attention_s / 0.875 + memory_s, rate = all_s / beside_s;
    for (s.more_exchanges = 0; s.more_exchanges < 8; s.more_exchanges++) {
        const double x = 1 + s.more_exchanges, work_s = rate * x < all_s ? all_s + (1 - rate) * x : beside_s;
        const struct dl_training_result r = play(&s);
        check_close(r.step_s, before_s + fmax(work_s, x));
        check_close(r.exposed_s[DL_CAUSE_INTERFERENCE], work_s - all_s);
    }
}
END_TEST

/* Half of an item is tensor communication, which needs no compute units. Both stages do their second item beside the
 * message of the first, and their first beside the message of the second, which ends with it. */
START_TEST(work_beside_sends_has_the_rest_of_the_device)
{
    struct step s = two_replicas;
    s.schedule = "gpipe";
    s.stages = 2;
    s.replicas = 1;
    s.gradient_bytes = 0;
    s.send_bytes = 0.25 * BYTES_PER_S;
    const double send_s = 0.25, f = 0.4;
    s.taken_by_sends = taken_alike(f);
    const double rate = 1 / (0.5 + 0.5 / (1 - f)), late_s = send_s * (1 - rate);
    const struct dl_training_result r = play(&s);
    check_close(r.step_s, 3 * (s.forward_s + s.backward_s) + 2 * (send_s + late_s));
    check_close(r.exposed_s[DL_CAUSE_INTERFERENCE], 2 * late_s);
}
END_TEST

START_TEST(tensor_communication_is_not_slowed)
{
    struct step s = two_replicas;
    s.taken_by_exchanges = taken_alike(0.5);
    const struct dl_training_result r = play(&s); /* nothing is computed beside its exchange */
    check_close(r.exposed_s[DL_CAUSE_INTERFERENCE], 0);
}
END_TEST

/* Whoever is slowed, and with whatever jitter. */
START_TEST(the_same_step_gives_the_same_bits)
{
    struct step s = two_replicas;
    s.stages = 3;
    s.replicas = 3;
    s.micros = 6;
    s.update_s = 3;
    s.send_bytes = 0.1 * BYTES_PER_S;
    s.taken_by_exchanges = taken_alike(0.15);
    s.taken_by_sends = taken_alike(0.05);
    s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','jitter':{'fraction':0.1}}";
    const struct dl_training_result a = play(&s), b = play(&s);
    ck_assert(!memcmp(&a, &b, sizeof a));
    check_close(sum_of_causes(&a), a.step_s);
    ck_assert_double_gt(a.exposed_s[DL_CAUSE_INTERFERENCE], 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("interference");
    tcase_add_test(tests, work_beside_exchanges_has_the_rest_of_the_device);
    tcase_add_test(tests, each_class_of_kernels_loses_its_own_share);
    tcase_add_test(tests, work_beside_sends_has_the_rest_of_the_device);
    tcase_add_test(tests, tensor_communication_is_not_slowed);
    tcase_add_test(tests, the_same_step_gives_the_same_bits);
    return run_steps(tests, "training_interference");
}
