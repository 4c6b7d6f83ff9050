/* block_parts.c - norms, residuals and linear layers, of which blocks are made, and what they keep for the backward. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

static void turn_to(struct dl_block *b, int64_t seq, bool causal)
{
    b->seq = (double)seq;
    b->causal = causal;
    b->tokens = b->samples * b->seq;
    b->elements = b->tokens * (double)b->o->hidden;
}

void dl_block_turn_to_encoder(struct dl_block *b) { turn_to(b, b->o->encoder_seq, false); }

void dl_block_turn_to_decoder(struct dl_block *b) { turn_to(b, b->o->seq, b->o->causal); }

/* Of so many elements; its parameters. */
static double add_norm(struct dl_block *b, struct dl_tape_pass rows, double elements)
{
    const double vectors = b->o->norm == DL_LAYERNORM ? 2 : 1; /* gain and, in LayerNorm, bias */
    rows.forward = 2 * elements, rows.input_gradient = 3 * elements, rows.weight_gradient = 2 * elements;
    rows.operation = dl_norms[b->o->norm];
    dl_tape_pass(&b->tape, &rows);
    b->tape.layer->n_tensors += vectors;
    return vectors * rows.width;
}

void dl_block_add_norm(struct dl_block *b, const char *name, dl_dimensions by, double elements, double width)
{
    b->tape.layer->parameters_outside += add_norm(b, (struct dl_tape_pass){name, by, .width = width}, elements);
}

void dl_block_head_norm(struct dl_block *b, const char *name, double heads, double width)
{
    const double elements = b->tokens * heads * width;
    dl_block_add_norm(b, name, DL_INSIDE, elements, width);
    dl_tape_saved(&b->tape)->inside_bytes += DL_ACTIVATION_BYTES * elements; /* what it is given */
}

/* Each rank has the gains of its heads, and a sum in fp32 for each token. */
void dl_block_joint_norm(struct dl_block *b, const char *name, double heads)
{
    const double width = heads * (double)b->o->head_size, elements = b->tokens * width, fp32 = 4 / DL_ACTIVATION_BYTES;
    const struct dl_tape_pass rows = {name, DL_INSIDE, .width = width, .row_sums = fp32 * b->tokens};
    b->tape.layer->parameters_inside += add_norm(b, rows, elements);
    dl_tape_saved(&b->tape)->inside_bytes += DL_ACTIVATION_BYTES * elements;
}

/* Whatever module is at work. */
static struct dl_saved *saved_by_layer(struct dl_block *b)
{
    return b->tape.is_below ? &b->tape.not_needed : &b->tape.layer->saved;
}

void dl_block_norm(struct dl_block *b, const char *name, double width)
{
    const double elements = b->tokens * width;
    dl_block_add_norm(b, name, DL_ACTIVATION, elements, width);
    struct dl_saved *const saved = saved_by_layer(b);
    saved->outside_bytes += DL_ACTIVATION_BYTES * elements; /* what it is given */
    saved->norm_bytes += DL_ACTIVATION_BYTES * elements;
}

/* Backward, the gradients of the two ways are added where they parted, and dropout is a kernel of its own. */
void dl_block_residual(struct dl_block *b)
{
    const double mask = b->o->dropout ? DL_MASK_BYTES / DL_ACTIVATION_BYTES : 0;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"residual", DL_ACTIVATION, .forward = (3 + mask) * b->elements,
                                                  .input_gradient = 3 * b->elements, .drops = b->o->dropout,
                                                  .only_adds = !b->o->dropout});
    if (!b->o->dropout) return;
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"dropout", DL_ACTIVATION, .input_gradient = (2 + mask) * b->elements});
    saved_by_layer(b)->outside_bytes += DL_MASK_BYTES * b->elements;
}

/* Backward the gradient of a factor sums products with what it was given, which is kept if the factor is trained. */
static void scale_channels(struct dl_block *b)
{
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"layer_scale", DL_ACTIVATION, .forward = 2 * b->elements,
                                        .input_gradient = 2 * b->elements, .weight_gradient = 2 * b->elements});
    b->tape.layer->parameters_outside += (double)b->o->hidden;
    b->tape.layer->n_tensors += 1;
    if (!dl_block_is_frozen(b)) saved_by_layer(b)->outside_bytes += DL_ACTIVATION_BYTES * b->elements;
}

void dl_block_finish_half(struct dl_block *b, const char *norm)
{
    if (b->o->post_norms) dl_block_norm(b, norm, (double)b->o->hidden);
    if (b->o->layer_scale) scale_channels(b);
    dl_block_residual(b);
}

void dl_block_save_operand(struct dl_block *b, double elements, dl_dimensions by, bool is_needed_wide,
                           enum dl_adapter_target target)
{
    if (dl_block_is_frozen(b)) {
        dl_block_save_frozen(b, elements, by, is_needed_wide, target);
        return;
    }
    struct dl_saved *const saved = dl_tape_saved(&b->tape);
    const double bytes = DL_ACTIVATION_BYTES * elements;
    const bool inside = by & DL_BY_INNER;
    *(inside ? &saved->inside_bytes : &saved->outside_bytes) += bytes;
    if (is_needed_wide)
        *(inside ? &saved->copied_inside_bytes : &saved->copied_outside_bytes) += bytes;
    else
        *(inside ? &saved->operands_inside_bytes : &saved->operands_outside_bytes) += bytes;
}

struct linear {
    struct dl_branch made;
    double inputs;
    struct dl_kernel_dimensions by;
    bool has_bias;
    enum dl_adapter_target target;
};

static void linear(struct dl_block *b, const struct linear *l)
{
    const struct dl_adapted on = {.inputs = l->inputs, .outputs = l->made.outputs, .by = l->by};
    const bool is_target = dl_block_is_target(b, l->target);
    if (is_target) dl_block_before_adapter(b, &on);
    dl_tape_product(&b->tape, &(struct dl_product){l->made.name, 1, b->tokens, l->made.outputs, l->inputs, l->by,
                                                   .has_bias = l->has_bias, .stays = b->sums_later,
                                                   .for_key_heads = l->made.for_key_heads});
    if (is_target) dl_block_adapter(b, &on);
}

void dl_block_linear(struct dl_block *b, const char *name, double outputs, double inputs,
                     struct dl_kernel_dimensions by, enum dl_adapter_target target)
{
    linear(b, &(struct linear){{name, outputs, 0}, inputs, by, b->o->bias, target});
    if (dl_block_is_target(b, target)) b->tape.is_below = false;
}

void dl_block_branches(struct dl_block *b, const struct dl_branches *all)
{
    const double moved_by_sum = 3;
    struct linear l = {.made.name = all->name,
                       .inputs = (double)b->o->hidden,
                       .by = dl_first_of_pair,
                       .has_bias = all->has_bias,
                       .target = all->target};
    for (size_t i = 0; i < all->n; i++) {
        l.made.outputs += all->each[i].outputs;
        l.made.for_key_heads += all->each[i].for_key_heads;
    }
    const bool apart = b->apart && all->n > 1;
    if (apart) {
        if (!b->tape.inside) dl_tape_enter(&b->tape, b->elements);
        dl_tape_pass(&b->tape,
                     &(struct dl_tape_pass){"branches", DL_ACTIVATION, .operation = "residual",
                                            .input_gradient = (double)(all->n - 1) * moved_by_sum * b->elements});
    } else {
        linear(b, &l);
    }
    for (size_t i = 0; i < all->n && apart; i++) {
        l.made = all->each[i];
        linear(b, &l);
    }
    if (dl_block_is_target(b, all->target)) b->tape.is_below = false;
}
