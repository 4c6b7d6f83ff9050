/* ideal_parts.c - a part of a step at its best costs nothing, or what the peaks of the device allow. */
#include <math.h>
#include <string.h>

#include "sim/session/session.h"
#include "tests/unit/suite.h"

static struct dl_session s;

static const char *const presets[] = {"korthikanti-175b", "mixtral-ep", "single"};
enum { n_distributed = 2 }; /* the first */

static const struct dl_training_result *play(const char *strategy, unsigned ideal)
{
    const char *const topo = strcmp(strategy, "mixtral-ep") ? "selene" : "dgx-h100";
    const struct dl_session_request request = {
        .topo = {topo, NULL}, .strategy = {strategy, NULL}, .engine = "analytic", .ideal = ideal};
    dl_session_open(&s, &request);
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    return &s.report.result;
}

static double step_of(const char *strategy, unsigned ideal)
{
    const double step_s = play(strategy, ideal)->step_s;
    dl_session_close(&s);
    return step_s;
}

static double exposed_network(const struct dl_training_result *r)
{
    double sum_s = 0;
    for (int cause = DL_CAUSE_TENSOR; cause <= DL_CAUSE_DATA; cause++) sum_s += r->exposed_s[cause];
    return sum_s + r->exposed_s[DL_CAUSE_INTERFERENCE];
}

START_TEST(an_ideal_network_is_never_waited_for)
{
    ck_assert_double_gt(exposed_network(play(presets[_i], 0)), 1e-3);
    dl_session_close(&s);
    ck_assert_double_lt(exposed_network(play(presets[_i], 1U << DL_PART_NETWORK)), 1e-5);
    dl_session_close(&s);
}
END_TEST

/* Of the first stage. */
static double host_s(void)
{
    const struct dl_program *const p = &s.lowered.programs[0];
    double sum_s = 0;
    for (uint32_t i = 0; i < p->n_chunks * DL_N_TEMPLATES; i++)
        for (size_t k = 0; k < p->items[i]->n_instructions; k++) sum_s += p->items[i]->instructions[k].host_s;
    return sum_s;
}

START_TEST(an_ideal_host_takes_no_time)
{
    ck_assert_double_gt(play(presets[_i], 0)->exposed_s[DL_CAUSE_HOST], 1e-4);
    dl_session_close(&s);
    ck_assert_double_lt(play(presets[_i], 1U << DL_PART_HOST)->exposed_s[DL_CAUSE_HOST], 1e-12);
    ck_assert_double_eq(host_s(), 0);
    dl_session_close(&s);
}
END_TEST

/* Products that would be slow for their shape, and one that is not. */
START_TEST(an_ideal_kernel_takes_what_the_peaks_allow)
{
    static const double sizes[] = {1, 17, 4096};
    play("single", 1U << DL_PART_COMPUTE);
    const enum dl_precision precision = s.job.setting.precision;
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const double n = sizes[i];
        const struct dl_kernel k = {.kind = DL_KERNEL_GEMM, .batch = 1, .m = n, .n = n, .k = n};
        const double arithmetic_s = 2 * n * n * n / 312e12, memory_s = 3 * n * n * 2 / 2.039e12;
        ck_assert_double_eq_tol(dl_price(&s.device, &k, precision).seconds / fmax(arithmetic_s, memory_s), 1, 1e-12);
    }
    dl_session_close(&s);
}
END_TEST

/* Of a device alone, that waits for nobody, nothing remains but its kernels. */
START_TEST(with_all_at_their_best_only_work_remains)
{
    const unsigned all = 1U << DL_PART_COMPUTE | 1U << DL_PART_NETWORK | 1U << DL_PART_HOST;
    const struct dl_training_result *const r = play("single", all);
    ck_assert_double_eq_tol(r->exposed_s[DL_CAUSE_COMPUTE] + r->exposed_s[DL_CAUSE_RECOMPUTE] +
                                r->exposed_s[DL_CAUSE_OPTIMIZER],
                            r->step_s, 1e-12 * r->step_s);
    ck_assert_double_gt(r->step_s, s.lowered.model_flop[DL_FLOP_FULL] / 312e12);
    dl_session_close(&s);
}
END_TEST

START_TEST(no_part_at_its_best_makes_a_step_longer)
{
    const char *const strategy = presets[_i];
    const double step_s = step_of(strategy, 0);
    double ideal_s = step_s;
    for (unsigned part = DL_PART_COMPUTE; part <= DL_PART_HOST; part++) {
        ck_assert_double_le(step_of(strategy, 1U << part), step_s);
        const double with_others_s = step_of(strategy, (2U << part) - 1);
        ck_assert_double_le(with_others_s, ideal_s);
        ideal_s = with_others_s;
    }
    ck_assert_double_lt(ideal_s, step_s);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("ideal_parts");
    TCase *const tests = tcase_create("ideal_parts");
    tcase_add_loop_test(tests, an_ideal_network_is_never_waited_for, 0, n_distributed);
    tcase_add_loop_test(tests, an_ideal_host_takes_no_time, 0, n_distributed);
    tcase_add_test(tests, an_ideal_kernel_takes_what_the_peaks_allow);
    tcase_add_test(tests, with_all_at_their_best_only_work_remains);
    tcase_add_loop_test(tests, no_part_at_its_best_makes_a_step_longer, 0, (int)DL_COUNT(presets));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
