/* encoder.c - transformers with an encoder and a decoder: what a block of the decoder computes, keeps and sends beyond
 * one of GPT, by closed forms. */
#include "tests/unit/workload_fixture.h"

enum { n_encoding = 3, n_decoding = 4 };
static const double samples = 2, h = 64, heads = 4, s = 16, e = 32;

#define TRANSLATOR                                                                                                     \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'encoder_layers':3,'hidden':64,"   \
    "'heads':4,'seq':16,'encoder_seq':32,'vocab':512,'dropout':false"

static void open_translator(const char *more, const char *attention)
{
    char text[600];
    snprintf(text, sizeof text, TRANSLATOR "%s}", more);
    open_text(text);
    build(samples, attention);
}

/* The first of the decoder ends the encoder. */
static const struct dl_layer *encoder_block(void) { return &model.layers[1]; }
static const struct dl_layer *first_of_decoder(void) { return &model.layers[1 + n_encoding]; }
static const struct dl_layer *decoder_block(void) { return &model.layers[2 + n_encoding]; }

static double entering(const struct dl_work *work, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += work[i].enters;
    return sum;
}

static double leaving(const struct dl_work *work, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += work[i].leaves;
    return sum;
}

/* Tensor ranks sum the input gradients of three pairs, and that of what the encoder made once more. */
START_TEST(a_decoder_block_sends_its_own_tensors_and_that_of_the_encoder)
{
    const double of_encoder = samples * e * h, of_decoder = samples * s * h;
    open_translator("", "flash");
    const struct dl_layer *const block = decoder_block(), *const encoding = encoder_block();
    ck_assert_double_eq(leaving(encoding->forward, encoding->n_forward), 2 * of_encoder);
    ck_assert_double_eq(entering(block->forward, block->n_forward), 3 * of_decoder + of_encoder);
    ck_assert_double_eq(leaving(block->forward, block->n_forward), 3 * of_decoder);
    ck_assert_double_eq(leaving(block->backward, block->n_backward), 3 * of_decoder + of_encoder);
    ck_assert_double_eq(entering(block->backward, block->n_backward), 3 * of_decoder);
}
END_TEST

/* The last part of a gradient is added to the others by all blocks but one. */
START_TEST(gradients_of_what_the_encoder_made_are_summed_once_a_block)
{
    double sums = 0;
    open_translator("", "flash");
    for (size_t i = 0; i < model.n_layers; i++)
        for (size_t j = 0; j < model.layers[i].n_backward; j++) {
            const struct dl_kernel *const k = &model.layers[i].backward[j].kernel;
            if (strcmp(k->name, "encoder_gradient") == 0) sums += k->elements;
        }
    ck_assert_double_eq(sums, (n_decoding - 1) * 3 * samples * e * h);
}
END_TEST

/* Bytes: a block of GPT without dropout keeps 32 s b h beside its scores; crossing adds what its norm is given, the
 * result of that, queries and the context, and keys and values of the encoder's tokens. */
START_TEST(what_the_encoder_made_is_kept_once)
{
    open_translator("", "flash");
    const struct dl_saved *const decoding = &decoder_block()->saved, *const encoding = &encoder_block()->saved;
    const double each = 2 * samples * h, of_gpt = 16 * each;
    ck_assert_double_eq(encoding->outside_bytes + encoding->inside_bytes, of_gpt * e);
    ck_assert_double_eq(decoding->outside_bytes + decoding->inside_bytes, of_gpt * s + each * (4 * s + 2 * e));
    ck_assert_double_eq(model.layers[0].saved.outside_bytes, each * e);
    /* and what the encoder's last norm is given */
    ck_assert_double_eq(first_of_decoder()->saved.outside_bytes, decoding->outside_bytes + each * e);
}
END_TEST

/* Each query of the decoder meets all of the encoder's tokens, and those of its own before it; the encoder's meet all.
 */
START_TEST(only_the_decoder_is_masked)
{
    open_translator("", "unfused");
    const double crossed = 2 * samples * s * e * h, own = 2 * samples * s * s * h;
    double full = 0, causal = 0;
    for (size_t i = 0; i < decoder_block()->n_forward; i++) {
        const struct dl_kernel *const k = &decoder_block()->forward[i].kernel;
        if (!dl_kernel_is_core_attention(k)) continue;
        full += dl_counted_flop(k, dl_kernel_flop(k), DL_FLOP_FULL);
        causal += dl_counted_flop(k, dl_kernel_flop(k), DL_FLOP_CAUSAL);
    }
    ck_assert_double_eq(full, 2 * (crossed + own));
    ck_assert_double_eq(causal, 2 * crossed + own);
    for (size_t i = 0; i < encoder_block()->n_forward; i++) ck_assert(!encoder_block()->forward[i].kernel.masked);
}
END_TEST

/* A learned bias keeps the scores of either sequence in memory, whatever the code has; those between them have none. */
START_TEST(biases_by_distance_keep_scores_in_memory)
{
    open_translator(",'positions':'relative'", "flash");
    ck_assert_double_eq(encoder_block()->saved.scores_bytes, 2 * samples * heads * e * e);
    ck_assert_double_eq(decoder_block()->saved.scores_bytes, 2 * samples * heads * s * s);
    ck_assert_ptr_nonnull(dl_model_find(&model, dl_kernel_is_core_attention));
    size_t fused = 0;
    for (size_t i = 0; i < decoder_block()->n_forward; i++)
        fused += decoder_block()->forward[i].kernel.kind == DL_KERNEL_ATTENTION;
    ck_assert_uint_eq(fused, 1);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("encoder");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_decoder_block_sends_its_own_tensors_and_that_of_the_encoder);
    tcase_add_test(tests, gradients_of_what_the_encoder_made_are_summed_once_a_block);
    tcase_add_test(tests, what_the_encoder_made_is_kept_once);
    tcase_add_test(tests, only_the_decoder_is_masked);
    tcase_add_test(tests, biases_by_distance_keep_scores_in_memory);
    Suite *const suite = suite_create("encoder");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
