/* hpc_steps.c - steps of CosmoFlow and DeepCAM against what an H200 took (validation/measured/hpc_steps.json). */
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

enum column { WORKLOAD, PRECISION, SOFTWARE, SAMPLES, STEP_S, BUSY_S, KERNELS, ALLOCATED };

static void open_measured(void) { open_measured_file("hpc_steps"); }

struct figures {
    double step_s, busy_s, allocated_bytes;
};

static struct figures predicted(const json_t *row)
{
    const bool is_deepcam = strcmp(text(row, WORKLOAD), "deepcam") == 0;
    const char *const strategy = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\",\"precision\":\"%s\","
        "\"optimizer\":\"%s\",\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":[]}",
        text(row, PRECISION), is_deepcam ? "adam" : "momentum", number(row, SAMPLES), number(row, SAMPLES));
    const struct dl_session_request request = {
        .topo = {"h200", NULL},
        .strategy = {"row.json", strategy},
        .workload = {text(row, WORKLOAD), NULL},
        .software = {text(row, SOFTWARE), NULL},
        .engine = "analytic",
        .set = {.items = {"software.fused_optimizer=true"}, .n = is_deepcam ? 1 : 0}};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    const struct dl_training_result *const r = &s.report.result;
    const struct figures out = {r->step_s, r->step_s - r->exposed_s[DL_CAUSE_HOST], s.memory[0].peak};
    dl_session_close(&s);
    return out;
}

/* As MLPerf's rounds from 1.0 on run them: tensor cores, channels last, windows of 3. */
static bool is_usual(const json_t *row)
{
    return strcmp(text(row, PRECISION), "fp32") && strcmp(text(row, SOFTWARE), "pytorch-eager") == 0 &&
           strcmp(text(row, WORKLOAD), "cosmoflow-0.7");
}

static void add(struct mean *m, double got, double wanted, double most, size_t row)
{
    ck_assert_msg(error_of(got, wanted) <= most, "row %zu: off by %.1f %%", row, 100 * (got / wanted - 1));
    add_error(m, got, wanted);
}

START_TEST(steps_take_what_was_measured)
{
    const double paced_by_device = 0.9;
    const json_t *const rows = json_object_get(measured.value, "rows");
    struct mean usual = {0}, others = {0}, steps = {0}, memory = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        const struct figures got = predicted(row);
        add(&memory, got.allocated_bytes, number(row, ALLOCATED), 0.08, i);
        add(is_usual(row) ? &usual : &others, got.busy_s, number(row, BUSY_S), is_usual(row) ? 0.13 : 0.6, i);
        if (is_usual(row) && number(row, BUSY_S) >= paced_by_device * number(row, STEP_S))
            add(&steps, got.step_s, number(row, STEP_S), 0.1, i);
    }
    ck_assert_double_ge(steps.n, 7);
    ck_assert_double_le(mean_of(&steps), 0.05);
    ck_assert_double_le(mean_of(&usual), 0.06);
    ck_assert_double_le(mean_of(&others), 0.25);
    ck_assert_double_le(mean_of(&memory), 0.04);
}
END_TEST

static double busy_s_of(const char *workload, const char *software, int samples)
{
    json_t *const row = json_pack("[s,s,s,i]", workload, "fp16", software, samples);
    const double busy_s = predicted(row).busy_s;
    json_decref(row);
    return busy_s;
}

/* The five pools of a sample of CosmoFlow in fp16 with channels last, timed on an H200: cudnnPoolingForward and
 * cudnnPoolingBackward, which MXNet calls, and PyTorch's own kernels (a quarter of what four samples took). */
START_TEST(pools_of_mxnet_are_those_of_cudnn)
{
    const double cudnn_s = 0.184e-3 + 3.632e-3, pytorch_s = (1.09e-3 + 1.12e-3) / 4;
    const double longer_s = busy_s_of("cosmoflow", "mxnet-gluon", 1) - busy_s_of("cosmoflow", "pytorch-eager", 1);
    ck_assert_double_eq_tol(longer_s, cudnn_s - pytorch_s, 0.1 * cudnn_s);
}
END_TEST

/* By how much the kernels of DeepCAM took longer on an H200 with norms that can go over several devices. */
START_TEST(norms_over_devices_take_longer)
{
    const double longer_s[] = {2.04e-3, 3.45e-3};
    for (int i = 0; i < (int)DL_COUNT(longer_s); i++)
        ck_assert_double_eq_tol(busy_s_of("deepcam", "mlperf-hpc-synced", i + 1) -
                                    busy_s_of("deepcam", "mlperf-hpc", i + 1),
                                longer_s[i], 0.25 * longer_s[i]);
}
END_TEST

static double step_s_on(const char *system, const char *workload, const char *software, const char *how)
{
    const char *const strategy =
        dl_arena_format(arena, "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a step\",\"workload\":\"none\",%s}", how);
    const struct dl_session_request request = {.topo = {system, NULL},
                                               .strategy = {"step.json", strategy},
                                               .workload = {workload, NULL},
                                               .software = {software, NULL},
                                               .engine = "analytic"};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    const double step_s = s.report.result.step_s;
    dl_session_close(&s);
    return step_s;
}

/* Of one sample on an H200. */
static double step_s_of(const char *workload, const char *software, const char *how)
{
    return step_s_on("h200", workload, software, dl_arena_format(arena, "\"global_batch\":1,\"microbatch\":1,%s", how));
}

/* An update like apex's LAMB took the host 2.52 and 3.27 ms beside two H200; it begins when the graph of the step is
 * done if the host must know of overflows, and while it runs if not. */
START_TEST(an_update_that_asks_for_overflows_waits_for_the_graph)
{
    const char *const how = "\"precision\":\"fp16\",\"optimizer\":\"lamb\","
                            "\"stack\":[{\"name\":\"graphs\",\"scope\":\"passes\"}]";
    const double asks_s = step_s_of("deepcam", "mlperf-hpc", how),
                 does_not_s = step_s_of("deepcam", "mlperf-hpc-2022", how);
    ck_assert_double_ge(asks_s - does_not_s, 2.52e-3);
    ck_assert_double_le(asks_s - does_not_s, 3.27e-3);
}
END_TEST

/* One core unpacked a sample of 2.47 MB in 52.0 ms, checked it in 3.93 and copied it in 1.22. */
START_TEST(packed_samples_come_as_one_thread_unpacks_them)
{
    const double sample_s = (52.0e-3 + 3.93e-3 + 1.22e-3) / 2.47e6 * (1.7e12 / 589824);
    const char *const how = "\"precision\":\"fp32\",\"optimizer\":\"momentum\",\"stack\":[%s]";
    const double alone_s = step_s_of("cosmoflow-gzip", "tensorflow-keras", dl_arena_format(arena, how, "")),
                 reads_s = step_s_of("cosmoflow-gzip", "tensorflow-keras",
                                     dl_arena_format(arena, how, "{\"name\":\"input\",\"from\":\"memory\"}"));
    ck_assert_double_le(alone_s, 0.5 * sample_s);
    ck_assert_double_eq_tol(reads_s, sample_s, 0.01 * sample_s);
}
END_TEST

/* Beside an H200 one worker had a batch of two ready in 328 ms, two in 194, four in 101 (kernels/torch/readers.py). */
START_TEST(workers_of_a_loader_share_its_samples)
{
    const double measured_s = 0.194;
    const char *const how = "\"precision\":\"fp16\",\"global_batch\":2,\"microbatch\":2,\"stack\":[{\"name\":"
                            "\"input\",\"from\":\"memory\"}]";
    ck_assert_double_eq_tol(step_s_on("h200", "deepcam", "deepcam-reference", how), measured_s, 0.01 * measured_s);
    ck_assert_double_lt(step_s_on("h200", "deepcam", "pytorch-nchw", how), 0.5 * measured_s);
}
END_TEST

/* Evaluations in the logs of these submissions (the files of systems and software cite them), which read as training
 * does. */
static const struct {
    const char *system, *from, *workload, *software, *precision;
    int devices, on_device;
    double samples, seconds;
} evaluations[] = {
    {"cori-gpu", "storage", "deepcam", "deepcam-reference", "fp16", 64, 2, 15158, 65.0},
    {"thetagpu", "storage", "deepcam", "deepcam-reference", "tf32", 128, 2, 15158, 19.4},
    {"frontera-rtx", "storage", "cosmoflow-0.7", "tensorflow-keras", "fp32", 64, 1, 65536, 99.0},
    {"longhorn", "memory", "cosmoflow-gzip", "tensorflow-keras-power9", "fp32", 128, 1, 65536, 42.8},
};

static double evaluation_step_s(int i, const char *more)
{
    const int batch = evaluations[i].devices * evaluations[i].on_device;
    return step_s_on(evaluations[i].system, evaluations[i].workload, evaluations[i].software,
                     dl_arena_format(arena,
                                     "\"devices\":%d,\"global_batch\":%d,\"microbatch\":%d,\"precision\":\"%s\","
                                     "\"stack\":[{\"name\":\"data\"}%s]",
                                     evaluations[i].devices, batch, evaluations[i].on_device, evaluations[i].precision,
                                     more));
}

START_TEST(samples_come_as_in_evaluations)
{
    const double batch = evaluations[_i].devices * evaluations[_i].on_device;
    const double read_s = batch / evaluations[_i].samples * evaluations[_i].seconds;
    const char *const reads = dl_arena_format(arena, ",{\"name\":\"input\",\"from\":\"%s\"}", evaluations[_i].from);
    ck_assert_double_le(evaluation_step_s(_i, ""), 0.75 * read_s);
    ck_assert_double_eq_tol(evaluation_step_s(_i, reads), read_s, 0.01 * read_s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("hpc_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_test(tests, steps_take_what_was_measured);
    tcase_add_test(tests, pools_of_mxnet_are_those_of_cudnn);
    tcase_add_test(tests, norms_over_devices_take_longer);
    tcase_add_test(tests, an_update_that_asks_for_overflows_waits_for_the_graph);
    tcase_add_test(tests, packed_samples_come_as_one_thread_unpacks_them);
    tcase_add_test(tests, workers_of_a_loader_share_its_samples);
    tcase_add_loop_test(tests, samples_come_as_in_evaluations, 0, DL_COUNT(evaluations));
    Suite *const suite = suite_create("hpc_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
