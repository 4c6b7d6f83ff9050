/* workload_models.c - what must hold of every shipped model. */
#include "sim/core/facts.h"
#include "sim/cost/operations.h"
#include "tests/unit/workload_fixture.h"

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

/* Attention and feed-forward side by side, or queries and the keys of another sequence: what enters either, and what
 * leaves, is part of one stay inside. */
static bool has_joint_stays(void)
{
    return json_object_get(f.doc.value, "parallel_norms") != NULL || model.has_encoder;
}

static bool leaves_next(const struct dl_work *work, size_t n)
{
    size_t i = 0;
    while (i < n && work[i].enters == 0 && work[i].leaves == 0) i++;
    return i < n && work[i].enters == 0;
}

/* What enters leaves; what has an inner dimension, and products of experts, are between; returns whether the list ends
 * inside. */
static bool check_borders(const struct dl_work *work, size_t n, bool inside)
{
    bool among_experts = false, has_product = false;
    for (size_t i = 0; i < n; i++) {
        const struct dl_work *const w = &work[i];
        among_experts = check_experts(w, among_experts, inside, &has_product);
        ck_assert(w->enters == 0 || !inside || has_joint_stays());
        inside |= w->enters > 0;
        if (w->gradient == DL_GRADIENT_INPUT && w->kernel.kind == DL_KERNEL_MEMORY)
            ck_assert_int_eq((w->kernel.by.elements & DL_BY_INNER) != 0 || w->kernel.on_operands, inside);
        ck_assert(w->leaves == 0 || inside);
        inside &= w->leaves == 0 || (has_joint_stays() && leaves_next(w + 1, n - i - 1));
    }
    ck_assert(!among_experts);
    return inside;
}

/* Words of the encoder and of the decoder leave, one look-up after the other, and their gradients enter. */
static void check_look_ups(const struct dl_layer *layer)
{
    const double elements = model.samples * model.tokens_per_sample * model.hidden;
    double leave = 0, enter = 0;
    for (size_t i = 0; i < layer->n_forward; i++) leave += layer->forward[i].leaves;
    for (size_t i = 0; i < layer->n_backward; i++) enter += layer->backward[i].enters;
    ck_assert_double_eq(leave, elements);
    ck_assert_double_eq(enter, elements);
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
            if (model.has_encoder && i == 0) {
                check_look_ups(layer);
            } else {
                ck_assert_int_eq(check_borders(layer->forward, layer->n_forward, cuts_vocabulary && i == 0),
                                 cuts_vocabulary && i > 0);
                ck_assert_int_eq(check_borders(layer->backward, layer->n_backward, cuts_vocabulary && i > 0),
                                 (cuts_vocabulary && i == 0) || divides_input);
            }
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

/* Which place a token has does not follow from its values. */
static double products_of_places(const struct dl_layer *layer)
{
    double flop = 0;
    for (size_t i = 0; i < layer->n_forward; i++)
        if (strcmp(layer->forward[i].kernel.name, "to_places") == 0) flop += dl_kernel_flop(&layer->forward[i].kernel);
    return flop;
}

START_TEST(backward_has_two_products_for_each_of_forward)
{
    open_shipped(shipped[_i], 1, "unfused");
    for (size_t i = 0; i < model.n_layers; i++) {
        const struct dl_layer *const layer = &model.layers[i];
        const double forward = flop_of(layer->forward, layer->n_forward);
        const double unneeded = i == 0 ? products_that_nobody_needs(layer) : products_of_places(layer);
        ck_assert_double_eq_tol(flop_of(layer->backward, layer->n_backward), 2 * forward - unneeded,
                                1e-12 * forward + DBL_MIN);
    }
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

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    n_shipped = (int)dl_list_folder(MODELS, arena, &shipped);
    Suite *const suite = suite_create("workload_models");
    TCase *const all = tcase_create("workload_models");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, every_model_is_well_formed, 0, n_shipped);
    tcase_add_loop_test(all, backward_has_two_products_for_each_of_forward, 0, n_shipped);
    tcase_add_loop_test(all, work_grows_with_the_samples, 0, n_shipped);
    tcase_add_loop_test(all, every_figure_says_where_it_comes_from, 0, n_shipped);
    suite_add_tcase(suite, all);
    const int code = run_without_forking(suite);
    dl_arena_free(arena);
    return code;
}
