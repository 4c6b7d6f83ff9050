/* long_samples.c - attention and blocks of long samples against what an H200 took (validation/measured/attention.json).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/core/files.h"
#include "tests/training_runs.h"
#include "tests/unit/priced_device.h"
#include "tests/unit/suite.h"

static struct dl_json measured;

static void open_measured(void)
{
    const char *path;
    set_up();
    ck_assert(!dl_find_file("validation/measured", "file", "attention", arena, &path, &err) &&
              !dl_json_load(path, arena, &measured, &err));
}

static void close_measured(void)
{
    json_decref(measured.value);
    tear_down();
}

static const json_t *rows_of(const char *part) { return json_object_get(measured.value, part); }
static double number(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }
static double pass_s(const json_t *row, const char *backend, size_t pass)
{
    return json_number_value(json_array_get(json_object_get(row, backend), pass));
}

/* FlashAttention-2 is an older kernel, cuDNN's is of this generation. */
START_TEST(older_attention_has_the_measured_share_of_the_rate)
{
    const json_t *const rows = rows_of("rows");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        for (size_t pass = 0; pass < 2; pass++)
            sum += pass_s(json_array_get(rows, i), "cudnn_s", pass) / pass_s(json_array_get(rows, i), "flash_s", pass);
    open_device("h200");
    ck_assert_double_eq_tol(device.older_kernels_fraction, sum / (2 * (double)json_array_size(rows)), 0.005);
}
END_TEST

START_TEST(older_attention_draws_the_measured_watts)
{
    const json_t *const rows = rows_of("power");
    open_device("h200");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        if (strcmp(json_string_value(json_object_get(row, "backend")), "flash") != 0) continue;
        const bool backward = strcmp(json_string_value(json_object_get(row, "pass")), "backward") == 0;
        const double own_w = backward ? device.power->attention_backward_w : device.power->attention_w;
        ck_assert_double_eq_tol(device.power->older_power_fraction * own_w / number(row, "watts_at_highest"), 1, 0.03);
    }
}
END_TEST

/* Of embedding, blocks, head and loss, without the update. They were timed with parameters in bf16, as fully_shard
 * gathers them. */
static double work_s(double tokens, double layers, const char *recompute)
{
    char strategy[300];
    snprintf(strategy, sizeof strategy,
             "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"llama3-8b\",\"precision\":\"bf16\","
             "\"global_batch\":1,\"microbatch\":1,\"recompute\":\"%s\","
             "\"stack\":[{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":3}]}",
             recompute);
    const struct dl_session_request request = {
        .topo = {"h200", NULL},
        .strategy = {"row.json", strategy},
        .software = {"torchtitan-2025", NULL},
        .engine = "analytic",
        .set = {.items = {dl_arena_format(arena, "workload.seq=%.0f", tokens),
                          dl_arena_format(arena, "workload.layers=%.0f", layers)},
                .n = 2}};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    const double *const exposed_s = s.report.result.exposed_s;
    const double seconds = exposed_s[DL_CAUSE_COMPUTE] + exposed_s[DL_CAUSE_RECOMPUTE];
    dl_session_close(&s);
    return seconds;
}

/* No constant was fitted to these. */
START_TEST(blocks_of_long_samples_take_what_was_measured)
{
    const double most_mean = 0.02, most = 0.04;
    const json_t *const rows = rows_of("blocks");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        const double tokens = number(row, "tokens"), layers = number(row, "layers");
        const char *const recompute = json_string_value(json_object_get(row, "recompute"));
        const double seconds = work_s(tokens, 2 * layers, recompute) - work_s(tokens, layers, recompute);
        const double error = seconds / number(row, "seconds") - 1;
        ck_assert_msg(fabs(error) <= most, "%g tokens, %s recomputed: off by %.1f %%", tokens, recompute, 100 * error);
        sum += fabs(error);
    }
    ck_assert_double_le(sum / (double)json_array_size(rows), most_mean);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("long_samples");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_test(tests, older_attention_has_the_measured_share_of_the_rate);
    tcase_add_test(tests, older_attention_draws_the_measured_watts);
    tcase_add_test(tests, blocks_of_long_samples_take_what_was_measured);
    Suite *const suite = suite_create("long_samples");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
