/* schedules_lengths.c - how long every pipeline schedule takes, and its bubble, against closed forms. */
#include "tests/unit/schedule_fixture.h"

static void check_bubble(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                         const struct dl_schedule *s)
{
    const double formula = kind->bubble(r), found = dl_schedule_span_s(s, r) / ideal_s(s, r) - 1;
    if (formula < 0 || r->transfer_s > 0) return;
    ck_assert_msg(fabs(found - formula) <= tolerance, "%s: p %u, m %u, v %u: bubble %.12g, by formula %.12g",
                  kind->name, r->stages, r->micros, r->chunks, found, formula);
}

START_TEST(bubble_matches_closed_form)
{
    over_all_sizes(_i, check_bubble);
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i);
    const struct dl_schedule_request r = equal_times(kind, 8, 24, kind->min_chunks);
    ck_assert_double_ge(kind->bubble(&r), 0); /* so that something was compared */
}
END_TEST

static double span_s(const char *name, const struct dl_schedule_request *r)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    ck_assert_msg(dl_schedule_make(name, r, arena, &s, &err) == DL_OK, "%s", err.text);
    const double span = dl_schedule_span_s(&s, r);
    dl_arena_free(arena);
    return span;
}

static double share_beside(const char *name, uint32_t p, uint32_t m, uint32_t v)
{
    const struct dl_schedule_request r = equal_times(kind_named(name), p, m, v);
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    ck_assert_msg(dl_schedule_make(name, &r, arena, &s, &err) == DL_OK, "%s", err.text);
    const double share = dl_schedule_share_beside(&s);
    dl_arena_free(arena);
    return share;
}

/* Warm-ups of stage r of p: p - r forwards; 2 (p - r - 1) + (v - 1) p + 1 of chunks. */
START_TEST(passes_of_the_warm_up_have_none_beside_them)
{
    ck_assert_double_eq_tol(share_beside("1f1b", 1, 5, 1), 1 - 1.0 / 5, tolerance);
    ck_assert_double_eq_tol(share_beside("1f1b", 8, 64, 1), 1 - 9.0 / 2 / 64, tolerance);
    ck_assert_double_eq_tol(share_beside("interleaved", 4, 32, 3), 1 - 4.0 / 32, tolerance);
    ck_assert_double_eq_tol(share_beside("gpipe", 4, 16, 1), 0, tolerance);
}
END_TEST

static double bubble_s(const char *name, uint32_t p, uint32_t m, uint32_t v)
{
    const struct dl_schedule_request r = equal_times(kind_named(name), p, m, v);
    return span_s(name, &r) - m * v * 3.0;
}

START_TEST(bubbles_are_those_of_the_textbooks)
{
    const double digits = 5e-5;
    ck_assert_double_eq_tol(bubble_s("gpipe", 4, 16, 1) / (bubble_s("gpipe", 4, 16, 1) + 16 * 3), 0.1579, digits);
    ck_assert_double_eq_tol(bubble_s("1f1b", 8, 64, 1) / (64 * 3), 0.1094, digits);
    ck_assert_double_eq_tol(bubble_s("interleaved", 8, 64, 2) / (64 * 2 * 3), 0.0547, digits);
    ck_assert_double_eq_tol(3 * bubble_s("zb-h1", 8, 64, 1), bubble_s("1f1b", 8, 64, 1), tolerance);
    ck_assert_double_eq_tol(bubble_s("zb-2p", 8, 64, 1), 0, tolerance);
    ck_assert_double_eq_tol(bubble_s("zbv", 8, 64, 2), 0, tolerance);
}
END_TEST

static double length_s(const char *name, uint32_t p, uint32_t m, uint32_t v)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    const struct dl_schedule_request r = equal_times(kind_named(name), p, m, v);
    ck_assert_msg(!dl_schedule_make(name, &r, arena, &s, &err), "%s", err.text);
    const double seconds = dl_schedule_length_s(&s, &r, NULL);
    dl_arena_free(arena);
    return seconds;
}

static uint32_t live_chunks(const char *name, uint32_t p, uint32_t m, uint32_t v)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    const struct dl_schedule_request r = equal_times(kind_named(name), p, m, v);
    uint32_t most = 0;
    ck_assert_msg(!dl_schedule_make(name, &r, arena, &s, &err), "%s", err.text);
    for (uint32_t stage = 0; stage < p; stage++) most = (uint32_t)fmax(most, dl_schedule_live(&s, stage));
    dl_arena_free(arena);
    return most;
}

/* Qi et al., NeurIPS 2024: micro-batches whose activations a device holds, p with 1F1B; a chunk is half of a stage. The
 * less memory, the more bubble. */
START_TEST(v_schedules_hold_half_and_a_third_of_1f1b)
{
    for (uint32_t p = 2; p <= 4 * most_stages; p++) {
        const uint32_t m = 3 * p;
        ck_assert_uint_eq(live_chunks("1f1b", p, m, 1), p);
        ck_assert_uint_eq(live_chunks("v-half", p, m, 2), 2 * ((p + 2) / 2));
        ck_assert_uint_eq(live_chunks("v-min", p, m, 2), 2 * ((p + 4) / 3));
        ck_assert_double_ge(bubble_s("v-min", p, m, 2), bubble_s("v-half", p, m, 2) - tolerance);
        ck_assert_double_ge(bubble_s("v-half", p, m, 2), bubble_s("zbv", p, m, 2) - tolerance);
    }
}
END_TEST

/* A step is then longer than the longest stay of a stage. */
START_TEST(kinds_say_whether_they_end_skewed)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i);
    const uint32_t p = 4, m = 3 * p;
    const struct dl_schedule_request r = equal_times(kind, p, m, kind->min_chunks);
    const double longer_s = length_s(kind->name, p, m, kind->min_chunks) - span_s(kind->name, &r);
    ck_assert_msg(kind->ends_skewed == (longer_s > tolerance), "%s: %g", kind->name, longer_s);
}
END_TEST

/* From the first item of any stage to the last of any, as a barrier between steps has it: 3 m + (p - 1) at best, which
 * zb-h1 has as well; zb-2p takes longer if its warm-up of 2 p - 1 micro-batches is not filled. */
START_TEST(a_barrier_takes_the_gain_of_zb_2p)
{
    for (uint32_t p = 2; p <= most_stages; p++)
        for (uint32_t m = p; m <= 4 * p; m++) {
            const double h1_s = length_s("zb-h1", p, m, 1), zb_2p_s = length_s("zb-2p", p, m, 1);
            ck_assert_double_eq_tol(h1_s, 3.0 * m + p - 1, tolerance);
            ck_assert_double_ge(zb_2p_s, h1_s - tolerance);
            if (m < 2 * p - 1) continue;
            ck_assert_double_eq_tol(zb_2p_s, h1_s, tolerance);
            ck_assert_double_eq_tol(bubble_s("zb-2p", p, m, 1), 0, tolerance);
        }
    ck_assert_double_gt(length_s("zb-2p", 8, 8, 1), length_s("zb-h1", 8, 8, 1));
}
END_TEST

/* Qi et al., ICLR 2024, table 2: (p - 1) (F + B - W) and (p - 1) (F + B - 2 W). */
START_TEST(zero_bubble_matches_the_paper_for_short_weights)
{
    const double weight_s = 0.9 - 0.1 * _i;
    for (uint32_t p = 2; p <= most_stages; p++) {
        struct dl_schedule_request r = equal_times(kind_named("zb-h1"), p, 3 * p, 1);
        r.backward_s = 1.2;
        r.weight_s = weight_s;
        const double work_s = 3 * p * (1 + 1.2 + weight_s);
        ck_assert_double_eq_tol(span_s("zb-h1", &r) - work_s, (p - 1) * (2.2 - weight_s), tolerance);
        ck_assert_double_eq_tol(span_s("zb-2p", &r) - work_s, (p - 1) * (2.2 - 2 * weight_s), tolerance);
    }
}
END_TEST

/* Seconds in which the stage works. */
static double busy_s(const struct dl_schedule *s, const struct dl_schedule_request *r, uint32_t stage)
{
    const double seconds[] = {r->forward_s, r->backward_s, r->weight_s};
    double sum = 0;
    for (uint32_t i = 0; i < s->n_items[stage]; i++) {
        const struct dl_item *const item = &s->items[stage][i];
        const bool is_pair = item->kind == DL_ITEM_F && item->with_next;
        sum += is_pair ? r->pair_s : seconds[item->kind];
        if (is_pair) i += 2; /* its B and W */
    }
    return sum;
}

/* DeepSeek-V3 report, table 2: (PP/2 - 1) (F&B + B - 3 W), where B is the whole backward. It holds on the stages in the
 * middle, for F = B = W and any time of a pair. */
START_TEST(dualpipe_matches_deepseeks_formula)
{
    const double pair_s = 2.6 + 0.2 * _i; /* below and above the sum of its parts */
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    for (uint32_t p = 2; p <= most_stages; p += 2) {
        struct dl_schedule_request r = equal_times(kind_named("dualpipe"), p, 4 * p, 2);
        struct dl_schedule s;
        r.pair_s = pair_s;
        ck_assert_int_eq(dl_schedule_make("dualpipe", &r, arena, &s, &err), DL_OK);
        const double idle_s = dl_schedule_length_s(&s, &r, NULL) - busy_s(&s, &r, p / 2);
        ck_assert_double_eq_tol(idle_s, (p / 2 - 1) * (pair_s + 2 - 3), tolerance);
    }
    dl_arena_free(arena);
}
END_TEST

START_TEST(splitting_the_backward_never_costs_time)
{
    for (uint32_t p = 2; p <= most_stages; p++)
        for (uint32_t m = p; m <= most_micros; m += 3) {
            const struct dl_schedule_request split = any_times(kind_named("zb-h1"), p, m, 1);
            struct dl_schedule_request whole = split;
            whole.backward_s += split.weight_s;
            whole.weight_s = 0;
            ck_assert_double_le(span_s("zb-h1", &split), span_s("1f1b", &whole) + tolerance);
            ck_assert_double_le(span_s("zb-2p", &split), span_s("1f1b", &whole) + tolerance);
        }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("schedules_lengths");
    TCase *const all = tcase_create("schedules_lengths");
    tcase_set_timeout(all, 60);
    const int n = (int)dl_schedule_count();
    tcase_add_loop_test(all, bubble_matches_closed_form, 0, n);
    tcase_add_test(all, bubbles_are_those_of_the_textbooks);
    tcase_add_test(all, passes_of_the_warm_up_have_none_beside_them);
    tcase_add_test(all, v_schedules_hold_half_and_a_third_of_1f1b);
    tcase_add_test(all, a_barrier_takes_the_gain_of_zb_2p);
    tcase_add_loop_test(all, kinds_say_whether_they_end_skewed, 0, (int)dl_schedule_count());
    tcase_add_loop_test(all, zero_bubble_matches_the_paper_for_short_weights, 0, 3);
    tcase_add_loop_test(all, dualpipe_matches_deepseeks_formula, 0, 5);
    tcase_add_test(all, splitting_the_backward_never_costs_time);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
