/* training_iterations.c - several iterations of a step: with a barrier between them and without. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "tests/unit/hand_made_step.h"

static const double tolerance = 1e-9;

static void check_close(double is, double should, const char *what)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fabs(should), "%s is %.17g, not %.17g", what, is, should);
}

/* F = B = W, or a whole backward of twice the forward; nothing is sent, exchanged or updated. */
static struct step equal_stages(const struct dl_schedule_kind *kind)
{
    return (struct step){.schedule = kind->name,
                         .stages = 4,
                         .replicas = 1,
                         .micros = 8,
                         .chunks = kind->min_chunks,
                         .forward_s = 1,
                         .backward_s = kind->splits_backward ? 1 : 2,
                         .weight_s = kind->splits_backward ? 1 : 0,
                         .iterations = 3};
}

static void lengths_of(const struct step *s, double *length_s, double *span_s)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_schedule_request times = times_of(s);
    struct dl_schedule schedule;
    struct dl_error err = {0};
    dl_schedule_make(s->schedule, &times, arena, &schedule, &err);
    check_ok(&err);
    *length_s = dl_schedule_length_s(&schedule, &times, NULL);
    *span_s = dl_schedule_span_s(&schedule, &times);
    dl_arena_free(arena);
}

START_TEST(steady_step_is_the_longest_stay_of_a_stage)
{
    struct step s = equal_stages(dl_schedule_get((size_t)_i));
    double length_s, span_s;
    lengths_of(&s, &length_s, &span_s);
    const struct dl_training_result r = play(&s);
    check_close(r.step_s, span_s, s.schedule);
    check_close(sum_of_causes(&r), r.step_s, "sum of the causes");
}
END_TEST

START_TEST(step_with_barrier_is_the_length_of_the_schedule)
{
    struct step s = equal_stages(dl_schedule_get((size_t)_i));
    double length_s, span_s;
    lengths_of(&s, &length_s, &span_s);
    s.barrier = true;
    for (s.iterations = 1; s.iterations <= 3; s.iterations++) {
        const struct dl_training_result r = play(&s);
        check_close(r.step_s, length_s, s.schedule);
        check_close(sum_of_causes(&r), r.step_s, "sum of the causes");
    }
}
END_TEST

/* Whether lockstep groups run ahead or not, a step has one step's work in it. */
START_TEST(steady_step_holds_the_work_of_one_step)
{
    struct step s = equal_stages(dl_schedule_get((size_t)_i));
    s.send_bytes = 0.1 * BYTES_PER_S;
    s.gradient_bytes = BYTES_PER_S;
    s.update_s = 1;
    s.replicas = 2;
    s.iterations = 4;
    for (int barrier = 0; barrier < 2; barrier++) {
        s.barrier = barrier;
        const struct dl_training_result r = play(&s);
        struct step alone = s;
        alone.iterations = 1;
        const struct dl_training_result once = play(&alone);
        check_close(sum_of_causes(&r), r.step_s, "sum of the causes");
        check_close(r.exposed_s[DL_CAUSE_COMPUTE], once.exposed_s[DL_CAUSE_COMPUTE], "computing");
        check_close(r.exposed_s[DL_CAUSE_OPTIMIZER], s.update_s, "updating");
        ck_assert_double_le(r.step_s, once.step_s * (1 + tolerance));
        if (barrier) check_close(r.step_s, once.step_s, "step");
        ck_assert_double_le(r.busy_s[DL_CAUSE_PIPELINE], r.step_s);
        ck_assert_double_le(r.busy_s[DL_CAUSE_DATA], r.step_s);
    }
}
END_TEST

START_TEST(zero_bubble_gains_without_barrier)
{
    static const char *const names[] = {"zb-2p", "zbv"};
    for (size_t i = 0; i < dl_schedule_count(); i++)
        for (size_t n = 0; n < DL_COUNT(names); n++) {
            struct step s = equal_stages(dl_schedule_get(i));
            if (strcmp(s.schedule, names[n])) continue;
            const struct dl_training_result free_running = play(&s);
            s.barrier = true;
            const struct dl_training_result held = play(&s);
            const double work_s = s.micros * s.chunks * (s.forward_s + s.backward_s + s.weight_s);
            check_close(free_running.step_s, work_s, s.schedule);
            ck_assert_double_gt(held.step_s, free_running.step_s);
        }
}
END_TEST

/* A host that is faster than its device is waited for once, or, if it waits for the device itself, in every step. */
/* The last stage is slow, so that the others send for the next step when the last one ends: what is under way then
 * counts up to that date, once. Messages take as long as the slow stage, so that there is always one. */
START_TEST(a_step_is_busy_no_longer_than_it_takes)
{
    static const double slowdown[] = {1, 1, 1, 4};
    struct step s = equal_stages(dl_schedule_get((size_t)_i));
    s.send_bytes = 4 * BYTES_PER_S;
    s.slowdown_of_rank = slowdown;
    const struct dl_training_result r = play(&s);
    ck_assert_msg(r.busy_s[DL_CAUSE_PIPELINE] <= r.step_s * (1 + tolerance), "%s: %.17g s of messages in %.17g s",
                  s.schedule, r.busy_s[DL_CAUSE_PIPELINE], r.step_s);
}
END_TEST

START_TEST(host_runs_ahead_into_the_next_step)
{
    struct step s = equal_stages(dl_schedule_get(0));
    s.stages = 1;
    s.launch_host_s = 0.1;
    const double work_s = s.micros * (s.forward_s + s.backward_s);
    for (s.iterations = 1; s.iterations <= 3; s.iterations++)
        for (int drains = 0; drains < 2; drains++) {
            s.drains_at_end = drains;
            const double waits = s.iterations == 1 || drains ? 1 : 0;
            check_close(play(&s).step_s, work_s + waits * s.launch_host_s, "step");
        }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("iterations");
    const int n = (int)dl_schedule_count();
    tcase_add_loop_test(tests, steady_step_is_the_longest_stay_of_a_stage, 0, n);
    tcase_add_loop_test(tests, step_with_barrier_is_the_length_of_the_schedule, 0, n);
    tcase_add_loop_test(tests, steady_step_holds_the_work_of_one_step, 0, n);
    tcase_add_loop_test(tests, a_step_is_busy_no_longer_than_it_takes, 0, n);
    tcase_add_test(tests, zero_bubble_gains_without_barrier);
    tcase_add_test(tests, host_runs_ahead_into_the_next_step);
    return run_steps(tests, "training_iterations");
}
