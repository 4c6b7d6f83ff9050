/* expert_padding.c - rows of experts that narrow products want in multiples, and experts that all get as many. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

#define MODEL SMALL_EXPERTS("8", "")
#define SOFTWARE                                                                                                       \
    "{'schema':'dlsim/software/1','source':'a test','attention':'flash','host_s_per_launch':1e-3,"                     \
    "'drains_at_dispatch':true,'drains_at_batches':false,"                                                             \
    "'operands':[{'precision':'fp16','moves':0,'launches':0,'pads':true}]}"

static const double exactly = 1e-9, memory_bytes_per_s = 1e18; /* of IDEAL_DEVICE */

static void open_experts(struct dl_session *t, const char *precision, const char *options)
{
    static char stack[200], head[200];
    snprintf(stack, sizeof stack, "{'name':'expert','ways':4%s},{'name':'data'}", options);
    snprintf(head, sizeof head, "'global_batch':16,'microbatch':2,'devices':8,'precision':'%s'", precision);
    open_step(t, &(struct step){.software = SOFTWARE, .workload = MODEL, .head = head, .stack = stack});
}

static uint32_t count_named(const struct dl_session *t, enum dl_item_kind kind, const char *name)
{
    uint32_t n = 0;
    for (size_t i = 0; i < item(t, kind)->n_instructions; i++)
        n += strcmp(item(t, kind)->instructions[i].name, name) == 0;
    return n;
}

static uint32_t count_drains(const struct dl_session *t)
{
    uint32_t n = 0;
    for (size_t i = 0; i < item(t, DL_ITEM_F)->n_instructions; i++)
        n += item(t, DL_ITEM_F)->instructions[i].kind == DL_DRAIN;
    return n;
}

/* All copies that came are read and written before the products and after them, forward and backward: where products
 * are narrow, tokens come copy by copy, and experts get unequal numbers of them. */
START_TEST(narrow_rows_are_padded_and_cut_again)
{
    static const struct {
        const char *precision, *options;
        uint32_t n_pads;
    } cases[] = {{"fp16", "", 2 * LAYERS},
                 {"bf16", "", 0}, /* the software says nothing of it */
                 {"fp16", ",'dispatch':'to_nodes'", 0},
                 {"fp16", ",'even':true", 0}};
    const double copies_bytes = activation_bytes * SAMPLES * SEQ * TOP_K * HIDDEN;
    struct dl_session t;
    open_experts(&t, cases[_i].precision, cases[_i].options);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        ck_assert_uint_eq(count_named(&t, kind, "pad"), cases[_i].n_pads);
        check_close("bytes", kernels_s(&t, kind, "pad") * memory_bytes_per_s, cases[_i].n_pads * 2 * copies_bytes,
                    exactly);
    }
    dl_session_close(&t);
}
END_TEST

/* Numbers that are known before nobody tells, and no host waits for; copies and their weights travel all the same. */
START_TEST(nobody_counts_tokens_of_even_experts)
{
    static const struct {
        const char *options;
        uint32_t n_drains, n_trips;
    } cases[] = {{"", LAYERS, 4 * LAYERS}, {",'even':true", 0, 3 * LAYERS}};
    struct dl_session t;
    open_experts(&t, "bf16", cases[_i].options);
    ck_assert_uint_eq(count_drains(&t), cases[_i].n_drains);
    ck_assert_uint_eq(count_cause(&t, DL_ITEM_F, DL_CAUSE_EXPERT), cases[_i].n_trips);
    ck_assert_uint_eq(count_named(&t, DL_ITEM_F, "count_tokens"), cases[_i].n_drains);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("expert_padding");
    tcase_add_loop_test(tests, narrow_rows_are_padded_and_cut_again, 0, 4);
    tcase_add_loop_test(tests, nobody_counts_tokens_of_even_experts, 0, 2);
    Suite *const suite = suite_create("expert_padding");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
