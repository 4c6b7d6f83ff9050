/* nccl_rows_slow.c - published NCCL runs: the mean error of each family of machines, and times that grow with the
 * bytes. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>

#include "tests/measured.h"
#include "tests/unit/suite.h"

static const struct family {
    const char *name;
    double limit; /* of the mean absolute error */
} families[] = {{"a100-one-node", 0.10}, {"v100-one-node", 0.15}, {"multi-node", 0.25}, {"bus", 0.10}};

static const char *const nodes_of[] = {"selene", "dgx1-v100", "h200x8"}; /* with and without switches that add */
static const char *const networks[] = {"dgx1-v100", "dgx-h100", "p4de", "p5", "a3-mega", "dgx-a100-hdr4"};

struct errors {
    double estimated, simulated; /* sums of absolute values */
    size_t n;
};

static void add_row(struct errors *sum, const struct measured_row *row)
{
    struct subject s;
    subject_open(&s, row->system, (uint32_t)row->devices);
    const struct dl_choice choice = subject_choose(&s, row->algorithm, row->bytes);
    sum->estimated += fabs(choice.estimate.time_s / row->time_s - 1);
    sum->simulated += fabs(subject_simulate(&s, &choice) / row->time_s - 1);
    sum->n++;
    subject_close(&s);
}

START_TEST(mean_error_of_a_family_is_within_its_limit)
{
    const struct family *const family = &families[_i];
    struct dl_arena *const arena = dl_arena_new();
    struct measured m = measured_load(arena);
    struct errors sum = {0};
    for (size_t i = 0; i < m.n_rows; i++)
        if (strcmp(m.rows[i].family, family->name) == 0) add_row(&sum, &m.rows[i]);
    ck_assert_uint_gt(sum.n, 0);
    ck_assert_double_le(sum.simulated / (double)sum.n, family->limit);
    ck_assert_double_le(sum.estimated / (double)sum.n, family->limit);
    measured_release(&m);
    dl_arena_free(arena);
}
END_TEST

/* Every power of two from 8 bytes to 16 GiB. */
static void check_growth(const char *system, uint32_t n_devices, bool simulate)
{
    const double first = 8, last = 16 * 1024.0 * 1024 * 1024, slack = 0.01;
    double estimated_s = 0, simulated_s = 0;
    struct subject s;
    subject_open(&s, system, n_devices);
    for (double bytes = first; bytes <= last; bytes *= 2) {
        const struct dl_choice choice = subject_choose(&s, "auto", bytes);
        const double time_s = choice.estimate.time_s, run_s = simulate ? subject_simulate(&s, &choice) : time_s;
        ck_assert_msg(time_s >= (1 - slack) * estimated_s && run_s >= (1 - slack) * simulated_s,
                      "%s, %u devices: %g bytes are estimated at %g s after %g s, simulated at %g s after %g s", system,
                      n_devices, bytes, time_s, estimated_s, run_s, simulated_s);
        estimated_s = fmax(estimated_s, time_s);
        simulated_s = fmax(simulated_s, run_s);
    }
    subject_close(&s);
}

START_TEST(more_bytes_take_longer_in_a_node)
{
    for (uint32_t n = 2; n <= 8; n++) check_growth(nodes_of[_i], n, true);
}
END_TEST

START_TEST(more_bytes_take_longer_over_nodes)
{
    static const uint32_t nodes[] = {2, 3, 5, 8, 16, 64};
    for (size_t i = 0; i < DL_COUNT(nodes); i++) check_growth(networks[_i], 8 * nodes[i], false);
}
END_TEST

/* Between two nodes a tree sends less, but NCCL takes its four channels for slower than they are: it has trees only
 * where its NICs are slower still. What it presumes of an algorithm does not change how long that takes. */
START_TEST(the_software_chooses_by_what_it_presumes)
{
    const double bytes = 200e6;
    const char *const chosen[] = {"rings", "node_tree"}, *const systems[] = {"dgx-a100-hdr4", "p4de"};
    for (size_t i = 0; i < DL_COUNT(systems); i++) {
        struct subject s;
        subject_open(&s, systems[i], 16);
        const struct dl_estimate tree = subject_choose(&s, "node_tree", bytes).estimate;
        const struct dl_estimate rings = subject_choose(&s, "rings", bytes).estimate;
        ck_assert_str_eq(subject_choose(&s, "auto", bytes).collective.algorithm->name, chosen[i]);
        ck_assert_double_lt(tree.time_s, rings.time_s);
        ck_assert_double_ge(tree.presumed_s, tree.time_s);
        ck_assert_double_ge(rings.presumed_s, rings.time_s);
        subject_close(&s);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("nccl_rows");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, mean_error_of_a_family_is_within_its_limit, 0, DL_COUNT(families));
    tcase_add_loop_test(tests, more_bytes_take_longer_in_a_node, 0, DL_COUNT(nodes_of));
    tcase_add_loop_test(tests, more_bytes_take_longer_over_nodes, 0, DL_COUNT(networks));
    tcase_add_test(tests, the_software_chooses_by_what_it_presumes);
    Suite *const suite = suite_create("nccl_rows");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
