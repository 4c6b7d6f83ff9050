/* shapes.c - rounds that are not routed again load what they would if they were: every algorithm, folded and estimated
 * with shapes and without. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/collective/shapes.h"

#include <check.h>
#include <math.h>

#include "tests/measured.h"
#include "tests/unit/suite.h"

static const double rounding = 1e-12;

/* Adaptive routes in a group and between several, ranks that are no power of two and nodes that are not full; hashed
 * routes of a fat tree; a torus. */
static const struct place {
    const char *system;
    uint32_t n, stride; /* from device to device */
} places[] = {{"frontier", 64, 1}, {"frontier", 45, 301}, {"frontier", 21, 1},
              {"selene", 24, 1},   {"selene", 13, 1},     {"tpu-v4", 64, 1}};

static void open_at(struct subject *s, const struct place *p)
{
    subject_open(s, p->system, p->n);
    for (uint32_t i = 0; i < p->n; i++) s->device[i] *= p->stride;
    dl_group_init(&s->group, s->machine.topology, s->device, p->n, s->arena);
    s->group.shapes = dl_shapes_new();
}

static void close_all(struct subject *s)
{
    dl_shapes_free(s->group.shapes);
    subject_close(s);
}

static bool is_close(double a, double b) { return fabs(a - b) <= rounding * fmax(fabs(a), fabs(b)); }

static bool choose(struct subject *s, const struct dl_algorithm *a, double bytes, struct dl_choice *out)
{
    struct dl_error refused = {0};
    const struct dl_wish wish = {
        .op = a->op, .algorithm = a->name, .protocol = "auto", .group = &s->group, .bytes = bytes};
    s->estimator.fluid = true;
    return !dl_choose(&s->estimator, &wish, s->arena, out, &refused);
}

static struct dl_fold fold_of(struct subject *s, const struct dl_choice *choice, uint32_t lane, uint32_t which)
{
    struct dl_error err = {0};
    struct dl_fold fold;
    dl_fold_lane(&choice->collective, (struct dl_fold_of){lane, which, NULL}, &choice->estimate.pace,
                 &s->estimator.round, &fold, &err);
    stop_on_error(&err);
    return fold;
}

static void compare_folds(const struct dl_fold *a, const struct dl_fold *b, const char *name)
{
    ck_assert_uint_eq(a->n_hops, b->n_hops);
    for (size_t i = 0; i < a->n_hops; i++)
        ck_assert_msg(a->hops[i].link == b->hops[i].link &&
                          fabs(a->hops[i].weight - b->hops[i].weight) <= rounding * fmax(a->hops[i].weight, 1),
                      "%s: link %u, %.17g times, not link %u, %.17g times", name, a->hops[i].link, a->hops[i].weight,
                      b->hops[i].link, b->hops[i].weight);
    const double pairs[][2] = {{a->bytes, b->bytes},
                               {a->latency_s, b->latency_s},
                               {a->sent_bytes, b->sent_bytes},
                               {a->work_s, b->work_s},
                               {a->n_steps, b->n_steps}};
    for (size_t i = 0; i < DL_COUNT(pairs); i++)
        ck_assert_msg(is_close(pairs[i][0], pairs[i][1]), "%s, %zu: %.17g, not %.17g", name, i, pairs[i][0],
                      pairs[i][1]);
}

/* All bundles of a collective, with the group's shapes and without. */
static void check_folds(struct subject *s, const struct dl_choice *choice)
{
    const struct dl_collective *const c = &choice->collective;
    struct dl_shapes *const shapes = s->group.shapes;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        for (uint32_t which = 0; which < dl_fold_count(c, lane); which++) {
            struct dl_fold with = fold_of(s, choice, lane, which);
            s->group.shapes = NULL;
            struct dl_fold without = fold_of(s, choice, lane, which);
            s->group.shapes = shapes;
            compare_folds(&with, &without, c->algorithm->name);
            dl_fold_release(&with);
            dl_fold_release(&without);
        }
}

static void check_estimate(struct subject *s, const struct dl_algorithm *a, double bytes, const struct dl_choice *with)
{
    struct dl_choice without;
    struct dl_shapes *const shapes = s->group.shapes;
    s->group.shapes = NULL;
    ck_assert(choose(s, a, bytes, &without));
    s->group.shapes = shapes;
    ck_assert_str_eq(with->estimate.pace.protocol, without.estimate.pace.protocol);
    ck_assert_msg(is_close(with->estimate.time_s, without.estimate.time_s), "%s of %g bytes: %.17g s, not %.17g s",
                  a->name, bytes, with->estimate.time_s, without.estimate.time_s);
}

START_TEST(known_rounds_load_what_they_would_if_they_were_routed_again)
{
    static const double sizes[] = {64, 1e9};
    struct subject s;
    size_t n_by_rounds = 0;
    open_at(&s, &places[_i]);
    for (size_t i = 0; i < dl_algorithm_count() * DL_COUNT(sizes); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i / DL_COUNT(sizes));
        const double bytes = sizes[i % DL_COUNT(sizes)];
        struct dl_choice choice;
        if (a->fold != DL_FOLD_ROUNDS || a->op == DL_ALLTOALL || !choose(&s, a, bytes, &choice)) continue;
        check_estimate(&s, a, bytes, &choice);
        check_folds(&s, &choice);
        n_by_rounds++;
    }
    ck_assert_uint_gt(n_by_rounds, DL_COUNT(sizes));
    ck_assert_uint_gt(dl_shapes_count(s.group.shapes), 0);
    close_all(&s);
}
END_TEST

/* Halving and doubling meet the same partners, whatever the protocols that are tried. */
START_TEST(a_phase_that_undoes_another_has_its_shapes)
{
    enum { n = 64, n_bits = 6 };
    struct dl_error err = {0};
    struct dl_choice choice;
    const struct dl_algorithm *a;
    struct subject s;
    open_at(&s, &(struct place){"frontier", n, 1});
    dl_algorithm_find(DL_ALLREDUCE, "rabenseifner", &a, &err);
    stop_on_error(&err);
    ck_assert(choose(&s, a, 1e9, &choice));
    check_folds(&s, &choice);
    ck_assert_uint_eq(dl_fold_count(&choice.collective, 0), 2 * n_bits);
    ck_assert_uint_eq(dl_shapes_count(s.group.shapes), n_bits);
    close_all(&s);
}
END_TEST

/* Routes found before a link failed are not those after it. */
START_TEST(links_that_fail_make_other_shapes)
{
    struct dl_choice choice;
    struct dl_error err = {0};
    const struct dl_algorithm *a;
    struct subject s;
    open_at(&s, &(struct place){"selene", 24, 1});
    dl_algorithm_find(DL_ALLREDUCE, "recursive_doubling", &a, &err);
    stop_on_error(&err);
    ck_assert(choose(&s, a, 1e9, &choice));
    check_folds(&s, &choice);
    const struct dl_topology *const t = s.machine.topology;
    const size_t n_before = dl_shapes_count(s.group.shapes);
    dl_condition_set(t->condition, t, t->network.first_link, 0);
    check_folds(&s, &choice);
    ck_assert_uint_gt(dl_shapes_count(s.group.shapes), n_before);
    close_all(&s);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("shapes");
    TCase *const tests = tcase_create("shapes");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, known_rounds_load_what_they_would_if_they_were_routed_again, 0, DL_COUNT(places));
    tcase_add_test(tests, a_phase_that_undoes_another_has_its_shapes);
    tcase_add_test(tests, links_that_fail_make_other_shapes);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
