/* key_heads.c - fewer heads of keys and values than tensor ranks: copies of heads whose gradients are summed, or parts
 * that are gathered; what a rank holds, multiplies and sends, and what is refused. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"
#include "workloads/workloads.h"

enum { BLOCKS = 3, HIDDEN = 64, HEADS = 16, HEAD_SIZE = 4, SEQ = 32, SAMPLES = 2, VOCAB = 512 };
#define MODEL(heads, key_heads, more)                                                                                  \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':3,'hidden':64,'heads':" heads        \
    ",'kv_heads':" key_heads ",'head_size':4,'seq':32,'vocab':512,'dropout':false,'bias':false,'positions':'rotary'"   \
    ",'tied_embedding':false" more "}"
#define BATCH "'global_batch':2,'microbatch':2"
#define GATHERS                                                                                                        \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash','gathers_key_heads':true}"
#define APART                                                                                                          \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash','projections_apart':true}"

static const double exactly = 1e-12, tokens = SAMPLES * SEQ;

/* Each with a model that has as many heads of keys as ranks, so that none has copies. */
static const struct {
    double ways, key_heads;
    const char *few, *as_many, *stack;
} cases[] = {
    {2, 1, MODEL("16", "1", ""), MODEL("16", "2", ""), "{'name':'tensor','ways':2}"},
    {8, 1, MODEL("16", "1", ""), MODEL("16", "8", ""), "{'name':'tensor','ways':8}"},
    {8, 4, MODEL("16", "4", ""), MODEL("16", "8", ""), "{'name':'tensor','ways':8}"},
    {16, 4, MODEL("16", "4", ",'qk_norm':true"), MODEL("16", "16", ",'qk_norm':true"),
     "{'name':'tensor','ways':16,'sequence':true}"},
    {8, 2, MODEL("16", "2", ",'projections':'apart'"), MODEL("16", "8", ",'projections':'apart'"),
     "{'name':'tensor','ways':8,'sequence':true}"},
};

static void open_keys(struct dl_session *t, const char *workload, const char *software, const char *stack)
{
    open_step(t, &(struct step){.software = software, .workload = workload, .head = BATCH, .stack = stack});
}

static double tensor_s(const struct dl_session *t, enum dl_item_kind kind)
{
    return cause_s(t, kind, DL_CAUSE_TENSOR) + cause_s(t, kind, DL_CAUSE_SEQUENCE);
}

/* Ranks hold, keep and multiply what they would with a head each, and sum gradients of keys and values over copies. */
START_TEST(copies_are_as_heads_of_their_own_but_for_a_sum)
{
    static const char *const software[] = {FLASH, APART};
    const double copies = cases[_i].ways / cases[_i].key_heads;
    const double each = 2 * once(copies, 2 * tokens * HEAD_SIZE * activation_bytes) / SLOW_BYTES_PER_S;
    for (size_t i = 0; i < DL_COUNT(software); i++) {
        struct dl_session few, own;
        open_keys(&few, cases[_i].few, software[i], cases[_i].stack);
        open_keys(&own, cases[_i].as_many, software[i], cases[_i].stack);
        check_close("parameters", few.memory[0].parameters, own.memory[0].parameters, exactly);
        check_close("peak", few.memory[0].peak, own.memory[0].peak, exactly);
        check_close("flop", flop_of(&few), flop_of(&own), exactly);
        check_close("forward", tensor_s(&few, DL_ITEM_F), tensor_s(&own, DL_ITEM_F), exactly);
        check_close("backward", tensor_s(&few, DL_ITEM_B) - tensor_s(&own, DL_ITEM_B), BLOCKS * each, 1e-9);
        dl_session_close(&few);
        dl_session_close(&own);
    }
}
END_TEST

/* Queries are divided, a head of keys and one of values are whole: in parameters and in multiplications. */
START_TEST(a_rank_has_one_head_of_keys)
{
    const double ways = cases[_i].ways, columns = HEADS * HEAD_SIZE / ways + 2 * HEAD_SIZE;
    const double others = HIDDEN * HEADS * HEAD_SIZE / ways + 8.0 * HIDDEN * HIDDEN / ways;
    double norms = 0;
    struct dl_session t;
    open_keys(&t, cases[_i].few, FLASH, cases[_i].stack);
    for (size_t i = 0; i < t.model.n_layers; i++) norms += t.model.layers[i].parameters_outside;
    check_close("parameters", t.memory[0].parameters,
                activation_bytes * (BLOCKS * (HIDDEN * columns + others) + 2.0 * VOCAB * HIDDEN / ways + norms),
                exactly);
    check_close("qkv", kernels_s(&t, DL_ITEM_F, "qkv"), BLOCKS * 2 * tokens * HIDDEN * columns / 1e15, 1e-9);
    dl_session_close(&t);
}
END_TEST

/* Over all heads of a token: ranks hold the gains and biases of their own heads, those of keys in copies, and sum
 * squares in fp32 in either direction. */
START_TEST(ranks_sum_the_squares_of_joint_norms)
{
    static const double ways = 16, sum_bytes = 4;
    static const char *const each = MODEL("16", "4", ",'qk_norm':true"),
                             *const joint = MODEL("16", "4", ",'qk_norm':true,'joint_qk_norm':true"),
                             *const stack = "{'name':'tensor','ways':16,'sequence':true}";
    const double sums_s = BLOCKS * 2 * 2 * once(ways, tokens * sum_bytes) / SLOW_BYTES_PER_S;
    struct dl_session a, b;
    open_keys(&a, each, FLASH, stack);
    open_keys(&b, joint, FLASH, stack);
    check_close("parameters", b.memory[0].parameters, a.memory[0].parameters, exactly); /* one head of either */
    check_close("model", b.model.copied_parameters - a.model.copied_parameters, BLOCKS * 2.0 * 12 * HEAD_SIZE, exactly);
    check_close("forward", tensor_s(&b, DL_ITEM_F) - tensor_s(&a, DL_ITEM_F), sums_s, 1e-9);
    check_close("backward", tensor_s(&b, DL_ITEM_B) - tensor_s(&a, DL_ITEM_B), sums_s, 1e-9);
    check_close("kernels", kernels_s(&b, DL_ITEM_F, "q_norm"), kernels_s(&a, DL_ITEM_F, "q_norm"), 1e-9);
    dl_session_close(&a);
    dl_session_close(&b);
}
END_TEST

/* Nothing is held twice; all results are gathered, and their gradients scattered. */
START_TEST(parts_are_gathered_where_the_software_does)
{
    const double ways = cases[_i].ways, columns = HEADS * HEAD_SIZE + 2 * cases[_i].key_heads * HEAD_SIZE;
    const double each = once(ways, tokens * columns * activation_bytes) / SLOW_BYTES_PER_S;
    struct dl_session t, own;
    open_keys(&t, cases[_i].few, GATHERS, cases[_i].stack);
    open_keys(&own, cases[_i].as_many, GATHERS, cases[_i].stack);
    check_close("qkv", kernels_s(&t, DL_ITEM_F, "qkv"), BLOCKS * 2 * tokens * HIDDEN * columns / ways / 1e15, 1e-9);
    check_close("parameters", own.memory[0].parameters - t.memory[0].parameters,
                activation_bytes * BLOCKS * 2 * HIDDEN * HEAD_SIZE * (1 - cases[_i].key_heads / ways), 1e-9);
    check_close("forward", tensor_s(&t, DL_ITEM_F) - tensor_s(&own, DL_ITEM_F), BLOCKS * each, 1e-9);
    check_close("backward", tensor_s(&t, DL_ITEM_B) - tensor_s(&own, DL_ITEM_B), BLOCKS * each, 1e-9);
    dl_session_close(&t);
    dl_session_close(&own);
}
END_TEST

/* What a model needs does not depend on who has copies. */
START_TEST(copies_are_no_work_of_the_model)
{
    struct dl_session alone, few;
    open_keys(&alone, cases[_i].few, FLASH, "{'name':'tensor','ways':1}");
    open_keys(&few, cases[_i].few, FLASH, cases[_i].stack);
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        ck_assert_double_eq(few.model.model_flop_per_sample[count], alone.model.model_flop_per_sample[count]);
    dl_session_close(&alone);
    dl_session_close(&few);
}
END_TEST

/* Of copies a checkpoint has one. */
START_TEST(a_checkpoint_is_of_the_model)
{
    static const char *const software[] = {FLASH, APART, GATHERS};
    for (size_t i = 0; i < DL_COUNT(software); i++) {
        struct dl_session alone, few;
        open_keys(&alone, cases[_i].few, software[i], "{'name':'tensor','ways':1}");
        open_keys(&few, cases[_i].few, software[i], cases[_i].stack);
        check_close("checkpoint", dl_memory_of_checkpoint(&few.job.setting, &few.model),
                    dl_memory_of_checkpoint(&alone.job.setting, &alone.model), exactly);
        dl_session_close(&alone);
        dl_session_close(&few);
    }
}
END_TEST

/* The first two ranks have the same head of eight ranks with four. */
START_TEST(neighbours_share_a_head)
{
    struct dl_session t;
    open_keys(&t, cases[2].few, FLASH, cases[2].stack);
    const struct dl_ranks *const ranks = &t.job.setting.ranks;
    ck_assert_uint_eq(ranks->digits[DL_DIGIT_X].n, 2);
    ck_assert_uint_eq(ranks->digits[DL_DIGIT_X].stride, 1);
    ck_assert_uint_eq(dl_ranks_count(ranks, DL_ALONG_TENSOR), 8);
    dl_session_close(&t);
}
END_TEST

START_TEST(heads_that_do_not_come_out_are_refused)
{
    check_refusal(
        &(struct step){.workload = MODEL("12", "4", ""), .head = BATCH, .stack = "{'name':'tensor','ways':6}"},
        "test.json:/stack/0/ways: must divide the heads of keys and values, or be a multiple of these, 4, got 6; 4 "
        "would "
        "do");
    check_refusal(
        &(struct step){.workload = MODEL("16", "1", ""), .head = BATCH, .stack = "{'name':'tensor','ways':32}"},
        "test.json:/stack/0/ways: must divide the heads, 16, got 32; 16 would do");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("key_heads");
    TCase *const tests = tcase_create("key_heads");
    tcase_add_test(tests, ranks_sum_the_squares_of_joint_norms);
    tcase_add_loop_test(tests, copies_are_as_heads_of_their_own_but_for_a_sum, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, a_rank_has_one_head_of_keys, 0, 3);
    tcase_add_loop_test(tests, parts_are_gathered_where_the_software_does, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, copies_are_no_work_of_the_model, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, a_checkpoint_is_of_the_model, 0, DL_COUNT(cases));
    tcase_add_test(tests, neighbours_share_a_head);
    tcase_add_test(tests, heads_that_do_not_come_out_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
