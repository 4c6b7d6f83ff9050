/* sharing.c - max-min sharing: what makes an allocation right, and that solving only what changed gives the same as
 * solving everything. Whether bundles end in time is checked in physics.c and oracle.c. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"
#include "sim/engine/sharing.h"
#include "tests/unit/suite.h"

/* Rates by flow, as the callback tells them. */
struct rates {
    double *of;
    size_t n, capacity;
    size_t n_told;
};

static void note_rate(void *user, uint32_t flow, double rate)
{
    struct rates *const r = user;
    while (r->n <= flow) {
        DL_GROW(r->of, r->n, r->capacity);
        r->of[r->n++] = 0;
    }
    r->of[flow] = rate;
    r->n_told++;
}

static double rate_of(const struct rates *r, uint32_t flow) { return flow < r->n ? r->of[flow] : 0; }

/* ---- flows that come and go over few links ---- */

enum { n_links = 30, n_slots = 40, most_hops = 5 };

struct live_flow {
    struct dl_hop hops[most_hops];
    size_t n_hops;
    double cap;
    uint32_t id;
    bool live;
};

struct world {
    struct dl_engine_link links[n_links];
    struct live_flow flows[n_slots];
    struct dl_sharing *sharing;
    struct rates rates;
    gsl_rng *random;
};

static uint32_t below(struct world *w, uint32_t n) { return (uint32_t)gsl_rng_uniform_int(w->random, n); }

static void world_open(struct world *w, uint64_t number)
{
    *w = (struct world){.random = dl_random_new(1, "sharing", number)};
    for (int i = 0; i < n_links; i++)
        w->links[i] = (struct dl_engine_link){.bandwidth_bytes_per_s = 1 + below(w, 9), .fatpipe = below(w, 8) == 0};
    w->sharing = dl_sharing_new(w->links, n_links);
}

static void world_close(struct world *w)
{
    dl_sharing_free(w->sharing);
    dl_free(w->rates.of);
    gsl_rng_free(w->random);
}

static void join(struct world *w, struct live_flow *f)
{
    static const double weights[] = {0.25, 0.5, 1, 1, 1, 2};
    *f = (struct live_flow){.cap = below(w, 5) ? INFINITY : 0.3 * (1 + below(w, 5)), .live = true};
    const uint32_t wanted = 1 + below(w, most_hops);
    while (f->n_hops < wanted) {
        const uint32_t link = below(w, n_links);
        bool is_there = false;
        for (size_t i = 0; i < f->n_hops; i++) is_there |= f->hops[i].link == link;
        if (!is_there) f->hops[f->n_hops++] = (struct dl_hop){link, weights[below(w, DL_COUNT(weights))]};
    }
    f->id = dl_sharing_join(w->sharing, f->hops, f->n_hops, f->cap);
    if (f->id < w->rates.n) w->rates.of[f->id] = 0;
}

static void change_bandwidth(struct world *w)
{
    const uint32_t link = below(w, n_links);
    w->links[link].bandwidth_bytes_per_s = below(w, 10); /* 0: it fails */
    dl_sharing_set_bandwidth(w->sharing, link, w->links[link].bandwidth_bytes_per_s);
}

/* A few changes, then all rates are settled. */
static void disturb(struct world *w)
{
    const uint32_t n_changes = 1 + below(w, 4);
    for (uint32_t i = 0; i < n_changes; i++) {
        struct live_flow *const f = &w->flows[below(w, n_slots)];
        if (below(w, 6) == 0) {
            change_bandwidth(w);
        } else if (!f->live) {
            join(w, f);
        } else {
            dl_sharing_leave(w->sharing, f->id);
            f->live = false;
        }
    }
    dl_sharing_settle(w->sharing, note_rate, &w->rates);
}

static bool is_close(double a, double b) { return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)); }

static void compare_with_fresh(const struct world *w)
{
    struct dl_sharing *const fresh = dl_sharing_new(w->links, n_links);
    struct rates rates = {0};
    uint32_t ids[n_slots];
    for (int i = 0; i < n_slots; i++)
        if (w->flows[i].live) ids[i] = dl_sharing_join(fresh, w->flows[i].hops, w->flows[i].n_hops, w->flows[i].cap);
    dl_sharing_settle(fresh, note_rate, &rates);
    for (int i = 0; i < n_slots; i++) {
        if (!w->flows[i].live) continue;
        const double kept = rate_of(&w->rates, w->flows[i].id), solved = rate_of(&rates, ids[i]);
        ck_assert_msg(is_close(kept, solved), "flow %d has rate %.17g, solved from scratch %.17g", i, kept, solved);
    }
    dl_sharing_free(fresh);
    dl_free(rates.of);
}

START_TEST(solving_what_changed_is_solving_everything)
{
    static struct world w;
    world_open(&w, (uint64_t)_i);
    for (int turn = 0; turn < 500; turn++) {
        disturb(&w);
        compare_with_fresh(&w);
    }
    ck_assert_uint_gt(w.rates.n_told, 500);
    world_close(&w);
}
END_TEST

/* ---- the definition ---- */

static double used(const struct world *w, uint32_t link)
{
    double sum = 0;
    for (int i = 0; i < n_slots; i++)
        for (size_t h = 0; w->flows[i].live && h < w->flows[i].n_hops; h++)
            if (w->flows[i].hops[h].link == link)
                sum += w->flows[i].hops[h].weight * rate_of(&w->rates, w->flows[i].id);
    return sum;
}

static double fastest(const struct world *w, uint32_t link)
{
    double most = 0;
    for (int i = 0; i < n_slots; i++)
        for (size_t h = 0; w->flows[i].live && h < w->flows[i].n_hops; h++)
            if (w->flows[i].hops[h].link == link) most = fmax(most, rate_of(&w->rates, w->flows[i].id));
    return most;
}

static bool has_bottleneck(const struct world *w, const struct live_flow *f)
{
    const double rate = rate_of(&w->rates, f->id), slack = 1e-9;
    if (rate >= f->cap * (1 - slack)) return true;
    for (size_t h = 0; h < f->n_hops; h++) {
        const uint32_t link = f->hops[h].link;
        const double capacity = w->links[link].bandwidth_bytes_per_s * (1 - slack);
        if (w->links[link].fatpipe && rate * f->hops[h].weight >= capacity) return true;
        if (!w->links[link].fatpipe && used(w, link) >= capacity && rate >= fastest(w, link) * (1 - slack)) return true;
    }
    return false;
}

/* Bertsekas and Gallager, Data Networks, section 6.5.2: max-min fair if and only if every flow has a bottleneck. */
START_TEST(no_link_is_overbooked_and_every_flow_has_a_bottleneck)
{
    static struct world w;
    world_open(&w, (uint64_t)_i);
    for (int turn = 0; turn < 200; turn++) {
        disturb(&w);
        for (uint32_t link = 0; link < n_links; link++) {
            const double sum = used(&w, link);
            ck_assert_double_eq_tol(dl_sharing_used(w.sharing, link), sum, 1e-12 * (1 + sum));
            if (!w.links[link].fatpipe) ck_assert_double_le(sum, w.links[link].bandwidth_bytes_per_s * (1 + 1e-11));
        }
        for (int i = 0; i < n_slots; i++)
            if (w.flows[i].live) ck_assert_msg(has_bottleneck(&w, &w.flows[i]), "flow %d could be faster", i);
    }
    world_close(&w);
}
END_TEST

START_TEST(the_same_sequence_gives_the_same_bits)
{
    static struct world a, b;
    world_open(&a, (uint64_t)_i);
    world_open(&b, (uint64_t)_i);
    for (int turn = 0; turn < 200; turn++) {
        disturb(&a);
        disturb(&b);
        ck_assert_uint_eq(a.rates.n_told, b.rates.n_told);
        ck_assert_uint_eq(a.rates.n, b.rates.n);
        if (a.rates.n) ck_assert_mem_eq(a.rates.of, b.rates.of, a.rates.n * sizeof *a.rates.of);
    }
    world_close(&a);
    world_close(&b);
}
END_TEST

/* ---- size ---- */

enum { n_uplinks = 500, flows_per_uplink = 100 };

/* All of one uplink leave but the last, one by one: only those that are left hear of it. */
START_TEST(fifty_thousand_live_flows_share_their_uplinks)
{
    static struct dl_engine_link links[n_uplinks];
    static uint32_t ids[n_uplinks][flows_per_uplink];
    struct rates rates = {0};
    for (int i = 0; i < n_uplinks; i++) links[i].bandwidth_bytes_per_s = 1e9 * (1 + i);
    struct dl_sharing *const s = dl_sharing_new(links, n_uplinks);
    for (uint32_t i = 0; i < n_uplinks; i++)
        for (int k = 0; k < flows_per_uplink; k++) ids[i][k] = dl_sharing_join(s, &(struct dl_hop){i, 1}, 1, INFINITY);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert_uint_eq(rates.n_told, n_uplinks * flows_per_uplink);
    for (int i = 0; i < n_uplinks; i++)
        for (int k = 0; k < flows_per_uplink; k++)
            ck_assert(is_close(rate_of(&rates, ids[i][k]), links[i].bandwidth_bytes_per_s / flows_per_uplink));
    rates.n_told = 0;
    for (int gone = 1; gone < flows_per_uplink; gone++) {
        dl_sharing_leave(s, ids[7][gone]);
        dl_sharing_settle(s, note_rate, &rates);
        ck_assert(is_close(rate_of(&rates, ids[7][0]), links[7].bandwidth_bytes_per_s / (flows_per_uplink - gone)));
    }
    const size_t only_those_left = flows_per_uplink * (flows_per_uplink - 1) / 2;
    ck_assert_uint_eq(rates.n_told, only_those_left);
    dl_sharing_free(s);
    dl_free(rates.of);
}
END_TEST

/* Two rings over all links and a short flow on one of them: the rings share what is left there. */
START_TEST(a_flow_may_cross_thousands_of_links)
{
    enum { ring = 20000, narrow = 12345 };
    static struct dl_engine_link links[ring];
    static struct dl_hop hops[ring];
    struct rates rates = {0};
    for (uint32_t i = 0; i < ring; i++) {
        links[i].bandwidth_bytes_per_s = i == narrow ? 6e9 : 10e9;
        hops[i] = (struct dl_hop){i, 1};
    }
    struct dl_sharing *const s = dl_sharing_new(links, ring);
    const uint32_t a = dl_sharing_join(s, hops, ring, INFINITY), b = dl_sharing_join(s, hops, ring, INFINITY);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert(is_close(rate_of(&rates, a), 3e9) && is_close(rate_of(&rates, b), 3e9));
    const uint32_t third = dl_sharing_join(s, &hops[narrow], 1, INFINITY);
    const uint32_t other = dl_sharing_join(s, &hops[0], 1, INFINITY);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert(is_close(rate_of(&rates, a), 2e9) && is_close(rate_of(&rates, b), 2e9));
    ck_assert(is_close(rate_of(&rates, third), 2e9) && is_close(rate_of(&rates, other), 6e9));
    dl_sharing_leave(s, a);
    dl_sharing_leave(s, third);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert(is_close(rate_of(&rates, b), 5e9) && is_close(rate_of(&rates, other), 5e9));
    dl_sharing_free(s);
    dl_free(rates.of);
}
END_TEST

START_TEST(a_flow_without_links_runs_at_its_cap)
{
    struct rates rates = {0};
    struct dl_sharing *const s = dl_sharing_new(NULL, 0);
    const uint32_t flow = dl_sharing_join(s, NULL, 0, 3e9);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert_double_eq(rate_of(&rates, flow), 3e9);
    dl_sharing_free(s);
    dl_free(rates.of);
}
END_TEST

/* A trunk of 10 and as many narrow links of 1 as flows: it matters to nobody up to the tenth. */
START_TEST(a_trunk_matters_once_it_can_be_full)
{
    enum { n_flows = 20, trunk = n_flows };
    struct rates rates = {0};
    struct dl_engine_link links[n_flows + 1];
    uint32_t flows[n_flows];
    for (int i = 0; i <= n_flows; i++) links[i] = (struct dl_engine_link){.bandwidth_bytes_per_s = i == trunk ? 10 : 1};
    struct dl_sharing *const s = dl_sharing_new(links, n_flows + 1);
    for (uint32_t i = 0; i < n_flows; i++) {
        const struct dl_hop hops[] = {{.link = i, .weight = 1}, {.link = trunk, .weight = 1}};
        flows[i] = dl_sharing_join(s, hops, 2, INFINITY);
        dl_sharing_settle(s, note_rate, &rates);
        for (uint32_t k = 0; k <= i; k++) ck_assert(is_close(rate_of(&rates, flows[k]), fmin(1, 10. / (i + 1))));
    }
    const double bandwidths[] = {0, 40, 4, 10}; /* of the trunk: dead, never full, full */
    for (size_t i = 0; i < DL_COUNT(bandwidths); i++) {
        dl_sharing_set_bandwidth(s, trunk, bandwidths[i]);
        dl_sharing_settle(s, note_rate, &rates);
        for (uint32_t k = 0; k < n_flows; k++)
            ck_assert(is_close(rate_of(&rates, flows[k]), fmin(1, bandwidths[i] / n_flows)));
    }
    for (uint32_t n = n_flows; n-- > 1;) {
        dl_sharing_leave(s, flows[n]);
        dl_sharing_settle(s, note_rate, &rates);
        for (uint32_t k = 0; k < n; k++) ck_assert(is_close(rate_of(&rates, flows[k]), fmin(1, 10. / n)));
    }
    dl_sharing_free(s);
    dl_free(rates.of);
}
END_TEST

/* When a link of theirs slows two flows down, a third takes what they leave on another, which was full. */
START_TEST(a_trunk_that_was_full_is_left_to_the_others)
{
    struct rates rates = {0};
    const struct dl_engine_link links[] = {{.bandwidth_bytes_per_s = 8}, {.bandwidth_bytes_per_s = 9}};
    const struct dl_hop both[] = {{.link = 0, .weight = 1}, {.link = 1, .weight = 1}};
    struct dl_sharing *const s = dl_sharing_new(links, 2);
    const uint32_t a = dl_sharing_join(s, both, 2, INFINITY), b = dl_sharing_join(s, both, 2, INFINITY);
    const uint32_t third = dl_sharing_join(s, &both[1], 1, 5);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert(is_close(rate_of(&rates, a), 3) && is_close(rate_of(&rates, third), 3));
    dl_sharing_set_bandwidth(s, 0, 1);
    dl_sharing_settle(s, note_rate, &rates);
    ck_assert(is_close(rate_of(&rates, a), 0.5) && is_close(rate_of(&rates, b), 0.5));
    ck_assert(is_close(rate_of(&rates, third), 5)); /* its cap; all three could want 7 of 9 */
    dl_sharing_free(s);
    dl_free(rates.of);
}
END_TEST

int main(void)
{
    enum { n_sequences = 10 };
    Suite *const s = suite_create("sharing");
    TCase *const tests = tcase_create("sharing");
    tcase_add_loop_test(tests, solving_what_changed_is_solving_everything, 0, n_sequences);
    tcase_add_loop_test(tests, no_link_is_overbooked_and_every_flow_has_a_bottleneck, 0, n_sequences);
    tcase_add_loop_test(tests, the_same_sequence_gives_the_same_bits, 0, n_sequences);
    tcase_add_test(tests, fifty_thousand_live_flows_share_their_uplinks);
    tcase_add_test(tests, a_flow_may_cross_thousands_of_links);
    tcase_add_test(tests, a_flow_without_links_runs_at_its_cap);
    tcase_add_test(tests, a_trunk_matters_once_it_can_be_full);
    tcase_add_test(tests, a_trunk_that_was_full_is_left_to_the_others);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
