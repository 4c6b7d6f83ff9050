/* machines.c - machines that are kept: who shares one, which go, and that nobody finds what another left. */
#include "sim/session/inputs.h"
#include "tests/unit/suite.h"

struct fixture {
    struct dl_arena *arena;
    struct dl_machines *machines;
    struct dl_error err;
};

static void set_up(struct fixture *f) { *f = (struct fixture){.arena = dl_arena_new(), .machines = dl_machines_new()}; }

static void tear_down(struct fixture *f)
{
    dl_machines_free(f->machines);
    dl_arena_free(f->arena);
}

/* With one value of --set, or NULL. */
static struct dl_machine opened(struct fixture *f, const char *system, const char *set)
{
    struct dl_machine m = {.keeper = f->machines};
    const struct dl_texts texts = {.items = {set}, .n = set != NULL};
    dl_machine_open((struct dl_input){.name = system}, &texts, f->arena, &m, &f->err);
    ck_assert_msg(!f->err.status, "%s", f->err.text);
    return m;
}

/* The topology that it had. */
static const struct dl_topology *open_and_close(struct fixture *f, const char *system, const char *set)
{
    struct dl_machine m = opened(f, system, set);
    const struct dl_topology *const topology = m.topology;
    dl_machine_close(&m);
    return topology;
}

START_TEST(equal_documents_share_a_topology)
{
    struct fixture f;
    set_up(&f);
    const struct dl_topology *const usual = open_and_close(&f, "dgx-h100", NULL);
    const struct dl_topology *const set = open_and_close(&f, "dgx-h100", "topo.nodes=2");
    ck_assert_ptr_ne(set, usual);
    ck_assert_uint_eq(set->n_nodes, 2);
    ck_assert_ptr_eq(open_and_close(&f, "dgx-h100", NULL), usual);
    ck_assert_ptr_eq(open_and_close(&f, "dgx-h100", "topo.nodes=2"), set);
    ck_assert_ptr_ne(open_and_close(&f, "selene", NULL), usual);
    tear_down(&f);
}
END_TEST

START_TEST(slices_are_kept_apart)
{
    struct fixture f;
    const struct dl_topology *slice[2];
    set_up(&f);
    for (int i = 0; i < 2; i++) {
        struct dl_machine m = opened(&f, "tpu-v4", NULL);
        ck_assert(!dl_machine_slice(&m, 60, NULL, &f.err));
        ck_assert_uint_eq(m.topology->n_devices, 64);
        slice[i] = m.topology;
        dl_machine_close(&m);
    }
    ck_assert_ptr_eq(slice[0], slice[1]);
    ck_assert_uint_eq(open_and_close(&f, "tpu-v4", NULL)->n_devices, 4096);
    tear_down(&f);
}
END_TEST

START_TEST(links_are_whole_again)
{
    struct fixture f;
    set_up(&f);
    struct dl_machine m = opened(&f, "dgx-h100", NULL);
    dl_condition_set(m.topology->condition, m.topology, 3, 0);
    dl_machine_close(&m);
    struct dl_machine again = opened(&f, "dgx-h100", NULL);
    ck_assert_ptr_eq(again.topology, m.topology);
    ck_assert_double_eq(dl_link_fraction(again.topology->condition, 3), 1);
    ck_assert_uint_eq(again.topology->condition->n_failed, 0);
    dl_machine_close(&again);
    tear_down(&f);
}
END_TEST

static double first_rate(struct fixture *f, const char *set)
{
    struct dl_machine m = opened(f, "dgx-h100", NULL);
    const struct dl_texts texts = {.items = {set}, .n = set != NULL};
    dl_machine_use_transport(&m, NULL, 2, &texts, f->arena, &f->err);
    ck_assert_msg(!f->err.status, "%s", f->err.text);
    const double *const own = dl_transport_rates(&m.transport, m.topology);
    for (size_t i = 0; i < m.topology->n_links; i++) ck_assert_double_eq(m.bytes_per_s[i], own[i]);
    const double rate = m.bytes_per_s[0];
    dl_free((void *)own);
    dl_machine_close(&m);
    return rate;
}

START_TEST(rates_are_those_of_the_transport)
{
    struct fixture f;
    set_up(&f);
    const double usual = first_rate(&f, NULL);
    ck_assert_double_ne(first_rate(&f, "transport.efficiency={\"nvlink4\":0.5}"), usual);
    ck_assert_double_eq(first_rate(&f, NULL), usual);
    tear_down(&f);
}
END_TEST

/* Frontier has almost half as many links as are kept. */
START_TEST(those_unused_for_longest_go)
{
    struct fixture f;
    set_up(&f);
    struct dl_machine used = opened(&f, "frontier", NULL);
    for (int nodes = 9000; nodes < 9003; nodes++) {
        open_and_close(&f, "frontier", dl_arena_format(f.arena, "topo.nodes=%d", nodes));
        ck_assert_uint_eq(dl_machines_count(f.machines), 2);
    }
    open_and_close(&f, "crossbar", NULL);
    ck_assert_uint_eq(dl_machines_count(f.machines), 3);
    struct dl_machine same = opened(&f, "frontier", NULL);
    ck_assert_ptr_eq(same.topology, used.topology);
    dl_machine_close(&same);
    dl_machine_close(&used);
    tear_down(&f);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("machines");
    TCase *const tests = tcase_create("machines");
    tcase_add_test(tests, equal_documents_share_a_topology);
    tcase_add_test(tests, slices_are_kept_apart);
    tcase_add_test(tests, links_are_whole_again);
    tcase_add_test(tests, rates_are_those_of_the_transport);
    tcase_add_test(tests, those_unused_for_longest_go);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
