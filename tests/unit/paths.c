/* paths.c - flows over ways that come again: the rates, and the dates at which bundles end, are those of flows that
 * stand on all of their links. */
#include "sim/engine/paths.h"

#include <check.h>
#include <math.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"
#include "sim/engine/flows.h"
#include "tests/unit/suite.h"

enum { n_links = 40, n_ways = 24, most_hops = 8 };

struct way {
    struct dl_hop hops[most_hops];
    size_t n_hops;
    double cap;
    uint32_t number; /* that is kept for it */
};

struct world {
    struct dl_engine_link links[n_links];
    struct way ways[n_ways];
    gsl_rng *random;
};

static uint32_t below(struct world *w, uint32_t n) { return (uint32_t)gsl_rng_uniform_int(w->random, n); }

static void add_hop(struct way *way, uint32_t link, double weight)
{
    for (size_t i = 0; i < way->n_hops; i++)
        if (way->hops[i].link == link) return;
    if (way->n_hops < most_hops) way->hops[way->n_hops++] = (struct dl_hop){link, weight};
}

/* The first links come in pairs that are crossed one behind the other, so that one may cover the other. */
static void make_way(struct world *w, struct way *way)
{
    static const double weights[] = {0.5, 1, 1, 2};
    const uint32_t n_paired = n_links / 2, wanted = 2 + below(w, most_hops - 2);
    *way = (struct way){.cap = below(w, 6) ? INFINITY : 0.5 * (1 + below(w, 8))};
    while (way->n_hops < wanted) {
        const uint32_t link = below(w, n_links);
        const double weight = weights[below(w, DL_COUNT(weights))];
        add_hop(way, link, weight);
        if (link < n_paired) add_hop(way, link ^ 1, weight);
    }
}

static void world_open(struct world *w, uint64_t number)
{
    *w = (struct world){.random = dl_random_new(1, "paths", number)};
    for (int i = 0; i < n_links; i++)
        w->links[i] = (struct dl_engine_link){.bandwidth_bytes_per_s = 1 + below(w, 12), .fatpipe = below(w, 9) == 0};
    for (int i = 0; i < n_ways; i++) make_way(w, &w->ways[i]);
}

/* ---- rates ---- */

static void note_rate(void *user, uint32_t flow, double rate)
{
    double *const rates = user;
    ck_assert_uint_lt(flow, 2 * n_ways);
    rates[flow] = rate;
}

START_TEST(rates_are_those_on_all_links)
{
    static struct world w;
    double rates[2 * n_ways] = {0}, by_flow[2 * n_ways] = {0};
    uint32_t path[n_ways], flow[n_ways];
    bool live[n_ways] = {false};
    world_open(&w, (uint64_t)_i);
    struct dl_paths *const paths = dl_paths_new(w.links, n_links);
    struct dl_sharing *const sharing = dl_sharing_new(w.links, n_links);
    for (int turn = 0; turn < 400; turn++) {
        for (uint32_t k = 0; k <= below(&w, 3); k++) {
            const uint32_t i = below(&w, turn < 100 ? 1 + (uint32_t)turn * n_ways / 100 : n_ways);
            struct way *const way = &w.ways[i];
            if (live[i]) {
                ck_assert_uint_eq(dl_paths_find(paths, &way->number, way->hops, way->n_hops, way->cap), DL_NO_PATH);
                dl_paths_leave(paths, path[i]);
                dl_sharing_leave(sharing, flow[i]);
            } else {
                path[i] = dl_paths_find(paths, &way->number, way->hops, way->n_hops, way->cap);
                dl_paths_join(paths, path[i]);
                flow[i] = dl_sharing_join(sharing, way->hops, way->n_hops, way->cap);
                rates[path[i]] = by_flow[flow[i]] = 0;
            }
            live[i] = !live[i];
        }
        dl_paths_settle(paths, note_rate, rates);
        dl_sharing_settle(sharing, note_rate, by_flow);
        for (int i = 0; i < n_ways; i++)
            ck_assert_msg(!live[i] || fabs(rates[path[i]] - by_flow[flow[i]]) <= 1e-11 * by_flow[flow[i]],
                          "way %d: %.17g, on all links %.17g", i, rates[path[i]], by_flow[flow[i]]);
    }
    for (uint32_t link = 0; link < n_links; link++)
        ck_assert_double_eq_tol(dl_paths_wanted(paths, link), dl_sharing_wanted_of_whole(sharing, link), 1e-9);
    dl_paths_free(paths);
    dl_sharing_free(sharing);
    gsl_rng_free(w.random);
}
END_TEST

/* Of a chain that only one way crosses, its own cap is what is left: nothing needs to be shared. A link between two
 * ways stays; one behind it that is as wide, with the same ways on it, does not hold them up more. */
START_TEST(covered_links_give_the_same_rates)
{
    const struct dl_engine_link links[] = {{4, false}, {4, false}, {10, false}, {3, false}};
    const struct dl_hop a[] = {{0, 1}, {1, 1}, {2, 1}}, b[] = {{0, 1}, {1, 1}, {3, 1}};
    double rates[2] = {0};
    uint32_t ways[2] = {0};
    struct dl_paths *const paths = dl_paths_new(links, DL_COUNT(links));
    for (int turn = 0; turn < 8; turn++) {
        const uint32_t first = dl_paths_find(paths, &ways[0], a, DL_COUNT(a), INFINITY);
        dl_paths_join(paths, first);
        dl_paths_settle(paths, note_rate, rates);
        ck_assert_double_eq(rates[first], 4);
        const uint32_t second = dl_paths_find(paths, &ways[1], b, DL_COUNT(b), INFINITY);
        dl_paths_join(paths, second);
        dl_paths_settle(paths, note_rate, rates);
        ck_assert_double_eq(rates[first], 2);
        ck_assert_double_eq(rates[second], 2);
        dl_paths_leave(paths, first);
        dl_paths_settle(paths, note_rate, rates);
        ck_assert_double_eq(rates[second], 3);
        dl_paths_leave(paths, second);
        ck_assert_uint_eq(dl_paths_n_live(paths), 0);
    }
    dl_paths_free(paths);
}
END_TEST

/* The number that is kept for a way finds all of its paths again, each with its own cap. */
START_TEST(a_way_has_a_path_for_each_cap)
{
    const struct dl_engine_link links[] = {{8, false}, {8, false}};
    const struct dl_hop hops[] = {{0, 1}, {1, 1}};
    const double caps[] = {2, 3, INFINITY, 1};
    double rates[DL_COUNT(caps)] = {0};
    uint32_t way = 0, other_way = 0, paths_of_way[DL_COUNT(caps)];
    struct dl_paths *const paths = dl_paths_new(links, DL_COUNT(links));
    for (size_t i = 0; i < DL_COUNT(caps); i++) {
        paths_of_way[i] = dl_paths_find(paths, &way, hops, DL_COUNT(hops), caps[i]);
        for (size_t k = 0; k < i; k++) ck_assert_uint_ne(paths_of_way[i], paths_of_way[k]);
    }
    for (size_t i = 0; i < DL_COUNT(caps); i++) {
        ck_assert_uint_eq(dl_paths_find(paths, &way, hops, DL_COUNT(hops), caps[i]), paths_of_way[i]);
        dl_paths_join(paths, paths_of_way[i]);
        dl_paths_settle(paths, note_rate, rates);
        ck_assert_double_eq(rates[paths_of_way[i]], fmin(caps[i], 8));
        dl_paths_leave(paths, paths_of_way[i]);
    }
    ck_assert_uint_eq(dl_paths_find(paths, &other_way, hops, DL_COUNT(hops), caps[0]), DL_COUNT(caps));
    dl_paths_free(paths);
}
END_TEST

/* ---- dates ---- */

enum { n_bundles = 600 };

struct plan {
    struct world w;
    struct dl_flows *flows;
    bool ways_stay;
    struct way *way[n_bundles];
    bool beside[n_bundles]; /* a bundle that takes a way of its own, once */
    double start_s[n_bundles], bytes[n_bundles], latency_s[n_bundles], end_s[n_bundles];
};

static void ended(void *user, uint32_t tag)
{
    struct plan *const p = user;
    p->end_s[tag] = dl_flows_now_s(p->flows);
}

static void start(void *user, uint32_t tag)
{
    struct plan *const p = user;
    struct way *const way = p->way[tag];
    dl_flows_start(p->flows, &(struct dl_bundle){.hops = way->hops,
                                                 .n_hops = way->n_hops,
                                                 .way = p->ways_stay && !p->beside[tag] ? &way->number : NULL,
                                                 .latency_s = p->latency_s[tag],
                                                 .bytes = p->bytes[tag],
                                                 .rate_cap_bytes_per_s = way->cap,
                                                 .done = ended,
                                                 .user = p,
                                                 .tag = tag});
}

static void change_link(void *user, uint32_t link)
{
    struct plan *const p = user;
    dl_flows_set_bandwidth(p->flows, link, p->w.links[link].bandwidth_bytes_per_s / 2);
}

static void run(struct plan *p, bool ways_stay, bool changes)
{
    p->ways_stay = ways_stay;
    p->flows = dl_flows_new(p->w.links, n_links);
    for (int i = 0; i < n_ways; i++) p->w.ways[i].number = 0;
    for (uint32_t i = 0; i < n_bundles; i++) dl_flows_timer(p->flows, p->start_s[i], start, p, i);
    if (changes) dl_flows_timer(p->flows, p->start_s[n_bundles / 2], change_link, p, 3);
    while (isfinite(dl_flows_next_s(p->flows))) dl_flows_advance(p->flows);
    ck_assert_uint_eq(dl_flows_n_live(p->flows), 0);
    dl_flows_free(p->flows);
}

/* Bundles over the same ways, sometimes two at a time, alone and with others; some start at the same instant. */
START_TEST(bundles_end_when_they_would_on_all_links)
{
    static struct plan p;
    static double with_s[n_bundles];
    const bool has_others = _i % 2, changes = _i % 3 == 2;
    double now_s = 0;
    p = (struct plan){0};
    world_open(&p.w, 1000 + (uint64_t)_i);
    for (int i = 0; i < n_bundles; i++) {
        now_s += below(&p.w, 3) ? 0.25 * below(&p.w, 8) : 0;
        p.way[i] = &p.w.ways[below(&p.w, n_ways)];
        p.beside[i] = has_others && below(&p.w, 10) == 0;
        p.start_s[i] = now_s;
        p.bytes[i] = 1 + below(&p.w, 5);
        p.latency_s[i] = 0.125 * below(&p.w, 3);
    }
    run(&p, true, changes);
    for (int i = 0; i < n_bundles; i++) with_s[i] = p.end_s[i];
    run(&p, false, changes);
    for (int i = 0; i < n_bundles; i++)
        ck_assert_msg(fabs(with_s[i] - p.end_s[i]) <= 1e-9 * p.end_s[i],
                      "bundle %d ends at %.17g s, on all links at %.17g s", i, with_s[i], p.end_s[i]);
    gsl_rng_free(p.w.random);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("paths");
    TCase *const tests = tcase_create("paths");
    tcase_add_loop_test(tests, rates_are_those_on_all_links, 0, 20);
    tcase_add_test(tests, covered_links_give_the_same_rates);
    tcase_add_test(tests, a_way_has_a_path_for_each_cap);
    tcase_add_loop_test(tests, bundles_end_when_they_would_on_all_links, 0, 24);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
