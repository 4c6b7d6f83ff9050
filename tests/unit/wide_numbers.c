/* wide_numbers.c - steps in fp32: what a loss keeps of its logits, and attention that no fused kernel takes. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

enum { HEADS = 16, SEQ = 32, SAMPLES = 2, VOCAB = 512 };
#define MODEL(key_heads)                                                                                               \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,"           \
    "'kv_heads':" key_heads ",'seq':32,'vocab':512,'dropout':false}"
#define BATCH(precision) "'global_batch':2,'microbatch':2,'precision':'" precision "'"
#define SOFTWARE(keys) "{'schema':'dlsim/software/1','source':'a test','attention':'flash'" keys "}"

static const double exactly = 1e-12;

static void open_wide(struct dl_session *t, const char *software, const char *head, const char *workload)
{
    open_step(t, &(struct step){.software = software, .workload = workload, .head = head, .stack = "{'name':'data'}"});
}

/* The softmax is in fp32 in every step; what a norm and a product are given is twice as wide. */
START_TEST(a_loss_keeps_its_logits_once_in_fp32)
{
    const double loss = 4.0 * SAMPLES * SEQ * VOCAB;
    struct dl_session narrow, wide;
    open_wide(&narrow, SOFTWARE(""), BATCH("bf16"), MODEL("16"));
    open_wide(&wide, SOFTWARE(""), BATCH("fp32"), MODEL("16"));
    const size_t last = narrow.model.n_layers - 1;
    ck_assert(saved_bytes(&narrow, last) > loss);
    check_close("head", saved_bytes(&wide, last) - loss, 2 * (saved_bytes(&narrow, last) - loss), exactly);
    check_close("block", saved_bytes(&wide, 1), 2 * saved_bytes(&narrow, 1), exactly);
    dl_session_close(&wide);
    dl_session_close(&narrow);
}
END_TEST

static bool is_fused(const struct dl_kernel *k) { return k->kind == DL_KERNEL_ATTENTION; }

/* PyTorch: grouped queries in fp32 have no kernel but the one of parts, which keeps a softmax of all scores. */
START_TEST(groups_may_have_scores_in_memory_if_numbers_are_wide)
{
    static const struct {
        const char *software, *head, *model;
        bool fused;
    } cases[] = {
        {SOFTWARE(",'unfused_wide_groups':true"), BATCH("fp32"), MODEL("4"), false},
        {SOFTWARE(",'unfused_wide_groups':true"), BATCH("fp32"), MODEL("16"), true},
        {SOFTWARE(",'unfused_wide_groups':true"), BATCH("bf16"), MODEL("4"), true},
        {SOFTWARE(""), BATCH("fp32"), MODEL("4"), true},
    };
    const double scores = 4.0 * SAMPLES * HEADS * SEQ * SEQ;
    struct dl_session t, fused;
    open_wide(&t, cases[_i].software, cases[_i].head, cases[_i].model);
    open_wide(&fused, SOFTWARE(""), cases[_i].head, cases[_i].model);
    ck_assert_int_eq(dl_model_find(&t.model, is_fused) != NULL, cases[_i].fused);
    check_close("activations", t.memory[0].activations - fused.memory[0].activations, cases[_i].fused ? 0 : 2 * scores,
                exactly);
    dl_session_close(&fused);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("wide_numbers");
    TCase *const tests = tcase_create("wide_numbers");
    tcase_add_test(tests, a_loss_keeps_its_logits_once_in_fp32);
    tcase_add_loop_test(tests, groups_may_have_scores_in_memory_if_numbers_are_wide, 0, 4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
