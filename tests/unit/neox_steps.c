/* neox_steps.c - steps in the way of GPT-NeoX against what an H200 took (validation/measured/neox_steps.json). */
#include <math.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

enum column { LAYERS, HIDDEN, HEADS, SAMPLES, RECOMPUTE, FORWARD_S, BACKWARD_S, BUSY_S };

static void open_measured(void) { open_measured_file("neox_steps"); }

/* Forward and backward as GPT-NeoX has them, but for the second FlashAttention, which was timed. */
static double predicted_s(const json_t *row)
{
    const char *const strategy = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\",\"precision\":\"fp16\","
        "\"recompute\":\"%s\",\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":[]}",
        text(row, RECOMPUTE), number(row, SAMPLES), number(row, SAMPLES));
    const char *const workload = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/workload/1\",\"source\":\"a row\",\"kind\":\"transformer\",\"layers\":%.0f,"
        "\"hidden\":%.0f,\"heads\":%.0f,\"seq\":2048,\"vocab\":50304,\"positions\":\"rotary\","
        "\"tied_embedding\":false,\"dropout\":false}",
        number(row, LAYERS), number(row, HIDDEN), number(row, HEADS));
    const struct dl_session_request request = {
        .topo = {"h200", NULL},
        .strategy = {"row.json", strategy},
        .workload = {"row.json", workload},
        .software = {"gpt-neox", NULL},
        .engine = "analytic",
        .set = {.items = {"software.kernels.0.rate=1", "software.kernels.1.rate=1"}, .n = 2}};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    const double *const elapsed_s = s.report.result.elapsed_s;
    const double seconds = elapsed_s[DL_PHASE_FORWARD] + elapsed_s[DL_PHASE_BACKWARD];
    dl_session_close(&s);
    return seconds;
}

/* One of the 16 gave the rules of the software file. */
START_TEST(steps_of_neox_take_what_was_measured)
{
    const double most_mean = 0.04, most = 0.07, paced_by_device = 0.9;
    const json_t *const rows = json_object_get(measured.value, "rows");
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        const double step_s = number(row, FORWARD_S) + number(row, BACKWARD_S);
        if (number(row, BUSY_S) < paced_by_device * step_s) continue;
        const double error = predicted_s(row) / step_s - 1;
        ck_assert_msg(fabs(error) <= most, "row %zu: off by %.1f %%", i, 100 * error);
        sum += fabs(error);
        n++;
    }
    ck_assert_uint_ge(n, 12);
    ck_assert_double_le(sum / (double)n, most_mean);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("neox_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_test(tests, steps_of_neox_take_what_was_measured);
    Suite *const suite = suite_create("neox_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
