/* estimates_order.c - an estimate is the same whatever was estimated before it with the same estimator. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>

#include "tests/measured.h"
#include "tests/unit/suite.h"

/* Folded trees and rings, in which links are not followed, before what goes round by round; adaptive routes; ports that
 * are held. One device more than the ranks, for a server. */
static const struct {
    const char *system, *transport;
} machines[] = {{"selene", NULL}, {"selene", "ideal"}, {"frontier", NULL}, {"crossbar", "mpi"}, {"tpu-v4", NULL}};
enum { n = 12, most_algorithms = 128 };
static const double sizes[] = {0, 1e3, 1e8};

struct times {
    double of[most_algorithms * DL_COUNT(sizes)];
};

/* Of the i-th algorithm and size; NAN: it is refused. */
static double time_of(struct dl_estimator *e, const struct dl_group *group, size_t i, struct dl_arena *arena)
{
    const struct dl_algorithm *const a = dl_algorithm_get(i / DL_COUNT(sizes));
    const double bytes = a->op == DL_BARRIER ? 0 : sizes[i % DL_COUNT(sizes)];
    const struct dl_wish wish = {
        .op = a->op, .algorithm = a->name, .protocol = "auto", .group = group, .bytes = bytes, .servers = 1};
    struct dl_error refused = {0};
    struct dl_choice choice;
    return dl_choose(e, &wish, arena, &choice, &refused) ? NAN : choice.estimate.time_s;
}

static double time_alone(const struct subject *s, size_t i)
{
    struct dl_estimator own;
    dl_estimator_init(&own, s->machine.topology, &s->machine.transport, s->machine.bytes_per_s);
    const double time_s = time_of(&own, &s->group, i, s->arena);
    dl_estimator_release(&own);
    return time_s;
}

static void compare(size_t i, double shared_s, double alone_s)
{
    const struct dl_algorithm *const a = dl_algorithm_get(i / DL_COUNT(sizes));
    ck_assert_msg(shared_s == alone_s || (isnan(shared_s) && isnan(alone_s)), "%s %s: %.17g s, alone %.17g s",
                  dl_op_name(a->op), a->name, shared_s, alone_s);
}

START_TEST(estimates_do_not_depend_on_those_before)
{
    const size_t n_all = dl_algorithm_count() * DL_COUNT(sizes);
    const struct dl_texts nothing_set = {0};
    static struct times alone;
    struct dl_error err = {0};
    size_t n_done = 0;
    struct subject s;
    ck_assert_uint_le(dl_algorithm_count(), most_algorithms);
    subject_open(&s, machines[_i].system, n + 1);
    dl_group_init(&s.group, s.machine.topology, s.device, n, s.arena);
    dl_machine_use_transport(&s.machine, machines[_i].transport, s.group.n_nodes, &nothing_set, s.arena, &err);
    stop_on_error(&err);
    dl_estimator_release(&s.estimator);
    dl_estimator_init(&s.estimator, s.machine.topology, &s.machine.transport, s.machine.bytes_per_s);
    for (size_t i = 0; i < n_all; i++) {
        alone.of[i] = time_alone(&s, i);
        n_done += !isnan(alone.of[i]);
    }
    ck_assert_uint_gt(n_done, n_all / 4);
    for (size_t i = 0; i < n_all; i++) compare(i, time_of(&s.estimator, &s.group, i, s.arena), alone.of[i]);
    for (size_t i = n_all; i-- > 0;) compare(i, time_of(&s.estimator, &s.group, i, s.arena), alone.of[i]);
    subject_close(&s);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("estimates_order");
    TCase *const tests = tcase_create("estimates_order");
    tcase_add_loop_test(tests, estimates_do_not_depend_on_those_before, 0, DL_COUNT(machines));
    suite_add_tcase(s, tests);
    return run_suite(s);
}
