/* kept_choices.c - what an estimator keeps of choices and ways is what it would find anew, in whatever order it is
 * asked.
 */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <string.h>

#include "sim/collective/kept.h"
#include "tests/measured.h"
#include "tests/unit/suite.h"

/* Hashed and adaptive routes; a library whose tuner is not always right. */
static const char *const machines[] = {"selene", "frontier", "dgx-h100", "tpu-v4"};
enum { n_ranks = 4, n_groups = 2, n_servers = 1, of_group = n_ranks + n_servers, n_seats = 3, n_devices = 32 };

static const struct dl_wish wishes[] = {
    {.op = DL_ALLREDUCE, .algorithm = "auto", .protocol = "auto", .bytes = 1e8, .n_alike = n_groups},
    {.op = DL_ALLREDUCE, .algorithm = "auto", .protocol = "auto", .bytes = 1e4, .n_alike = n_groups},
    {.op = DL_REDUCESCATTER, .algorithm = "auto", .protocol = "auto", .bytes = 1e8},
    {.op = DL_ALLREDUCE, .algorithm = "ring", .protocol = "auto", .bytes = 1e8, .n_alike = n_groups},
    {.op = DL_ALLREDUCE, .algorithm = "parameter_server", .protocol = "auto", .bytes = 1e8, .servers = n_servers},
    {.op = DL_ALLREDUCE, .algorithm = "auto", .protocol = "auto", .bytes = 1e8, .payload = {DL_QUANTIZED, 8, 0}},
    {.op = DL_ALLREDUCE, .algorithm = "no such thing", .protocol = "auto", .bytes = 1e8},
};
enum { n_cases = DL_COUNT(wishes) * n_seats * 2 };

/* Devices of the groups, side by side or apart, with those of servers where the wish has some. */
static const uint32_t *seats_of(const struct subject *s, const struct dl_wish *wish, size_t seats, uint32_t *out)
{
    const size_t stride = seats == 0 ? 1 : 2 * seats, row = n_ranks + wish->servers;
    for (size_t group = 0; group < n_groups; group++)
        for (size_t i = 0; i < row; i++)
            out[group * row + i] = s->device[(group * (seats + 4) + i * stride) % n_devices];
    return out;
}

struct outcome {
    double times_s[n_groups + 1]; /* and of all together; NAN: refused */
    const char *algorithms[n_groups];
    struct dl_tuner_note note;
};

static void set_fluid(struct dl_estimator *e, size_t i)
{
    e->fluid = i % 2;
    e->by_message = !e->fluid;
}

static struct outcome chosen_anew(const struct subject *s, size_t i)
{
    const struct dl_wish *const wish = &wishes[i / 2 / n_seats];
    struct outcome out = {.times_s = {NAN, NAN, NAN}};
    struct dl_choice choices[n_groups];
    struct dl_group groups[n_groups];
    struct dl_estimator own;
    struct dl_error refused = {0};
    uint32_t devices[n_groups * of_group];
    seats_of(s, wish, i / 2 % n_seats, devices);
    dl_estimator_init(&own, s->machine.topology, &s->machine.transport, s->machine.bytes_per_s);
    set_fluid(&own, i);
    for (size_t g = 0; g < n_groups; g++) {
        struct dl_wish its = *wish;
        dl_group_init(&groups[g], s->machine.topology, devices + g * (n_ranks + wish->servers), n_ranks, s->arena);
        its.group = &groups[g];
        dl_choose(&own, &its, s->arena, &choices[g], &refused);
    }
    if (!refused.status) dl_choices_together_s(&own, choices, n_groups, &out.times_s[n_groups], &refused);
    for (size_t g = 0; g < n_groups && !refused.status; g++) {
        out.times_s[g] = choices[g].estimate.time_s;
        out.algorithms[g] = choices[g].collective.algorithm->name;
    }
    out.note = own.note;
    dl_estimator_release(&own);
    return out;
}

static struct outcome chosen_with(struct subject *s, size_t i)
{
    const struct dl_wish *const wish = &wishes[i / 2 / n_seats];
    struct outcome out = {.times_s = {NAN, NAN, NAN}};
    struct dl_error refused = {0};
    uint32_t devices[n_groups * of_group];
    seats_of(s, wish, i / 2 % n_seats, devices);
    s->estimator.note = (struct dl_tuner_note){0};
    set_fluid(&s->estimator, i);
    const struct dl_together *const all = dl_choose_together(&s->estimator, wish, devices, n_ranks, n_groups, &refused);
    memset(devices, 0, sizeof devices); /* what is kept has its own */
    for (size_t g = 0; all && g < n_groups; g++) {
        out.times_s[g] = all->choices[g].estimate.time_s;
        out.algorithms[g] = all->choices[g].collective.algorithm->name;
        ck_assert_ptr_eq(all->choices[g].collective.group, &all->groups[g]);
    }
    if (all) out.times_s[n_groups] = all->time_s;
    ck_assert(!all == (refused.status != DL_OK));
    out.note = s->estimator.note;
    return out;
}

static bool is_same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static void compare(size_t i, const struct outcome *a, const struct outcome *b)
{
    for (size_t k = 0; k <= n_groups; k++)
        ck_assert_msg(a->times_s[k] == b->times_s[k] || (isnan(a->times_s[k]) && isnan(b->times_s[k])),
                      "case %zu: %.17g s, anew %.17g s", i, a->times_s[k], b->times_s[k]);
    for (size_t k = 0; k < n_groups; k++) ck_assert(is_same_text(a->algorithms[k], b->algorithms[k]));
    if (isnan(b->times_s[0])) return;
    ck_assert(is_same_text(a->note.faster.algorithm, b->note.faster.algorithm));
    ck_assert(a->note.time_s == b->note.time_s && a->note.faster.time_s == b->note.faster.time_s);
}

START_TEST(kept_choices_are_those_made_anew)
{
    static struct outcome anew[n_cases];
    struct subject s;
    size_t n_chosen = 0;
    subject_open(&s, machines[_i], n_devices);
    for (size_t i = 0; i < n_cases; i++) {
        anew[i] = chosen_anew(&s, i);
        n_chosen += !isnan(anew[i].times_s[0]);
    }
    ck_assert_uint_gt(n_chosen, n_cases / 3);
    for (int round = 0; round < 2; round++)
        for (size_t k = 0; k < n_cases; k++) {
            const size_t i = (k * 17 + 5) % n_cases; /* in another order */
            const struct outcome kept = chosen_with(&s, i);
            compare(i, &kept, &anew[i]);
        }
    ck_assert_uint_eq(dl_kept_count(s.estimator.kept), n_chosen); /* each once, and no refusal */
    subject_close(&s);
}
END_TEST

/* Links cross the weights of all routes that have them. */
static void check_ways(const struct subject *s, const uint32_t *from, const uint32_t *to, const struct dl_ways *ways)
{
    struct dl_route route = {0};
    struct dl_error err = {0};
    double latency_s[DL_N_REACHES] = {-1, -1, -1}, weights = 0, sum = 0;
    for (uint32_t i = 0; i < n_ranks; i++) {
        ck_assert_int_eq(dl_topology_route(s->machine.topology, from[i], to[i], 0, NULL, &route, &err), DL_OK);
        latency_s[route.reach] = fmax(latency_s[route.reach], route.latency_s);
        for (size_t h = 0; h < route.n_hops; h++) weights += route.hops[h].weight * (1 + route.hops[h].link % 7);
    }
    for (size_t h = 0; h < ways->n_hops; h++) sum += ways->hops[h].weight * (1 + ways->hops[h].link % 7);
    ck_assert_double_eq_tol(sum, weights, 1e-12 * weights);
    for (int reach = 0; reach < DL_N_REACHES; reach++) ck_assert_double_eq(ways->latency_s[reach], latency_s[reach]);
    dl_route_release(&route);
}

START_TEST(kept_ways_are_the_sums_of_routes)
{
    enum { n_pairs = 20 };
    const struct dl_ways *first[n_pairs];
    struct dl_error err = {0};
    struct subject s;
    subject_open(&s, machines[_i], n_devices);
    for (int k = 0; k < 2 * n_pairs; k++) {
        const uint32_t pair = (uint32_t)(k % n_pairs);
        uint32_t from[n_ranks], to[n_ranks];
        for (uint32_t i = 0; i < n_ranks; i++) {
            from[i] = s.device[(pair + i) % n_devices];
            to[i] = s.device[(pair + i + 1 + 3 * (pair % 2)) % n_devices];
        }
        const struct dl_ways *const ways = dl_find_ways(&s.estimator, from, to, n_ranks, &err);
        ck_assert_ptr_nonnull(ways);
        check_ways(&s, from, to, ways);
        if (k < n_pairs)
            first[pair] = ways;
        else
            ck_assert_ptr_eq(ways, first[pair]); /* not found anew */
    }
    subject_close(&s);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("kept_choices");
    TCase *const tests = tcase_create("kept_choices");
    tcase_add_loop_test(tests, kept_choices_are_those_made_anew, 0, DL_COUNT(machines));
    tcase_add_loop_test(tests, kept_ways_are_the_sums_of_routes, 0, DL_COUNT(machines));
    suite_add_tcase(s, tests);
    return run_suite(s);
}
