/* gradient_sums.c - what the gradients of several micro-batches take where autograd adds them up and DDP copies them
 * into buckets: by formulas, and against steps of PyTorch on an H200 (validation/measured/accumulation.json). */
#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'tied_embedding':false}"
#define SLOW_MEMORY                                                                                                    \
    "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'fp32':1e15,'bf16':1e15},"     \
    "'memory_bytes':1e18,'memory_bytes_per_s':1e9,'launch_s':0,'figures':{'compute_fraction':1,"                       \
    "'bandwidth_fraction':1}}"
static const double memory_bytes_per_s = 1e9, gradient_bytes = 4, moves = 3;

struct answer {
    double step_s, peak, parameters, expert_parameters, n_tensors;
};

/* With these keys of the software, on so many devices with so many micro-batches of one sample each. */
static struct answer run_on(const char *device, const char *model, const char *keys, const char *stack, int devices,
                            int micros)
{
    char head[160], software[400];
    struct dl_session s;
    snprintf(head, sizeof head, "'devices':%d,'global_batch':%d,'microbatch':1,'precision':'bf16'", devices,
             devices * micros);
    snprintf(software, sizeof software,
             "{'schema':'dlsim/software/1','source':'a test','gradient_bytes':4,'drains_at_end':false%s}", keys);
    const struct training_inputs in = {
        .system = IDEAL_SYSTEM("1e18", "0"), .device = device, .software = software, .workload = model};
    ck_assert_msg(!training_open_stack(&s, in, head, stack), "%s", s.err.text);
    s.request.engine = "analytic";
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    struct answer a = {
        .step_s = s.report.result.step_s, .peak = s.memory[0].peak, .parameters = dl_model_parameters(&s.model)};
    for (size_t i = 0; i < s.model.n_layers; i++) {
        a.n_tensors += s.model.layers[i].n_tensors;
        a.expert_parameters += s.model.layers[i].expert_parameters;
    }
    dl_session_close(&s);
    return a;
}

static struct answer run(const char *keys, const char *stack, int devices, int micros)
{
    return run_on(SLOW_MEMORY, MODEL, keys, stack, devices, micros);
}

#define SUM ",'kernels':[{'operation':'gradient_sum','launches':1,'moves':3}]"
#define SUM_BY_TENSOR ",'kernels':[{'operation':'gradient_sum','launches':1,'tensor_s':1e-3,'moves':3}]"
#define BUCKET_BY_TENSOR ",'bucket_moves':4,'kernels':[{'operation':'bucket','launches':2,'tensor_s':1e-3}]"

#define WITH_EXPERTS                                                                                                   \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'tied_embedding':false,'experts':4,'top_k':2,'bias':false}"

static const double exactly = 1e-9;

START_TEST(all_micro_batches_but_one_add_their_gradients)
{
    const int micros = _i + 1;
    const struct answer without = run("", "", 1, micros), with = run(SUM, "", 1, micros),
                        by_tensor = run(SUM_BY_TENSOR, "", 1, micros);
    const double sum_s = moves * gradient_bytes * with.parameters / memory_bytes_per_s, n = micros - 1;
    ck_assert_double_eq_tol(with.step_s - without.step_s, n * sum_s, exactly * with.step_s);
    ck_assert_double_eq_tol(by_tensor.step_s - with.step_s, n * with.n_tensors * 1e-3, exactly * by_tensor.step_s);
}
END_TEST

/* Shards add up where every micro-batch scatters its gradients; stage 1 of ZeRO keeps them whole. */
START_TEST(gradients_that_do_not_stay_whole_are_not_added)
{
    static const char *const stacks[] = {"{'name':'data'},{'name':'zero','stage':1}",
                                         "{'name':'data'},{'name':'zero','stage':2}",
                                         "{'name':'data','when':'end'},{'name':'zero','stage':2}"};
    static const double sums[] = {1, 0, 1};
    const struct answer without = run("", stacks[_i], 4, 2), with = run(SUM, stacks[_i], 4, 2);
    const double sum_s = moves * gradient_bytes * with.parameters / memory_bytes_per_s;
    ck_assert_double_eq_tol(with.step_s - without.step_s, sums[_i] * sum_s, exactly * with.step_s);
}
END_TEST

/* Once a step, whether buckets are filled during the last backward or after it. */
START_TEST(each_tensor_is_copied_into_its_bucket)
{
    static const char *const stacks[] = {"{'name':'data'}", "{'name':'data','overlap':true}",
                                         "{'name':'data','bucket_bytes':1e5}"};
    const struct answer whole = run(",'bucket_moves':4", stacks[_i], 4, 3),
                        each = run(BUCKET_BY_TENSOR, stacks[_i], 4, 3);
    ck_assert_double_eq_tol(each.step_s - whole.step_s, each.n_tensors * 1e-3, exactly * each.step_s);
    ck_assert(run(BUCKET_BY_TENSOR, stacks[_i], 1, 3).step_s == run("", stacks[_i], 1, 3).step_s);
}
END_TEST

/* Where the host sets the pace, each launch of a tensor takes its time. */
START_TEST(each_tensor_is_launched)
{
    const double launch_s = 1e-3, sums = 2;
    static const char slow[] = ",'host_s_per_launch':1e-3", one[] = ",'host_s_per_launch':1e-3" SUM;
    const struct answer without = run_on(IDEAL_DEVICE, MODEL, slow, "", 1, 3),
                        with = run_on(IDEAL_DEVICE, MODEL, one, "", 1, 3);
    ck_assert_double_eq_tol(with.step_s - without.step_s, sums * with.n_tensors * launch_s, exactly * with.step_s);
}
END_TEST

/* Two products of experts in each block, whose gradients no other rank has: neither copied nor kept in buckets. */
START_TEST(experts_of_one_rank_alone_need_no_buckets)
{
    static const char stack[] = "{'name':'expert','ways':4},{'name':'data'}", each[] = BUCKET_BY_TENSOR,
                      whole[] = ",'bucket_moves':4", copies[] = ",'bucket_copies':'replicas'";
    const struct answer by_tensor = run_on(SLOW_MEMORY, WITH_EXPERTS, each, stack, 4, 1),
                        by_bucket = run_on(SLOW_MEMORY, WITH_EXPERTS, whole, stack, 4, 1),
                        none = run_on(SLOW_MEMORY, WITH_EXPERTS, "", stack, 4, 1),
                        kept = run_on(SLOW_MEMORY, WITH_EXPERTS, copies, stack, 4, 1);
    const double of_experts = 2 * 2;
    ck_assert_double_eq_tol(by_tensor.step_s - by_bucket.step_s, (none.n_tensors - of_experts) * 1e-3,
                            exactly * by_tensor.step_s);
    ck_assert_double_eq_tol(kept.peak - none.peak, 4 * (none.parameters - none.expert_parameters), 1);
}
END_TEST

/* As wide as a backward makes gradients: 4 bytes, or 2 where others accumulate. */
START_TEST(buckets_are_copies_that_stay)
{
    static const char data[] = "{'name':'data'}", narrow[] = ",'backward_gradient_bytes':2";
    static const char *const keys[] = {"", ",'bucket_copies':'replicas'", ",'bucket_copies':'always'"};
    static const double copies[][2] = {{0, 0}, {0, 1}, {1, 1}}; /* with one replica, with four */
    for (int replicas = 0; replicas < 2; replicas++) {
        const int devices = replicas ? 4 : 1;
        char also[120];
        snprintf(also, sizeof also, "%s%s", narrow, keys[_i]);
        const struct answer none = run("", data, devices, 1), wide = run(keys[_i], data, devices, 1),
                            none_narrow = run(narrow, data, devices, 1), half = run(also, data, devices, 1);
        ck_assert_double_eq_tol(wide.peak - none.peak, copies[_i][replicas] * 4 * none.parameters, 1);
        ck_assert_double_eq_tol(half.peak - none_narrow.peak, copies[_i][replicas] * 2 * none.parameters, 1);
    }
}
END_TEST

/* Stage 1 of ZeRO divides the optimizer alone, and DDP sums gradients beside it; those of stage 2 are scattered. */
START_TEST(replicas_have_buckets_while_they_hold_whole_gradients)
{
    static const char *const stacks[] = {"{'name':'data'}", "{'name':'data'},{'name':'zero','stage':1}",
                                         "{'name':'data'},{'name':'zero','stage':2}"};
    static const double replicas[] = {1, 1, 0}, always[] = {1, 0, 0};
    const struct answer none = run("", stacks[_i], 4, 1);
    ck_assert_double_eq_tol(run(",'bucket_copies':'replicas'", stacks[_i], 4, 1).peak - none.peak,
                            replicas[_i] * 4 * none.parameters, 1);
    ck_assert_double_eq_tol(run(",'bucket_copies':'always'", stacks[_i], 4, 1).peak - none.peak,
                            always[_i] * 4 * none.parameters, 1);
}
END_TEST

/* ---- as measured ---- */

enum column { WORKLOAD, SAMPLES, PURE, WAY, MICROS, STEP_S, ALLOCATED };

static void open_measured(void) { open_measured_file("accumulation"); }

/* Plain on one device; with DDP on eight, of which only the memory is that of one. */
static struct answer predicted(const json_t *row)
{
    const bool is_ddp = strcmp(text(row, WAY), "plain") != 0, is_image = strcmp(text(row, WORKLOAD), "resnet50") == 0;
    const double n = is_ddp ? 8 : 1;
    char *const strategy = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\",\"precision\":\"bf16\","
        "\"devices\":%.0f,\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":[%s]}",
        n, n * number(row, SAMPLES) * number(row, MICROS), number(row, SAMPLES), is_ddp ? "{\"name\":\"data\"}" : "");
    struct dl_session_request request = {.topo = {"h200x8", NULL},
                                         .strategy = {"row.json", strategy},
                                         .workload = {text(row, WORKLOAD), NULL},
                                         .software = {"pytorch-eager", NULL},
                                         .engine = "analytic"};
    if (!is_image) request.set.items[request.set.n++] = "workload.dropout=false";
    if (!json_is_true(json_array_get(row, PURE))) request.set.items[request.set.n++] = "software.pure=\"none\"";
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    const struct answer a = {.step_s = s.report.result.step_s, .peak = s.memory[0].peak};
    dl_session_close(&s);
    return a;
}

static double seconds_of(struct dl_template *t, const char *name)
{
    double sum = 0;
    dl_template_unfold(t);
    for (size_t i = 0; i < t->n_instructions; i++)
        if (strcmp(t->instructions[i].name, name) == 0) sum += t->instructions[i].device_s;
    return sum;
}

enum kernel_column { OF, IS_PURE, PARAMETERS, TENSORS, ADD_S, BUCKET_S };

/* What profiles saw is busy time; between two kernels of a tensor pass 1.35 us. */
START_TEST(kernels_of_tensors_take_what_was_profiled)
{
    const double between_s = 1.35e-6;
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(measured.value, "kernels"), "rows"), i, row)
    {
        struct dl_session s;
        struct dl_session_request request = {
            .topo = {"h200x8", NULL},
            .strategy = {"row.json", "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\","
                                     "\"precision\":\"bf16\",\"devices\":8,\"global_batch\":16,\"microbatch\":1,"
                                     "\"stack\":[{\"name\":\"data\"}]}"},
            .workload = {text(row, OF), NULL},
            .software = {"pytorch-eager", NULL},
            .engine = "analytic"};
        if (!json_is_true(json_array_get(row, IS_PURE))) request.set.items[request.set.n++] = "software.pure=\"none\"";
        ck_assert_msg(!dl_session_open(&s, &request), "%s", s.err.text);
        ck_assert_double_eq_tol(dl_model_parameters(&s.model), number(row, PARAMETERS), 1e-3 * number(row, PARAMETERS));
        const double sums_s = seconds_of(&s.lowered.positions[0].items[DL_ITEM_B], "gradient_sum"),
                     buckets_s = seconds_of(&s.lowered.programs[0].end, "bucket"), n = number(row, TENSORS);
        ck_assert_msg(error_of(sums_s, number(row, ADD_S) + n * between_s) < 0.15, "%s: %g s", text(row, OF), sums_s);
        ck_assert_msg(error_of(buckets_s, number(row, BUCKET_S) + 2 * n * between_s) < 0.15, "%s: %g s", text(row, OF),
                      buckets_s);
        dl_session_close(&s);
    }
    ck_assert_uint_eq(i, 9);
}
END_TEST

START_TEST(several_micro_batches_take_what_pytorch_takes)
{
    struct mean seconds = {0}, bytes = {0};
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(measured.value, "rows"), i, row)
    {
        const struct answer a = predicted(row);
        const bool has_peak = json_is_number(json_array_get(row, ALLOCATED));
        if (strcmp(text(row, WAY), "plain") == 0) add_error(&seconds, a.step_s, number(row, STEP_S));
        if (has_peak) add_error(&bytes, a.peak, number(row, ALLOCATED));
        ck_assert_msg(!has_peak || error_of(a.peak, number(row, ALLOCATED)) < 0.03, "row %zu: %g bytes", i, a.peak);
        ck_assert_msg(strcmp(text(row, WAY), "plain") || error_of(a.step_s, number(row, STEP_S)) < 0.065,
                      "row %zu: %g s", i, a.step_s);
    }
    ck_assert_double_eq(seconds.n, 27);
    ck_assert_msg(mean_of(&seconds) < 0.025 && mean_of(&bytes) < 0.01, "%g of time, %g of memory", mean_of(&seconds),
                  mean_of(&bytes));
}
END_TEST

int main(void)
{
    TCase *const formulas = tcase_create("formulas"), *const steps = tcase_create("steps");
    tcase_add_loop_test(formulas, all_micro_batches_but_one_add_their_gradients, 0, 4);
    tcase_add_loop_test(formulas, gradients_that_do_not_stay_whole_are_not_added, 0, 3);
    tcase_add_loop_test(formulas, each_tensor_is_copied_into_its_bucket, 0, 3);
    tcase_add_test(formulas, each_tensor_is_launched);
    tcase_add_test(formulas, experts_of_one_rank_alone_need_no_buckets);
    tcase_add_loop_test(formulas, buckets_are_copies_that_stay, 0, 3);
    tcase_add_loop_test(formulas, replicas_have_buckets_while_they_hold_whole_gradients, 0, 3);
    tcase_add_checked_fixture(steps, open_measured, close_measured);
    tcase_add_test(steps, kernels_of_tensors_take_what_was_profiled);
    tcase_add_test(steps, several_micro_batches_take_what_pytorch_takes);
    Suite *const suite = suite_create("gradient_sums");
    suite_add_tcase(suite, formulas);
    suite_add_tcase(suite, steps);
    return run_without_forking(suite);
}
