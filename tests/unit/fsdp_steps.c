/* fsdp_steps.c - micro-batches of FSDP as one rank of eight runs them, against what an H200 took beside collectives of
 * known length (validation/measured/fsdp_steps.json). */
#include "tests/unit/analytic_run.h"
#include "tests/unit/measured_steps.h"

enum column { WORKLOAD, SOFTWARE, SAMPLES, TOKENS, COLLECTIVE_BYTES_PER_S, SECONDS };

static void open_measured(void) { open_measured_file("fsdp_steps"); }

static double step_s(const json_t *row, double n_microbatches)
{
    /* All-gathers of 405 MB have 322 GB/s over NVLink of 450. */
    const double link_bytes_per_s = number(row, COLLECTIVE_BYTES_PER_S) * 450 / 322, samples = number(row, SAMPLES);
    const struct analytic_run run = {
        .topo = "dgx-h200",
        .workload = text(row, WORKLOAD),
        .software = text(row, SOFTWARE),
        .head = dl_arena_format(arena, "\"devices\":8,\"precision\":\"bf16\",\"microbatch\":%g,\"global_batch\":%g,",
                                samples, 8 * samples * n_microbatches),
        .stack = "{\"name\":\"data\",\"overlap\":true},{\"name\":\"zero\",\"stage\":3}",
        .set = {dl_arena_format(arena, "workload.seq=%g", number(row, TOKENS)),
                dl_arena_format(arena, "topo.node.parts.0.bandwidth_bytes_per_s=%g", link_bytes_per_s)}};
    struct dl_session s;
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    const double result_s = s.report.result.step_s;
    dl_session_close(&s);
    return result_s;
}

/* The first two rows gave the rotations of fms-eager; the others were predicted before they were measured. */
START_TEST(microbatches_take_what_was_measured)
{
    const double most = 0.045;
    const json_t *const rows = json_object_get(measured.value, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        const double one_s = (step_s(row, 4) - step_s(row, 2)) / 2;
        ck_assert_msg(error_of(one_s, number(row, SECONDS)) <= most, "row %zu: %g s predicted", i, one_s);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("fsdp_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_test(tests, microbatches_take_what_was_measured);
    Suite *const suite = suite_create("fsdp_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
