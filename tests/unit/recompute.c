/* recompute.c - some blocks done again, and groups of blocks that keep one input: time, memory and gathers. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>
#include <string.h>

#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

#define GPT                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':12,'hidden':64,'heads':4,'seq':32,"  \
    "'vocab':64,'dropout':false}"

static const double exactly = 1e-12;

static const struct counted_case {
    const char *options;
    double ways;    /* stages; blocks are 12 in all */
    double blocks;  /* of a stage that are done again */
    double inputs;  /* kept instead of all */
    double largest; /* group */
} cases[] = {
    {"", 1, 12, 12, 1},
    {",'layers':5", 1, 5, 5, 1},
    {",'layers':12", 1, 12, 12, 1},
    {",'every':1", 1, 12, 12, 1},
    {",'every':4", 1, 12, 3, 4},
    {",'every':5", 1, 12, 3, 5}, /* 5, 5 and 2 */
    {",'every':12", 1, 12, 1, 12},
    {",'every':3,'layers':7", 1, 7, 3, 3}, /* 3, 3 and 1 */
    {",'layers':2", 3, 2, 2, 1},           /* of each stage */
    {",'every':2", 3, 4, 2, 2},
};

static void open_case(struct dl_session *t, const char *recompute, double ways)
{
    char stack[300];
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':%.0f}%s", ways, recompute);
    open_step(t, &(struct step){.system = FAST_SYSTEM, .workload = GPT, .head = "'global_batch':8", .stack = stack});
}

static void open_full(struct dl_session *t, const struct counted_case *c)
{
    char recompute[200];
    snprintf(recompute, sizeof recompute, ",{'name':'recompute','mode':'full'%s}", c->options);
    open_case(t, recompute, c->ways);
}

/* Blocks are alike: what is done again is so many of their forwards. */
START_TEST(time_is_that_of_the_blocks_done_again)
{
    struct dl_session t, plain;
    open_full(&t, &cases[_i]);
    open_case(&plain, "", 12); /* stages of one block; the second has nothing else */
    const struct dl_segment *const block = &plain.lowered.positions[1].items[DL_ITEM_F].total;
    for (uint32_t i = 0; i < t.lowered.n_positions; i++) {
        const struct dl_segment *const backward = &t.lowered.positions[i].items[DL_ITEM_B].total;
        check_close(cases[_i].options, backward->by_cause[DL_CAUSE_RECOMPUTE], cases[_i].blocks * block->seconds,
                    exactly);
    }
    dl_session_close(&t);
    dl_session_close(&plain);
}
END_TEST

/* Of the second block, on a stage of its own: all from this product on, or from the end of it on. */
static double seconds_from(const struct dl_template *forward, const char *product, bool with_it)
{
    double sum = 0;
    size_t i = forward->n_instructions;
    while (i-- > 0) {
        const struct dl_instruction *const in = &forward->instructions[i];
        const bool is_it = in->name && strcmp(in->name, product) == 0;
        if (!is_it || with_it) sum += in->device_s;
        if (is_it) return sum;
    }
    ck_abort_msg("there is no %s", product);
}

#define BLOCKS(keys)                                                                                                   \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':64" keys "}"

/* The gradients of a product need what it was given. A mask of dropout has to be drawn again, and what experts made is
 * needed for the gradients of their weights in the sum. */
START_TEST(the_end_of_a_block_need_not_be_done_again)
{
    static const struct {
        const char *workload, *last;
        bool with_it;
    } ends[] = {{BLOCKS(",'dropout':false"), "fc2", true},
                {BLOCKS(",'dropout':false,'parallel_norms':1"), "fc2", true},
                {BLOCKS(",'dropout':true"), "residual", false},
                {BLOCKS(",'dropout':false,'experts':4,'top_k':2"), "unpermute", false}};
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','recomputes_needed':true}";
    static const char stack[] = "{'name':'pipeline','ways':4},{'name':'recompute','mode':'full'}";
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = software,
                                 .workload = ends[_i].workload,
                                 .head = "'global_batch':8",
                                 .stack = stack});
    const struct dl_position *const block = &t.lowered.positions[1];
    const struct dl_template *const forward = &block->items[DL_ITEM_F];
    double all = 0;
    for (size_t i = 0; i < forward->n_instructions; i++) all += forward->instructions[i].device_s;
    const double left_out = seconds_from(forward, ends[_i].last, ends[_i].with_it);
    ck_assert_int_eq(left_out > 0, _i != 2);
    check_close("again", block->items[DL_ITEM_B].total.by_cause[DL_CAUSE_RECOMPUTE], all - left_out, exactly);
    dl_session_close(&t);
}
END_TEST

/* What a forward leaves at a stage. */
static double left_by_forward(const struct dl_session *t, uint32_t stage)
{
    const struct dl_position *const p = &t->lowered.positions[t->lowered.schedule.position_of[stage]];
    double sum = 0;
    for (size_t i = p->first_layer; i < p->end_layer; i++) sum += saved_bytes(t, i);
    return sum;
}

static double most_at_work(const struct dl_session *t)
{
    double most = 0;
    for (size_t i = 0; i < t->model.n_layers; i++) most = fmax(most, at_work_bytes_of(t, i));
    return most;
}

/* Of the last stage, which has one micro-batch under way: a block keeps all, or its input, or nothing. The group that
 * goes backward has all of its blocks' again, beside at most what the forward has left. */
START_TEST(memory_is_inputs_of_groups_and_all_of_the_rest)
{
    const struct counted_case *const c = &cases[_i];
    struct dl_session t, plain;
    open_full(&t, c);
    open_case(&plain, "", c->ways);
    const uint32_t last = (uint32_t)c->ways - 1;
    const double all = saved_bytes(&plain, 1);
    const double input = plain.model.layers[1].saved.input_bytes, left = left_by_forward(&t, last);
    check_close(c->options, left_by_forward(&plain, last) - left, c->blocks * all - c->inputs * input, exactly);
    const double moving = t.memory[last].activations + t.memory[last].workspace;
    ck_assert_double_ge(moving, c->largest * all);
    ck_assert_double_le(moving, (left + c->largest * all - input + most_at_work(&t)) * (1 + exactly));
    dl_session_close(&t);
    dl_session_close(&plain);
}
END_TEST

#define LLAMA                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,"            \
    "'kv_heads':2,'ffn':192,'seq':32,'vocab':64,'norm':'rmsnorm','activation':'swiglu','positions':'rotary',"          \
    "'projections':'apart','bias':false,'dropout':false}"
#define BY_OP "{'name':'recompute','mode':'full','keeps':'alternate_gemms'}"

static double again_s(const struct dl_session *t)
{
    return t->lowered.positions[1].items[DL_ITEM_B].total.by_cause[DL_CAUSE_RECOMPUTE];
}

/* So is a sum of kernels of a forward, by their names. */
static double named_s(const struct dl_template *forward, const char *const *names, size_t n_names)
{
    double sum = 0;
    for (size_t i = 0; i < forward->n_instructions; i++)
        for (size_t j = 0; j < n_names; j++)
            if (forward->instructions[i].name && strcmp(forward->instructions[i].name, names[j]) == 0)
                sum += forward->instructions[i].device_s;
    return sum;
}

/* Queries, values and the gate, which are the first, third and fifth product, attention, and the block's input; all
 * but the input are cut by tensor ranks, and sums over these are kept as well. The last product is not needed. */
START_TEST(every_other_product_and_attention_are_kept)
{
    static const char *const repeated[] = {"norm1", "k", "rotary", "norm2", "up", "activation", "projection"};
    static const struct {
        const char *stack;
        double ways, sums;
    } ranks[] = {{"{'name':'pipeline','ways':4}," BY_OP, 1, 0},
                 {"{'name':'pipeline','ways':4},{'name':'tensor','ways':2}," BY_OP, 2, 1}};
    const double tokens = 32, hidden = 64, keys = 32, ffn = 192, bytes = 2, sums = ranks[_i].sums;
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = "torchtitan",
                                 .workload = LLAMA,
                                 .head = "'global_batch':8,'precision':'bf16'",
                                 .stack = ranks[_i].stack});
    const size_t n_repeated = DL_COUNT(repeated) - (size_t)sums;
    check_close("kept", saved_bytes(&t, 1),
                bytes * tokens * (hidden * (1 + sums) + (2 * hidden + keys + ffn) / ranks[_i].ways), exactly);
    check_close("again", again_s(&t), named_s(&t.lowered.positions[1].items[DL_ITEM_F], repeated, n_repeated), exactly);
    dl_session_close(&t);
}
END_TEST

static size_t count_gathers(const struct dl_session *t, const struct dl_template *template)
{
    size_t n = 0;
    for (size_t i = 0; i < template->n_instructions; i++)
        if (template->instructions[i].kind == DL_START &&
            t->lowered.calls[template->instructions[i].call].op == DL_ALLGATHER)
            n++;
    return n;
}

/* A group is done again from its first block on, before the last one goes backward: all but that one need their
 * parameters twice. */
START_TEST(groups_gather_parameters_again)
{
    static const struct {
        const char *options;
        size_t more;
    } gathers[] = {{"", 0}, {",'every':4", 3 * 3}, {",'every':5", 4 + 4 + 1}, {",'every':3,'layers':7", 2 + 2}};
    const size_t n_layers = 14; /* with the embedding and the head */
    struct dl_session t;
    char stack[300];
    snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero','stage':3},{'name':'recompute','mode':'full'%s}",
             gathers[_i].options);
    open_step(&t, &(struct step){.workload = GPT, .head = "'devices':4,'global_batch':4", .stack = stack});
    ck_assert_uint_eq(count_gathers(&t, &t.lowered.positions[0].items[DL_ITEM_F]), n_layers);
    ck_assert_uint_eq(count_gathers(&t, &t.lowered.positions[0].items[DL_ITEM_B]), n_layers + gathers[_i].more);
    const struct training_outcome outcome = training_simulate(&t, "simgrid");
    ck_assert_msg(outcome.result.complete, "%s", outcome.err.text);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("recompute");
    tcase_add_loop_test(tests, time_is_that_of_the_blocks_done_again, 0, (int)DL_COUNT(cases));
    tcase_add_loop_test(tests, the_end_of_a_block_need_not_be_done_again, 0, 4);
    tcase_add_loop_test(tests, memory_is_inputs_of_groups_and_all_of_the_rest, 0, (int)DL_COUNT(cases));
    tcase_add_loop_test(tests, groups_gather_parameters_again, 0, 4);
    tcase_add_loop_test(tests, every_other_product_and_attention_are_kept, 0, 2);
    Suite *const suite = suite_create("recompute");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
