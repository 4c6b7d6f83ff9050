/* workload_layers.c - what must hold of the layers that builders make, and what builders refuse. */
#include "sim/core/facts.h"
#include "sim/cost/operations.h"
#include "tests/unit/workload_fixture.h"

/* What must hold of every shipped model. */

static const char **shipped;
static int n_shipped;

static void check_shapes(const struct dl_work *work, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct dl_kernel *const k = &work[i].kernel;
        const double told[] = {work[i].enters, work[i].leaves, work[i].to_experts, work[i].from_experts};
        for (size_t j = 0; j < DL_COUNT(told); j++) ck_assert(isfinite(told[j]) && told[j] >= 0);
        ck_assert_ptr_nonnull(k->name);
        ck_assert_msg(!dl_operation_check(dl_kernel_operation(k), k->name, &f.err), "%s", f.err.text);
        if (k->kind == DL_KERNEL_MEMORY)
            ck_assert(isfinite(k->elements) && k->elements > 0);
        else
            ck_assert(isfinite(dl_kernel_flop(k)) && k->batch > 0 && k->m > 0 && k->n > 0 && k->k > 0);
        ck_assert(!k->by.elements || k->kind == DL_KERNEL_MEMORY);
    }
}

/* Tokens go to experts and come back; returns whether they are there. */
static bool check_experts(const struct dl_work *work, bool among_experts, bool inside, bool *has_product)
{
    const struct dl_kernel *const k = &work->kernel;
    if (work->to_experts > 0 || work->from_experts > 0) {
        ck_assert(!inside);
        ck_assert_int_eq(among_experts, work->from_experts > 0);
        ck_assert_int_eq(among_experts, work->to_experts == 0);
        ck_assert_int_eq(*has_product, among_experts);
        among_experts = !among_experts;
        *has_product = false;
    }
    if (work->gradient == DL_GRADIENT_INPUT) ck_assert_int_eq(dl_kernel_is_of_experts(k), among_experts);
    if (dl_kernel_is_of_experts(k) && k->kind == DL_KERNEL_GEMM) {
        ck_assert_double_eq(k->batch, model.routing.experts);
        *has_product |= among_experts;
    }
    return among_experts;
}

/* What enters leaves; what has an inner dimension, and products of experts, are between; returns whether the list ends
 * inside. */
static bool check_borders(const struct dl_work *work, size_t n, bool inside)
{
    bool among_experts = false, has_product = false;
    for (size_t i = 0; i < n; i++) {
        const struct dl_work *const w = &work[i];
        among_experts = check_experts(w, among_experts, inside, &has_product);
        ck_assert(w->enters == 0 || !inside);
        inside |= w->enters > 0;
        if (w->gradient == DL_GRADIENT_INPUT && w->kernel.kind == DL_KERNEL_MEMORY)
            ck_assert_int_eq((w->kernel.by.elements & DL_BY_INNER) != 0 || w->kernel.on_operands, inside);
        ck_assert(w->leaves == 0 || inside);
        inside &= w->leaves == 0;
    }
    ck_assert(!among_experts);
    return inside;
}

/* Patches are made tokens of by a linear layer, words by a look-up. */
static bool is_of_images(void) { return json_object_get(f.doc.value, "patch") != NULL; }

START_TEST(every_model_is_well_formed)
{
    const char *const attentions[] = {"unfused", "flash"};
    for (size_t a = 0; a < DL_COUNT(attentions); a++) {
        open_shipped(shipped[_i], 1, attentions[a]);
        ck_assert_str_eq(model.name, shipped[_i]);
        ck_assert_double_gt(model.model_flop_per_sample[DL_FLOP_FULL], 0);
        for (size_t i = 0; i < model.n_layers; i++) {
            const struct dl_layer *const layer = &model.layers[i];
            if (i && layer->forward == layer[-1].forward) continue; /* blocks that are alike share their work */
            const bool cuts_vocabulary =
                model.tokens_per_sample > 0 && ((i == 0 && !is_of_images()) || i == model.n_layers - 1);
            /* What divides the input of the model needs no gradient of it. */
            const bool divides_input = i == 0 && layer->forward[0].enters > 0;
            check_shapes(layer->forward, layer->n_forward);
            check_shapes(layer->backward, layer->n_backward);
            ck_assert_int_eq(check_borders(layer->forward, layer->n_forward, cuts_vocabulary && i == 0),
                             cuts_vocabulary && i > 0);
            ck_assert_int_eq(check_borders(layer->backward, layer->n_backward, cuts_vocabulary && i > 0),
                             (cuts_vocabulary && i == 0) || divides_input);
            ck_assert_double_ge(layer->saved.outside_bytes, 0);
            ck_assert_double_gt(layer->output_elements, 0);
            if (model.tokens_per_sample > 0) ck_assert_double_le(layer->saved.input_bytes, layer->saved.outside_bytes);
        }
    }
}
END_TEST

/* The gradient of the model's input is the one that nobody needs. */
static double products_that_nobody_needs(const struct dl_layer *first)
{
    if (model.tokens_per_sample > 0 && !is_of_images()) return 0;
    for (size_t i = 0; i < first->n_forward; i++) {
        const double flop = dl_kernel_flop(&first->forward[i].kernel);
        if (flop > 0) return flop;
    }
    return 0;
}

START_TEST(backward_has_two_products_for_each_of_forward)
{
    open_shipped(shipped[_i], 1, "unfused");
    for (size_t i = 0; i < model.n_layers; i++) {
        const struct dl_layer *const layer = &model.layers[i];
        const double forward = flop_of(layer->forward, layer->n_forward);
        const double unneeded = i == 0 ? products_that_nobody_needs(layer) : 0;
        ck_assert_double_eq_tol(flop_of(layer->backward, layer->n_backward), 2 * forward - unneeded,
                                1e-12 * forward + DBL_MIN);
    }
}
END_TEST

static double summed_gradients(const struct dl_layer *layer)
{
    double elements = 0;
    for (size_t i = 0; i < layer->n_backward; i++) {
        const struct dl_kernel *const k = &layer->backward[i].kernel;
        if (k->name && strcmp(k->name, "branches") == 0) elements += k->elements;
    }
    return elements;
}

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

START_TEST(work_grows_with_the_samples)
{
    open_shipped(shipped[_i], 1, "unfused");
    const double one = forward_flop(), parameters = dl_model_parameters(&model),
                 per_sample = model.model_flop_per_sample[DL_FLOP_FULL];
    open_shipped(shipped[_i], 7, "unfused");
    ck_assert_close(forward_flop(), 7 * one);
    ck_assert_close(dl_model_parameters(&model), parameters);
    ck_assert_close(model.model_flop_per_sample[DL_FLOP_FULL], per_sample);
}
END_TEST

static void check_fact(void *user, const struct dl_fact *fact)
{
    (void)user;
    ck_assert_msg(fact->stated || strstr(fact->where, "/layers/"), "%s says nothing of its source", fact->where);
}

START_TEST(every_figure_says_where_it_comes_from)
{
    open_shipped(shipped[_i], 1, "flash");
    dl_json_facts(f.doc, f.arena, check_fact, NULL);
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
        if (block->forward[i].kernel.attention_core) {
            flop += dl_kernel_flop(&block->forward[i].kernel);
            kernels++;
        }
    ck_assert_close(flop, 4 * b * number("seq") * number("seq") * number("hidden"));
    ck_assert_double_eq(kernels, 4); /* scores, softmax, dropout, context */
}
END_TEST

/* Mixtures of experts */

#define SMALL                                                                                                          \
    "'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"    \
    "'vocab':100"
#define EXPERTS "'experts':8,'top_k':2,'expert_ffn':96"

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

/* Bad input */

#define CONVNET(layers)                                                                                                \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8,8],'layers':[" layers "]}"
#define CONV "{'kind':'conv','filters':4,'window':3}"

static const struct {
    const char *text, *message;
} bad[] = {
    {"{'schema':'dlsim/workload/1','source':'a test'}", "test.json: needs the key 'kind'"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'gpt'}",
     "test.json:/kind: must be one of transformer, convnet, mlp, got 'gpt'"},
    {"{" SMALL ",'layer':3}", "test.json:/layer: unknown key, did you mean 'layers'?"},
    {"{" SMALL ",'kv_heads':3}", "test.json:/kv_heads: must divide heads, 4, got 3"},
    {"{" SMALL ",'ffn':0}", "test.json:/ffn: must be in [1, 16777216], got 0"},
    {"{" SMALL ",'norm':'batchnorm'}", "test.json:/norm: must be one of layernorm, rmsnorm, got 'batchnorm'"},
    {"{" SMALL ",'top_k':2}", "test.json:/top_k: means nothing without the key 'experts'"},
    {"{" SMALL ",'experts':8}", "test.json:/experts: means nothing without the key 'top_k'"},
    {"{" SMALL ",'experts':8,'top_k':9}", "test.json:/top_k: must be at most experts, 8, got 9"},
    {"{" SMALL "," EXPERTS ",'dense_layers':5}", "test.json:/dense_layers: must be at most layers, 4, got 5"},
    {"{" SMALL "," EXPERTS ",'capacity_factor':0.5}", "test.json:/capacity_factor: must be in [1, 16777216], got 0.5"},
    {"{" SMALL ",'kv_rank':16,'qk_norm':true}",
     "test.json:/qk_norm: means nothing beside 'kv_rank': latent attention has norms of its own"},
    {"{" SMALL ",'kv_rank':16,'kv_heads':2}",
     "test.json:/kv_heads: means nothing beside 'kv_rank': latent attention has none"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':5,'seq':32,"
     "'vocab':100}",
     "test.json:/heads: 5 heads do not divide hidden, 64; or give head_size"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[10]}",
     "test.json:/widths: must be at least that of the input and of the output"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8],'layers':[]}",
     "test.json:/input: must be [channels, height, width] or [channels, depth, height, width]"},
    {CONVNET(""), "test.json:/layers: has no conv or fc, so there is nothing to train"},
    {CONVNET("3"), "test.json:/layers/0: must be an object with a \"kind\""},
    {CONVNET("{'filters':3}"), "test.json:/layers/0: needs the key 'kind'"},
    {CONVNET("{'kind':'cnv'}"), "test.json:/layers/0/kind: unknown element 'cnv', did you mean 'conv'?"},
    {CONVNET("{'kind':'conv','filters':4}"), "test.json:/layers/0: needs the key 'window'"},
    {CONVNET("{'kind':'fc','outputs':4,'momentum':3}"), "test.json:/layers/0/momentum: unknown key; known here: kind, "
                                                        "name, outputs, bias, batchnorm, relu"},
    {CONVNET(CONV ",{'kind':'pool','window':9}"),
     "test.json:/layers/1: a window of 9 with pad 0 and stride 1 does not fit on 6 x 6"},
    {CONVNET("{'kind':'conv','filters':4,'window':3,'groups':2}"),
     "test.json:/layers/0: 2 groups do not divide 3 channels and 4 filters"},
    {CONVNET("{'kind':'add','branches':[[]]}"), "test.json:/layers/0/branches: must be at least two lists of elements"},
    {CONVNET("{'kind':'add','branches':[[],[" CONV "]]}"),
     "test.json:/layers/0/branches/1: ends with 4 x 6 x 6, the first branch with 3 x 8 x 8"},
    {CONVNET("{'kind':'concat','branches':[[],3]}"), "test.json:/layers/0/branches/1: must be a list of elements"},
    {CONVNET("{'kind':'repeat','times':60,'layers':[{'kind':'concat','branches':[[],[]]}]}"),
     "test.json:/layers/0/layers/0: makes 2.51658e+07 x 8 x 8, which is more than 1.67772e+07 in one direction"},
    {CONVNET(CONV ",{'kind':'repeat','times':60,'layers':[{'kind':'concat','keeps_parts':true,'branches':[[],[]]}]}"),
     "test.json:/layers/1/layers/0: with all repeats there are more than 100000 elements"},
    {CONVNET(CONV ",{'kind':'cross_entropy'},{'kind':'relu'}"),
     "test.json:/layers/2: comes after the loss; nothing can follow it"},
    {CONVNET(CONV ",{'kind':'add','branches':[[],[{'kind':'cross_entropy'}]]}"),
     "test.json:/layers/1/branches/1: ends in a loss; what leads to one is a \"side\""},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[10,20],'loss':'mse'}",
     "test.json:/loss: must be one of none, cross_entropy, got 'mse'"},
    {CONVNET("{'kind':'repeat','times':999,'layers':[{'kind':'repeat','times':999,'layers':[{'kind':'relu'}]}]}"),
     "test.json:/layers/0/layers/0/layers/0: with all repeats there are more than 100000 elements"},
};

START_TEST(bad_workloads_are_refused_with_the_key)
{
    open_text(bad[_i].text);
    ck_assert_int_ne(dl_workload_read(f.doc, 1, (struct dl_model_code){.attention = "flash"}, f.arena, &model, &f.err),
                     DL_OK);
    ck_assert_str_eq(f.err.text, bad[_i].message);
}
END_TEST

START_TEST(unknown_attention_is_refused)
{
    open_text("{" SMALL "}");
    ck_assert_int_ne(dl_workload_read(f.doc, 1, (struct dl_model_code){.attention = "fast"}, f.arena, &model, &f.err),
                     DL_OK);
    ck_assert_str_eq(f.err.text, "attention: must be one of unfused, flash, got 'fast'");
}
END_TEST

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    n_shipped = (int)dl_list_folder(MODELS, arena, &shipped);
    Suite *const suite = suite_create("workload_layers");
    TCase *const all = tcase_create("workload_layers");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, every_model_is_well_formed, 0, n_shipped);
    tcase_add_loop_test(all, backward_has_two_products_for_each_of_forward, 0, n_shipped);
    tcase_add_loop_test(all, work_grows_with_the_samples, 0, n_shipped);
    tcase_add_loop_test(all, every_figure_says_where_it_comes_from, 0, n_shipped);
    tcase_add_test(all, attention_counts_what_flash_computes);
    tcase_add_test(all, projections_apart_do_the_same_work);
    tcase_add_test(all, gradients_have_the_dimensions_of_what_they_are_of);
    tcase_add_test(all, convolutions_name_their_dimensions);
    tcase_add_test(all, weight_gradients_come_after_what_leaves);
    tcase_add_test(all, core_of_attention_is_between_its_projections);
    tcase_add_loop_test(all, attention_and_residuals_tell_of_their_dropout, 0, 2);
    tcase_add_test(all, experts_share_the_tokens);
    tcase_add_test(all, padding_is_work_but_not_the_models);
    tcase_add_test(all, experts_are_in_the_layers_that_are_said);
    tcase_add_test(all, a_further_token_takes_a_block_and_the_head_again);
    tcase_add_test(all, layers_of_an_mlp_are_cut_in_pairs);
    tcase_add_loop_test(all, bad_workloads_are_refused_with_the_key, 0, DL_COUNT(bad));
    tcase_add_test(all, unknown_attention_is_refused);
    suite_add_tcase(suite, all);
    const int code = run_without_forking(suite);
    dl_arena_free(arena);
    return code;
}
