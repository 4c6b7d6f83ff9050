/* kept_copies.c - blocks as iterations of a loop: what they keep is copied into arrays of all of them and out again. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>
#include <string.h>

#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a "                                                                        \
    "test','kind':'transformer','layers':2,'hidden':64,'heads':4,'kv_heads':4,"                                        \
    "'seq':32,'vocab':64,'ffn':256,'norm':'layernorm','activation':'gelu','bias':true,'dropout':false}"
#define SOFTWARE(keys) "{'schema':'dlsim/software/1','source':'a test','attention':'flash'" keys "}"
#define COPIES ",'keep_moves':3,'keep_backward_moves':0.5"

enum { layers = 2, tokens = 32, hidden = 64 };
static const double exactly = 1e-12, moves = 3, backward_moves = 0.5, element = 2 * tokens * hidden;

/* Of a block of GPT with fused attention and no dropout, in activations of one element a token and column: inputs of
 * both norms, of qkv, of fc1; queries, keys and values, the context; fc1 before and after its GELU. */
enum { outside = 4, inside = 3 + 1 + 4 + 4 };

static const struct way {
    const char *stack;
    double kept; /* of a rank, in the same unit */
} ways[] = {
    {"", outside + inside},
    {"{'name':'tensor','ways':2}", outside + inside / 2.0},
    {"{'name':'tensor','ways':2,'sequence':true}", (outside + inside) / 2.0},
    {"{'name':'recompute','mode':'full'}", 1},
    {"{'name':'recompute','mode':'full','layers':1}", (1 + outside + inside) / 2.0},
    {"{'name':'recompute','mode':'full','kept_results':['qkv','fc1']}", 1 + 3 + 4},
    {"{'name':'recompute','mode':'full','every':2}", 1 / 2.0},
    {"{'name':'recompute','mode':'selective','modules':['mlp']}", outside + inside - 9},
    {"{'name':'offload','activations':0.25}", 0.75 * (outside + inside)},
};

static void open_way(struct dl_session *t, const char *software, const char *stack)
{
    open_step(t, &(struct step){.system = FAST_SYSTEM,
                                .software = software,
                                .workload = MODEL,
                                .head = "'global_batch':1,'microbatch':1",
                                .stack = stack});
}

static double copied(const struct dl_session *t, enum dl_item_kind kind)
{
    const struct dl_template *const all = &t->lowered.positions[0].items[kind];
    double sum = 0;
    for (size_t i = 0; i < all->n_instructions; i++) {
        const struct dl_instruction *const at = &all->instructions[i];
        if (at->name && strcmp(at->name, "keep") == 0) sum += at->bytes;
    }
    return sum;
}

START_TEST(what_blocks_keep_is_copied)
{
    struct dl_session t;
    open_way(&t, SOFTWARE(COPIES), ways[_i].stack);
    const double kept = layers * element * ways[_i].kept;
    check_close(ways[_i].stack, copied(&t, DL_ITEM_F), moves * kept, exactly);
    check_close(ways[_i].stack, copied(&t, DL_ITEM_B), backward_moves * kept, exactly);
    dl_session_close(&t);
}
END_TEST

START_TEST(nothing_is_copied_unless_the_software_says_so)
{
    struct dl_session t;
    open_way(&t, SOFTWARE(""), "");
    ck_assert_double_eq(copied(&t, DL_ITEM_F) + copied(&t, DL_ITEM_B), 0);
    dl_session_close(&t);
}
END_TEST

/* The part of a block's activations that its backward copies is there twice while it works. */
START_TEST(copies_take_memory)
{
    struct dl_session t;
    open_way(&t, SOFTWARE(COPIES), "");
    const double kept = element * (outside + inside);
    check_close("saved", allocated(&t, DL_TENSOR_SAVED, 1), kept, exactly);
    check_close("sliced", allocated(&t, DL_TENSOR_SLICED, 1), kept * backward_moves / 2, exactly);
    dl_session_close(&t);
}
END_TEST

/* That is of blocks of which nothing is computed again; others keep what they are told to. */
START_TEST(blocks_keep_more_than_layers_count)
{
    struct dl_session t;
    open_way(&t, SOFTWARE(COPIES ",'kept_times':2.5"), "");
    const double kept = 2.5 * element * (outside + inside);
    check_close("saved", allocated(&t, DL_TENSOR_SAVED, 1), kept, exactly);
    check_close("copied", copied(&t, DL_ITEM_F), layers * moves * kept, exactly);
    check_close("back", copied(&t, DL_ITEM_B), layers * backward_moves * kept, exactly);
    dl_session_close(&t);
    open_way(&t, SOFTWARE(COPIES ",'kept_times':2.5"), "{'name':'recompute','mode':'full'}");
    check_close("input", allocated(&t, DL_TENSOR_SAVED, 1), element, exactly);
    dl_session_close(&t);
}
END_TEST

#define GATED                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,"            \
    "'kv_heads':2,'seq':32,'vocab':64,'ffn':128,'norm':'rmsnorm','activation':'swiglu','bias':%s,'dropout':false}"

/* Multiples of what the products take that a forward has once more. */
static const struct repeat {
    const char *stack, *bias;
    double fc1, projection;
} repeats[] = {
    {"", "false", 1, 0},
    {"", "true", 0, 0}, /* the product adds it */
    {"{'name':'recompute','mode':'full'}", "false", 0, 0},
    {"{'name':'recompute','mode':'full','layers':1}", "false", 0.5, 0},
    {"{'name':'recompute','mode':'full','kept_results':['fc1']}", "false", 1, 0},
    {"{'name':'recompute','mode':'full','kept_results':['qkv','projection']}", "false", 0, 1},
    {"{'name':'recompute','mode':'selective','modules':['mlp']}", "false", 0, 0},
    {"{'name':'tensor','ways':2,'sequence':true,'overlap_chunks':2}", "false", 1, 0},
    {"{'name':'data'},{'name':'zero','stage':3}", "false", 1, 0},
    {"{'name':'lora','rank':4,'targets':['fc1']}", "false", 0, 0}, /* what is kept is the sum with the adapter's */
    {"{'name':'lora','rank':4,'targets':['qkv','fc2']}", "false", 1, 0},
    {"{'name':'lora','rank':4,'targets':['projection']},"
     "{'name':'recompute','mode':'full','kept_results':['projection','fc1']}",
     "false", 1, 0},
    {"{'name':'tensor','ways':4,'grid':'2d'}", "false", 0, 0}, /* panels are added up */
    {"{'name':'tensor','ways':4,'grid':'3d','x':2,'y':2}", "false", 0, 0},
    {"{'name':'tensor','ways':2},{'name':'recompute','mode':'full','kept_results':['projection','fc1']}", "false", 1,
     0}, /* and parts of the projection */
};

static double flop_named(const struct dl_session *t, const char *name)
{
    const struct dl_template *const all = &t->lowered.positions[0].items[DL_ITEM_F];
    double sum = 0;
    for (size_t i = 0; i < all->n_instructions; i++) {
        const struct dl_instruction *const at = &all->instructions[i];
        if (at->name && strcmp(at->name, name) == 0) sum += at->flop;
    }
    return sum;
}

static void open_gated(struct dl_session *t, const char *stack, const char *bias)
{
    char model[400];
    snprintf(model, sizeof model, GATED, bias);
    open_step(t, &(struct step){.system = FAST_SYSTEM,
                                .software = SOFTWARE(",'repeats_kept_products':true"),
                                .workload = model,
                                .head = "'global_batch':4,'microbatch':2",
                                .stack = stack});
    ck_assert_double_gt(flop_named(t, "fc1"), 0);
}

START_TEST(products_run_again_for_what_is_kept)
{
    const struct repeat *const c = &repeats[_i];
    struct dl_session t;
    open_gated(&t, c->stack, c->bias);
    const double expected = c->fc1 * flop_named(&t, "fc1") + c->projection * flop_named(&t, "projection");
    check_close(c->stack, flop_named(&t, "kept_product"), expected, exactly);
    dl_session_close(&t);
}
END_TEST

#define KEPT(results, more) "{'name':'recompute','mode':'full','kept_results':[" results "]" more "}"
#define BEFORE ",'kept_before_bias':true"

/* Products with biases, which add them: those whose results are kept without. */
static const struct {
    const char *stack;
    bool qkv, projection, fc1;
} before_biases[] = {
    {KEPT("'qkv','projection','fc1'", ""), false, false, false},
    {KEPT("'qkv','projection','fc1'", BEFORE), true, true, true},
    {KEPT("'qkv'", BEFORE), true, false, false},
    {"{'name':'lora','rank':4,'targets':['qkv']}," KEPT("'qkv','fc1'", BEFORE), false, false, true},
};

START_TEST(products_run_again_for_what_is_kept_before_biases)
{
    const char *const stack = before_biases[_i].stack;
    struct dl_session t;
    open_gated(&t, stack, "true");
    const double expected = before_biases[_i].qkv * flop_named(&t, "qkv") +
                            before_biases[_i].projection * flop_named(&t, "projection") +
                            before_biases[_i].fc1 * flop_named(&t, "fc1");
    check_close(stack, flop_named(&t, "kept_product"), expected, exactly);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("kept_copies");
    tcase_add_loop_test(tests, what_blocks_keep_is_copied, 0, (int)DL_COUNT(ways));
    tcase_add_test(tests, nothing_is_copied_unless_the_software_says_so);
    tcase_add_test(tests, copies_take_memory);
    tcase_add_test(tests, blocks_keep_more_than_layers_count);
    tcase_add_loop_test(tests, products_run_again_for_what_is_kept, 0, (int)DL_COUNT(repeats));
    tcase_add_loop_test(tests, products_run_again_for_what_is_kept_before_biases, 0, (int)DL_COUNT(before_biases));
    Suite *const suite = suite_create("kept_copies");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
