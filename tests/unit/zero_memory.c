/* zero_memory.c - memory of what ZeRO gathers and scatters, against the bytes of its collectives: what is there for a
 * while is what has come, and whole gradients are what goes. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define HEAD "'devices':8,'global_batch':16"

static const double exactly = 1e-9;

static double sum_of_calls(const struct dl_session *t, enum dl_item_kind kind, enum dl_op op)
{
    const struct dl_template *const of = item(t, kind);
    double sum = 0;
    for (size_t i = 0; i < of->n_instructions; i++) {
        const struct dl_instruction *const at = &of->instructions[i];
        if (at->kind == DL_START && t->lowered.calls[at->call].op == op) sum += t->lowered.calls[at->call].bytes;
    }
    return sum;
}

static double sum_of_allocs(const struct dl_memory_ops *ops, enum dl_tensor_kind tensor)
{
    double sum = 0;
    for (size_t i = 0; i < ops->n; i++)
        if (ops->items[i].tensor == tensor && !ops->items[i].frees) sum += ops->items[i].bytes;
    return sum;
}

static uint32_t n_ops(const struct dl_memory_ops *ops, enum dl_tensor_kind tensor, bool frees)
{
    uint32_t n = 0;
    for (size_t i = 0; i < ops->n; i++) n += ops->items[i].tensor == tensor && ops->items[i].frees == frees;
    return n;
}

static const struct {
    const char *workload, *above, *zero;
} cases[] = {
    {FOUR_BLOCKS, "", "'stage':3"},
    {FOUR_BLOCKS, "{'name':'tensor','ways':2},", "'stage':3,'prefetch':2"},
    {FOUR_BLOCKS, "", "'stage':3,'shard_ways':4"},
    {FOUR_BLOCKS, "", "'stage':2"},
    {TWO_WITH_EXPERTS, "{'name':'expert','ways':1},", "'stage':3"},
    {TWO_WITH_EXPERTS, "{'name':'expert','ways':2},", "'stage':3"},
    {TWO_WITH_EXPERTS, "{'name':'expert','ways':8},", "'stage':3"}, /* each expert is at one rank, which keeps it */
    {TWO_WITH_EXPERTS, "{'name':'expert','ways':8},", "'stage':2"},
    {TWO_WITH_EXPERTS, "{'name':'expert','ways':8},", "'stage':3,'reshard':false"},
};

static void open_case(struct dl_session *t, const char *workload, const char *above, const char *zero)
{
    char stack[300];
    snprintf(stack, sizeof stack, "%s{'name':'data'},{'name':'zero',%s}", above, zero);
    open_step(t, &(struct step){.workload = workload, .head = HEAD, .stack = stack});
}

/* Both are in bytes of the parameters or gradients themselves. */
START_TEST(what_is_there_for_a_while_is_what_travels)
{
    struct dl_session t;
    open_case(&t, cases[_i].workload, cases[_i].above, cases[_i].zero);
    const double kept = sum_of_allocs(&t.lowered.programs[0].begin, DL_TENSOR_GATHERED);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const struct dl_memory_ops *const ops = &item(&t, (enum dl_item_kind)kind)->memory;
        const double come = sum_of_calls(&t, (enum dl_item_kind)kind, DL_ALLGATHER);
        check_close(cases[_i].zero, kept > 0 && come > 0 ? kept : sum_of_allocs(ops, DL_TENSOR_GATHERED), come,
                    exactly);
        check_close(cases[_i].zero, sum_of_allocs(ops, DL_TENSOR_UNREDUCED),
                    sum_of_calls(&t, (enum dl_item_kind)kind, DL_REDUCESCATTER), exactly);
    }
    dl_session_close(&t);
}
END_TEST

/* In another form they are there once more, where they are gathered: not in a backward that has them still. Gradients
 * are twice: as they go and as others come. */
START_TEST(what_travels_packed_is_there_where_it_comes)
{
    static const struct {
        const char *zero;
        double in_forward, in_backward; /* bytes of a value */
    } packed[] = {{"'stage':3,'gather_bits':8", 1, 1},
                  {"'stage':3,'gather_bits':8,'reshard':false", 1, 0},
                  {"'stage':3,'secondary_ways':4,'scatter_bits':4", 0, 2 * 0.5},
                  {"'stage':3,'secondary_ways':4,'gather_bits':8,'scatter_bits':6", 1, 1 + 2 * 0.75}};
    struct dl_session t;
    open_case(&t, FOUR_BLOCKS, "", packed[_i].zero);
    const double all = dl_model_parameters(&t.model);
    check_close("forward", sum_of_allocs(&item(&t, DL_ITEM_F)->memory, DL_TENSOR_PACKED), packed[_i].in_forward * all,
                exactly);
    check_close("backward", sum_of_allocs(&item(&t, DL_ITEM_B)->memory, DL_TENSOR_PACKED), packed[_i].in_backward * all,
                exactly);
    ck_assert_uint_eq(n_ops(&item(&t, DL_ITEM_B)->memory, DL_TENSOR_PACKED, true),
                      n_ops(&item(&t, DL_ITEM_B)->memory, DL_TENSOR_PACKED, false));
    dl_session_close(&t);
}
END_TEST

/* Two copies of 9/16 of a byte for each weight of a block, of what was gathered: whole while the layer works, whether
 * it stays or not, and the rank's own part of them from step to step. */
START_TEST(narrow_copies_are_whole_while_a_layer_works)
{
    static const char *const stays[] = {"", ",'reshard':false"};
    const double ranks = 8, blocks = 4, block = 12.0 * 64 * 64 + 13.0 * 64, copies = 2 * 9.0 / 16;
    char stack[200];
    struct dl_session t;
    snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero','stage':3%s}", stays[_i]);
    open_step(&t,
              &(struct step){.device = "b200",
                             .software = "{'schema':'dlsim/software/1','source':'a test','attention':'flash','operands'"
                                         ":[{'precision':'nvfp4','moves':0,'launches':0,'weight_copies':2}]}",
                             .workload = FOUR_BLOCKS,
                             .head = HEAD ",'precision':'nvfp4'",
                             .stack = stack});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const struct dl_memory_ops *const ops = &item(&t, (enum dl_item_kind)kind)->memory;
        check_close("whole", sum_of_allocs(ops, DL_TENSOR_NARROWED), blocks * block * copies, exactly);
    }
    check_close("held", t.memory[0].parameters, (2 * dl_model_parameters(&t.model) + blocks * block * copies) / ranks,
                exactly);
    dl_session_close(&t);
}
END_TEST

/* Two bytes each beside those in fp32; in bf16 with ZeRO 2, which sums them as they are, none. */
START_TEST(gradients_of_a_backward_are_beside_wider_ones)
{
    static const struct {
        const char *stage;
        double bytes_each;
    } kinds[] = {{"'stage':1", 2}, {"'stage':2", 0}};
    char stack[100];
    struct dl_session t;
    snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero',%s}", kinds[_i].stage);
    open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','attention':'flash',"
                                             "'gradient_bytes':4,'bf16_zero_gradient_bytes':2,"
                                             "'backward_gradient_bytes':2}",
                                 .workload = FOUR_BLOCKS,
                                 .head = HEAD ",'precision':'bf16'",
                                 .stack = stack});
    check_close(kinds[_i].stage, sum_of_allocs(&item(&t, DL_ITEM_B)->memory, DL_TENSOR_GRADIENT_COPIES),
                kinds[_i].bytes_each * dl_model_parameters(&t.model), exactly);
    ck_assert_uint_eq(n_ops(&item(&t, DL_ITEM_B)->memory, DL_TENSOR_GRADIENT_COPIES, true),
                      n_ops(&item(&t, DL_ITEM_B)->memory, DL_TENSOR_GRADIENT_COPIES, false));
    dl_session_close(&t);
}
END_TEST

/* Those of the step before are there at its begin, go where a backward begins, and are all there at its end. */
START_TEST(gradients_of_a_backward_may_stay_until_the_next)
{
    struct dl_session t;
    open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','attention':'flash',"
                                             "'gradient_bytes':4,'backward_gradient_bytes':2,"
                                             "'backward_gradients_stay':true}",
                                 .workload = FOUR_BLOCKS,
                                 .head = HEAD ",'precision':'bf16'",
                                 .stack = "{'name':'data'}"});
    const struct dl_memory_ops *const ops = &item(&t, DL_ITEM_B)->memory;
    const double all = 2 * dl_model_parameters(&t.model);
    check_close("held", sum_of_allocs(&t.lowered.programs[0].begin, DL_TENSOR_GRADIENT_COPIES), all, exactly);
    check_close("made", sum_of_allocs(ops, DL_TENSOR_GRADIENT_COPIES), all, exactly);
    ck_assert_uint_eq(n_ops(ops, DL_TENSOR_GRADIENT_COPIES, true), n_ops(ops, DL_TENSOR_GRADIENT_COPIES, false));
    for (size_t i = 0; i < ops->n; i++)
        ck_assert(ops->items[i].tensor != DL_TENSOR_GRADIENT_COPIES || !ops->items[i].frees || ops->items[i].at == 0);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("zero_memory");
    tcase_add_loop_test(tests, what_is_there_for_a_while_is_what_travels, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, what_travels_packed_is_there_where_it_comes, 0, 4);
    tcase_add_loop_test(tests, gradients_of_a_backward_are_beside_wider_ones, 0, 2);
    tcase_add_test(tests, gradients_of_a_backward_may_stay_until_the_next);
    tcase_add_loop_test(tests, narrow_copies_are_whole_while_a_layer_works, 0, 2);
    Suite *const suite = suite_create("zero_memory");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
