/* kept_by_autograd.c - what PyTorch keeps of a block of transformers for its backward, counted tensor by tensor. */
#include "tests/unit/training_memory.h"

enum { SEQ = 128, HIDDEN = 512, HEADS = 8, KEY_HEADS = 2, FFN = 1536, BF16 = 2, FP32 = 4 };

static const double hidden = HIDDEN, ffn = FFN, keys = HIDDEN / HEADS * KEY_HEADS;

#define DECODER(more)                                                                                                  \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':512,'heads':8,"           \
    "'ffn':1536,'seq':128,'positions':'rotary','norm':'rmsnorm','bias':false,'dropout':false" more "}"
#define WORDS ",'vocab':512"
#define GROUPS WORDS ",'projections':'apart','kv_heads':2"

/* Of a token. By parts, a norm keeps its input in fp32 and what it makes of that before the gain; compiled, its input
 * alone. Behind each there is what products are given. */
static double norms(bool is_compiled) { return 2 * hidden * (is_compiled ? BF16 + BF16 : FP32 + BF16 + BF16); }

/* The gate, the other half, their product, and in eager mode the function of the gate. */
static double gated(bool is_compiled) { return (is_compiled ? 3 : 4) * ffn * BF16; }

static const double all_heads = 4 * (double)HIDDEN * BF16; /* queries, keys, values and what attention makes of them */

/* Keys and values of fewer heads. */
static double few_heads(void) { return 2 * (hidden + keys) * BF16; }

/* Values stay a part of what they came in with queries and keys, which are rotated into tensors of their own. */
static double parts(void) { return 2 * hidden * BF16; }

/* In the order of heads and in that of tokens. */
static double result_again(void) { return hidden * BF16; }

static const struct {
    const char *software, *workload;
    bool is_compiled;
    double (*attention)(void);
    bool has_parts, copies_result;
} cases[] = {
    {"pytorch-transformers", DECODER(GROUPS ",'activation':'swiglu'"), false, few_heads, false, false},
    {"pytorch-transformers-2024", DECODER(GROUPS ",'activation':'swiglu'"), false, NULL, false, false},
    {"pytorch-transformers", DECODER(GROUPS ",'activation':'geglu'"), false, few_heads, false, false},
    {"pytorch-transformers", DECODER(WORDS ",'activation':'swiglu'"), false, NULL, true, true},
    {"pytorch-transformers-compiled", DECODER(GROUPS ",'activation':'swiglu'"), true, NULL, false, false},
    {"pytorch-transformers-compiled", DECODER(WORDS ",'activation':'swiglu'"), true, NULL, true, false},
};

START_TEST(a_block_keeps_these_tensors)
{
    const bool is_compiled = cases[_i].is_compiled;
    const double attention = cases[_i].attention ? cases[_i].attention() : all_heads;
    const double rest = (cases[_i].has_parts ? parts() : 0) + (cases[_i].copies_result ? result_again() : 0);
    const double wanted = SEQ * (norms(is_compiled) + gated(is_compiled) + attention + rest);
    open_strategy(cases[_i].workload, cases[_i].software, "'global_batch':1,'precision':'bf16'", "");
    const double kept = saved_bytes(&training, 1);
    ck_assert_msg(fabs(kept - wanted) < 1e-3 * wanted, "%s: %g, not %g", cases[_i].software, kept, wanted);
    dl_session_close(&training);
}
END_TEST

/* Devices that share a sequence have a part of the logits each, and all of the weights. */
static const struct {
    const char *stack;
    double ranks;
} sequences[] = {{"", 1}, {"{'name':'context','ways':4},{'name':'data'}", 4}};

/* 513 columns are no multiple of eight: inductor pads a copy of the logits' gradient and one of the weights, to 520,
 * of which the padding is left out here. */
START_TEST(odd_logits_have_padded_copies_where_products_are_padded)
{
    static const struct {
        const char *software;
        double copies;
    } padded[] = {{"pytorch-eager", 0}, {"pytorch-compiled", 1}, {"pytorch-transformers-compiled", 0}};
    const double odd = 513, even = 512, tokens = SEQ / sequences[_i].ranks;
    for (size_t i = 0; i < DL_COUNT(padded); i++) {
        double bytes[2];
        for (int is_odd = 0; is_odd < 2; is_odd++) {
            open_strategy(is_odd ? DECODER(",'vocab':513") : DECODER(",'vocab':512"), padded[i].software,
                          "'global_batch':1,'precision':'bf16'", sequences[_i].stack);
            bytes[is_odd] = allocated(&training, DL_TENSOR_PASSING, 3);
            dl_session_close(&training);
        }
        const double of_weights = i > 0 ? BF16 * odd * HIDDEN : 0, of_logits = padded[i].copies * BF16 * odd * tokens;
        const double each = (bytes[0] - BF16 * tokens) / (even * tokens); /* a loss a token, and what a logit needs */
        const double wanted = of_weights + of_logits + each * (odd - even) * tokens;
        ck_assert_msg(fabs(bytes[1] - bytes[0] - wanted) < 1e-9 * wanted + 1e-6, "%s: %g, not %g", padded[i].software,
                      bytes[1] - bytes[0], wanted);
    }
}
END_TEST

/* Of a head with weights of its own, gradients of these are made when what the loss needs is gone: the larger counts.
 * With two micro-batches they are there from the first. */
START_TEST(a_head_has_its_gradients_after_its_loss)
{
    static const struct {
        const char *workload, *batch;
        bool is_tied, comes_later;
    } heads[] = {
        {DECODER(WORDS), "'precision':'bf16','global_batch':8,'microbatch':8", true, true},
        {DECODER(WORDS ",'tied_embedding':false"), "'precision':'bf16','global_batch':8,'microbatch':8", false, true},
        {DECODER(WORDS ",'tied_embedding':false"), "'precision':'bf16','global_batch':16,'microbatch':8", false,
         false}};
    const double tokens = 8 * SEQ / sequences[_i].ranks, words = 512, each = 6, weights = BF16 * words * HIDDEN;
    for (size_t i = 0; i < DL_COUNT(heads); i++) {
        open_strategy(heads[i].workload, "pytorch-transformers", heads[i].batch, sequences[_i].stack);
        const double less = !heads[i].is_tied && heads[i].comes_later ? weights : 0;
        const double wanted = each * tokens * words - less + BF16 * tokens;
        const double passing = allocated(&training, DL_TENSOR_PASSING, 3);
        ck_assert_msg(fabs(passing - wanted) < 1e-9 * wanted, "%zu: %g, not %g", i, passing, wanted);
        dl_session_close(&training);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("kept_by_autograd");
    tcase_add_loop_test(tests, a_block_keeps_these_tensors, 0, (int)DL_COUNT(cases));
    tcase_add_loop_test(tests, a_head_has_its_gradients_after_its_loss, 0, (int)DL_COUNT(sequences));
    tcase_add_loop_test(tests, odd_logits_have_padded_copies_where_products_are_padded, 0, (int)DL_COUNT(sequences));
    Suite *const suite = suite_create("kept_by_autograd");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
