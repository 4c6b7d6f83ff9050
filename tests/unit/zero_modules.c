/* zero_modules.c - matrices that stage 3 of ZeRO gathers one by one: how often, when, and how many are there at once.
 */
#define _GNU_SOURCE /* fork, pipe */
#include "strategies/zero_modules.h"
#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

#define HEAD "'devices':8,'global_batch':8"
#define MODULES(keys)                                                                                                  \
    "{'schema':'dlsim/software/1','source':'a test','gathers_modules':true,'attention':'flash'" keys "}"
#define AGAIN "{'name':'recompute','mode':'full'},"
enum { LAYERS = 4, MATRICES = 4 };

static const double replicas = 8, exactly = 1e-9;
static struct dl_session t;
static const char *software = MODULES("");
static const char *blocks = FOUR_BLOCKS;

static void open_zero(const char *workload, const char *above, const char *options)
{
    char stack[300];
    snprintf(stack, sizeof stack, "%s{'name':'data'},{'name':'zero','stage':3%s}", above, options);
    open_step(&t, &(struct step){.software = software, .workload = workload, .head = HEAD, .stack = stack});
}

/* Limits in parameters of a block. */
static void open_limits(const char *above, double live, double reuse)
{
    struct dl_session any;
    char options[100];
    open_step(&any, &(struct step){.workload = blocks, .head = HEAD, .stack = "{'name':'data'}"});
    const double block = dl_layer_parameters(&any.model.layers[1]);
    dl_session_close(&any);
    snprintf(options, sizeof options, ",'live_parameters':%.17g,'reuse_parameters':%.17g", live * block, reuse * block);
    open_zero(blocks, above, options);
}

static double gathered_bytes(const struct dl_template *of)
{
    double sum = 0;
    for (size_t i = 0; i < of->n_instructions; i++) {
        const struct dl_instruction *const at = &of->instructions[i];
        if (at->kind != DL_START) continue;
        const struct dl_comm *const call = &t.lowered.calls[at->call];
        if (call->op == DL_ALLGATHER) sum += call->bytes;
    }
    return sum;
}

/* ---- how often ---- */

static void check_gathers_again(const char *above, double reuse, double again)
{
    open_limits(above, 100, reuse);
    const double all = dl_model_parameters(&t.model), block = dl_layer_parameters(&t.model.layers[1]);
    check_close("forward", gathered_bytes(item(&t, DL_ITEM_F)), activation_bytes * all, exactly);
    check_close("backward", gathered_bytes(item(&t, DL_ITEM_B)), activation_bytes * (all + LAYERS * again * block),
                exactly);
    dl_session_close(&t);
}

/* Between its two uses in a backward that repeats the forward, each matrix after it is used twice: 8, 16 and 18 of 12
 * squares pass by the last but one, the one before it and the first. */
START_TEST(a_matrix_is_gathered_again_if_many_pass_between_its_uses)
{
    static const struct {
        const char *above;
        double reuse, again; /* of a block, the part that is gathered for its backward too */
    } cases[] = {{AGAIN, 1e-3, 8.0 / 12},
                 {AGAIN, 7.9 / 12, 8.0 / 12},
                 {AGAIN, 8.1 / 12, 4.0 / 12},
                 {AGAIN, 1.3, 4.0 / 12},
                 {AGAIN, 16.1 / 12, 3.0 / 12},
                 {AGAIN, 1.6, 0},
                 {"", 1e-3, 0},
                 {"", 10, 0}};
    check_gathers_again(cases[_i].above, cases[_i].reuse, cases[_i].again);
}
END_TEST

/* The last one is used once, so that 4, 12 and 14 squares pass by. */
START_TEST(a_matrix_that_is_not_repeated_passes_once)
{
    static const struct {
        double reuse, again;
    } cases[] = {
        {3.9 / 12, 8.0 / 12}, {4.1 / 12, 4.0 / 12}, {11.9 / 12, 4.0 / 12}, {12.1 / 12, 3.0 / 12}, {14.1 / 12, 0}};
    software = MODULES(",'recomputes_needed':true");
    blocks = "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,"
             "'seq':32,'vocab':512,'dropout':false}";
    check_gathers_again(AGAIN, cases[_i].reuse, cases[_i].again);
}
END_TEST

START_TEST(what_has_no_matrices_of_its_own_is_gathered_whole)
{
    static const struct {
        const char *workload, *above;
    } cases[] = {{TWO_WITH_EXPERTS, ""},
                 {FOUR_BLOCKS, "{'name':'recompute','mode':'full','every':2},"},
                 {FOUR_BLOCKS, "{'name':'recompute','mode':'selective','modules':['mlp']},"}};
    open_zero(cases[_i].workload, cases[_i].above, "");
    uint32_t gathers = 0;
    const struct dl_template *const forward = item(&t, DL_ITEM_F);
    for (size_t i = 0; i < forward->n_instructions; i++) gathers += forward->instructions[i].kind == DL_START;
    ck_assert_uint_lt(gathers, t.model.n_layers + 1);
    check_close("bytes", gathered_bytes(forward), activation_bytes * dl_model_parameters(&t.model), exactly);
    dl_session_close(&t);
}
END_TEST

/* From the last matrix back: four squares, four, one and three. */
START_TEST(gradients_are_scattered_by_buckets)
{
    static const struct {
        double bucket; /* of a block */
        uint32_t n;
        double parts[MATRICES];
    } cases[] = {{1e-3, 4, {4, 4, 1, 3}},
                 {4.1 / 12, 3, {4, 4, 4}},
                 {5.1 / 12, 3, {4, 5, 3}},
                 {8.1 / 12, 2, {8, 4}},
                 {2, 1, {12}}};
    double parts[DL_MOST_MODULES];
    open_zero(FOUR_BLOCKS, "", "");
    const struct dl_layer *const block = &t.model.layers[1];
    const struct dl_module_rules rules = {.setting = &t.job.setting,
                                          .bucket_parameters = cases[_i].bucket * dl_layer_parameters(block)};
    ck_assert_uint_eq(dl_modules_buckets(&rules, block, parts), cases[_i].n);
    for (uint32_t i = 0; i < cases[_i].n; i++) check_close("part", parts[i], cases[_i].parts[i] / 12, exactly);
    dl_session_close(&t);
}
END_TEST

/* ---- when ---- */

/* Gathers that something is done between them and the wait for them. */
static uint32_t count_ahead(const struct dl_template *of, uint32_t *all)
{
    uint32_t n = 0;
    *all = 0;
    for (size_t i = 0; i + 1 < of->n_instructions; i++) {
        const struct dl_instruction *const at = &of->instructions[i];
        if (at->kind != DL_START || t.lowered.calls[at->call].op != DL_ALLGATHER) continue;
        n += !(at[1].kind == DL_WAIT && at[1].call == at->call);
        ++*all;
    }
    return n;
}

/* The embedding waits for its own; from then on one is always under way, to that of the final norm, unless none may
 * be. */
START_TEST(the_next_is_gathered_while_one_is_at_work_if_it_may_live)
{
    static const struct {
        double live;
        uint32_t ahead; /* in the forward */
    } cases[] = {{100, LAYERS * MATRICES + 1}, {1e-3, 0}};
    uint32_t all;
    open_limits("", cases[_i].live, 1e-3);
    ck_assert_uint_eq(count_ahead(item(&t, DL_ITEM_F), &all), cases[_i].ahead);
    ck_assert_uint_eq(all, LAYERS * MATRICES + 2);
    dl_session_close(&t);
}
END_TEST

/* Every product finds its own: no wait comes after the kernel that needs it, and none is missing. */
START_TEST(each_product_waits_for_its_matrix)
{
    open_limits("", 100, 1e-3);
    const struct dl_template *const forward = item(&t, DL_ITEM_F);
    uint32_t waits = 0, products = 0;
    for (size_t i = 0; i < forward->n_instructions; i++) {
        const struct dl_instruction *const at = &forward->instructions[i];
        waits += at->kind == DL_WAIT;
        if (at->kind == DL_DO && at->flop > 0 && strcmp(at->name, "attention") != 0) {
            products++;
            ck_assert_uint_eq(waits, products + 1);
        }
    }
    dl_session_close(&t);
}
END_TEST

/* Adapters come with their matrices, however many they are: nothing is held back by them, and all of it is gathered. */
START_TEST(adapters_go_with_their_matrices)
{
    static const char *const targets[] = {"'qkv'", "'qkv','projection','fc1','fc2'"};
    char above[120];
    uint32_t all;
    snprintf(above, sizeof above, "{'name':'lora','rank':8,'targets':[%s]},", targets[_i]);
    open_limits(above, 100, 1e-3);
    ck_assert_uint_eq(count_ahead(item(&t, DL_ITEM_F), &all), LAYERS * MATRICES + 1);
    ck_assert_uint_eq(all, LAYERS * MATRICES + 2);
    check_close("bytes", gathered_bytes(item(&t, DL_ITEM_F)),
                activation_bytes * (dl_model_parameters(&t.model) + dl_model_frozen(&t.model)), exactly);
    dl_session_close(&t);
}
END_TEST

/* Frozen weights fill no bucket. */
START_TEST(gradients_of_adapters_are_few)
{
    double parts[DL_MOST_MODULES];
    open_zero(FOUR_BLOCKS, "{'name':'lora','rank':8,'targets':['qkv','projection','fc1','fc2']},", "");
    const struct dl_layer *const block = &t.model.layers[1];
    const struct dl_module_rules rules = {.setting = &t.job.setting,
                                          .bucket_parameters = 1.01 * dl_layer_parameters(block)};
    ck_assert_double_lt(dl_layer_parameters(block), block->frozen_inside / 3);
    ck_assert_uint_eq(dl_modules_buckets(&rules, block, parts), 1);
    dl_session_close(&t);
}
END_TEST

/* ---- how many at once ---- */

/* With all kept to the backward a whole block is there. With none, the last matrix, which stays in use, and two that
 * are gathered meanwhile; if nothing may go ahead, one. */
START_TEST(memory_is_that_of_the_matrices_that_live)
{
    static const struct {
        double live, reuse, at_once; /* of a block */
    } cases[] = {{100, 100, 1}, {100, 1e-3, 9.0 / 12}, {1e-3, 1e-3, 4.0 / 12}};
    open_limits(AGAIN, cases[_i].live, cases[_i].reuse);
    const struct dl_layer *const block = &t.model.layers[1];
    check_close("live", allocated(&t, DL_TENSOR_GATHERED, 1),
                activation_bytes * cases[_i].at_once * dl_layer_parameters(block), exactly);
    ck_assert_double_lt(t.memory[0].parameters, activation_bytes * dl_model_parameters(&t.model) / replicas * 1.01);
    dl_session_close(&t);
}
END_TEST

/* ---- refusals ---- */

START_TEST(limits_need_matrices_one_by_one)
{
    static const struct {
        const char *software, *options, *key;
    } cases[] = {
        {NULL, "'stage':3,'live_parameters':1e9", "live_parameters"},
        {MODULES(""), "'stage':3,'prefetch':1,'reuse_parameters':1e9", "reuse_parameters"},
        {MODULES(""), "'stage':2,'live_parameters':1e9", "live_parameters"},
        {NULL, "'stage':3,'bucket_parameters':1e9", "bucket_parameters"},
    };
    char message[200];
    snprintf(message, sizeof message,
             "test.json:/stack/1/%s: needs stage 3, no prefetch, and software with gathers_modules; leave it out",
             cases[_i].key);
    char stack[200];
    snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero',%s}", cases[_i].options);
    check_refusal(&(struct step){.software = cases[_i].software, .workload = FOUR_BLOCKS, .head = HEAD, .stack = stack},
                  message);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("zero_modules");
    TCase *const tests = tcase_create("zero_modules");
    tcase_add_loop_test(tests, a_matrix_is_gathered_again_if_many_pass_between_its_uses, 0, 8);
    tcase_add_loop_test(tests, a_matrix_that_is_not_repeated_passes_once, 0, 5);
    tcase_add_loop_test(tests, what_has_no_matrices_of_its_own_is_gathered_whole, 0, 3);
    tcase_add_loop_test(tests, gradients_are_scattered_by_buckets, 0, 5);
    tcase_add_loop_test(tests, the_next_is_gathered_while_one_is_at_work_if_it_may_live, 0, 2);
    tcase_add_test(tests, each_product_waits_for_its_matrix);
    tcase_add_loop_test(tests, adapters_go_with_their_matrices, 0, 2);
    tcase_add_test(tests, gradients_of_adapters_are_few);
    tcase_add_loop_test(tests, memory_is_that_of_the_matrices_that_live, 0, 3);
    tcase_add_loop_test(tests, limits_need_matrices_one_by_one, 0, 4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
