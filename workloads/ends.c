/* ends.c - the first and the last layer of a transformer: words or patches into tokens, tokens into a loss. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

/* ---- embedding ---- */

/* The gradient of a look-up adds each row to that of its token. */
static void embed_words(struct dl_block *b)
{
    const double table = (double)b->o->vocab * (double)b->o->hidden;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"look-up", DL_INSIDE, .forward = 2 * b->elements,
                                                  .weight_gradient = 3 * b->elements, .operation = "embedding",
                                                  .table = table, .found = b->elements});
    b->tape.layer->parameters_inside += table;
    b->tape.layer->n_tensors += 1;
}

/* A linear layer with a bias on every patch, in every device; one more token, for the class, is learned. */
static void embed_patches(struct dl_block *b)
{
    const double hidden = (double)b->o->hidden, patch = (double)b->o->patch, n = b->samples * (double)(b->o->seq - 1);
    dl_tape_product(&b->tape, &(struct dl_product){"patches", 1, n, hidden, patch, dl_of_no_pair, .has_bias = true,
                                                   .is_first = true});
    dl_block_save_operand(b, n * patch, DL_ACTIVATION, false, DL_NO_TARGET);
    b->tape.layer->parameters_outside += hidden;
    b->tape.layer->n_tensors += 1;
}

void dl_block_build_embedding(struct dl_block *b, struct dl_layer *layer, struct dl_arena *arena)
{
    const struct dl_transformer *const o = b->o;
    const double hidden = (double)o->hidden, added = (double)(o->positions == DL_LEARNED ? o->seq : 0) * hidden;
    dl_block_begin(b, layer, "embedding");
    if (o->patch)
        embed_patches(b);
    else
        embed_words(b);
    layer->parameters_outside += added + (double)o->token_types * hidden;
    layer->n_tensors += (added > 0) + (o->token_types > 0);
    if (added > 0)
        dl_tape_pass(&b->tape, &(struct dl_tape_pass){"positions", DL_ACTIVATION, .forward = 2 * b->elements + added,
                                                      .weight_gradient = b->elements + added});
    if (o->token_types)
        dl_tape_pass(&b->tape, &(struct dl_tape_pass){"token_types", DL_ACTIVATION, .forward = 2 * b->elements,
                                                      .weight_gradient = b->elements});
    if (o->embedding_norm) dl_block_norm(b, "embedding_norm", hidden);
    if (o->dropout) {
        const double moved = (2 + DL_MASK_BYTES / DL_ACTIVATION_BYTES) * b->elements;
        dl_tape_pass(&b->tape,
                     &(struct dl_tape_pass){"dropout", DL_ACTIVATION, .forward = moved, .input_gradient = moved});
        layer->saved.outside_bytes += DL_MASK_BYTES * b->elements;
    }
    dl_tape_end(&b->tape, arena);
    if (dl_block_is_frozen(b)) { /* nobody needs a gradient of it */
        layer->n_backward = 0;
        layer->saved = (struct dl_saved){0};
    }
}

/* ---- head ---- */

/* BERT's: a linear layer, GELU and a norm before the logits. */
static void transform(struct dl_block *b)
{
    dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_NO_TARGET);
    b->tape.layer->saved.outside_bytes += DL_ACTIVATION_BYTES * b->elements; /* what the function is given */
    dl_block_linear(b, "transform", (double)b->o->hidden, (double)b->o->hidden, dl_of_no_pair, DL_NO_TARGET);
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"activation", DL_ACTIVATION, .forward = 2 * b->elements,
                                        .input_gradient = 3 * b->elements, .operation = dl_activations[DL_GELU]});
    dl_block_norm(b, "transform_norm", (double)b->o->hidden);
}

/* Its tanh is kept. */
static void cap_logits(struct dl_block *b, double logits)
{
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"logit_cap", DL_INSIDE, .forward = 2 * logits, .input_gradient = 3 * logits});
    b->tape.layer->saved.inside_bytes += DL_ACTIVATION_BYTES * logits;
}

/* All heads of a model share one matrix. */
static void predict(struct dl_block *b, double tokens, bool shares_weights)
{
    const struct dl_transformer *const o = b->o;
    const double elements = tokens * (double)o->hidden;
    if (o->final_norm) dl_block_norm(b, "final_norm", (double)o->hidden);
    if (o->head_transform) transform(b);
    dl_tape_product(&b->tape, &(struct dl_product){"logits", 1, tokens, (double)o->vocab, (double)o->hidden,
                                                   dl_first_of_pair, .has_bias = o->head_transform || o->patch,
                                                   .shares_weights = shares_weights, .stays_wide = true});
    if (!dl_block_is_frozen(b))
        b->tape.layer->saved.outside_bytes += DL_ACTIVATION_BYTES * elements; /* what that is given */
    if (o->logit_cap) cap_logits(b, tokens * (double)o->vocab);
    dl_tape_cross_entropy(&b->tape, tokens * (double)o->vocab, DL_INSIDE);
}

/* Of an image, the class token alone is classified. */
void dl_block_build_head(struct dl_block *b, struct dl_layer *layer, struct dl_arena *arena)
{
    const struct dl_transformer *const o = b->o;
    const double tokens = o->patch ? b->samples : b->tokens;
    dl_block_begin(b, layer, "head");
    predict(b, tokens, o->tied_embedding);
    for (int64_t i = 0; i < o->mtp_layers; i++) predict(b, tokens, true);
    layer->saved.input_bytes = DL_ACTIVATION_BYTES * b->elements;
    layer->output_elements = tokens; /* a loss for each */
    dl_tape_end(&b->tape, arena);
}
