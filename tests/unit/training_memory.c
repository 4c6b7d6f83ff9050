/* training_memory.c - memory of a stage against the formulas of the papers. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/study/job_text.h"
#include "tests/unit/training_memory.h"

/* ---- Korthikanti et al., MLSys 2023 ---- */

static const struct block_case {
    const char *stack;
    double outside, inside, scores; /* factors of 10, 24 and 5as/h */
    double input;                   /* of 2: what full recomputation keeps instead */
} block_cases[] = {
    {"", 1, 1, 1, 0},                                                                         /* equation 1 */
    {"{'name':'tensor','ways':8}", 1, 1 / 8.0, 1 / 8.0, 0},                                   /* 2 */
    {"{'name':'tensor','ways':8,'sequence':true}", 1 / 8.0, 1 / 8.0, 1 / 8.0, 0},             /* 4 */
    {"{'name':'tensor','ways':8},{'name':'recompute','mode':'selective'}", 1, 1 / 8.0, 0, 0}, /* table 2 */
    {"{'name':'tensor','ways':8,'sequence':true},{'name':'recompute','mode':'selective'}", 1 / 8.0, 1 / 8.0, 0,
     0},                                                                           /* 6 */
    {"{'name':'tensor','ways':8},{'name':'recompute','mode':'full'}", 0, 0, 0, 1}, /* table 2 */
    {"{'name':'tensor','ways':8,'sequence':true},{'name':'recompute','mode':'full'}", 0, 0, 0, 1 / 8.0},
};

static double block_bytes(const struct block_case *c)
{
    return small.s * small.b * small.h *
           (10 * c->outside + 24 * c->inside + 5 * small.a * small.s / small.h * c->scores + 2 * c->input);
}

START_TEST(a_block_keeps_what_the_equations_say)
{
    const struct block_case *const c = &block_cases[_i];
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':2,'microbatch':2", c->stack);
    check_equal(c->stack, saved_bytes(&training, 1), block_bytes(c));
    dl_session_close(&training);
}
END_TEST

/* Gradients while a block goes backward: of the scores and what they are multiplied with, or on the two sides of a
 * linear layer; and of the block's output, which waits on the residual way. */
static double at_work_bytes(const struct block_case *all)
{
    const double sbh = small.s * small.b * small.h, scores = small.a * small.s * small.s * small.b;
    return 2 * (fmax((scores + sbh) * all->inside, 4 * sbh * all->inside + sbh * all->outside) + sbh * all->outside);
}

/* Whoever computes again what it dropped has it again for a while. */
START_TEST(recomputation_needs_what_one_block_dropped)
{
    const struct block_case *const c = &block_cases[_i];
    const bool sequence = strstr(c->stack, "sequence") != NULL, tensor = strstr(c->stack, "tensor") != NULL;
    const struct block_case *const all = &block_cases[sequence ? 2 : tensor ? 1 : 0];
    char stack[300];
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':2}%s%s", *c->stack ? "," : "", c->stack);
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':4,'microbatch':2", stack);
    check_equal(c->stack, training.memory[0].workspace, block_bytes(all) - block_bytes(c) + at_work_bytes(all));
    dl_session_close(&training);
}
END_TEST

/* ---- Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, table 1 ---- */

START_TEST(weight_gradients_need_what_the_table_says)
{
    const double sbh = small.s * small.b * small.h;
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':4,'microbatch':2",
                  "{'name':'pipeline','ways':2,'schedule':'zb-h1'}");
    check_equal("M_W", allocated(&training, DL_TENSOR_OPERANDS, 1), 32 * sbh);
    dl_session_close(&training);
}
END_TEST

/* Equation 5 and section 4.2.3: the first stage keeps L layers, and with chunks L (1 + (p - 1) / (p v)), for which
 * ((v - 1) g + 2 p - 1) / (p v) stands in groups of g; to which the mask of the embedding comes for each micro-batch
 * under way: p, and with chunks 2p, as the first one is freed last: a group, and of the next one no more than 2p - 1.
 */
START_TEST(the_first_stage_keeps_all_layers_once)
{
    static const struct {
        const char *stack;
        double stages, chunks, group, embeddings;
    } cases[] = {
        {"{'name':'pipeline','ways':4}", 4, 1, 0, 4},
        {"{'name':'pipeline','ways':8}", 8, 1, 0, 8},
        {"{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':2}", 4, 2, 4, 8},
        {"{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':3}", 4, 3, 4, 8},
        {"{'name':'pipeline','ways':8,'schedule':'interleaved','chunks':3}", 8, 3, 8, 16},
        {"{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':3,'group':5}", 4, 3, 5, 5 + 5},
        {"{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':3,'group':9}", 4, 3, 9, 9 + 7},
        {"{'name':'pipeline','ways':8,'schedule':'interleaved','chunks':3,'group':12}", 8, 3, 12, 12 + 12},
    };
    const double p = cases[_i].stages, v = cases[_i].chunks, g = cases[_i].group, sbh = small.s * small.b * small.h;
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':64,'microbatch':2", cases[_i].stack);
    const double more = v > 1 ? ((v - 1) * g + 2 * p - 1) / (p * v) : 1;
    check_equal(cases[_i].stack, training.memory[0].activations,
                small.layers * more * block_bytes(&block_cases[0]) + cases[_i].embeddings * sbh);
    dl_session_close(&training);
}
END_TEST

/* Section 4.3: one micro-batch at the end, with the input of norm and logits, and the logits in fp32. */
START_TEST(the_last_stage_keeps_the_logits)
{
    const double sbh = small.s * small.b * small.h;
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':64,'microbatch':2", "{'name':'pipeline','ways':4}");
    check_equal("last stage", training.memory[3].activations,
                small.layers / 4 * block_bytes(&block_cases[0]) + 4 * sbh * (1 + small.v / small.h));
    dl_session_close(&training);
}
END_TEST

/* Those of an MLP are whole on every tensor rank, unless these divide the samples. */
START_TEST(whole_logits_are_kept_by_each_tensor_rank)
{
    static const struct {
        const char *stack;
        double parts;
    } cases[] = {{"", 1}, {"{'name':'tensor','ways':4}", 1}, {"{'name':'tensor','ways':4,'sequence':true}", 4}};
    const double samples = 8, logits = samples * 12, saved_each = 4, workspace_each = 6, loss_each = 2;
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        open_strategy("{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[16,32,12],"
                      "'loss':'cross_entropy'}",
                      "{'schema':'dlsim/software/1','source':'a test','logit_workspace_bytes':6}",
                      "'global_batch':8,'microbatch':8,'precision':'bf16'", cases[i].stack);
        check_equal("saved", saved_bytes(&training, 1), saved_each * logits / cases[i].parts);
        check_equal("at work", at_work_bytes_of(&training, 1),
                    (workspace_each * logits + loss_each * samples) / cases[i].parts);
        dl_session_close(&training);
    }
}
END_TEST

/* PyTorch saves the log-softmax in fp32 and makes two gradients in fp32 from it; compiled, one kernel reads the logits.
 * Transformer Engine writes the gradient over them.
 * The gradient in bf16 that comes of either is counted with those that layers pass on. */
START_TEST(a_loss_that_is_not_compiled_takes_twelve_bytes_a_logit)
{
    static const struct {
        const char *software;
        double saved_each, work_each;
    } cases[] = {{"torchtitan-2024", 4, 6}, {"torchtitan-2025", 0, 2}, {"megatron-bridge", 0, 0}};
    const double samples = 1024, logits = samples * 4096, loss_each = 2;
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        open_strategy("{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[64,4096],"
                      "'loss':'cross_entropy'}",
                      cases[i].software, "'global_batch':1024,'microbatch':1024,'precision':'bf16'", "");
        check_equal(cases[i].software, saved_bytes(&training, 1), cases[i].saved_each * logits);
        check_equal(cases[i].software, at_work_bytes_of(&training, 1),
                    cases[i].work_each * logits + loss_each * samples);
        dl_session_close(&training);
    }
}
END_TEST

/* What their second product gives, top_k times two bytes for each element. */
START_TEST(experts_that_weigh_before_keep_less)
{
    static const char *const software[] = {
        "{'schema':'dlsim/software/1','source':'a test'}",
        "{'schema':'dlsim/software/1','source':'a test','weights_in_activation':true}"};
    const double top_k = 2, elements = 32 * 64;
    double saved[2];
    for (size_t i = 0; i < DL_COUNT(software); i++) {
        open_strategy(
            "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,"
            "'seq':32,'vocab':512,'experts':8,'top_k':2}",
            software[i], "'global_batch':1,'precision':'bf16'", "");
        saved[i] = saved_bytes(&training, 1);
        dl_session_close(&training);
    }
    check_equal("kept", saved[0] - saved[1], 2 * top_k * elements);
}
END_TEST

START_TEST(fp32_doubles_what_is_kept)
{
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'precision':'fp32','global_batch':2,'microbatch':2", "");
    check_equal("fp32", saved_bytes(&training, 1), 2 * block_bytes(&block_cases[0]));
    dl_session_close(&training);
}
END_TEST

/* ---- ZeRO (Rajbhandari et al., SC20), figure 1 ---- */

static const struct zero_case {
    const char *stack;
    double whole, cut; /* bytes a parameter, of 16 */
    double printed_gb; /* for 7.5e9 parameters on 64 devices */
} zero_cases[] = {
    {"{'name':'data'}", 16, 0, 120},
    {"{'name':'data'},{'name':'zero','stage':1}", 4, 12, 31.4},
    {"{'name':'data'},{'name':'zero','stage':2}", 2, 14, 16.6},
    {"{'name':'data'},{'name':'zero','stage':3}", 0, 16, 1.88},
};

START_TEST(states_are_those_of_zeros_table)
{
    const struct zero_case *const c = &zero_cases[_i];
    const double devices = 64, psi = 7.5e9;
    open_strategy("gpt-7.5b", "ideal", "'devices':64,'global_batch':64", c->stack);
    const double states = states_of(&training.memory[0]), parameters = dl_model_parameters(&training.model);
    check_equal(c->stack, states, (c->whole + c->cut / devices) * parameters);
    ck_assert_double_eq_tol(states / parameters * psi / 1e9, c->printed_gb, 0.05); /* one digit is printed */
    dl_session_close(&training);
}
END_TEST

#define PURE_SOFTWARE "{'schema':'dlsim/software/1','source':'a test','gradient_bytes':4,'pure':'language_models'}"

/* Parameters, gradients, and what the optimizer keeps: a master copy unless they are one, and moments. */
START_TEST(states_are_those_of_precision_and_optimizer)
{
    static const struct {
        const char *head, *software;
        double bytes;
    } cases[] = {
        {"'precision':'fp32','optimizer':'sgd'", "ideal", 4 + 4},
        {"'precision':'fp32','optimizer':'momentum'", "ideal", 4 + 4 + 4},
        {"'precision':'fp32','optimizer':'adam'", "ideal", 4 + 4 + 8},
        {"'precision':'bf16','optimizer':'sgd'", "ideal", 2 + 2 + 4},
        {"'precision':'bf16','optimizer':'momentum'", "ideal", 2 + 2 + 4 + 4},
        {"'precision':'bf16','optimizer':'adam'", "ideal", 2 + 2 + 4 + 8},
        {"'precision':'bf16','optimizer':'adam'", PURE_SOFTWARE, 2 + 2 + 4},
        {"'precision':'bf16','optimizer':'momentum'", PURE_SOFTWARE, 2 + 2 + 2},
        {"'precision':'fp32','optimizer':'adam'", PURE_SOFTWARE, 4 + 4 + 8},
        {"'precision':'fp32'", "ideal", 4 + 4 + 8}, /* adam, for a language model */
        {"'precision':'bf16','optimizer':'adam_bf16'", "ideal", 2 + 2 + 4 + 4},
        {"'precision':'fp32','optimizer':'adam_bf16'", "ideal", 4 + 4 + 4},
        {"'precision':'bf16','optimizer':'adam_bf16'", PURE_SOFTWARE, 2 + 2 + 4},
    };
    char head[200];
    snprintf(head, sizeof head, "%s,'global_batch':1", cases[_i].head);
    open_strategy(SMALL_GPT, cases[_i].software, head, "");
    check_equal(head, states_of(&training.memory[0]), cases[_i].bytes * dl_model_parameters(&training.model));
    dl_session_close(&training);
}
END_TEST

/* Their kernels are one operation, but what is known of one run is not what there is to know of the other. */
START_TEST(optimizers_with_the_same_kernel_are_other_jobs)
{
    static const char *const names[] = {"adam", "adam_bf16"};
    struct dl_arena *const texts = dl_arena_new();
    const char *text[2];
    for (int i = 0; i < 2; i++) {
        char head[100];
        snprintf(head, sizeof head, "'precision':'bf16','global_batch':1,'optimizer':'%s'", names[i]);
        open_strategy(SMALL_GPT, "ideal", head, "");
        text[i] = dl_job_text(&training.job, texts);
        dl_session_close(&training);
    }
    ck_assert_str_ne(text[0], text[1]);
    dl_arena_free(texts);
}
END_TEST

START_TEST(the_usual_optimizer_of_images_is_momentum)
{
    open_strategy("lenet-5", "ideal", "'precision':'fp32','global_batch':1", "");
    check_equal("states", states_of(&training.memory[0]), (4 + 4 + 4) * dl_model_parameters(&training.model));
    dl_session_close(&training);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_memory");
    tcase_add_loop_test(tests, a_block_keeps_what_the_equations_say, 0, (int)DL_COUNT(block_cases));
    tcase_add_loop_test(tests, recomputation_needs_what_one_block_dropped, 0, (int)DL_COUNT(block_cases));
    tcase_add_loop_test(tests, the_first_stage_keeps_all_layers_once, 0, 5);
    tcase_add_test(tests, the_last_stage_keeps_the_logits);
    tcase_add_test(tests, whole_logits_are_kept_by_each_tensor_rank);
    tcase_add_test(tests, a_loss_that_is_not_compiled_takes_twelve_bytes_a_logit);
    tcase_add_test(tests, experts_that_weigh_before_keep_less);
    tcase_add_test(tests, fp32_doubles_what_is_kept);
    tcase_add_test(tests, weight_gradients_need_what_the_table_says);
    tcase_add_loop_test(tests, states_are_those_of_zeros_table, 0, (int)DL_COUNT(zero_cases));
    tcase_add_loop_test(tests, states_are_those_of_precision_and_optimizer, 0, 13);
    tcase_add_test(tests, optimizers_with_the_same_kernel_are_other_jobs);
    tcase_add_test(tests, the_usual_optimizer_of_images_is_momentum);
    Suite *const suite = suite_create("training_memory");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
