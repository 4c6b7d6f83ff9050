/* expert_tensor_ways.c - experts that some tensor ranks divide, where others have experts of their own: what goes to
 * whom, and what a rank has. */
#define _GNU_SOURCE /* fork, pipe */
#include "strategies/in_step.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

#define MODEL SMALL_EXPERTS("16", "")
#define BATCH "'global_batch':8,'microbatch':2,'devices':16"

static const double exactly = 1e-9;

/* Sixteen devices: so many tensor ranks, of which so many divide each expert, with experts over so many ranks. */
static const struct {
    uint32_t tensor, divide, ways;
} cases[] = {{4, 2, 2}, {4, 2, 8}, {8, 2, 4}, {8, 4, 4}, {8, 2, 8}};

static void open_experts(struct dl_session *t, const char *workload, uint32_t tensor, uint32_t divide, uint32_t ways)
{
    static char stack[300], over[100];
    snprintf(over, sizeof over, ",'over_tensor':true,'tensor_ways':%u", divide);
    snprintf(stack, sizeof stack,
             "{'name':'expert','ways':%u%s},{'name':'tensor','ways':%u,'sequence':true},{'name':'data'}", ways,
             divide < tensor ? over : "", tensor);
    open_step(t, &(struct step){.workload = workload, .head = BATCH, .stack = stack});
}

static void open_case(struct dl_session *t, int i)
{
    open_experts(t, MODEL, cases[i].tensor, cases[i].divide, cases[i].ways);
}

/* The same experts on as many ranks, each one whole. */
static void open_whole(struct dl_session *t, int i)
{
    open_experts(t, MODEL, cases[i].tensor, 1, cases[i].ways * cases[i].divide);
}

/* Of a replica's tokens, of one layer. */
static double copied_bytes(void) { return activation_bytes * SAMPLES * SEQ * TOP_K * HIDDEN; }

/* Each rank sends the copies of its own tokens, there and back; one of `ways` stays. */
START_TEST(ranks_send_tokens_of_their_own)
{
    struct dl_session t;
    open_case(&t, _i);
    const double bytes = LAYERS * 2 * once(cases[_i].ways, copied_bytes() / cases[_i].tensor);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S, bytes, exactly);
        ck_assert_uint_eq(count_cause(&t, kind, DL_CAUSE_EXPERT), 2 * LAYERS);
    }
    ck_assert_uint_eq(dl_n_expert_ranks(&t.job.setting), cases[_i].ways);
    dl_session_close(&t);
}
END_TEST

/* Those that divide an expert gather the copies that came to them, and scatter what comes of these; backward, too. */
START_TEST(ranks_that_divide_experts_gather_and_scatter)
{
    struct dl_session divided, whole;
    open_case(&divided, _i);
    open_whole(&whole, _i);
    const double group = copied_bytes() * cases[_i].divide / cases[_i].tensor;
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double more_s = cause_s(&divided, kind, DL_CAUSE_SEQUENCE) - cause_s(&whole, kind, DL_CAUSE_SEQUENCE);
        check_close("bytes", more_s * SLOW_BYTES_PER_S, LAYERS * 2 * once(cases[_i].divide, group), exactly);
    }
    dl_session_close(&divided);
    dl_session_close(&whole);
}
END_TEST

/* A rank has as large a part of the experts as if they were whole on as many ranks, works as much, and keeps the tokens
 * of those with which it divides its own. */
START_TEST(ranks_have_and_do_as_much_as_with_whole_experts)
{
    struct dl_session divided, whole;
    open_case(&divided, _i);
    open_whole(&whole, _i);
    check_close("flop", flop_of(&divided), flop_of(&whole), exactly);
    check_close("parameters", divided.memory[0].parameters, whole.memory[0].parameters, exactly);
    check_close("gradients", divided.memory[0].gradients, whole.memory[0].gradients, exactly);
    check_close("optimizer", divided.memory[0].optimizer, whole.memory[0].optimizer, exactly);
    const double gathered = LAYERS * copied_bytes() * (cases[_i].divide - 1) / cases[_i].tensor;
    check_close("activations", divided.memory[0].activations, whole.memory[0].activations + gathered, exactly);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("seconds", kernels_s(&divided, kind, "expert_"), kernels_s(&whole, kind, "expert_"), exactly);
    ck_assert_uint_eq(dl_copies(&divided.job.setting, true), 16 / cases[_i].ways / cases[_i].divide);
    dl_session_close(&divided);
    dl_session_close(&whole);
}
END_TEST

/* As Megatron-Core numbers ranks (parallel_state.py): those that divide an expert follow each other. */
START_TEST(neighbours_divide_an_expert)
{
    struct dl_session t;
    open_case(&t, _i);
    const struct dl_setting *const s = &t.job.setting;
    const dl_digits divide = dl_along_expert_tensor(s), experts = dl_along_experts(s);
    ck_assert_uint_eq(dl_ranks_count(&s->ranks, divide), cases[_i].divide);
    for (uint32_t i = 0; i < cases[_i].divide; i++) ck_assert_uint_eq(dl_ranks_offset(&s->ranks, divide, i), i);
    for (uint32_t i = 0; i < cases[_i].ways; i++)
        ck_assert_uint_eq(dl_ranks_offset(&s->ranks, experts, i), i * cases[_i].divide);
    dl_session_close(&t);
}
END_TEST

/* Of eight tensor ranks two, four or eight have the same head of keys: sums over these are what they were. */
START_TEST(heads_of_keys_are_shared_as_ever)
{
    static const char *const few[] = {SMALL_EXPERTS("8", ",'kv_heads':4"), SMALL_EXPERTS("8", ",'kv_heads':2"),
                                      SMALL_EXPERTS("8", ",'kv_heads':1")};
    const uint32_t copies = 2u << (_i / 2), divide = _i % 2 ? 2 : 4;
    struct dl_session divided, cut;
    open_experts(&divided, few[_i / 2], 8, divide, 8 / divide);
    open_experts(&cut, few[_i / 2], 8, 8, 1);
    ck_assert_uint_eq(dl_ranks_count(&divided.job.setting.ranks, divided.job.setting.along_copies), copies);
    ck_assert_uint_eq(dl_ranks_count(&divided.job.setting.ranks, DL_ALONG_TENSOR), 8);
    const double group = copied_bytes() * divide / 8;
    const double less = once(8, copied_bytes()) - once(divide, group);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("bytes",
                    (cause_s(&cut, kind, DL_CAUSE_TENSOR) - cause_s(&divided, kind, DL_CAUSE_TENSOR)) +
                        (cause_s(&cut, kind, DL_CAUSE_SEQUENCE) - cause_s(&divided, kind, DL_CAUSE_SEQUENCE)),
                    LAYERS * 2 * less / SLOW_BYTES_PER_S, exactly);
    dl_session_close(&divided);
    dl_session_close(&cut);
}
END_TEST

/* Of twelve tensor ranks three need the same head of keys, and two would divide an expert. */
START_TEST(parts_that_are_not_within_each_other_are_refused)
{
    check_refusal(
        &(struct step){.workload =
                           "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':96,"
                           "'heads':24,'kv_heads':4,'seq':48,'vocab':480,'experts':12,'top_k':2}",
                       .head = "'global_batch':8,'microbatch':2,'devices':12",
                       .stack = "{'name':'expert','ways':6,'over_tensor':true,'tensor_ways':2},"
                                "{'name':'tensor','ways':12,'sequence':true}"},
        "test.json:/stack/0/tensor_ways: must divide the tensor ranks that need the same head of keys, 3, or be a "
        "multiple of these; got 2");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("expert_tensor_ways");
    tcase_add_loop_test(tests, ranks_send_tokens_of_their_own, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, ranks_that_divide_experts_gather_and_scatter, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, ranks_have_and_do_as_much_as_with_whole_experts, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, neighbours_divide_an_expert, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, heads_of_keys_are_shared_as_ever, 0, 6);
    tcase_add_test(tests, parts_that_are_not_within_each_other_are_refused);
    Suite *const suite = suite_create("expert_tensor_ways");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
