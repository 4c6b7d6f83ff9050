/* physics.c - what every engine must get exactly right, by hand-computed cases. Each test is a process of its own, as
 * SimGrid needs it. */
#include <check.h>
#include <math.h>

#include "sim/engine/engine.h"
#include "tests/unit/suite.h"

enum { max_bundles = 8 };

static struct dl_engine *engine;
static double end_s[max_bundles];

static void note_end(void *user, uint32_t tag)
{
    (void)user;
    end_s[tag] = engine->kind->now_s(engine);
}

static void open_engine(int which, const struct dl_engine_link *links, size_t n_links)
{
    engine = dl_engine_get((size_t)which)->create(links, n_links);
}

static struct dl_bundle bundle(uint32_t tag, const struct dl_hop *hops, size_t n_hops, double latency_s, double bytes)
{
    return (struct dl_bundle){.hops = hops,
                              .n_hops = n_hops,
                              .latency_s = latency_s,
                              .bytes = bytes,
                              .rate_cap_bytes_per_s = INFINITY,
                              .done = note_end,
                              .tag = tag};
}

static void start(struct dl_bundle b) { engine->kind->start(engine, &b); }

static void start_later(void *user, uint32_t tag)
{
    (void)tag;
    start(*(struct dl_bundle *)user);
}

static void close_to(double got, double want) { ck_assert_double_le(fabs(got - want), 1e-9 * fabs(want)); }

static size_t run(void)
{
    const size_t stuck = engine->kind->run(engine);
    engine->kind->destroy(engine);
    return stuck;
}

static const struct dl_hop on_a[] = {{0, 1}}, on_b[] = {{1, 1}}, on_ab[] = {{0, 1}, {1, 1}};

START_TEST(lone_flow_pays_latency_then_bandwidth)
{
    open_engine(_i, (struct dl_engine_link[]){{25e9, false}, {50e9, false}}, 2);
    start(bundle(0, on_ab, 2, 3e-6, 1e9));
    ck_assert_uint_eq(run(), 0);
    close_to(end_s[0], 3e-6 + 1e9 / 25e9);
}
END_TEST

START_TEST(two_flows_halve_a_link_whatever_their_latencies)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}}, 1);
    start(bundle(0, on_a, 1, 1e-6, 1e9));
    start(bundle(1, on_a, 1, 5e-4, 1e9));
    run();
    const double left = 1e9 - (5e-4 - 1e-6) * 10e9; /* of flow 0 when flow 1 begins */
    const double first_end = 5e-4 + left / 5e9;
    close_to(end_s[0], first_end);
    close_to(end_s[1], first_end + (1e9 - left) / 10e9);
}
END_TEST

START_TEST(late_joiner_shares_from_its_start)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}}, 1);
    struct dl_bundle late = bundle(1, on_a, 1, 0, 1e9);
    start(bundle(0, on_a, 1, 0, 1e9));
    engine->kind->timer(engine, 0.05, start_later, &late, 0);
    run();
    close_to(end_s[0], 0.15);
    close_to(end_s[1], 0.2);
}
END_TEST

START_TEST(three_flows_share_by_max_min)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}, {4e9, false}}, 2);
    start(bundle(0, on_a, 1, 0, 8e9));
    start(bundle(1, on_ab, 2, 0, 2e9));
    start(bundle(2, on_b, 1, 0, 2e9));
    run();
    for (int i = 0; i < 3; i++) close_to(end_s[i], 1.0);
}
END_TEST

/* The case in which SimGrid's lazy update, left alone, overbooks link b. */
START_TEST(flows_that_start_together_do_not_overbook)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}, {1e9, false}}, 2);
    static struct dl_bundle one, two;
    one = bundle(1, on_a, 1, 1e-6, 20e9);
    two = bundle(2, on_ab, 2, 1e-6, 1e9);
    start(bundle(0, on_b, 1, 1e-6, 1e9));
    engine->kind->timer(engine, 1e-3, start_later, &one, 0);
    engine->kind->timer(engine, 1e-3, start_later, &two, 0);
    run();
    const double joined = 1e-3 + 1e-6, alone = (joined - 1e-6) * 1e9;
    close_to(end_s[0], joined + (1e9 - alone) / 0.5e9);
    close_to(end_s[2], end_s[0] + alone / 1e9);
}
END_TEST

START_TEST(weights_count_as_several_crossings)
{
    open_engine(_i, (struct dl_engine_link[]){{12e9, false}}, 1);
    const struct dl_hop twice[] = {{0, 2}};
    start(bundle(0, twice, 1, 0, 4e9)); /* 2r + r = 12: 4 each */
    start(bundle(1, on_a, 1, 0, 4e9));
    run();
    close_to(end_s[0], 1.0);
    close_to(end_s[1], 1.0);
}
END_TEST

START_TEST(rate_cap_leaves_the_rest_to_others)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}}, 1);
    struct dl_bundle slow = bundle(0, on_a, 1, 0, 2e9);
    slow.rate_cap_bytes_per_s = 2e9;
    start(slow);
    start(bundle(1, on_a, 1, 0, 8e9));
    run();
    close_to(end_s[0], 1.0);
    close_to(end_s[1], 1.0);
}
END_TEST

START_TEST(fatpipe_serves_each_fully)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, true}, {4e9, false}}, 2);
    start(bundle(0, on_a, 1, 0, 1e9));
    start(bundle(1, on_a, 1, 0, 1e9));
    start(bundle(2, on_ab, 2, 0, 1e9));
    run();
    close_to(end_s[0], 0.1);
    close_to(end_s[1], 0.1);
    close_to(end_s[2], 0.25);
}
END_TEST

START_TEST(nothing_to_move_takes_the_latency)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}}, 1);
    start(bundle(0, on_a, 1, 7e-6, 0));
    start(bundle(1, on_a, 1, 0, 0));
    end_s[1] = -1;
    run();
    close_to(end_s[0], 7e-6);
    ck_assert_double_eq(end_s[1], 0);
}
END_TEST

static void set_bandwidth(void *user, uint32_t link)
{
    engine->kind->set_bandwidth(engine, link, *(const double *)user);
}

START_TEST(bandwidth_changes_at_its_date)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}, {20e9, false}}, 2);
    static double half = 5e9;
    start(bundle(0, on_ab, 2, 0, 1e9));
    engine->kind->timer(engine, 0.04, set_bandwidth, &half, 0);
    run();
    close_to(end_s[0], 0.04 + 0.6e9 / 5e9);
}
END_TEST

START_TEST(failed_link_holds_its_flows_until_it_is_back)
{
    open_engine(_i, (struct dl_engine_link[]){{10e9, false}, {10e9, false}}, 2);
    static double dead = 0, whole = 10e9;
    start(bundle(0, on_ab, 2, 0, 1e9));
    start(bundle(1, on_b, 1, 0, 1e9)); /* gets all of b while a is dead */
    engine->kind->timer(engine, 0.02, set_bandwidth, &dead, 0);
    engine->kind->timer(engine, 1.0, set_bandwidth, &whole, 0);
    ck_assert_uint_eq(run(), 0);
    close_to(end_s[1], 0.02 + 0.9e9 / 10e9);
    close_to(end_s[0], 1.0 + 0.9e9 / 10e9);
}
END_TEST

START_TEST(engines_are_called_as_options_call_them)
{
    for (size_t i = 0; i < dl_engine_count(); i++) {
        ck_assert_str_eq(dl_engine_names[i], dl_engine_get(i)->name);
        ck_assert_ptr_eq(dl_engine_find(dl_engine_names[i]), dl_engine_get(i));
        ck_assert_int_eq(dl_engine_get(i)->alone, i >= dl_engine_sharing_count());
    }
    ck_assert_ptr_null(dl_engine_names[dl_engine_count()]);
}
END_TEST

START_TEST(flow_on_a_dead_link_is_reported)
{
    open_engine(0, (struct dl_engine_link[]){{10e9, false}}, 1);
    static double dead = 0;
    start(bundle(0, on_a, 1, 0, 1e9));
    engine->kind->timer(engine, 0.01, set_bandwidth, &dead, 0);
    ck_assert_uint_eq(run(), 1);
}
END_TEST

/* 0.3 of one path, 0.7 of another, in competition with a whole flow on each. */
START_TEST(split_paths_share_by_their_parts)
{
    open_engine(0, (struct dl_engine_link[]){{10e9, false}, {10e9, false}}, 2);
    const struct dl_hop split[] = {{0, 0.3}, {1, 0.7}};
    start(bundle(0, split, 2, 0, 10e9 / 1.7));      /* r = 10e9 / 1.7 by link 1 */
    start(bundle(1, on_b, 1, 0, 10e9 / 1.7));       /* the same */
    start(bundle(2, on_a, 1, 0, 10e9 - 3e9 / 1.7)); /* the rest of link 0 */
    run();
    for (int i = 0; i < 3; i++) close_to(end_s[i], 1.0);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("physics");
    TCase *const every = tcase_create("every engine"), *const own = tcase_create("own solver");
    const TTest *const shared[] = {
        lone_flow_pays_latency_then_bandwidth,
        two_flows_halve_a_link_whatever_their_latencies,
        late_joiner_shares_from_its_start,
        three_flows_share_by_max_min,
        flows_that_start_together_do_not_overbook,
        weights_count_as_several_crossings,
        rate_cap_leaves_the_rest_to_others,
        fatpipe_serves_each_fully,
        nothing_to_move_takes_the_latency,
        bandwidth_changes_at_its_date,
        failed_link_holds_its_flows_until_it_is_back,
    };
    for (size_t i = 0; i < DL_COUNT(shared); i++)
        tcase_add_loop_test(every, shared[i], 0, (int)dl_engine_sharing_count());
    tcase_add_test(own, engines_are_called_as_options_call_them);
    tcase_add_test(own, flow_on_a_dead_link_is_reported);
    tcase_add_test(own, split_paths_share_by_their_parts);
    suite_add_tcase(s, every);
    suite_add_tcase(s, own);
    return run_suite(s);
}
