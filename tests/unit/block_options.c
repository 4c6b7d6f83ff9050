/* block_options.c - what some models have beside the usual block: norms behind its halves, factors of channels, norms
 * over all heads, and a tanh on logits. */
#include "tests/unit/workload_fixture.h"

/* A block and the head of SMALL (hidden 64, 32 tokens, vocabulary 100) with a key more. */
struct sizes {
    double parameters, tensors, kept_bytes, forward, input_gradient;
};

static void count_work(const struct dl_layer *layer, struct sizes *sizes)
{
    for (size_t i = 0; i < layer->n_forward; i++) sizes->forward += layer->forward[i].kernel.elements;
    for (size_t i = 0; i < layer->n_backward; i++)
        if (layer->backward[i].gradient == DL_GRADIENT_INPUT)
            sizes->input_gradient += layer->backward[i].kernel.elements;
}

static struct sizes sizes_of(const char *text, size_t layer)
{
    open_text(text);
    build(1, "flash");
    const struct dl_layer *const l = &model.layers[layer];
    struct sizes sizes = {.parameters = dl_layer_parameters(l),
                          .tensors = l->n_tensors,
                          .kept_bytes = l->saved.outside_bytes + l->saved.inside_bytes};
    count_work(l, &sizes);
    return sizes;
}

enum { block = 1, head = 5 };
static const double elements = 32 * 64, logits = 32 * 100;

static void check_more(const char *with, const char *without, size_t layer, struct sizes more)
{
    const struct sizes a = sizes_of(without, layer), b = sizes_of(with, layer);
    ck_assert_double_eq(b.parameters - a.parameters, more.parameters);
    ck_assert_double_eq(b.tensors - a.tensors, more.tensors);
    ck_assert_double_eq(b.kept_bytes - a.kept_bytes, more.kept_bytes);
    ck_assert_double_eq(b.forward - a.forward, more.forward);
    ck_assert_double_eq(b.input_gradient - a.input_gradient, more.input_gradient);
}

/* Two norms of gain and bias, each of which keeps what it is given. */
START_TEST(norms_behind_halves_are_as_those_before_them)
{
    check_more("{" SMALL ",'post_norms':true}", "{" SMALL "}", block,
               (struct sizes){2 * 2 * 64, 4, 2 * 2 * elements, 2 * 2 * elements, 2 * 3 * elements});
}
END_TEST

START_TEST(factors_of_channels_keep_what_they_are_given)
{
    check_more("{" SMALL ",'layer_scale':true}", "{" SMALL "}", block,
               (struct sizes){2 * 64, 2, 2 * 2 * elements, 2 * 2 * elements, 2 * 2 * elements});
}
END_TEST

/* Of heads of 16, gains and biases of one head are shared by all, or each has its own. */
START_TEST(norms_over_all_heads_have_gains_for_each)
{
    check_more("{" SMALL ",'qk_norm':true,'joint_qk_norm':true}", "{" SMALL ",'qk_norm':true}", block,
               (struct sizes){.parameters = 2 * 2 * (64 - 16)});
}
END_TEST

START_TEST(capped_logits_keep_their_tanh)
{
    check_more("{" SMALL ",'logit_cap':true}", "{" SMALL "}", head,
               (struct sizes){.kept_bytes = 2 * logits, .forward = 2 * logits, .input_gradient = 3 * logits});
}
END_TEST

/* No vectors of positions, and nothing is rotated. */
START_TEST(biased_scores_have_no_parameters)
{
    const struct sizes none = sizes_of("{" SMALL ",'positions':'none'}", 0);
    const struct sizes biased = sizes_of("{" SMALL ",'positions':'alibi'}", 0);
    ck_assert_double_eq(biased.parameters, none.parameters);
    check_more("{" SMALL ",'positions':'alibi'}", "{" SMALL ",'positions':'none'}", block, (struct sizes){0});
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("block_options");
    TCase *const all = tcase_create("block_options");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, norms_behind_halves_are_as_those_before_them);
    tcase_add_test(all, factors_of_channels_keep_what_they_are_given);
    tcase_add_test(all, norms_over_all_heads_have_gains_for_each);
    tcase_add_test(all, capped_logits_keep_their_tanh);
    tcase_add_test(all, biased_scores_have_no_parameters);
    suite_add_tcase(suite, all);
    return run_without_forking(suite);
}
