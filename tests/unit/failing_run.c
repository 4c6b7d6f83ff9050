/* failing_run.c - failures of whole runs on shipped machines: published runs, what limits a checkpoint, what is left
 * out. */
#include <math.h>
#include <string.h>

#include "sim/campaign/failing_run.h"
#include "sim/study/figures.h"
#include "tests/unit/analytic_run.h"
#include "tests/unit/shipped_system.h"

static const double hour_s = 3600, day_s = 86400;

/* A machine that draws twice as much at work as idle. */
static const struct dl_energy energy = {.known = true, .site_w = 2e7, .idle_site_w = 1e7};
static const struct dl_facility site = {.carbon_g_per_kwh = 500, .usd_per_kwh = 0.1, .usd_per_device_hour = 2};

static struct dl_failing_run_request request_of(const char *system, uint32_t n_devices)
{
    const struct dl_topology *const t = open_system(system);
    return (struct dl_failing_run_request){.topology = t,
                                           .n_devices = n_devices,
                                           .n_nodes = n_devices / t->node.n_devices,
                                           .checkpoint_bytes = 405e9 * 14, /* bf16, and three of fp32 by Adam */
                                           .copied_bytes = 5e9,
                                           .copy_bytes_per_s = 25e9,
                                           .step_s = 6,
                                           .n_steps = 700000,
                                           .energy = &energy,
                                           .site = &site};
}

/* The Llama 3 Herd of Models: 419 unexpected interruptions in 54 days on 16,384 H100, effective training time above
 * 90 %. Steps that fill 54 days, failures included. */
START_TEST(llama3_has_an_effective_training_time_above_90_percent)
{
    struct dl_failing_run_request q = request_of("meta-h100-roce", 16384);
    q.n_steps = floor(54 * day_s * dl_failing_run(&q).goodput / q.step_s);
    const struct dl_failing_run f = dl_failing_run(&q);
    ck_assert_int_eq(f.status, DL_FAILS);
    ck_assert_double_eq_tol(f.seconds, 54 * day_s, 0.001 * 54 * day_s);
    ck_assert_double_eq_tol(f.failures, 419, 1);
    const double published[] = {268, 116, 35}; /* of GPUs; of servers and what runs on them; of switches and cables */
    for (size_t i = 0; i < DL_COUNT(published); i++) {
        ck_assert_double_eq_tol(f.seconds * f.kinds[i].n / f.kinds[i].mtbf_s, published[i], 1);
        ck_assert_double_eq_tol(f.simulated.failures[i], published[i], 0.02 * 419);
    }
    ck_assert_msg(f.goodput > 0.9, "goodput %g", f.goodput);
    ck_assert_double_eq_tol(f.simulated.seconds, f.seconds, 0.02 * f.seconds);
}
END_TEST

/* BLOOM: 1 to 2 failures a week on 384 A100, 2.3 TB saved in 40 s, a checkpoint every 3 hours, which "did not affect
 * training throughput significantly". */
START_TEST(bloom_loses_little)
{
    struct dl_failing_run_request q = request_of("jean-zay-a100", 384);
    q.checkpoint_bytes = 2.3e12;
    q.step_s = 105; /* 100 steps in about 3 hours */
    q.n_steps = 80000;
    q.checkpoints.steps = 100;
    const struct dl_failing_run f = dl_failing_run(&q);
    ck_assert_double_eq_tol(f.write_s, 40, 0.1);
    ck_assert_double_eq_tol(f.restarts.mtbf_s, 7 * day_s / 1.5, 1);
    ck_assert_double_gt(f.goodput, 0.97);
    q.checkpoints.steps = 0;
    const struct dl_failing_run best = dl_failing_run(&q);
    ck_assert_double_gt(best.goodput, f.goodput);
    ck_assert_double_le(best.steps.between, 100);
}
END_TEST

/* Kokolis et al. 2024 (arXiv 2410.21680): from 6.50 failures in a thousand node-days of 8 A100 they project a mean time
 * to failure of 1.8 hours for jobs on 16,384 GPUs, and of 0.23 hours on 131,072. */
START_TEST(rates_of_nodes_give_the_times_that_meta_projects)
{
    const struct {
        double n_nodes, hours, rounding;
    } published[] = {{16384 / 8, 1.8, 0.05}, {131072 / 8, 0.23, 0.005}};
    for (size_t i = 0; i < DL_COUNT(published); i++) {
        const struct dl_failing nodes = {"node", published[i].n_nodes, 1000 * day_s / 6.5};
        ck_assert_double_eq_tol(dl_failing_together_s(&nodes, 1) / hour_s, published[i].hours, published[i].rounding);
    }
}
END_TEST

START_TEST(shares_sum_to_one_and_are_those_of_the_simulation)
{
    struct dl_failing_run_request q = request_of("meta-h100-roce", 8192);
    q.checkpoints.asynchronous = _i;
    const struct dl_failing_run f = dl_failing_run(&q);
    ck_assert_double_eq_tol(f.goodput + f.checkpointing + f.recovering + f.lost, 1, 1e-12);
    ck_assert_double_eq_tol(f.recovering, f.simulated.recovering_s / f.simulated.seconds, 0.002);
    ck_assert_double_eq_tol(f.lost, f.simulated.lost_s / f.simulated.seconds, 0.002);
    ck_assert_double_eq(f.restarts.blocking_s, _i ? 0.2 : f.write_s);
    ck_assert_double_eq(f.restarts.writing_s, _i ? f.write_s : 0);
}
END_TEST

START_TEST(devices_idle_in_checkpoints_and_recovery)
{
    const struct dl_failing_run_request q = request_of("meta-h100-roce", 16384);
    const struct dl_failing_run f = dl_failing_run(&q);
    const double busy_s = f.seconds * (f.goodput + f.lost), kwh = (2e7 * busy_s + 1e7 * (f.seconds - busy_s)) / 3.6e6;
    ck_assert_double_eq_tol(f.footprint.joules, kwh * 3.6e6, 1e-9 * f.footprint.joules);
    ck_assert_double_eq_tol(f.footprint.carbon_kg, kwh / 2, 1e-9 * kwh);
    ck_assert_double_eq_tol(f.footprint.usd_of_energy, kwh / 10, 1e-9 * kwh);
    ck_assert_double_eq_tol(f.footprint.usd_of_devices, 2 * 16384 * f.seconds / hour_s, 1);
}
END_TEST

/* 4 nodes have 32 ports of 50 GB/s. */
START_TEST(few_nodes_write_no_faster_than_their_ports)
{
    const struct dl_failing_run_request few = request_of("meta-h100-roce", 32);
    ck_assert_double_eq_tol(dl_failing_run(&few).write_bytes_per_s, 32 * 50e9, 1);
    const struct dl_failing_run_request many = request_of("meta-h100-roce", 4096);
    ck_assert_double_eq_tol(dl_failing_run(&many).write_bytes_per_s, 2e12, 1);
}
END_TEST

START_TEST(what_is_not_known_is_left_out)
{
    struct dl_failing_run_request q = request_of("selene", 64);
    ck_assert_int_eq(dl_failing_run(&q).status, DL_NO_RELIABILITY);
    topology->reliability.node_mtbf_hours = 10000;
    ck_assert_int_eq(dl_failing_run(&q).status, DL_NO_STORAGE);
    topology->storage = (struct dl_storage){.write_bytes_per_s = 1e11, .read_bytes_per_s = 2e11};
    const struct dl_failing_run f = dl_failing_run(&q);
    ck_assert_int_eq(f.status, DL_FAILS);
    ck_assert_uint_eq(f.n_kinds, 1);
    ck_assert_double_eq_tol(f.restarts.mtbf_s, 10000 * hour_s / 8, 1);
    ck_assert_double_eq(f.load_s, f.write_s / 2);
    q.checkpoints.asynchronous = true;
    q.copy_bytes_per_s = 0;
    ck_assert_int_eq(dl_failing_run(&q).status, DL_NO_WAY_TO_HOST);
}
END_TEST

START_TEST(a_run_that_never_ends_is_not_waited_for)
{
    const struct dl_failing_run_request q = request_of("meta-h100-roce", 16384);
    topology->reliability.detect_s = 30 * day_s;
    ck_assert_int_eq(dl_failing_run(&q).status, DL_NEVER_ENDS);
}
END_TEST

START_TEST(checkpoints_begin_when_the_one_before_is_written)
{
    struct dl_failing_run_request q = request_of("meta-h100-roce", 16384);
    topology->storage.write_bytes_per_s = 1e10; /* 567 s */
    q.checkpoints = (struct dl_checkpoints){.steps = 10, .asynchronous = true};
    const struct dl_failing_run f = dl_failing_run(&q);
    ck_assert_int_eq(f.status, DL_TOO_OFTEN);
    ck_assert_double_eq(f.steps.between, ceil((405e9 * 14 / 1e10 - 0.2) / 6));
    q.checkpoints.steps = (uint64_t)f.steps.between;
    ck_assert_int_eq(dl_failing_run(&q).status, DL_FAILS);
}
END_TEST

/* One device holds all of the model: what the memory model counts there. */
START_TEST(a_checkpoint_has_parameters_and_optimizer_states_once)
{
    const struct analytic_run runs[] = {
        {"h200", "gpt2-125m", NULL, "\"precision\":\"bf16\",\"global_batch\":8,\"microbatch\":8,", "", {NULL}},
        {"h200", "gpt2-125m", NULL, "\"precision\":\"fp32\",\"global_batch\":8,\"microbatch\":8,", "", {NULL}}};
    struct dl_session s;
    ck_assert_msg(analytic_run(&runs[_i], arena, &s), "%s", s.err.text);
    ck_assert_double_eq_tol(dl_memory_of_checkpoint(&s.job.setting, &s.model),
                            s.memory[0].parameters + s.memory[0].optimizer, 1);
    dl_session_close(&s);
}
END_TEST

static size_t n_assumed_below(const struct dl_session *s, const char *pointer)
{
    size_t n = 0;
    for (size_t i = 0; i < s->report.assumptions.n; i++)
        n += strstr(s->report.assumptions.items[i].where, pointer) != NULL;
    return n;
}

START_TEST(only_whole_runs_rest_on_figures_of_failures)
{
    const struct analytic_run run = {
        "meta-h100-roce", "gpt2-125m", NULL, "\"global_batch\":8,\"microbatch\":8,", "", {0}};
    const struct dl_amount amount = {.samples = _i ? 1e6 : 0};
    struct dl_session s;
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    dl_session_campaign(&s, &amount, &(struct dl_facility){0});
    dl_session_failures(&s, &(struct dl_checkpoints){0});
    dl_session_list_assumptions(&s);
    ck_assert_uint_eq(n_assumed_below(&s, ":/reliability/"), _i ? 2 : 0); /* detect_s and restart_s */
    ck_assert_uint_gt(n_assumed_below(&s, ":/node/"), 0);
    ck_assert_uint_eq(s.report.failing_sources.n, _i ? 7 : 0);
    dl_session_close(&s);
}
END_TEST

START_TEST(no_figure_of_failures_is_varied_for_a_step)
{
    const struct analytic_run run = {
        "meta-h100-roce", "gpt2-125m", NULL, "\"global_batch\":8,\"microbatch\":8,", "", {0}};
    struct dl_figures figures = {0};
    struct dl_session s;
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    dl_figures_find(&s, &figures);
    ck_assert_uint_gt(figures.n, 0);
    for (size_t i = 0; i < figures.n; i++) {
        ck_assert(!strstr(figures.items[i].effect.path, "reliability"));
        ck_assert(!strstr(figures.items[i].effect.path, "storage"));
    }
    dl_free(figures.items);
    dl_session_close(&s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("failing_run");
    tcase_add_test(tests, rates_of_nodes_give_the_times_that_meta_projects);
    tcase_add_loop_test(tests, only_whole_runs_rest_on_figures_of_failures, 0, 2);
    tcase_add_test(tests, no_figure_of_failures_is_varied_for_a_step);
    tcase_add_test(tests, llama3_has_an_effective_training_time_above_90_percent);
    tcase_add_test(tests, bloom_loses_little);
    tcase_add_loop_test(tests, shares_sum_to_one_and_are_those_of_the_simulation, 0, 2);
    tcase_add_test(tests, devices_idle_in_checkpoints_and_recovery);
    tcase_add_test(tests, few_nodes_write_no_faster_than_their_ports);
    tcase_add_test(tests, what_is_not_known_is_left_out);
    tcase_add_test(tests, a_run_that_never_ends_is_not_waited_for);
    tcase_add_test(tests, checkpoints_begin_when_the_one_before_is_written);
    tcase_add_loop_test(tests, a_checkpoint_has_parameters_and_optimizer_states_once, 0, 2);
    return run_systems(tests, "failing_run");
}
