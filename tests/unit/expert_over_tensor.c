/* expert_over_tensor.c - experts that tensor ranks have whole: what travels, what does not, and what a rank has. */
#define _GNU_SOURCE /* fork, pipe */
#include "strategies/sink.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

#define EXPERTS 8
#define TENSOR 2
#define MODEL SMALL_EXPERTS("8", "")
#define BATCH "'global_batch':8,'microbatch':2,'devices':8"
#define BESIDE ",{'name':'tensor','ways':2,'sequence':true},{'name':'data'}"

static const double exactly = 1e-9;
static const uint32_t all_ways[] = {2, 4, 8};

/* Experts over so many ranks: over data ranks alone, or with those of tensors. */
static void open_experts(struct dl_session *t, uint32_t ways, bool over_tensor)
{
    static char stack[300];
    snprintf(stack, sizeof stack, "{'name':'expert','ways':%u%s}" BESIDE, ways,
             over_tensor ? ",'over_tensor':true" : "");
    open_step(t, &(struct step){.workload = MODEL, .head = BATCH, .stack = stack});
}

/* Copies of a replica's tokens, of one layer. */
static double copied_bytes(void) { return activation_bytes * SAMPLES * SEQ * TOP_K * HIDDEN; }

/* Each rank sends the copies of its own tokens, there and back; one of `ways` stays. */
START_TEST(ranks_send_tokens_of_their_own)
{
    const uint32_t ways = all_ways[_i];
    struct dl_session t;
    open_experts(&t, ways, true);
    const double bytes = LAYERS * 2 * copied_bytes() / TENSOR * (ways - 1) / ways;
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S, bytes, exactly);
        ck_assert_uint_eq(count_cause(&t, kind, DL_CAUSE_EXPERT), 2 * LAYERS);
    }
    ck_assert_uint_eq(dl_n_expert_ranks(&t.job.setting), ways);
    dl_session_close(&t);
}
END_TEST

/* Where experts are cut, tensor ranks gather the copies of all and scatter what comes of them. */
START_TEST(whole_experts_need_no_sums)
{
    struct dl_session whole, cut;
    open_experts(&whole, 4, true);
    open_experts(&cut, 4 / TENSOR, false);
    const double gathered = LAYERS * 2 * copied_bytes() * (TENSOR - 1) / TENSOR;
    check_close("bytes",
                (cause_s(&cut, DL_ITEM_F, DL_CAUSE_SEQUENCE) - cause_s(&whole, DL_ITEM_F, DL_CAUSE_SEQUENCE)) *
                    SLOW_BYTES_PER_S,
                gathered, exactly);
    dl_session_close(&whole);
    dl_session_close(&cut);
}
END_TEST

/* A rank has one of `ways` parts of the experts either way, and works on as many tokens of them in all. Where they are
 * cut it keeps the tokens of all tensor ranks. */
START_TEST(ranks_have_and_do_as_much_as_with_cut_experts)
{
    struct dl_session whole, cut;
    open_experts(&whole, 4, true);
    open_experts(&cut, 4 / TENSOR, false);
    check_close("flop", flop_of(&whole), flop_of(&cut), exactly);
    check_close("parameters", whole.memory[0].parameters, cut.memory[0].parameters, exactly);
    check_close("optimizer", whole.memory[0].optimizer, cut.memory[0].optimizer, exactly);
    const double gathered = LAYERS * copied_bytes() * (TENSOR - 1) / TENSOR;
    check_close("activations", whole.memory[0].activations + gathered, cut.memory[0].activations, exactly);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("seconds", kernels_s(&whole, kind, "expert_"), kernels_s(&cut, kind, "expert_"), exactly);
    dl_session_close(&whole);
    dl_session_close(&cut);
}
END_TEST

/* The host waits for counts as ever, once a layer. */
START_TEST(counts_are_waited_for)
{
    static const char software[] =
        "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-3,'attention':'flash',"
        "'drains_at_dispatch':true,'drains_at_batches':false}";
    uint32_t n = 0;
    struct dl_session t;
    open_step(&t, &(struct step){.software = software,
                                 .workload = MODEL,
                                 .head = BATCH,
                                 .stack = "{'name':'expert','ways':4,'over_tensor':true}" BESIDE});
    for (size_t i = 0; i < item(&t, DL_ITEM_F)->n_instructions; i++)
        n += item(&t, DL_ITEM_F)->instructions[i].kind == DL_DRAIN;
    ck_assert_uint_eq(n, LAYERS);
    dl_session_close(&t);
}
END_TEST

/* A rule that holds for each expert counts those that a rank has. */
START_TEST(launches_are_those_for_the_experts_of_a_rank)
{
    static const char software[] =
        "{'schema':'dlsim/software/1','source':'a test','attention':'flash','kernels':[{'operation':'permute',"
        "'each_expert':true,'launches':5}]}";
    const struct dl_kernel permute = {
        .kind = DL_KERNEL_MEMORY, .name = "permute", .batch = EXPERTS, .elements = 300, .tokens = 1.0 / 3};
    for (size_t i = 0; i < DL_COUNT(all_ways); i++) {
        char stack[300];
        const uint32_t ways = all_ways[i];
        struct dl_session t;
        snprintf(stack, sizeof stack, "{'name':'expert','ways':%u,'over_tensor':true}" BESIDE, ways);
        open_step(&t, &(struct step){.software = software, .workload = MODEL, .head = BATCH, .stack = stack});
        const struct dl_lower_request request = {
            .job = &t.job, .model = &t.model, .device = &t.device, .estimator = &t.estimator};
        struct dl_sink s = {.request = &request, .arena = t.arena};
        ck_assert_double_eq(dl_sink_price_kernel(&s, &permute)->launches, 5.0 * EXPERTS / ways);
        dl_session_close(&t);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("expert_over_tensor");
    tcase_add_loop_test(tests, ranks_send_tokens_of_their_own, 0, DL_COUNT(all_ways));
    tcase_add_test(tests, whole_experts_need_no_sums);
    tcase_add_test(tests, ranks_have_and_do_as_much_as_with_cut_experts);
    tcase_add_test(tests, counts_are_waited_for);
    tcase_add_test(tests, launches_are_those_for_the_experts_of_a_rank);
    Suite *const suite = suite_create("expert_over_tensor");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
