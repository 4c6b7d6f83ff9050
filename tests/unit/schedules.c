/* schedules.c - one battery over every pipeline schedule: what is done, in which order, with what memory. */
#include "tests/unit/schedule_fixture.h"

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

/* The forwards of a stage in the order of Megatron-Core's get_schedule_table; its backwards take the chunks the other
 * way round. Before the first of these come 2 (p - stage - 1) + (v - 1) g forwards and one more. */
static void check_groups(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                         const struct dl_schedule *s)
{
    const uint32_t group = r->group ? r->group : r->stages, all = r->micros * r->chunks;
    (void)kind;
    for (uint32_t stage = 0; stage < r->stages; stage++) {
        const struct dl_item *next[] = {s->items[stage], s->items[stage]};
        for (uint32_t first = 0; first < r->micros; first += group)
            for (uint32_t chunk = 0; chunk < r->chunks; chunk++)
                for (uint32_t micro = first; micro < r->micros && micro < first + group; micro++)
                    for (enum dl_item_kind of = DL_ITEM_F; of <= DL_ITEM_B; of++) {
                        while (next[of]->kind != of) next[of]++;
                        ck_assert_uint_eq(next[of]->micro, micro);
                        ck_assert_uint_eq(next[of]->chunk, of == DL_ITEM_F ? chunk : r->chunks - 1 - chunk);
                        next[of]++;
                    }
        uint32_t n_before = 0;
        while (s->items[stage][n_before].kind == DL_ITEM_F) n_before++;
        const uint32_t warm_up = 2 * (r->stages - stage - 1) + (r->chunks - 1) * group + 1;
        ck_assert_uint_eq(n_before, warm_up < all ? warm_up : all);
        ck_assert_uint_eq(dl_schedule_live(s, stage), n_before);
    }
}

START_TEST(groups_pass_all_chunks_one_after_the_other)
{
    size_t index = 0;
    while (strcmp(dl_schedule_get(index)->name, "interleaved") != 0) index++;
    over_all_sizes((int)index, check_groups);
}
END_TEST

/* As Megatron-Core refuses numbers of micro-batches, in forward_backward_pipelining_with_interleaving. */
static bool can_be_dealt(uint32_t group, uint32_t stages, uint32_t micros)
{
    const uint32_t rest = micros % group;
    return group <= micros && group >= stages && !(0 < rest && rest < stages);
}

START_TEST(no_other_number_of_micro_batches_is_nearer)
{
    for (uint32_t p = 1; p <= most_stages; p++)
        for (uint32_t group = p; group <= 3 * p; group++)
            for (uint32_t m = 1; m <= 5 * p; m++) {
                const uint32_t nearest = dl_schedule_nearest_in_groups(group, p, m);
                uint32_t distance = 0; /* of the two at the same distance the larger one is told */
                while (!can_be_dealt(group, p, m + distance) &&
                       (distance >= m || !can_be_dealt(group, p, m - distance)))
                    distance++;
                ck_assert_uint_eq(nearest, can_be_dealt(group, p, m + distance) ? m + distance : m - distance);
                struct dl_schedule_request r = equal_times(kind_named("interleaved"), p, m, 2);
                struct dl_error err = {0};
                r.group = group;
                ck_assert_int_eq(dl_schedule_check("interleaved", &r, &err) == DL_OK, can_be_dealt(group, p, m));
            }
}
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

/* Of kinds that do not use times, the order without any is the same. */
static void check_use_of_times(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                               const struct dl_schedule *s)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule other;
    struct dl_schedule_request without = *r;
    without.forward_s = without.backward_s = without.weight_s = without.transfer_s = without.pair_s = 0;
    ck_assert_int_eq(dl_schedule_make(kind->name, &without, arena, &other, &err), DL_OK);
    ck_assert(s->uses_times == kind->uses_times);
    for (uint32_t stage = 0; stage < r->stages && !kind->uses_times; stage++) {
        ck_assert_uint_eq(s->n_items[stage], other.n_items[stage]);
        for (uint32_t i = 0; i < s->n_items[stage]; i++) {
            const struct dl_item *const a = &s->items[stage][i], *const b = &other.items[stage][i];
            ck_assert_msg(
                a->kind == b->kind && a->micro == b->micro && a->chunk == b->chunk && a->with_next == b->with_next,
                "%s: p %u, m %u, v %u, item %u of stage %u", kind->name, r->stages, r->micros, r->chunks, i, stage);
        }
    }
    dl_arena_free(arena);
}

START_TEST(order_follows_from_times_only_where_it_says_so) { over_all_sizes(_i, check_use_of_times); }
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
    uint32_t stages, micros, chunks, group, max_live;
    const char *message;
} bad[] = {
    {"1f2b", 4, 8, 1, 0, 0, "pipeline/schedule: no schedule '1f2b', did you mean '1f1b'?"},
    {"1f1b", 4, 8, 2, 0, 0, "pipeline/chunks: 1f1b needs exactly 1, got 2; nearest: 1"},
    {"interleaved", 4, 8, 1, 0, 0, "pipeline/chunks: interleaved needs at least 2, got 1; nearest: 2"},
    {"zbv", 4, 8, 3, 0, 0, "pipeline/chunks: zbv needs exactly 2, got 3; nearest: 2"},
    {"interleaved", 4, 9, 2, 0, 0,
     "global_batch: interleaved needs micro-batches in whole groups of the 4 stages (pipeline/ways), or groups of "
     "another size (pipeline/group), got 9; nearest: 8"},
    {"interleaved", 4, 3, 2, 0, 0,
     "global_batch: interleaved needs micro-batches in whole groups of the 4 stages (pipeline/ways), or groups of "
     "another size (pipeline/group), got 3; nearest: 4"},
    {"interleaved", 4, 8, 2, 5, 0,
     "global_batch: interleaved needs micro-batches in whole groups of 5 (pipeline/group), of which the last may have "
     "as few as the 4 stages (pipeline/ways), got 8; nearest: 9"},
    {"interleaved", 4, 4, 2, 5, 0,
     "global_batch: interleaved needs micro-batches in whole groups of 5 (pipeline/group), of which the last may have "
     "as few as the 4 stages (pipeline/ways), got 4; nearest: 5"},
    {"interleaved", 4, 8, 2, 3, 0, "pipeline/group: must be at least the 4 stages (pipeline/ways), got 3; nearest: 4"},
    {"1f1b", 4, 8, 1, 4, 0, "pipeline/group: means nothing with 1f1b: only interleaved deals in groups"},
    {"dualpipe", 5, 20, 2, 0, 0, "pipeline/ways: dualpipe needs an even number, got 5; nearest: 6"},
    {"dualpipe", 4, 9, 2, 0, 0,
     "global_batch: dualpipe needs an even number of micro-batches, at least twice the 4 stages (pipeline/ways), "
     "got 9; nearest: 10"},
    {"1f1b", 4, 8, 1, 0, 3,
     "pipeline/max_live: 1f1b holds the activations of 4 micro-batches x chunks on stage 0, above the limit of 3; "
     "nearest: 4"},
    {"zbv", 4, 8, 2, 0, 1,
     "pipeline/max_live: zbv holds the activations of 2 micro-batches x chunks on stage 0, above the limit of 1; "
     "nearest: 2"},
    {"gpipe", 4, UINT32_MAX, 1, 0, 0,
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
                                          .group = bad[_i].group,
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
    tcase_add_loop_test(all, order_follows_from_times_only_where_it_says_so, 0, n);
    tcase_add_loop_test(all, a_limit_of_memory_is_kept_or_refused, 0, n);
    tcase_add_test(all, groups_pass_all_chunks_one_after_the_other);
    tcase_add_test(all, no_other_number_of_micro_batches_is_nearer);
    tcase_add_test(all, a_circle_is_seen);
    tcase_add_loop_test(all, refusals_name_the_key_and_the_nearest_value, 0, DL_COUNT(bad));
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
