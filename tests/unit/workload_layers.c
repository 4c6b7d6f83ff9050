/* workload_layers.c - the layers that builders make: their kernels, dimensions, experts and pairs. */
#include "tests/unit/workload_fixture.h"

static double summed_gradients(const struct dl_layer *layer)
{
    double elements = 0;
    for (size_t i = 0; i < layer->n_backward; i++) {
        const struct dl_kernel *const k = &layer->backward[i].kernel;
        if (k->name && strcmp(k->name, "branches") == 0) elements += k->elements;
    }
    return elements;
}

/* Shared experts of one width are matrices next to one another: two of 48 columns and biases are one of 96. */
START_TEST(shared_experts_are_as_wide_as_they_say)
{
    double parameters[2], flop[2];
    for (int wide = 0; wide < 2; wide++) {
        open_text(wide ? "{" SMALL "," EXPERTS ",'shared_experts':1,'shared_ffn':96}"
                       : "{" SMALL "," EXPERTS ",'shared_experts':2,'shared_ffn':48}");
        build(1, "flash");
        parameters[wide] = dl_model_parameters(&model);
        flop[wide] = forward_flop();
    }
    ck_assert_double_eq(parameters[0], parameters[1]);
    ck_assert_double_eq(flop[0], flop[1]);
    open_text("{" SMALL "," EXPERTS "}");
    build(1, "flash");
    const double hidden = number("hidden"), layers = number("layers"), width = 96;
    ck_assert_double_eq(parameters[1] - dl_model_parameters(&model), layers * (2 * width * hidden + width + hidden));
    ck_assert_double_eq(flop[1] - forward_flop(), layers * 2 * number("seq") * 2 * width * hidden);
}
END_TEST

/* A mask of what the function makes and, where its backward needs that itself, what is left of it. */
START_TEST(dropout_inside_a_feed_forward_keeps_a_mask)
{
    static const struct {
        const char *function;
        double bytes;
    } wanted[] = {{"gelu", 1}, {"relu", 3}};
    const double samples = 2;
    struct dl_saved saved[2];
    for (int dropped = 0; dropped < 2; dropped++) {
        char text[400];
        snprintf(text, sizeof text, "{" SMALL ",'activation':'%s','ffn_dropout':%s}", wanted[_i].function,
                 dropped ? "true" : "false");
        open_text(text);
        build(samples, "flash");
        saved[dropped] = model.layers[1].saved;
    }
    const double made = samples * number("seq") * 4 * number("hidden");
    ck_assert_double_eq(saved[1].inside_bytes - saved[0].inside_bytes, wanted[_i].bytes * made);
    ck_assert_double_eq(saved[1].outside_bytes, saved[0].outside_bytes);
}
END_TEST

/* Apart, the same products are done in pieces: queries, keys and values, gate and up are 5 tensors in place of 2, and
 * 3 input gradients more than with 2 products are added, each sum reading two and writing one. */
START_TEST(projections_apart_do_the_same_work)
{
    open_shipped("llama3-8b", 2, "flash");
    const struct dl_model joined = model;
    const double flop = forward_flop(), parameters = dl_model_parameters(&model);
    const struct dl_model_code apart = {.attention = "flash", .projections_apart = true};
    ck_assert(!dl_workload_read(f.doc, 2, apart, f.arena, &model, &f.err));
    ck_assert_close(forward_flop(), flop);
    ck_assert_close(dl_model_parameters(&model), parameters);
    const struct dl_layer *const one = &joined.layers[1], *const many = &model.layers[1];
    ck_assert_double_eq(many->n_tensors, one->n_tensors + 3);
    ck_assert_double_eq(summed_gradients(one), 0);
    ck_assert_double_eq(summed_gradients(many), 3 * 3 * 2 * number("seq") * number("hidden"));
    ck_assert_close(flop_of(many->backward, many->n_backward), flop_of(one->backward, one->n_backward));
}
END_TEST

/* Kernels */

START_TEST(attention_counts_what_flash_computes)
{
    struct dl_kernel k = {.kind = DL_KERNEL_ATTENTION, .batch = 6, .m = 64, .n = 64, .k = 32};
    const double two_products = 2 * (2.0 * 6 * 64 * 64 * 32);
    ck_assert_double_eq(dl_kernel_flop(&k), two_products);
    k.causal = true;
    ck_assert_double_eq(dl_kernel_flop(&k), two_products / 2);
    k.backward = true;
    ck_assert_double_eq(dl_kernel_flop(&k), 2.5 * two_products / 2);
}
END_TEST

static const struct dl_work *find(const struct dl_work *work, size_t n, const char *name, enum dl_gradient gradient)
{
    for (size_t i = 0; i < n; i++)
        if (work[i].gradient == gradient && strcmp(work[i].kernel.name, name) == 0) return &work[i];
    ck_abort_msg("there is no %s", name);
    return NULL;
}

/* Of Y = X W; dX = dY W^T and dW = X^T dY have the dimensions of these. */
START_TEST(gradients_have_the_dimensions_of_what_they_are_of)
{
    static const struct {
        const char *name;
        dl_dimensions inputs, outputs;
    } cuts[] = {{"qkv", DL_BY_WIDTH, DL_BY_INNER},
                {"projection", DL_BY_INNER, DL_BY_WIDTH},
                {"fc1", DL_BY_WIDTH, DL_BY_INNER},
                {"fc2", DL_BY_INNER, DL_BY_WIDTH}};
    open_shipped("gpt-22b", 1, "flash");
    const struct dl_layer *const block = &model.layers[1];
    for (size_t i = 0; i < DL_COUNT(cuts); i++) {
        const struct dl_kernel
            *const y = &find(block->forward, block->n_forward, cuts[i].name, DL_GRADIENT_INPUT)->kernel,
                   *const dx = &find(block->backward, block->n_backward, cuts[i].name, DL_GRADIENT_INPUT)->kernel,
                   *const dw = &find(block->backward, block->n_backward, cuts[i].name, DL_GRADIENT_WEIGHT)->kernel;
        ck_assert(y->by.m == DL_ROWS && y->by.n == cuts[i].outputs && y->by.k == cuts[i].inputs);
        ck_assert(dx->by.m == DL_ROWS && dx->by.n == cuts[i].inputs && dx->by.k == cuts[i].outputs);
        ck_assert(dw->by.m == cuts[i].inputs && dw->by.n == cuts[i].outputs && dw->by.k == DL_ROWS);
        ck_assert(dx->m == y->m && dx->n == y->k && dx->k == y->n);
        ck_assert(dw->m == y->k && dw->n == y->n && dw->k == y->m);
    }
}
END_TEST

/* Forward and backward, and all that goes with them. */
START_TEST(convolutions_name_their_dimensions)
{
    open_shipped("resnet50", 1, "flash");
    size_t n = 0;
    for (size_t i = 0; i < model.n_layers; i++) {
        const struct dl_layer *const layer = &model.layers[i];
        for (size_t j = 0; j < layer->n_backward; j++) {
            const struct dl_kernel *const k = &layer->backward[j].kernel;
            const bool of_weights = k->pass == DL_PASS_WEIGHT_GRADIENT;
            ck_assert(dl_kernel_all_dimensions(k) & DL_BY_SAMPLE);
            if (k->kind != DL_KERNEL_CONV) continue;
            ck_assert_uint_eq(of_weights ? k->by.k : k->by.m, DL_PIXELS);
            ck_assert_uint_eq(of_weights ? k->by.n : k->by.k, DL_BY_FILTER);
            ck_assert_uint_eq(of_weights ? k->by.m : k->by.n, DL_BY_CHANNEL);
            n++;
        }
    }
    ck_assert_uint_eq(n, 2 * 53 - 1); /* He et al. 2016, table 1, with four ways around; none for the input */
}
END_TEST

/* So that the sum over tensor ranks need not wait for it. */
START_TEST(weight_gradients_come_after_what_leaves)
{
    open_shipped("gpt-22b", 1, "flash");
    const struct dl_layer *const block = &model.layers[1];
    const struct dl_work *const input = find(block->backward, block->n_backward, "fc1", DL_GRADIENT_INPUT);
    ck_assert_double_eq(input->leaves, number("seq") * number("hidden"));
    ck_assert_str_eq(input[1].kernel.name, "fc1");
    ck_assert_int_eq(input[1].gradient, DL_GRADIENT_WEIGHT);
}
END_TEST

/* What selective recomputation does again: 4 b s^2 h (Korthikanti et al., appendix A). */
START_TEST(core_of_attention_is_between_its_projections)
{
    const double b = 2;
    open_shipped("gpt-22b", b, "unfused");
    const struct dl_layer *const block = &model.layers[1];
    double flop = 0, kernels = 0;
    for (size_t i = 0; i < block->n_forward; i++)
        if (block->forward[i].kernel.module == DL_MODULE_CORE_ATTENTION) {
            flop += dl_kernel_flop(&block->forward[i].kernel);
            kernels++;
        }
    ck_assert_close(flop, 4 * b * number("seq") * number("seq") * number("hidden"));
    ck_assert_double_eq(kernels, 4); /* scores, softmax, dropout, context */
}
END_TEST

/* Mixtures of experts */

/* Fused attention draws the same numbers again backward; there the residual's dropout is a kernel of its own. */
START_TEST(attention_and_residuals_tell_of_their_dropout)
{
    open_text(_i ? "{" SMALL ",'dropout':true}" : "{" SMALL ",'dropout':false}");
    build(2, "flash");
    const struct dl_layer *const block = &model.layers[1];
    ck_assert_int_eq(find(block->forward, block->n_forward, "attention", DL_GRADIENT_INPUT)->kernel.drops, _i);
    ck_assert_int_eq(find(block->backward, block->n_backward, "attention", DL_GRADIENT_INPUT)->kernel.drops, _i);
    ck_assert_int_eq(find(block->forward, block->n_forward, "residual", DL_GRADIENT_INPUT)->kernel.drops, _i);
    ck_assert(!find(block->backward, block->n_backward, "residual", DL_GRADIENT_INPUT)->kernel.drops);
}
END_TEST

static const struct dl_kernel *expert_product(size_t layer)
{
    return &find(model.layers[layer].forward, model.layers[layer].n_forward, "expert_fc1", DL_GRADIENT_INPUT)->kernel;
}

START_TEST(experts_share_the_tokens)
{
    open_text("{" SMALL "," EXPERTS "}");
    build(3, "flash");
    const struct dl_kernel *const fc1 = expert_product(1);
    ck_assert_double_eq(fc1->batch, 8);
    ck_assert_double_eq(fc1->batch * fc1->m, 2 * 3 * 32);
    ck_assert_double_eq(model.layers[1].expert_parameters, 8 * (64 * 96 + 96 + 96 * 64 + 64));
    const struct dl_layer *const block = &model.layers[1];
    ck_assert_double_eq(find(block->forward, block->n_forward, "expert_fc1", DL_GRADIENT_INPUT)->to_experts,
                        2 * 3 * 32 * 64);
    ck_assert_double_eq(find(block->forward, block->n_forward, "unpermute", DL_GRADIENT_INPUT)->from_experts,
                        2 * 3 * 32 * 64);
    ck_assert_double_eq(find(block->backward, block->n_backward, "expert_fc2", DL_GRADIENT_INPUT)->to_experts,
                        2 * 3 * 32 * 64);
    ck_assert_double_eq(find(block->backward, block->n_backward, "permute", DL_GRADIENT_INPUT)->from_experts,
                        2 * 3 * 32 * 64);
}
END_TEST

START_TEST(padding_is_work_but_not_the_models)
{
    open_text("{" SMALL "," EXPERTS "}");
    build(1, "flash");
    const double even = expert_product(1)->m, flop = model.model_flop_per_sample[DL_FLOP_FULL];
    open_text("{" SMALL "," EXPERTS ",'capacity_factor':1.5}");
    build(1, "flash");
    ck_assert_double_eq(expert_product(1)->m, 1.5 * even);
    ck_assert_close(model.model_flop_per_sample[DL_FLOP_FULL], flop);
}
END_TEST

static double flop_named(const struct dl_work *list, size_t n, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].kernel.name, name) == 0) sum += dl_kernel_flop(&list[i].kernel);
    return sum;
}

/* Of each sample a matrix of tokens x places: the one there is no gradient of, that of the weights of tokens is. */
START_TEST(tokens_may_be_routed_by_gemms)
{
    const double samples = 2, capacity = 1.5;
    open_text("{" SMALL "," EXPERTS ",'capacity_factor':1.5}");
    build(samples, "flash");
    const double flop = model.model_flop_per_sample[DL_FLOP_FULL];
    open_text("{" SMALL "," EXPERTS ",'capacity_factor':1.5,'routes_by_gemms':true}");
    build(samples, "flash");
    const struct dl_layer *const block = &model.layers[1];
    const double places = number("top_k") * capacity * number("seq");
    const double once = 2 * samples * number("seq") * places * number("hidden");
    ck_assert_close(flop_named(block->forward, block->n_forward, "to_places"), once);
    ck_assert_close(flop_named(block->forward, block->n_forward, "from_places"), once);
    ck_assert_close(flop_named(block->backward, block->n_backward, "to_places"), once);
    ck_assert_close(flop_named(block->backward, block->n_backward, "from_places"), 2 * once);
    ck_assert_close(model.model_flop_per_sample[DL_FLOP_FULL], flop);
}
END_TEST

START_TEST(experts_are_in_the_layers_that_are_said)
{
    open_text("{" SMALL "," EXPERTS ",'moe_every':2,'dense_layers':1}");
    build(1, "flash");
    for (size_t i = 0; i < 4; i++) ck_assert_int_eq(model.layers[1 + i].expert_parameters > 0, i == 2);
    open_shipped("deepseek-v3", 1, "flash");
    for (size_t i = 0; i < 61; i++) ck_assert_int_eq(model.layers[1 + i].expert_parameters > 0, i >= 3);
}
END_TEST

#define OF_WORDS                                                                                                       \
    "'schema':'dlsim/workload/1','source':'a test','kind':'transformer','hidden':64,'heads':4,'seq':32,'vocab':100,"   \
    "'norm':'rmsnorm','bias':false,'tied_embedding':false"

/* A module that predicts a further token is a block, a linear layer from two hidden to one and its norms, and the head
 * with a norm of its own and the matrix that is there. */
START_TEST(a_further_token_takes_a_block_and_the_head_again)
{
    open_text("{" OF_WORDS ",'layers':5}");
    build(1, "flash");
    const double flop = model.model_flop_per_sample[DL_FLOP_FULL], parameters = dl_model_parameters(&model);
    open_text("{" OF_WORDS ",'layers':4,'mtp_layers':1}");
    build(1, "flash");
    const double h = model.hidden, tokens = model.tokens_per_sample, vocab = model.layers[6].parameters_inside / h;
    ck_assert_uint_eq(model.n_layers, 7);
    ck_assert_double_eq(dl_model_parameters(&model) - parameters, 2 * h * h + 3 * h);
    ck_assert_close(model.model_flop_per_sample[DL_FLOP_FULL] - flop, 3 * 2 * tokens * (2 * h * h + vocab * h));
}
END_TEST

START_TEST(layers_of_an_mlp_are_cut_in_pairs)
{
    open_text("{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[10,20,30,40]}");
    build(5, "flash");
    ck_assert_uint_eq(model.n_layers, 2);
    ck_assert_double_eq(model.layers[0].parameters_inside, 10 * 20 + 20 + 20 * 30);
    ck_assert_double_eq(model.layers[0].parameters_outside, 30);
    ck_assert_double_eq(dl_layer_parameters(&model.layers[1]), 30 * 40 + 40);
    ck_assert_double_eq(model.layers[0].output_elements, 5 * 30);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("workload_layers");
    TCase *const all = tcase_create("workload_layers");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, dropout_inside_a_feed_forward_keeps_a_mask, 0, 2);
    tcase_add_test(all, shared_experts_are_as_wide_as_they_say);
    tcase_add_test(all, attention_counts_what_flash_computes);
    tcase_add_test(all, projections_apart_do_the_same_work);
    tcase_add_test(all, gradients_have_the_dimensions_of_what_they_are_of);
    tcase_add_test(all, convolutions_name_their_dimensions);
    tcase_add_test(all, weight_gradients_come_after_what_leaves);
    tcase_add_test(all, core_of_attention_is_between_its_projections);
    tcase_add_loop_test(all, attention_and_residuals_tell_of_their_dropout, 0, 2);
    tcase_add_test(all, experts_share_the_tokens);
    tcase_add_test(all, padding_is_work_but_not_the_models);
    tcase_add_test(all, tokens_may_be_routed_by_gemms);
    tcase_add_test(all, experts_are_in_the_layers_that_are_said);
    tcase_add_test(all, a_further_token_takes_a_block_and_the_head_again);
    tcase_add_test(all, layers_of_an_mlp_are_cut_in_pairs);
    suite_add_tcase(suite, all);
    return run_without_forking(suite);
}
