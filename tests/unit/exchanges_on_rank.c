/* exchanges_on_rank.c - what a rank does about its exchanges, against closed forms: buckets, packing, memory. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/exchanges.h"

/* ---- buckets ---- */

/* From the last layer back: a bucket is closed by the layer that fills it. */
START_TEST(buckets_hold_the_layers_that_fill_them)
{
    static const double sizes[] = {10, 2.5e5, 5e5, 1e6, 1e9};
    char stack[100];
    struct dl_session t;
    snprintf(stack, sizeof stack, "{'name':'data','overlap':true,'bucket_bytes':%g}", sizes[_i]);
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = stack});
    const struct dl_template *const last = item(&t, (enum dl_item_kind)DL_TEMPLATE_LAST);
    double bucket = 0;
    size_t at = 0;
    for (size_t layer = t.model.n_layers; layer-- > 0;) {
        bucket += dl_layer_parameters(&t.model.layers[layer]) * gradient_bytes;
        if (bucket < sizes[_i] && layer) continue;
        while (at < last->n_instructions && last->instructions[at].kind != DL_START) at++;
        ck_assert_uint_lt(at, last->n_instructions);
        ck_assert_double_eq(t.lowered.calls[last->instructions[at++].call].bytes, bucket);
        bucket = 0;
    }
    while (at < last->n_instructions && last->instructions[at].kind != DL_START) at++;
    ck_assert_uint_eq(at, last->n_instructions);
    dl_session_close(&t);
}
END_TEST

/* Without overlap as few as can be, all alike. */
START_TEST(buckets_limit_what_goes_at_once)
{
    struct dl_session t;
    open_step(&t,
              &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = "{'name':'data','bucket_bytes':1e5}"});
    const double bytes = dl_model_parameters(&t.model) * gradient_bytes, n = ceil(bytes / 1e5);
    ck_assert_double_eq((double)t.lowered.n_calls, n);
    for (size_t i = 0; i < t.lowered.n_calls; i++) check_close("bucket", t.lowered.calls[i].bytes, bytes / n, 1e-12);
    dl_session_close(&t);
}
END_TEST

/* ---- packing ---- */

static double pass_bytes(const struct dl_template *of, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < of->n_instructions; i++)
        if (strcmp(of->instructions[i].name, name) == 0) {
            ck_assert_int_eq(of->instructions[i].cause, DL_CAUSE_DATA);
            sum += of->instructions[i].device_s * DEVICE_MEMORY_BYTES_PER_S;
        }
    return sum;
}

/* Read and written, a parameter. The union of eight ranks' picks is unpacked. */
START_TEST(packing_passes_over_the_values)
{
    static const struct {
        const char *stack;
        double pack, unpack;
        const char *packing, *unpacking; /* kernels whose times a device may have */
    } cases[] = {
        {"{'name':'data'},{'name':'quantized_allreduce','bits':8}", 4 + 1 + 4.0 / 512, 4 + 1 + 4.0 / 512, "quantize",
         "dequantize"},
        {"{'name':'data'},{'name':'zero'},{'name':'quantized_allreduce','bits':8}", 4 + 1 + 4.0 / 512,
         (4 + 1 + 4.0 / 512) / 8, "quantize", "dequantize"},
        {"{'name':'data'},{'name':'quantized_allreduce','method':'one_bit'}", 4 + 4 + 4 + 0.125 + 4.0 / 512,
         4 + 0.125 + 4.0 / 512, "one_bit", "one_bit_decode"},
        {"{'name':'data'},{'name':'quantized_allreduce','method':'top_k'}", 4 + 4 + 4 + 0.01 * 8,
         4 + (1 - 0.99 * 0.99 * 0.99 * 0.99 * 0.99 * 0.99 * 0.99 * 0.99) * 8, "topk", "unpack"},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = cases[_i].stack});
    const double parameters = dl_model_parameters(&t.model);
    check_close(cases[_i].stack, pass_bytes(&t.lowered.programs[0].end, cases[_i].packing), parameters * cases[_i].pack,
                1e-9);
    check_close(cases[_i].stack, pass_bytes(&t.lowered.programs[0].end, cases[_i].unpacking),
                parameters * cases[_i].unpack, 1e-9);
    dl_session_close(&t);
}
END_TEST

/* Each rank packs its part and unpacks the whole, for the forward and again for the backward. */
START_TEST(quantised_parameters_are_converted_before_each_use)
{
    struct dl_session t;
    const double each = activation_bytes + 1 + scale_bytes;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = ZERO("'stage':3,'gather_bits':8")});
    const double parameters = dl_model_parameters(&t.model);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("quantize", pass_bytes(item(&t, kind), "quantize"), parameters / replicas * each, 1e-9);
        check_close("dequantize", pass_bytes(item(&t, kind), "dequantize"), parameters * each, 1e-9);
    }
    dl_session_close(&t);
}
END_TEST

/* As often as the software reads or writes them, and in stage 3 alone. */
START_TEST(gradients_are_moved_before_they_are_scattered)
{
    static const struct {
        const char *stack;
        double moves;
    } cases[] = {{ZERO("'stage':3"), 4}, {ZERO("'stage':3,'shard_ways':4"), 4}, {ZERO("'stage':2"), 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','scatter_moves':4}",
                                     .workload = FOUR_BLOCKS,
                                     .head = BATCH,
                                     .stack = cases[i].stack});
        const double bytes = cases[i].moves * gradient_bytes * dl_model_parameters(&t.model);
        check_close(cases[i].stack, pass_bytes(item(&t, DL_ITEM_B), "bucket"), bytes, 1e-9);
        dl_session_close(&t);
    }
}
END_TEST

/* Before each use of a layer, forward and backward; what stays gathered is copied once. */
START_TEST(parameters_are_moved_after_they_are_gathered)
{
    static const struct {
        const char *stack;
        double forward, backward;
    } cases[] = {{ZERO("'stage':3"), 2, 2}, {ZERO("'stage':3,'reshard':false"), 2, 0}, {ZERO("'stage':1"), 0, 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','gather_moves':2}",
                                     .workload = FOUR_BLOCKS,
                                     .head = BATCH,
                                     .stack = cases[i].stack});
        const double once = dl_precision_bytes(t.job.setting.precision) * dl_model_parameters(&t.model);
        check_close(cases[i].stack, pass_bytes(item(&t, DL_ITEM_F), "copy_out"), cases[i].forward * once, 1e-9);
        check_close(cases[i].stack, pass_bytes(item(&t, DL_ITEM_B), "copy_out"), cases[i].backward * once, 1e-9);
        dl_session_close(&t);
    }
}
END_TEST

static double forward_s(const char *software, const char *stack)
{
    struct dl_session t;
    double sum = 0;
    open_step(&t, &(struct step){.software = software, .workload = FOUR_BLOCKS, .head = BATCH, .stack = stack});
    const struct dl_template *const forward = item(&t, DL_ITEM_F);
    for (size_t i = 0; i < forward->n_instructions; i++) sum += forward->instructions[i].device_s;
    dl_session_close(&t);
    return sum;
}

/* Casts of autocast are not there if parameters come in the precision of products. */
START_TEST(kernels_see_gathered_parameters_as_they_are_cast)
{
#define SOFTWARE(kernels) "{'schema':'dlsim/software/1','source':'a test'" kernels "}"
#define SLOW_IF_MIXED ",'kernels':[{'operation':'residual','launches':1,'moves':10,'numbers':'mixed'}]"
#define CASTS SLOW_IF_MIXED ",'casts_gathered':true"
#define CASTS_AT_2 CASTS ",'gathers_stage_2':true"
#define CASTS_MODEL SLOW_IF_MIXED ",'casts_model':true"
    static const char *const stacks[] = {ZERO("'stage':3"), ZERO("'stage':2"), ZERO("'stage':1"), "{'name':'data'}"};
    const bool gathers = _i == 0, gathers_at_2 = _i <= 1;
    const double plain_s = forward_s(SOFTWARE(""), stacks[_i]);
    ck_assert_double_gt(forward_s(SOFTWARE(SLOW_IF_MIXED), stacks[_i]), plain_s);
    ck_assert_double_eq(forward_s(SOFTWARE(CASTS), stacks[_i]),
                        gathers ? plain_s : forward_s(SOFTWARE(SLOW_IF_MIXED), stacks[_i]));
    ck_assert_double_eq(forward_s(SOFTWARE(CASTS_AT_2), stacks[_i]),
                        gathers_at_2 ? plain_s : forward_s(SOFTWARE(SLOW_IF_MIXED), stacks[_i]));
    ck_assert_double_eq(forward_s(SOFTWARE(CASTS_MODEL), stacks[_i]), plain_s);
    ck_assert_double_eq(forward_s("deepspeed-transformers", stacks[_i]),
                        forward_s("deepspeed-transformers", stacks[0]));
}
END_TEST

/* On a network as fast as the memory the passes count as much as the exchange, and both are data's. */
START_TEST(packing_is_booked_as_data)
{
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.system = IDEAL_SYSTEM("1e18", "0"),
                                .workload = FOUR_BLOCKS,
                                .head = BATCH,
                                .stack = "{'name':'data'},{'name':'quantized_allreduce','method':'one_bit'}"});
    const double sent = 0.125 + scale_bytes, each = (12 + sent) + 2 * once(replicas, sent) + (4 + sent);
    check_close("data", outcome.result.exposed_s[DL_CAUSE_DATA] * DEVICE_MEMORY_BYTES_PER_S,
                dl_model_parameters(&t.model) * each, exactly);
    ck_assert_double_ge(outcome.result.busy_s[DL_CAUSE_DATA], outcome.result.exposed_s[DL_CAUSE_DATA]);
    dl_session_close(&t);
}
END_TEST

/* ---- memory ---- */

/* Of a stage 3 on eight replicas: parts, and what is gathered or kept. */
START_TEST(memory_is_what_is_cut_gathered_and_kept)
{
    static const struct {
        const char *stack;
        double parts;       /* that parameters are cut into */
        double layers;      /* of the largest, gathered; 0: all are; -1: all but those that are done */
        double bits;        /* that these have when they travel, if others */
        double error_bytes; /* a parameter */
    } cases[] = {
        {ZERO("'stage':3"), 8, 2, 0, 0},
        {ZERO("'stage':3,'prefetch':0"), 8, 1, 0, 0},
        {ZERO("'stage':3,'prefetch':2"), 8, 3, 0, 0},
        {ZERO("'stage':3,'shard_ways':4"), 4, 2, 0, 0},
        {ZERO("'stage':3,'prefetch':100"), 8, -1, 0, 0},
        {ZERO("'stage':3,'reshard':false,'prefetch':0"), 8, 0, 0, 0},
        {ZERO("'stage':3,'gather_bits':8"), 8, 2, 8, 0},
        {ZERO("'stage':3") ",{'name':'quantized_allreduce','method':'one_bit'}", 8, 2, 0, 4},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = cases[_i].stack});
    const double parameters = dl_model_parameters(&t.model);
    double largest = 0;
    for (size_t i = 0; i < t.model.n_layers; i++) largest = fmax(largest, dl_layer_parameters(&t.model.layers[i]));
    /* The fullest moment: the head and a block are done, and the gradients of two blocks are not gone yet. */
    const double done = largest + dl_layer_parameters(&t.model.layers[t.model.n_layers - 1]);
    const double gathered = cases[_i].layers > 0    ? cases[_i].layers * largest
                            : cases[_i].layers == 0 ? parameters
                                                    : parameters - done;
    check_close(cases[_i].stack, t.memory[0].parameters, parameters / cases[_i].parts * activation_bytes, 1e-9);
    check_close(cases[_i].stack, t.memory[0].gradients, parameters / cases[_i].parts * gradient_bytes, 1e-9);
    check_close(cases[_i].stack, t.memory[0].buffers,
                gathered * (activation_bytes + cases[_i].bits / 8) + 2 * largest * gradient_bytes +
                    parameters * cases[_i].error_bytes,
                1e-9);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("exchanges_on_rank");
    TCase *const tests = tcase_create("exchanges_on_rank");
    tcase_add_loop_test(tests, buckets_hold_the_layers_that_fill_them, 0, 5);
    tcase_add_test(tests, buckets_limit_what_goes_at_once);
    tcase_add_loop_test(tests, packing_passes_over_the_values, 0, 4);
    tcase_add_test(tests, quantised_parameters_are_converted_before_each_use);
    tcase_add_test(tests, gradients_are_moved_before_they_are_scattered);
    tcase_add_test(tests, parameters_are_moved_after_they_are_gathered);
    tcase_add_loop_test(tests, kernels_see_gathered_parameters_as_they_are_cast, 0, 4);
    tcase_add_test(tests, packing_is_booked_as_data);
    tcase_add_loop_test(tests, memory_is_what_is_cut_gathered_and_kept, 0, 8);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
