/* neox_steps.c - steps in the way of GPT-NeoX against what an H200 took (validation/measured/neox_steps.json), and what
 * its optimizer does once a step. */
#include <math.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/analytic_run.h"
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

struct end {
    double step_s, seconds, parameters, n_tensors; /* seconds: after the last backward */
};

static struct end end_of_step(const char *set)
{
    static const char head[] = "\"devices\":8,\"global_batch\":32,\"microbatch\":4,\"precision\":\"fp16\",",
                      stack[] = "{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":1}";
    const struct analytic_run r = {
        .topo = "p4d", .workload = "pythia-410m", .software = "gpt-neox", .head = head, .stack = stack, .set = {set}};
    struct dl_session s;
    ck_assert_msg(analytic_run(&r, arena, &s), "%s", s.err.text);
    struct end e = {.step_s = s.report.result.step_s,
                    .seconds = s.report.result.elapsed_s[DL_PHASE_END],
                    .parameters = dl_model_parameters(&s.model)};
    for (size_t i = 0; i < s.model.n_layers; i++) e.n_tensors += s.model.layers[i].n_tensors;
    dl_session_close(&s);
    return e;
}

/* For an overflow and for the norm: each time two kernels for a tensor, over all of them on every replica. */
START_TEST(every_gradient_is_read_twice_once_a_step)
{
    const double host_s_per_launch = 37e-6, memory_bytes_per_s = 1.555e12, narrow = 2, wide = 4;
    const struct end checked = end_of_step(NULL), summed = end_of_step("software.bucket_moves=6");
    const double bytes = 2 * (narrow + 2 * wide) * checked.parameters;
    ck_assert_double_gt(checked.step_s - summed.step_s, bytes / memory_bytes_per_s);
    ck_assert_double_gt(checked.seconds, 2 * 2 * checked.n_tensors * host_s_per_launch);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("neox_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_test(tests, steps_of_neox_take_what_was_measured);
    tcase_add_test(tests, every_gradient_is_read_twice_once_a_step);
    Suite *const suite = suite_create("neox_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
