/* jax_steps.c - gradients by programs of XLA against what an H200 took (validation/measured/jax_steps.json). */
#include <stdlib.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

enum column { MODEL, SAMPLES, RECOMPUTE, PRECISION, FORWARD_S, GRADIENTS_S };

static void open_measured(void) { open_measured_file("jax_steps"); }

static const char *workload_of(const json_t *row)
{
    json_t *const doc = json_copy(json_object_get(json_object_get(measured.value, "models"), text(row, MODEL)));
    ck_assert_msg(doc, "there is no model %s", text(row, MODEL));
    json_t *const rest = json_pack("{ss ss ss ss sb sb}", "schema", "dlsim/workload/1", "source", "a row", "kind",
                                   "transformer", "projections", "apart", "dropout", 0, "tied_embedding", 0);
    json_object_update(doc, rest);
    char *const dumped = json_dumps(doc, JSON_COMPACT);
    const char *const out = dl_arena_string(arena, dumped);
    free(dumped);
    json_decref(rest);
    json_decref(doc);
    return out;
}

static const char *strategy_of(const json_t *row)
{
    return dl_arena_format(arena,
                           "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\","
                           "\"precision\":\"%s\",\"recompute\":\"%s\",\"global_batch\":%.0f,\"microbatch\":%.0f,"
                           "\"stack\":[{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":3}]}",
                           text(row, PRECISION), text(row, RECOMPUTE), number(row, SAMPLES), number(row, SAMPLES));
}

static double predicted_s(const json_t *row)
{
    const struct dl_session_request request = {.topo = {"h200", NULL},
                                               .strategy = {"row.json", strategy_of(row)},
                                               .workload = {"model.json", workload_of(row)},
                                               .software = {"jax-gpu", NULL},
                                               .engine = "analytic"};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s: %s", text(row, MODEL), s.err.text);
    const double *const elapsed_s = s.report.result.elapsed_s;
    const double seconds = elapsed_s[DL_PHASE_FORWARD] + elapsed_s[DL_PHASE_BACKWARD];
    dl_session_close(&s);
    return seconds;
}

static const struct bounds {
    const char *recompute, *precision;
    bool is_kept_out;
    double mean, most;
} bounds[] = {{"full", "bf16", false, 0.03, 0.05}, {"full", "bf16", true, 0.045, 0.07},
              {"full", "fp8", false, 0.035, 0.06}, {"full", "fp8", true, 0.06, 0.09},
              {"none", "bf16", false, 0.03, 0.05}, {"none", "bf16", true, 0.04, 0.06},
              {"none", "fp8", false, 0.06, 0.08},  {"none", "fp8", true, 0.105, 0.14}};

/* Two of the four models gave the rules of the software file. */
static bool is_kept_out(const char *model)
{
    return strcmp(model, "gpt-175b-cut") == 0 || strcmp(model, "llama-70b-cut") == 0;
}

START_TEST(gradients_take_what_was_measured)
{
    const struct bounds *const b = &bounds[_i];
    const json_t *const rows = json_object_get(measured.value, "rows");
    struct mean mean = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        if (strcmp(text(row, RECOMPUTE), b->recompute) || strcmp(text(row, PRECISION), b->precision)) continue;
        if (is_kept_out(text(row, MODEL)) != b->is_kept_out) continue;
        const double got_s = predicted_s(row), wanted_s = number(row, GRADIENTS_S);
        ck_assert_msg(error_of(got_s, wanted_s) <= b->most, "row %zu, %s in %s: %g s predicted", i, text(row, MODEL),
                      text(row, PRECISION), got_s);
        add_error(&mean, got_s, wanted_s);
    }
    ck_assert_double_eq(mean.n, 2);
    ck_assert_double_le(mean_of(&mean), b->mean);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("jax_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_loop_test(tests, gradients_take_what_was_measured, 0, (int)DL_COUNT(bounds));
    Suite *const suite = suite_create("jax_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
