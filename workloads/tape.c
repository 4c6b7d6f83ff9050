#include "workloads/tape.h"

#include <assert.h>
#include <string.h>

enum { max_gradients = 2 };

/* One operation: what it does forward and what that becomes backward. */
struct dl_tape_step {
    struct dl_work forward;
    struct dl_work input[max_gradients], weight[max_gradients];
    size_t n_forward, n_input, n_weight;
    struct dl_work told; /* what it is given and makes, as far as it must be told; its kernel means nothing */
    bool only_adds;      /* as in struct dl_tape_pass */
};

void dl_tape_begin(struct dl_tape *tape, struct dl_layer *layer, const char *name)
{
    *layer = (struct dl_layer){.name = name};
    *tape = (struct dl_tape){.layer = layer};
}

struct dl_saved *dl_tape_kept(struct dl_tape *tape)
{
    return tape->module ? &tape->layer->saved_by[tape->module] : &tape->layer->saved;
}

struct dl_saved *dl_tape_saved(struct dl_tape *tape) { return tape->is_below ? &tape->not_needed : dl_tape_kept(tape); }

static struct dl_tape_step *add_step(struct dl_tape *tape)
{
    DL_GROW(tape->steps, tape->n_steps, tape->capacity);
    struct dl_tape_step *const step = &tape->steps[tape->n_steps++];
    *step = (struct dl_tape_step){.told = tape->next};
    tape->next = (struct dl_work){0};
    return step;
}

void dl_tape_enter(struct dl_tape *tape, double elements)
{
    tape->next.enters = elements;
    tape->inside = true;
}

/* What was summed over the inner dimension leaves. */
static void leave(struct dl_tape *tape, struct dl_tape_step *step, double elements)
{
    step->told.leaves = elements;
    tape->inside = false;
}

void dl_tape_dispatch(struct dl_tape *tape, double elements)
{
    tape->next.to_experts = elements;
    tape->among_experts = true;
}

void dl_tape_combine(struct dl_tape *tape, double elements)
{
    tape->next.from_experts = elements;
    tape->among_experts = false;
}

static struct dl_work kernel_work(const struct dl_kernel *kernel, enum dl_gradient gradient)
{
    return (struct dl_work){.kernel = *kernel, .gradient = gradient};
}

static void add_forward(struct dl_tape_step *step, const struct dl_kernel *kernel)
{
    step->forward = kernel_work(kernel, DL_GRADIENT_INPUT);
    step->n_forward = 1;
}

static void add_gradient(const struct dl_tape *tape, struct dl_tape_step *step, const struct dl_kernel *kernel,
                         enum dl_gradient gradient)
{
    const bool is_input = gradient == DL_GRADIENT_INPUT;
    if (is_input && tape->is_below) return;
    size_t *const n = is_input ? &step->n_input : &step->n_weight;
    assert(*n < max_gradients);
    struct dl_work *const work = &(is_input ? step->input : step->weight)[(*n)++];
    *work = kernel_work(kernel, gradient);
    work->kernel.pass = is_input ? DL_PASS_INPUT_GRADIENT : DL_PASS_WEIGHT_GRADIENT;
}

const struct dl_kernel_dimensions dl_first_of_pair = {.m = DL_ROWS, .n = DL_BY_INNER, .k = DL_BY_WIDTH};
const struct dl_kernel_dimensions dl_second_of_pair = {.m = DL_ROWS, .n = DL_BY_WIDTH, .k = DL_BY_INNER};
const struct dl_kernel_dimensions dl_of_no_pair = {.m = DL_ROWS, .n = DL_BY_WIDTH, .k = DL_BY_WIDTH};

static void add_parameters(struct dl_tape *tape, const struct dl_product *p)
{
    if (p->of_activations) return;
    struct dl_layer *const layer = tape->layer;
    if (p->adapter) {
        tape->adapters += p->n * p->k;
        tape->n_adapters++;
        return;
    }
    const double weights = p->shares_weights ? 0 : p->batch * p->n * p->k, bias = p->has_bias ? p->batch * p->n : 0;
    const bool is_inside = (p->by.n | p->by.k) & DL_BY_INNER;
    layer->n_tensors += (weights > 0) + p->has_bias;
    /* Partial sums are added before the bias, so a layer cut by its inner dimension keeps it whole. */
    const bool bias_is_inside = p->by.n & DL_BY_INNER;
    *(tape->among_experts ? &layer->expert_parameters
      : is_inside         ? &layer->parameters_inside
                          : &layer->parameters_outside) += weights;
    *(tape->among_experts ? &layer->expert_parameters
      : bias_is_inside    ? &layer->parameters_inside
                          : &layer->parameters_outside) += bias;
}

static dl_dimensions of_experts(bool among_experts) { return among_experts ? DL_BY_EXPERT : 0; }

static void add_bias_gradient(const struct dl_tape *tape, struct dl_tape_step *step, const struct dl_product *p)
{
    const dl_dimensions made = p->by.n ? p->by.n : DL_BY_WIDTH, rows = p->by.m ? p->by.m : DL_ROWS;
    const struct dl_kernel sum = {.kind = DL_KERNEL_MEMORY,
                                  .name = "bias",
                                  .n = p->n,
                                  .elements = p->batch * p->m * p->n,
                                  .by = {.n = made, .elements = rows | made | of_experts(tape->among_experts)}};
    add_gradient(tape, step, &sum, DL_GRADIENT_WEIGHT);
}

void dl_tape_product(struct dl_tape *tape, const struct dl_product *p)
{
    assert(p->batch > 0 && p->m > 0 && p->n > 0 && p->k > 0);
    const bool makes_inner = p->by.n & DL_BY_INNER && !p->adapter, sums_inner = p->by.k & DL_BY_INNER && !p->adapter;
    const bool is_frozen = tape->frozen && !p->adapter && !p->of_activations;
    if (makes_inner && !tape->inside) dl_tape_enter(tape, p->batch * p->m * p->k);
    struct dl_tape_step *const step = add_step(tape);
    struct dl_kernel forward = {.kind = p->is_convolution ? DL_KERNEL_CONV : DL_KERNEL_GEMM,
                                .name = p->name,
                                .batch = p->batch,
                                .m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .given = p->given,
                                .made = p->made,
                                .window = p->window,
                                .stride = p->stride,
                                .pad = p->pad,
                                .stays_wide = p->stays_wide,
                                .has_places = p->has_places,
                                .moves_tokens = p->moves_tokens,
                                .masked = p->masked,
                                .has_bias = p->has_bias,
                                .frozen = is_frozen,
                                .is_below = tape->is_below,
                                .adapter = p->adapter,
                                .module = tape->module,
                                .result = tape->result,
                                .by = p->by};
    forward.by.batch |= of_experts(tape->among_experts);
    struct dl_kernel input = forward, weight = forward; /* Y = X W: dX = dY W^T and dW = X^T dY */
    input.n = p->k, input.k = p->n, input.by.n = p->by.k, input.by.k = p->by.n;
    weight.m = p->k, weight.k = p->m, weight.by.m = p->by.k, weight.by.k = p->by.m;
    add_forward(step, &forward);
    if (!p->is_first) add_gradient(tape, step, &input, DL_GRADIENT_INPUT);
    if (!is_frozen) add_gradient(tape, step, &weight, p->of_activations ? DL_GRADIENT_INPUT : DL_GRADIENT_WEIGHT);
    if (p->has_bias && !is_frozen) add_bias_gradient(tape, step, p);
    add_parameters(tape, p);
    step->told.for_key_heads = p->for_key_heads;
    if (sums_inner && !p->stays) leave(tape, step, p->batch * p->m * p->n);
}

void dl_tape_attention(struct dl_tape *tape, const struct dl_kernel *attention)
{
    struct dl_tape_step *const step = add_step(tape);
    struct dl_kernel kernel = *attention;
    kernel.kind = DL_KERNEL_ATTENTION;
    kernel.name = "attention";
    kernel.masked = kernel.causal;
    kernel.is_below = tape->is_below;
    kernel.module = tape->module;
    kernel.result = tape->result;
    kernel.by = (struct dl_kernel_dimensions){.batch = DL_BY_SAMPLE | DL_BY_INNER, .m = DL_BY_TOKEN, .n = DL_BY_TOKEN};
    add_forward(step, &kernel);
    kernel.backward = true;
    add_gradient(tape, step, &kernel, DL_GRADIENT_INPUT);
}

void dl_tape_pass(struct dl_tape *tape, const struct dl_tape_pass *pass)
{
    struct dl_tape_step *const step = add_step(tape);
    step->only_adds = pass->only_adds;
    step->told.row_sums = pass->row_sums;
    /* Inside, rows are those of a head, which a rank has whole, or of all heads, and matrices are those of heads. */
    const dl_dimensions heads = pass->by & DL_BY_INNER ? DL_BY_SAMPLE | DL_BY_INNER : 0;
    const dl_dimensions row = pass->row_sums > 0 ? DL_BY_INNER : pass->by & DL_BY_WIDTH;
    struct dl_kernel kernel = {
        .kind = DL_KERNEL_MEMORY,
        .name = pass->name,
        .operation = pass->operation,
        .batch = pass->matrices,
        .n = pass->width,
        .elements = pass->forward,
        .module = tape->module,
        .table = pass->table,
        .drops = pass->drops,
        .rotates_parts = pass->rotates_parts,
        .on_operands = tape->inside && !heads,
        .by = {.batch = heads, .n = row, .elements = pass->by | of_experts(tape->among_experts)}};
    if (pass->forward > 0) {
        kernel.tokens = pass->tokens / pass->forward;
        kernel.flop_per_element = pass->flop / pass->forward;
        kernel.products_per_element = pass->products / pass->forward;
        add_forward(step, &kernel);
    }
    kernel.drops = false;
    kernel.elements = pass->input_gradient;
    kernel.tokens = pass->input_gradient > 0 ? pass->tokens / pass->input_gradient : 0;
    kernel.flop_per_element = pass->input_gradient > 0 ? 2 * pass->flop / pass->input_gradient : 0;
    kernel.products_per_element = pass->input_gradient > 0 ? pass->backward_products / pass->input_gradient : 0;
    if (pass->input_gradient > 0) add_gradient(tape, step, &kernel, DL_GRADIENT_INPUT);
    kernel.flop_per_element = kernel.products_per_element = 0;
    kernel.elements = pass->weight_gradient;
    if (pass->weight_gradient > 0 && !tape->frozen) add_gradient(tape, step, &kernel, DL_GRADIENT_WEIGHT);
    if (pass->found > 0) leave(tape, step, pass->found);
}

static void append(struct dl_work *list, size_t *n, const struct dl_work *work, size_t n_work)
{
    memcpy(list + *n, work, n_work * sizeof *work);
    *n += n_work;
}

/* What it is given, beside what is known of that already. */
static void tell(struct dl_work *work, const struct dl_work *given)
{
    work->to_experts += given->to_experts;
    work->from_experts += given->from_experts;
    work->enters += given->enters;
}

/* What several are given is told by the first of them that does anything forward. */
static void write_forward(const struct dl_tape *tape)
{
    struct dl_layer *const layer = tape->layer;
    struct dl_work given = {0};
    for (size_t i = 0; i < tape->n_steps; i++) {
        const struct dl_tape_step *const step = &tape->steps[i];
        struct dl_work *const work = &layer->forward[layer->n_forward];
        tell(&given, &step->told);
        if (!step->n_forward) continue;
        append(layer->forward, &layer->n_forward, &step->forward, 1);
        tell(work, &given);
        work->leaves = step->told.leaves;
        work->for_key_heads = step->told.for_key_heads;
        work->row_sums = step->told.row_sums;
        given = (struct dl_work){0};
    }
}

/* Sums at the end, and a product with weights before them: its gradients need what it is given, not what it makes. Of
 * experts, what they make is needed for the gradients of their weights in the sum. */
static size_t count_needed(const struct dl_tape *tape)
{
    size_t n = tape->layer->n_forward;
    for (size_t i = tape->n_steps; i-- > 0;) {
        const struct dl_tape_step *const step = &tape->steps[i];
        const struct dl_kernel *const k = &step->forward.kernel;
        if (!step->n_forward) continue;
        if (!step->only_adds) return n - (k->kind == DL_KERNEL_GEMM && !(k->by.batch & DL_BY_EXPERT));
        n--;
    }
    return n;
}

/* The gradient of what leaves enters, and the other way round, after all that adds to it. Nobody needs that of the
 * model's input. Gradients of weights wait until the other one is handed over. */
static void write_backward(const struct dl_tape *tape)
{
    struct dl_layer *const layer = tape->layer;
    struct dl_work given = {0}, *waiting = NULL;
    for (size_t i = tape->n_steps; i-- > 0;) {
        const struct dl_tape_step *const step = &tape->steps[i];
        struct dl_work *const first = &layer->backward[layer->n_backward];
        append(layer->backward, &layer->n_backward, step->input, step->n_input);
        append(layer->backward, &layer->n_backward, step->weight, step->n_weight);
        given.enters += step->told.leaves;
        if (waiting || step->n_input + step->n_weight > 0) {
            tell(waiting ? waiting : first, &given);
            given = (struct dl_work){0};
        }
        if (step->n_input > 0) first[step->n_input - 1].leaves = step->told.enters;
        if (step->n_input > 0) first->for_key_heads = step->told.for_key_heads;
        if (step->n_input > 0) first->row_sums = step->told.row_sums;
        given.to_experts += step->told.from_experts;
        given.from_experts += step->told.to_experts;
        waiting = step->n_weight > 0 && step->told.enters == 0 ? first + step->n_input : NULL;
    }
}

/* What was counted so far is not trained. */
static void freeze(const struct dl_tape *tape)
{
    struct dl_layer *const layer = tape->layer;
    layer->frozen_inside = layer->parameters_inside;
    layer->frozen_outside = layer->parameters_outside;
    layer->parameters_inside = tape->adapters;
    layer->parameters_outside = 0;
    layer->n_tensors = tape->n_adapters;
}

void dl_tape_end(struct dl_tape *tape, struct dl_arena *arena)
{
    struct dl_layer *const layer = tape->layer;
    assert(tape->module == DL_NO_MODULE);
    for (enum dl_block_module m = DL_NO_MODULE; m < DL_N_MODULES; m++) dl_saved_add(&layer->saved, &layer->saved_by[m]);
    layer->forward = dl_arena_alloc(arena, tape->n_steps * sizeof *layer->forward);
    layer->backward = dl_arena_alloc(arena, 2 * max_gradients * tape->n_steps * sizeof *layer->backward);
    write_forward(tape);
    write_backward(tape);
    layer->n_needed = count_needed(tape);
    if (tape->frozen) freeze(tape);
    dl_free(tape->steps);
    *tape = (struct dl_tape){0};
}
