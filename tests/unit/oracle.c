/* oracle.c - the solver against others that compute the same in another way: SimGrid's CM02, and progressive filling in
 * plain loops. Each test is a process of its own, as SimGrid needs it. */
#include <check.h>

#include "sim/engine/flows.h"
#include "sim/engine/simgrid.h"
#include "tests/unit/progressive_filling.h"
#include "tests/unit/suite.h"

enum { n_batches = 10, sets_per_batch = 100 };

static struct bundle_set sets[sets_per_batch];
static double own_s[sets_per_batch][most_bundles], other_s[sets_per_batch][most_bundles];

/* Changes of bandwidth up to so many times what it was. */
static const double none = 0, only_slower = 1, also_faster = 4;

static void draw_batch(int batch, enum weights weights, double changes)
{
    for (int i = 0; i < sets_per_batch; i++) {
        const uint64_t number = (uint64_t)batch * sets_per_batch + (uint64_t)i;
        draw_set(&sets[i], number, weights);
        if (changes > 0) draw_changes(&sets[i], number, changes);
        for (size_t b = 0; b < sets[i].n_bundles; b++) own_s[i][b] = other_s[i][b] = -1;
    }
}

/* Some bundles must meet others, or nothing is compared: most last longer than on an empty network. */
static size_t n_compared, n_shared;

static void count(const struct timed_bundle *b, const struct bundle_set *set, double end_s)
{
    double rate = b->bundle.rate_cap_bytes_per_s;
    for (size_t h = 0; h < b->bundle.n_hops; h++)
        rate = fmin(rate, set->links[b->hops[h].link].bandwidth_bytes_per_s / b->hops[h].weight);
    n_compared++;
    n_shared += end_s > (b->start_s + b->bundle.latency_s + b->bundle.bytes / rate) * (1 + 1e-6);
}

static void compare_batch(int batch)
{
    const double tolerance = 1e-9;
    for (int i = 0; i < sets_per_batch; i++)
        for (size_t b = 0; b < sets[i].n_bundles; b++) {
            ck_assert_msg(own_s[i][b] >= 0, "batch %d, set %d: bundle %zu never ends", batch, i, b);
            ck_assert_msg(fabs(own_s[i][b] - other_s[i][b]) <= tolerance * own_s[i][b],
                          "batch %d, set %d: bundle %zu ends at %.17g s, by the other way at %.17g s", batch, i, b,
                          own_s[i][b], other_s[i][b]);
            count(&sets[i].bundles[b], &sets[i], own_s[i][b]);
        }
    ck_assert_uint_gt(n_compared, 500);
    ck_assert_uint_gt(n_shared, n_compared / 2);
}

/* ---- our own solver, with nobody's clock but its own ---- */

static struct dl_flows *flows;

static void note_own_end(void *user, uint32_t tag) { ((double *)user)[tag] = dl_flows_now_s(flows); }

static void start_own(void *user, uint32_t tag)
{
    (void)tag;
    dl_flows_start(flows, user);
}

static void change_own(void *user, uint32_t tag)
{
    (void)tag;
    const struct change *const c = user;
    dl_flows_set_bandwidth(flows, c->link, c->bytes_per_s);
}

static void run_own(struct bundle_set *set, double *end_s)
{
    flows = dl_flows_new(set->links, set->n_links);
    for (size_t b = 0; b < set->n_bundles; b++) {
        set->bundles[b].bundle.done = note_own_end;
        set->bundles[b].bundle.user = end_s;
        dl_flows_timer(flows, set->bundles[b].start_s, start_own, &set->bundles[b].bundle, 0);
    }
    for (size_t c = 0; c < set->n_changes; c++)
        dl_flows_timer(flows, set->changes[c].date_s, change_own, &set->changes[c], 0);
    while (isfinite(dl_flows_next_s(flows))) dl_flows_advance(flows);
    ck_assert_uint_eq(dl_flows_n_live(flows), 0);
    dl_flows_free(flows);
}

/* ---- CM02: all sets of a batch in one simulation, their links side by side ---- */

static struct dl_engine_link all_links[sets_per_batch * most_links];
static uint32_t first_link[sets_per_batch + 1];

static int set_of(const double *end_s) { return (int)((end_s - &other_s[0][0]) / most_bundles); }

static void note_cm02_end(void *user, uint32_t tag) { ((double *)user)[tag] = dl_simgrid()->cm02_now_s(); }

static void start_cm02(void *user, uint32_t tag)
{
    (void)tag;
    const struct dl_bundle *const b = user;
    uint32_t path[most_hops * most_hops];
    size_t n = 0;
    for (size_t h = 0; h < b->n_hops; h++)
        for (double w = 0; w < b->hops[h].weight; w++) path[n++] = first_link[set_of(b->user)] + b->hops[h].link;
    dl_simgrid()->cm02_flow(path, n, b);
}

static void change_cm02(void *user, uint32_t set)
{
    const struct change *const c = user;
    dl_simgrid()->cm02_set_bandwidth(first_link[set] + c->link, c->bytes_per_s);
}

static void run_batch_in_cm02(void)
{
    for (int i = 0; i < sets_per_batch; i++) {
        first_link[i + 1] = first_link[i] + (uint32_t)sets[i].n_links;
        memcpy(&all_links[first_link[i]], sets[i].links, sets[i].n_links * sizeof *all_links);
    }
    dl_simgrid()->cm02_open(all_links, first_link[sets_per_batch], true);
    for (int i = 0; i < sets_per_batch; i++) {
        for (size_t b = 0; b < sets[i].n_bundles; b++) {
            sets[i].bundles[b].bundle.done = note_cm02_end;
            sets[i].bundles[b].bundle.user = other_s[i];
            dl_simgrid()->cm02_timer(sets[i].bundles[b].start_s, start_cm02, &sets[i].bundles[b].bundle, 0);
        }
        for (size_t c = 0; c < sets[i].n_changes; c++)
            dl_simgrid()->cm02_timer(sets[i].changes[c].date_s, change_cm02, &sets[i].changes[c], (uint32_t)i);
    }
    dl_simgrid()->cm02_run();
}

/* ---- the promises ---- */

START_TEST(whole_weights_end_as_in_cm02)
{
    draw_batch(_i, WHOLE_WEIGHTS, none);
    for (int i = 0; i < sets_per_batch; i++) run_own(&sets[i], own_s[i]);
    run_batch_in_cm02();
    compare_batch(_i);
}
END_TEST

START_TEST(slow_and_failed_links_act_as_in_cm02)
{
    draw_batch(_i, WHOLE_WEIGHTS, only_slower);
    for (int i = 0; i < sets_per_batch; i++) run_own(&sets[i], own_s[i]);
    run_batch_in_cm02();
    compare_batch(_i);
}
END_TEST

static void compare_with_filling(int batch, enum weights weights, double changes)
{
    draw_batch(batch, weights, changes);
    for (int i = 0; i < sets_per_batch; i++) {
        run_own(&sets[i], own_s[i]);
        fill_progressively(&sets[i], other_s[i]);
    }
    compare_batch(batch);
}

START_TEST(whole_weights_end_as_by_progressive_filling) { compare_with_filling(_i, WHOLE_WEIGHTS, none); }
END_TEST

START_TEST(split_weights_end_as_by_progressive_filling) { compare_with_filling(_i, SPLIT_WEIGHTS, none); }
END_TEST

START_TEST(changes_and_failures_act_as_by_progressive_filling)
{
    compare_with_filling(_i, _i % 2 ? SPLIT_WEIGHTS : WHOLE_WEIGHTS, also_faster);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("oracle");
    TCase *const tests = tcase_create("random bundle sets");
    tcase_add_loop_test(tests, whole_weights_end_as_in_cm02, 0, n_batches);
    tcase_add_loop_test(tests, slow_and_failed_links_act_as_in_cm02, 0, n_batches);
    tcase_add_loop_test(tests, whole_weights_end_as_by_progressive_filling, 0, n_batches);
    tcase_add_loop_test(tests, split_weights_end_as_by_progressive_filling, 0, n_batches);
    tcase_add_loop_test(tests, changes_and_failures_act_as_by_progressive_filling, 0, n_batches);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
