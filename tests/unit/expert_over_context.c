/* expert_over_context.c - experts that context ranks have apart, alone or with tensor ranks: what travels, who sums
 * what, and what a rank has. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

#define CONTEXT 2
#define MODEL SMALL_EXPERTS("16", "")
#define BATCH "'global_batch':16,'microbatch':2,'devices':16"

static const double exactly = 1e-9;

/* Sixteen devices: experts over two tensor and two context ranks, as far as these are counted, and data ranks. */
static const struct {
    uint32_t ways, tensor;
    const char *over;
} cases[] = {{2, 1, ",'over_context':true"},
             {4, 1, ",'over_context':true"},
             {16, 1, ",'over_context':true"},
             {4, 2, ",'over_context':true"},
             {4, 2, ",'over_context':true,'over_tensor':true"},
             {16, 2, ",'over_context':true,'over_tensor':true"}};

static void open_experts(struct dl_session *t, uint32_t ways, uint32_t tensor, const char *over)
{
    static char stack[300];
    snprintf(stack, sizeof stack,
             "{'name':'expert','ways':%u%s},{'name':'context','ways':2,'zigzag':true},"
             "{'name':'tensor','ways':%u,'sequence':true},{'name':'data'}",
             ways, over, tensor);
    open_step(t, &(struct step){.workload = MODEL, .head = BATCH, .stack = stack});
}

static double expert_parameters(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

/* Each rank sends the copies of its own tokens, there and back; one of `ways` stays. */
START_TEST(ranks_send_tokens_of_their_own)
{
    struct dl_session t;
    open_experts(&t, cases[_i].ways, cases[_i].tensor, cases[_i].over);
    const double own = activation_bytes * SAMPLES * SEQ * TOP_K * HIDDEN / CONTEXT / cases[_i].tensor;
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S,
                    LAYERS * 2 * once(cases[_i].ways, own), exactly);
    ck_assert_uint_eq(dl_n_expert_ranks(&t.job.setting), cases[_i].ways);
    dl_session_close(&t);
}
END_TEST

/* Of all ranks that hold a part of the experts, those that hold the same one sum its gradients: 16 over the parts. */
START_TEST(a_rank_holds_its_part_and_shares_it_with_the_rest)
{
    struct dl_session t;
    open_experts(&t, cases[_i].ways, cases[_i].tensor, cases[_i].over);
    const struct dl_setting *const s = &t.job.setting;
    const bool is_cut = !strstr(cases[_i].over, "tensor"); /* by tensor ranks, beside `ways` */
    const double parts = cases[_i].ways * (is_cut ? cases[_i].tensor : 1.0);
    const struct dl_on_rank on_rank = dl_on_rank(s, 0, 0, expert_parameters(&t.model));
    check_close("experts", on_rank.of_experts, expert_parameters(&t.model) / parts, exactly);
    ck_assert_double_eq(dl_copies(s, true), 16 / parts);
    ck_assert_uint_eq(dl_copies(s, false), 16 / cases[_i].tensor);
    dl_session_close(&t);
}
END_TEST

/* With as many ranks in all it is the same work, and the same memory, as with experts over data ranks alone. */
START_TEST(ranks_have_and_do_as_much_as_with_experts_over_data)
{
    struct dl_session context, data;
    open_experts(&context, 4, 1, ",'over_context':true");
    open_experts(&data, 4, 1, "");
    check_close("flop", flop_of(&context), flop_of(&data), exactly);
    check_close("parameters", context.memory[0].parameters, data.memory[0].parameters, exactly);
    check_close("gradients", context.memory[0].gradients, data.memory[0].gradients, exactly);
    check_close("activations", context.memory[0].activations, data.memory[0].activations, exactly);
    dl_session_close(&context);
    dl_session_close(&data);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("expert_over_context");
    tcase_add_loop_test(tests, ranks_send_tokens_of_their_own, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, a_rank_holds_its_part_and_shares_it_with_the_rest, 0, DL_COUNT(cases));
    tcase_add_test(tests, ranks_have_and_do_as_much_as_with_experts_over_data);
    Suite *const suite = suite_create("expert_over_context");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
