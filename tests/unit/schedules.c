/* schedules.c - one battery over every pipeline schedule: what is done, in which order, with what memory and bubble. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "strategies/schedule.h"
#include "tests/unit/suite.h"

static const double tolerance = 1e-9;
enum { most_stages = 8, most_micros = 24, most_chunks = 4 };

typedef void check_one(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                       const struct dl_schedule *s);

/* F = B = W, or a whole backward of twice the forward. */
static struct dl_schedule_request equal_times(const struct dl_schedule_kind *kind, uint32_t p, uint32_t m, uint32_t v)
{
    return (struct dl_schedule_request){.stages = p,
                                        .micros = m,
                                        .chunks = v,
                                        .forward_s = 1,
                                        .backward_s = kind->splits_backward ? 1 : 2,
                                        .weight_s = kind->splits_backward ? 1 : 0};
}

static struct dl_schedule_request any_times(const struct dl_schedule_kind *kind, uint32_t p, uint32_t m, uint32_t v)
{
    gsl_rng *const random = dl_random_new(1, "schedules", ((uint64_t)p * most_micros + m) * most_chunks + v);
    struct dl_schedule_request r = equal_times(kind, p, m, v);
    r.forward_s = 0.5 + gsl_rng_uniform(random);
    r.backward_s = 0.5 + gsl_rng_uniform(random);
    r.weight_s = kind->splits_backward ? 0.1 + gsl_rng_uniform(random) : 0;
    r.transfer_s = 0.3 * gsl_rng_uniform(random);
    gsl_rng_free(random);
    return r;
}

static double ideal_s(const struct dl_schedule *s, const struct dl_schedule_request *r)
{
    return (double)s->micros * s->chunks / s->n_paths * (r->forward_s + r->backward_s + r->weight_s);
}

/* Make the schedule and call `check`; false if it was refused, which must name a key and the nearest valid value. */
static bool made(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r, check_one *check)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    const bool ok = dl_schedule_make(kind->name, r, arena, &s, &err) == DL_OK;
    if (ok) {
        check(kind, r, &s);
    } else {
        ck_assert_int_eq(err.status, DL_IMPOSSIBLE);
        ck_assert_ptr_nonnull(strstr(err.text, "nearest: "));
        ck_assert(strncmp(err.text, "global_batch: ", 14) == 0 || strncmp(err.text, "pipeline/", 9) == 0);
    }
    dl_arena_free(arena);
    return ok;
}

static void over_all_sizes(int index, check_one *check)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)index);
    uint32_t n_made = 0;
    for (uint32_t p = 1; p <= most_stages; p++)
        for (uint32_t m = 1; m <= most_micros; m += m < 16 ? 1 : 4)
            for (uint32_t v = kind->min_chunks; v <= most_chunks && v <= kind->max_chunks; v++) {
                const struct dl_schedule_request equal = equal_times(kind, p, m, v), any = any_times(kind, p, m, v);
                n_made += made(kind, &equal, check);
                n_made += made(kind, &any, check);
            }
    ck_assert_uint_gt(n_made, 2 * most_stages);
}

static bool is_on_path(const struct dl_schedule *s, uint32_t stage, uint32_t micro, uint32_t chunk)
{
    const uint32_t place = micro % s->n_paths * s->n_positions + s->position_of[stage * s->chunks + chunk];
    return s->stage_of[place] == stage && s->chunk_of[place] == chunk;
}

static void check_each_once(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                            const struct dl_schedule *s)
{
    ck_assert_int_eq(s->splits_backward, kind->splits_backward);
    for (uint32_t stage = 0; stage < r->stages; stage++) {
        uint32_t counts[DL_ITEM_W + 1][most_micros][most_chunks] = {0};
        for (uint32_t i = 0; i < s->n_items[stage]; i++) {
            const struct dl_item *const item = &s->items[stage][i];
            ck_assert(item->micro < r->micros && item->chunk < r->chunks);
            counts[item->kind][item->micro][item->chunk]++;
        }
        for (uint32_t micro = 0; micro < r->micros; micro++)
            for (uint32_t chunk = 0; chunk < r->chunks; chunk++) {
                const uint32_t once = is_on_path(s, stage, micro, chunk);
                ck_assert_uint_eq(counts[DL_ITEM_F][micro][chunk], once);
                ck_assert_uint_eq(counts[DL_ITEM_B][micro][chunk], once);
                ck_assert_uint_eq(counts[DL_ITEM_W][micro][chunk], once && kind->splits_backward);
            }
    }
}

START_TEST(every_item_is_done_once) { over_all_sizes(_i, check_each_once); }
END_TEST

static void check_places(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                         const struct dl_schedule *s)
{
    (void)kind;
    ck_assert_uint_eq(s->n_positions * s->n_paths, r->stages * r->chunks);
    bool held[most_stages * most_chunks] = {0};
    for (uint32_t place = 0; place < s->n_positions * s->n_paths; place++) {
        const uint32_t where = s->stage_of[place] * r->chunks + s->chunk_of[place];
        ck_assert(where < r->stages * r->chunks && !held[where]);
        ck_assert_uint_eq(s->position_of[where], place % s->n_positions);
        held[where] = true;
    }
}

START_TEST(every_position_has_one_place) { over_all_sizes(_i, check_places); }
END_TEST

/* The end of every item, to look up by what it is. */
struct ends {
    double by_order_s[most_stages][(DL_ITEM_W + 1) * most_micros * most_chunks];
    double by_item_s[DL_ITEM_W + 1][most_stages][most_micros][most_chunks];
};

static double fill_ends(struct ends *ends, const struct dl_schedule *s, const struct dl_schedule_request *r)
{
    double *rows[most_stages];
    for (uint32_t stage = 0; stage < s->stages; stage++) rows[stage] = ends->by_order_s[stage];
    const double length_s = dl_schedule_length_s(s, r, rows);
    for (uint32_t stage = 0; stage < s->stages; stage++)
        for (uint32_t i = 0; i < s->n_items[stage]; i++) {
            const struct dl_item *const item = &s->items[stage][i];
            ends->by_item_s[item->kind][stage][item->micro][item->chunk] = rows[stage][i];
        }
    return length_s;
}

/* When the item's input is there, from the ends of all items. */
static double input_s(const struct ends *ends, const struct dl_schedule *s, const struct dl_schedule_request *r,
                      uint32_t stage, const struct dl_item *item)
{
    const uint32_t position = s->position_of[stage * s->chunks + item->chunk], last = s->n_positions - 1;
    if (item->kind == DL_ITEM_W) return ends->by_item_s[DL_ITEM_B][stage][item->micro][item->chunk];
    if (item->kind == DL_ITEM_B && position == last) return ends->by_item_s[DL_ITEM_F][stage][item->micro][item->chunk];
    if (item->kind == DL_ITEM_F && position == 0) return 0;
    const uint32_t before = item->kind == DL_ITEM_F ? position - 1 : position + 1;
    const uint32_t place = item->micro % s->n_paths * s->n_positions + before, from = s->stage_of[place];
    return ends->by_item_s[item->kind][from][item->micro][s->chunk_of[place]] + (from == stage ? 0 : r->transfer_s);
}

/* A step starts when the stage is free and all inputs are there, neither earlier nor later. */
static void check_stage_times(const struct ends *ends, const struct dl_schedule *s, const struct dl_schedule_request *r,
                              uint32_t stage)
{
    const double seconds[] = {r->forward_s, r->backward_s, r->weight_s};
    double free_at_s = 0;
    for (uint32_t i = 0, next; i < s->n_items[stage]; i = next) {
        double start_s = free_at_s, duration_s = 0;
        for (next = i; next == i || s->items[stage][next - 1].with_next; next++) {
            const struct dl_item *const item = &s->items[stage][next];
            const bool own_input = next > i && item->kind == DL_ITEM_W;
            if (!own_input) start_s = fmax(start_s, input_s(ends, s, r, stage, item));
            duration_s += seconds[item->kind];
        }
        free_at_s = start_s + duration_s;
        for (uint32_t k = i; k < next; k++) ck_assert_double_eq_tol(ends->by_order_s[stage][k], free_at_s, tolerance);
    }
}

static void check_order(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                        const struct dl_schedule *s)
{
    static struct ends ends;
    const double length_s = fill_ends(&ends, s, r);
    double last_s = 0;
    ck_assert_msg(length_s > 0, "%s goes in a circle: p %u, m %u, v %u", kind->name, r->stages, r->micros, r->chunks);
    for (uint32_t stage = 0; stage < r->stages; stage++) {
        check_stage_times(&ends, s, r, stage);
        last_s = fmax(last_s, ends.by_order_s[stage][s->n_items[stage] - 1]);
    }
    ck_assert_double_eq(length_s, last_s);
    ck_assert_double_ge(length_s, dl_schedule_span_s(s, r) - tolerance);
    ck_assert_double_ge(dl_schedule_span_s(s, r), ideal_s(s, r) - tolerance);
}

START_TEST(order_can_be_run_and_items_wait_for_their_inputs) { over_all_sizes(_i, check_order); }
END_TEST

static void check_live(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                       const struct dl_schedule *s)
{
    for (uint32_t stage = 0; stage < r->stages; stage++) {
        const uint32_t live = dl_schedule_live(s, stage), bound = kind->live(r, stage);
        ck_assert_msg(live <= bound, "%s: p %u, m %u, v %u, stage %u holds %u, not %u", kind->name, r->stages,
                      r->micros, r->chunks, stage, live, bound);
        if (r->max_live) ck_assert_uint_le(live, r->max_live);
    }
}

START_TEST(memory_stays_within_the_bound) { over_all_sizes(_i, check_live); }
END_TEST

START_TEST(a_limit_of_memory_is_kept_or_refused)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i);
    struct dl_schedule_request r = any_times(kind, 4, 12, kind->min_chunks);
    const uint32_t needed = kind->live(&r, 0);
    bool was_possible = false;
    for (r.max_live = 1; r.max_live <= needed + 1; r.max_live++) {
        const bool possible = made(kind, &r, check_live);
        ck_assert(possible || !was_possible);
        if (kind->splits_backward && kind->max_chunks == 1) ck_assert(possible); /* greedy works with any memory */
        was_possible = possible;
    }
    ck_assert(was_possible);
}
END_TEST

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

static const struct dl_schedule_kind *kind_named(const char *name)
{
    for (size_t i = 0; i < dl_schedule_count(); i++)
        if (strcmp(dl_schedule_get(i)->name, name) == 0) return dl_schedule_get(i);
    ck_abort_msg("no schedule %s", name);
    return NULL;
}

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

START_TEST(a_circle_is_seen)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    const struct dl_schedule_request r = equal_times(kind_named("1f1b"), 3, 4, 1);
    ck_assert_int_eq(dl_schedule_make("1f1b", &r, arena, &s, &err), DL_OK);
    ck_assert_double_gt(dl_schedule_length_s(&s, &r, NULL), 0);
    const struct dl_item first = s.items[2][0];
    s.items[2][0] = s.items[2][1]; /* the last stage would start with a backward */
    s.items[2][1] = first;
    ck_assert_double_lt(dl_schedule_length_s(&s, &r, NULL), 0);
    ck_assert_double_lt(dl_schedule_span_s(&s, &r), 0);
    dl_arena_free(arena);
}
END_TEST

static const struct {
    const char *name;
    uint32_t stages, micros, chunks, max_live;
    const char *message;
} bad[] = {
    {"1f2b", 4, 8, 1, 0, "pipeline/schedule: no schedule '1f2b', did you mean '1f1b'?"},
    {"1f1b", 4, 8, 2, 0, "pipeline/chunks: 1f1b needs exactly 1, got 2; nearest: 1"},
    {"interleaved", 4, 8, 1, 0, "pipeline/chunks: interleaved needs at least 2, got 1; nearest: 2"},
    {"zbv", 4, 8, 3, 0, "pipeline/chunks: zbv needs exactly 2, got 3; nearest: 2"},
    {"interleaved", 4, 9, 2, 0,
     "global_batch: interleaved needs micro-batches in whole groups of the 4 stages (pipeline/ways), got 9; nearest: "
     "8"},
    {"interleaved", 4, 3, 2, 0,
     "global_batch: interleaved needs micro-batches in whole groups of the 4 stages (pipeline/ways), got 3; nearest: "
     "4"},
    {"dualpipe", 5, 20, 2, 0, "pipeline/ways: dualpipe needs an even number, got 5; nearest: 6"},
    {"dualpipe", 4, 9, 2, 0,
     "global_batch: dualpipe needs an even number of micro-batches, at least twice the 4 stages (pipeline/ways), "
     "got 9; nearest: 10"},
    {"1f1b", 4, 8, 1, 3,
     "pipeline/max_live: 1f1b holds the activations of 4 micro-batches x chunks on stage 0, above the limit of 3; "
     "nearest: 4"},
    {"zbv", 4, 8, 2, 1,
     "pipeline/max_live: zbv holds the activations of 2 micro-batches x chunks on stage 0, above the limit of 1; "
     "nearest: 2"},
    {"gpipe", 4, UINT32_MAX, 1, 0,
     "global_batch: gives 4294967295 micro-batches; at most 16777216 can be scheduled; nearest: 16777216"},
};

START_TEST(refusals_name_the_key_and_the_nearest_value)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    const struct dl_schedule_request r = {.stages = bad[_i].stages,
                                          .micros = bad[_i].micros,
                                          .chunks = bad[_i].chunks,
                                          .max_live = bad[_i].max_live,
                                          .forward_s = 1,
                                          .backward_s = 1,
                                          .weight_s = 1};
    ck_assert_int_ne(dl_schedule_make(bad[_i].name, &r, arena, &s, &err), DL_OK);
    ck_assert_str_eq(err.text, bad[_i].message);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("schedules");
    TCase *const all = tcase_create("schedules");
    tcase_set_timeout(all, 60);
    const int n = (int)dl_schedule_count();
    tcase_add_loop_test(all, every_item_is_done_once, 0, n);
    tcase_add_loop_test(all, every_position_has_one_place, 0, n);
    tcase_add_loop_test(all, order_can_be_run_and_items_wait_for_their_inputs, 0, n);
    tcase_add_loop_test(all, memory_stays_within_the_bound, 0, n);
    tcase_add_loop_test(all, a_limit_of_memory_is_kept_or_refused, 0, n);
    tcase_add_loop_test(all, bubble_matches_closed_form, 0, n);
    tcase_add_test(all, bubbles_are_those_of_the_textbooks);
    tcase_add_test(all, a_barrier_takes_the_gain_of_zb_2p);
    tcase_add_loop_test(all, kinds_say_whether_they_end_skewed, 0, (int)dl_schedule_count());
    tcase_add_loop_test(all, zero_bubble_matches_the_paper_for_short_weights, 0, 3);
    tcase_add_loop_test(all, dualpipe_matches_deepseeks_formula, 0, 5);
    tcase_add_test(all, splitting_the_backward_never_costs_time);
    tcase_add_test(all, a_circle_is_seen);
    tcase_add_loop_test(all, refusals_name_the_key_and_the_nearest_value, 0, DL_COUNT(bad));
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
