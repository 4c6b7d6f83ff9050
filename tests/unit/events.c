/* events.c - the event queue: order, ties, moving and removing, against a sorted list. */
#include <check.h>
#include <math.h>

#include "sim/core/random.h"
#include "sim/engine/events.h"
#include "sim/core/error.h"
#include "tests/unit/suite.h"

static struct dl_events *q;

static void set_up(void) { q = dl_events_new(); }

static void tear_down(void) { dl_events_free(q); }

/* The next instant must have this date and exactly these payloads, in this order. */
static void expect_instant(double date_s, const uint32_t *payloads, size_t n)
{
    ck_assert_double_eq(dl_events_next_s(q), date_s);
    dl_events_open(q);
    uint32_t payload;
    for (size_t i = 0; i < n; i++) {
        ck_assert(dl_events_take(q, &payload));
        ck_assert_uint_eq(payload, payloads[i]);
    }
    ck_assert(!dl_events_take(q, &payload));
}

#define EXPECT(date_s, ...)                                                                                            \
    expect_instant(date_s, (const uint32_t[]){__VA_ARGS__}, DL_COUNT(((const uint32_t[]){__VA_ARGS__})))

static void expect_nothing(void) { ck_assert(isinf(dl_events_next_s(q))); }

START_TEST(empty_queue_has_no_date) { expect_nothing(); }
END_TEST

START_TEST(equal_dates_are_one_instant_in_the_order_of_adding)
{
    dl_events_add(q, 2.0, 20);
    dl_events_add(q, 1.0, 10);
    dl_events_add(q, 2.0, 21);
    dl_events_add(q, 1.0, 11);
    dl_events_add(q, 2.0, 22);
    EXPECT(1.0, 10, 11);
    EXPECT(2.0, 20, 21, 22);
    expect_nothing();
}
END_TEST

START_TEST(dates_one_bit_apart_are_two_instants)
{
    const double later_s = nextafter(1.0, 2.0);
    dl_events_add(q, later_s, 2);
    dl_events_add(q, 1.0, 1);
    EXPECT(1.0, 1);
    EXPECT(later_s, 2);
}
END_TEST

START_TEST(both_zeros_are_the_same_date)
{
    dl_events_add(q, 0.0, 1);
    dl_events_add(q, -0.0, 2);
    EXPECT(0.0, 1, 2);
}
END_TEST

START_TEST(moved_event_goes_to_the_end_of_its_new_instant)
{
    const uint32_t moved = dl_events_add(q, 1.0, 1);
    dl_events_add(q, 3.0, 3);
    dl_events_move(q, moved, 3.0);
    dl_events_add(q, 3.0, 4);
    EXPECT(3.0, 3, 1, 4);
    expect_nothing();
}
END_TEST

START_TEST(moved_within_its_instant_it_is_last)
{
    const uint32_t moved = dl_events_add(q, 1.0, 1);
    dl_events_add(q, 1.0, 2);
    dl_events_move(q, moved, 1.0);
    EXPECT(1.0, 2, 1);
}
END_TEST

START_TEST(removed_event_never_comes)
{
    dl_events_add(q, 1.0, 1);
    const uint32_t middle = dl_events_add(q, 1.0, 2), lone = dl_events_add(q, 0.5, 5);
    dl_events_add(q, 1.0, 3);
    dl_events_remove(q, middle);
    dl_events_remove(q, lone);
    EXPECT(1.0, 1, 3);
    expect_nothing();
}
END_TEST

START_TEST(added_to_an_open_instant_it_comes_in_the_next)
{
    dl_events_add(q, 1.0, 1);
    dl_events_open(q);
    dl_events_add(q, 1.0, 2);
    uint32_t payload;
    ck_assert(dl_events_take(q, &payload));
    ck_assert_uint_eq(payload, 1);
    ck_assert(!dl_events_take(q, &payload));
    EXPECT(1.0, 2);
}
END_TEST

START_TEST(removed_or_moved_from_an_open_instant_it_does_not_come_in_it)
{
    uint32_t ids[3], payload;
    for (uint32_t i = 0; i < 3; i++) ids[i] = dl_events_add(q, 1.0, i);
    dl_events_open(q);
    ck_assert(dl_events_take(q, &payload));
    dl_events_remove(q, ids[1]);
    dl_events_move(q, ids[2], 4.0);
    ck_assert(!dl_events_take(q, &payload));
    EXPECT(4.0, 2);
    expect_nothing();
}
END_TEST

START_TEST(moved_alone_it_comes_at_its_new_date)
{
    uint32_t ids[20];
    for (uint32_t i = 0; i < DL_COUNT(ids); i++) ids[i] = dl_events_add(q, i, i);
    dl_events_move(q, ids[0], 12.5);
    dl_events_move(q, ids[19], -1.0);
    dl_events_move(q, ids[1], 1.0);
    EXPECT(-1.0, 19);
    for (uint32_t i = 1; i <= 12; i++) EXPECT(i, i);
    EXPECT(12.5, 0);
    dl_events_add(q, 13.0, 20);
    EXPECT(13.0, 13, 20);
}
END_TEST

/* Guesses, but what comes next is known. */
START_TEST(what_is_coming_begins_with_the_next)
{
    uint32_t coming[DL_N_COMING], payload;
    ck_assert_uint_eq(dl_events_coming(q, coming), 0);
    for (uint32_t i = 0; i < 1000; i++) dl_events_add(q, i * 7 % 1000, i * 7 % 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        const size_t n = dl_events_coming(q, coming);
        ck_assert_uint_eq(n > 0, i < 999);
        if (n > 0) ck_assert_uint_eq(coming[0], i + 1);
        for (size_t k = 0; k < n; k++) ck_assert(coming[k] > i && coming[k] < 1000);
        dl_events_open(q);
        while (dl_events_take(q, &payload)) ck_assert_uint_eq(payload, i);
    }
}
END_TEST

/* ---- against a list that is searched for its earliest entry ---- */

enum { n_events = 50000, n_live = 300 };

struct entry {
    double date_s;
    uint64_t order; /* of adding or moving */
    uint32_t id;
    bool live;
};
static struct entry entries[n_live];
static uint64_t n_orders;

static void add_entry(uint32_t slot, double date_s)
{
    entries[slot] = (struct entry){date_s, n_orders++, dl_events_add(q, date_s, slot), true};
}

static uint32_t earliest(void)
{
    uint32_t best = n_live;
    for (uint32_t i = 0; i < n_live; i++) {
        const struct entry *const e = &entries[i], *const b = &entries[best < n_live ? best : i];
        if (e->live && (best == n_live || e->date_s < b->date_s || (e->date_s == b->date_s && e->order < b->order)))
            best = i;
    }
    return best;
}

/* Few distinct dates, so that instants hold many events. */
static double draw_date(gsl_rng *random, double now_s) { return now_s + (double)gsl_rng_uniform_int(random, 40); }

static void disturb(gsl_rng *random, double now_s)
{
    const uint32_t slot = (uint32_t)gsl_rng_uniform_int(random, n_live);
    struct entry *const e = &entries[slot];
    if (!e->live) {
        add_entry(slot, draw_date(random, now_s));
    } else if (gsl_rng_uniform(random) < 0.7) {
        e->date_s = draw_date(random, now_s);
        e->order = n_orders++;
        dl_events_move(q, e->id, e->date_s);
    } else {
        dl_events_remove(q, e->id);
        e->live = false;
    }
}

static void take_instant_as_the_list_has_it(void)
{
    const double date_s = entries[earliest()].date_s;
    uint32_t payload;
    ck_assert_double_eq(dl_events_next_s(q), date_s);
    dl_events_open(q);
    while (dl_events_take(q, &payload)) {
        ck_assert_uint_eq(payload, earliest());
        ck_assert_double_eq(entries[payload].date_s, date_s);
        entries[payload].live = false;
    }
    ck_assert(earliest() == n_live || entries[earliest()].date_s > date_s);
}

START_TEST(random_use_gives_the_order_of_a_sorted_list)
{
    gsl_rng *const random = dl_random_new(1, "events", 0);
    double now_s = 0;
    for (uint32_t i = 0; i < n_live; i++) add_entry(i, draw_date(random, now_s));
    for (int turn = 0; turn < 2000; turn++) {
        for (int i = 0; i < 20; i++) disturb(random, now_s);
        if (earliest() == n_live) continue;
        now_s = dl_events_next_s(q);
        take_instant_as_the_list_has_it();
    }
    gsl_rng_free(random);
}
END_TEST

START_TEST(many_dates_come_sorted)
{
    gsl_rng *const random = dl_random_new(1, "events", 1);
    for (uint32_t i = 0; i < n_events; i++) dl_events_add(q, gsl_rng_uniform(random), i);
    double last_s = -1;
    size_t n_taken = 0;
    for (uint32_t payload; isfinite(dl_events_next_s(q));) {
        ck_assert_double_gt(dl_events_next_s(q), last_s);
        last_s = dl_events_next_s(q);
        dl_events_open(q);
        while (dl_events_take(q, &payload)) n_taken++;
    }
    ck_assert_uint_eq(n_taken, n_events);
    gsl_rng_free(random);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("events");
    TCase *const tests = tcase_create("queue");
    const TTest *const all[] = {
        empty_queue_has_no_date,
        equal_dates_are_one_instant_in_the_order_of_adding,
        dates_one_bit_apart_are_two_instants,
        both_zeros_are_the_same_date,
        moved_event_goes_to_the_end_of_its_new_instant,
        moved_within_its_instant_it_is_last,
        moved_alone_it_comes_at_its_new_date,
        what_is_coming_begins_with_the_next,
        removed_event_never_comes,
        added_to_an_open_instant_it_comes_in_the_next,
        removed_or_moved_from_an_open_instant_it_does_not_come_in_it,
        random_use_gives_the_order_of_a_sorted_list,
        many_dates_come_sorted,
    };
    tcase_add_checked_fixture(tests, set_up, tear_down);
    for (size_t i = 0; i < DL_COUNT(all); i++) tcase_add_test(tests, all[i]);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
