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

static void add_to_words(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double hidden = (double)o->hidden, added = o->positions == DL_LEARNED ? b->seq * hidden : 0;
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
        b->tape.layer->saved.outside_bytes += DL_MASK_BYTES * b->elements;
    }
}

/* Learned positions are those of the longer sequence; biases by distance are of the encoder's heads and the decoder's,
 * of 32 ranges of distances each (Raffel et al. 2020, arXiv 1910.10683, 2.1). */
static void count_embeddings(const struct dl_transformer *o, struct dl_layer *layer)
{
    const double hidden = (double)o->hidden, ranges = 32, stacks = o->encoder_layers ? 2 : 1;
    const double places = (double)(o->encoder_seq > o->seq ? o->encoder_seq : o->seq);
    const bool is_learned = o->positions == DL_LEARNED, is_relative = o->positions == DL_RELATIVE;
    if (!o->patch) layer->parameters_inside += (double)o->vocab * hidden;
    layer->parameters_outside += is_learned * places * hidden + (double)o->token_types * hidden;
    layer->parameters_outside += is_relative * stacks * ranges * (double)o->heads;
    layer->n_tensors += !o->patch + is_learned + is_relative * stacks + (o->token_types > 0);
}

void dl_block_build_embedding(struct dl_block *b, struct dl_layer *layer, struct dl_arena *arena)
{
    const struct dl_transformer *const o = b->o;
    dl_block_begin(b, layer, "embedding");
    count_embeddings(o, layer);
    if (o->encoder_layers) {
        dl_block_turn_to_encoder(b);
        embed_words(b);
        add_to_words(b);
        dl_block_keep_encoded(b);
        dl_block_turn_to_decoder(b);
    }
    if (o->patch)
        embed_patches(b);
    else
        embed_words(b);
    add_to_words(b);
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
