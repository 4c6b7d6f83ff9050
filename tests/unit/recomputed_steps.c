/* recomputed_steps.c - blocks in PyTorch's checkpoint against what an H200 took
 * (validation/measured/recomputed_steps.json). */
#include <math.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

enum column { SOFTWARE, AGAIN, STEP_S, PEAK_BYTES };

static void open_measured(void) { open_measured_file("recomputed_steps"); }

/* The reentrant checkpoint is not the one that software files have. */
static struct dl_texts changes_for(const char *again)
{
    return strcmp(again, "all") == 0 ? (struct dl_texts){.items = {"software.recomputes_needed=false"}, .n = 1}
                                     : (struct dl_texts){0};
}

static void predict(const json_t *row, double *step_s, double *peak_bytes)
{
    const char *const strategy = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\",\"precision\":\"bf16\","
        "\"recompute\":\"%s\",\"global_batch\":8,\"microbatch\":8,\"stack\":[]}",
        strcmp(text(row, AGAIN), "none") == 0 ? "none" : "full");
    const struct dl_session_request request = {.topo = {"h200", NULL},
                                               .strategy = {"row.json", strategy},
                                               .workload = {"tinyllama-1.1b", NULL},
                                               .software = {text(row, SOFTWARE), NULL},
                                               .engine = "analytic",
                                               .set = changes_for(text(row, AGAIN))};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    *step_s = s.report.result.step_s;
    *peak_bytes = s.memory[0].peak;
    dl_session_close(&s);
}

/* Rows of a software begin with the one in which nothing is computed again: what it adds is held against that. */
START_TEST(what_checkpoints_add_is_what_was_measured)
{
    const double most = 0.025, most_added = 0.05;
    const json_t *const rows = json_object_get(measured.value, "rows");
    double measured_none_s = 0, predicted_none_s = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        const double step_s = number(row, STEP_S);
        double predicted_s, peak_bytes;
        predict(row, &predicted_s, &peak_bytes);
        ck_assert_msg(fabs(predicted_s / step_s - 1) <= most, "row %zu: %g s, %g predicted", i, step_s, predicted_s);
        ck_assert_msg(fabs(peak_bytes / number(row, PEAK_BYTES) - 1) <= most, "row %zu: %g bytes", i, peak_bytes);
        if (strcmp(text(row, AGAIN), "none") == 0) {
            measured_none_s = step_s;
            predicted_none_s = predicted_s;
            continue;
        }
        const double added = (predicted_s - predicted_none_s) / (step_s - measured_none_s);
        ck_assert_msg(fabs(added - 1) <= most_added, "row %zu: %g of what is added", i, added);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("recomputed_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_test(tests, what_checkpoints_add_is_what_was_measured);
    Suite *const suite = suite_create("recomputed_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
