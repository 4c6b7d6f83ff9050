/* encoder_decoder_steps.c - transformers with an encoder and a decoder, against what an H200 took
 * (validation/measured/encoder_decoder_steps.json, which has these models). */
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

enum column { WORKLOAD, SAMPLES, SOFTWARE, PURE, STEP_S, HOST_S, FORWARD_S, BACKWARD_S, OPTIMIZER_S, ALLOCATED };

static void open_measured(void) { open_measured_file("encoder_decoder_steps"); }

static void predict(const json_t *row, double *step_s, double *peak_bytes)
{
    const char *const strategy = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\",\"precision\":\"bf16\","
        "\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":[]}",
        number(row, SAMPLES), number(row, SAMPLES));
    const struct dl_session_request request = {
        .topo = {"h200", NULL},
        .strategy = {"row.json", strategy},
        .workload = {"model.json", measured_workload(text(row, WORKLOAD))},
        .software = {text(row, SOFTWARE), NULL},
        .engine = "analytic",
        .set = {
            .items = {dl_arena_format(arena, "software.pure=\"%s\"", text(row, PURE)), "software.fused_optimizer=true"},
            .n = 2}};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    *step_s = s.report.result.step_s;
    *peak_bytes = s.memory[0].peak;
    dl_session_close(&s);
}

/* Steps of a software file where the device sets the pace, and memory of all. */
START_TEST(steps_take_what_was_measured)
{
    static const struct {
        const char *software;
        double least_steps, most_mean, most_memory;
    } wanted[] = {{"pytorch-eager", 7, 0.03, 0.013},
                  {"pytorch-compiled", 4, 0.02, 0.035}, /* that of ReLUs keeps a byte more each, which is not in */
                  {"pytorch-torchvision", 6, 0.06, 0.01},
                  {"pytorch-transformers-t5", 3, 0.125, 0.026}};
    const double device_sets_the_pace = 0.75; /* of the step, that the host takes at most */
    const json_t *const rows = json_object_get(measured.value, "rows");
    struct mean step = {0}, memory = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        double step_s, peak_bytes;
        if (strcmp(text(row, SOFTWARE), wanted[_i].software)) continue;
        predict(row, &step_s, &peak_bytes);
        add_error(&memory, peak_bytes, number(row, ALLOCATED));
        if (number(row, HOST_S) < device_sets_the_pace * number(row, STEP_S))
            add_error(&step, step_s, number(row, STEP_S));
    }
    ck_assert_double_ge(step.n, wanted[_i].least_steps);
    ck_assert_msg(mean_of(&step) <= wanted[_i].most_mean, "steps %.4f off", mean_of(&step));
    ck_assert_msg(mean_of(&memory) <= wanted[_i].most_memory, "memory %.4f off", mean_of(&memory));
}
END_TEST

int main(void)
{
    enum { n_software = 4 };
    TCase *const tests = tcase_create("encoder_decoder_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_loop_test(tests, steps_take_what_was_measured, 0, n_software);
    Suite *const suite = suite_create("encoder_decoder_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
