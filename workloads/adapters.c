/* adapters.c - adapters of low rank on linear layers whose weights are frozen (LoRA: Hu et al. 2021, arXiv 2106.09685).
 *
 *   y = x W + s (dropout(x) A) B      A: inputs x rank, B: rank x outputs
 *
 * as PEFT (tuners/lora/layer.py, Linear.forward) and Megatron-Bridge (peft/utils.py, ParallelLinearAdapter) write it:
 * dropout, two products, the factor s and the sum are kernels of their own, in the precision of activations. Backward,
 * gradients of x come from W and from A, and are summed. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

bool dl_block_is_frozen(const struct dl_block *b) { return b->adapters.rank > 0; }

bool dl_block_is_target(const struct dl_block *b, enum dl_adapter_target target)
{
    return dl_block_is_frozen(b) && b->adapters.targets >> target & 1;
}

const char *dl_transformer_lacks_adapters(const struct dl_transformer *o)
{
    if (o->experts) return "it has experts, whose blocks are not dense";
    if (o->kv_rank) return "its attention is latent, without one layer for queries, keys and values";
    if (o->pattern) return "it has a pattern of layers, not blocks of attention and feed-forward";
    if (o->mtp_layers) return "it predicts several tokens";
    if (o->encoder_layers) return "it has an encoder and a decoder";
    return NULL;
}

static bool is_first_of_pair(const struct dl_adapted *on) { return on->by.n & DL_BY_INNER; }

/* Of what the layer is given. */
static dl_dimensions given_by(const struct dl_adapted *on) { return is_first_of_pair(on) ? DL_ACTIVATION : DL_INSIDE; }

void dl_block_before_adapter(struct dl_block *b, const struct dl_adapted *on)
{
    const double elements = b->tokens * on->inputs, moved_by_sum = 3;
    if (is_first_of_pair(on) && !b->tape.inside) dl_tape_enter(&b->tape, elements);
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"adapter_sum", given_by(on), .operation = "residual",
                                                  .input_gradient = moved_by_sum * elements});
}

static void drop(struct dl_block *b, const struct dl_adapted *on)
{
    const double moved = (2 + DL_MASK_BYTES / DL_ACTIVATION_BYTES) * b->tokens * on->inputs;
    if (!b->adapters.dropout) return;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"adapter_dropout", given_by(on), .forward = moved,
                                                  .input_gradient = moved, .operation = "dropout"});
}

/* On a layer cut by columns each tensor rank makes a part of the low rank, on one cut by rows a part of the sum; the
 * second product is always cut by columns. */
static void multiply(struct dl_block *b, const struct dl_adapted *on)
{
    const bool is_first = is_first_of_pair(on);
    const struct dl_kernel_dimensions in =
        is_first ? dl_first_of_pair : (struct dl_kernel_dimensions){.m = DL_ROWS, .k = DL_BY_INNER};
    const struct dl_kernel_dimensions out = {.m = DL_ROWS, .n = DL_BY_INNER};
    dl_tape_product(
        &b->tape, &(struct dl_product){"adapter_in", 1, b->tokens, b->adapters.rank, on->inputs, in, .stays_wide = true,
                                       .adapter = is_first ? DL_ADAPTER_IN_OF_COLUMNS : DL_ADAPTER_IN_OF_ROWS});
    b->tape.is_below = false;
    dl_tape_product(&b->tape, &(struct dl_product){
                                  "adapter_out", 1, b->tokens, on->outputs, b->adapters.rank, out, .stays_wide = true,
                                  .adapter = is_first ? DL_ADAPTER_OUT_OF_COLUMNS : DL_ADAPTER_OUT_OF_ROWS});
}

void dl_block_adapter(struct dl_block *b, const struct dl_adapted *on)
{
    const double made = b->tokens * on->outputs;
    const dl_dimensions by = is_first_of_pair(on) ? DL_INSIDE : DL_ACTIVATION;
    const enum dl_block_result result = b->tape.result;
    const bool is_below = b->tape.is_below;
    b->tape.result = DL_NO_RESULT; /* it is a part of one at most */
    drop(b, on);
    multiply(b, on);
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"adapter_scale", by, .forward = 2 * made, .input_gradient = 2 * made,
                                                  .operation = "residual", .only_adds = true});
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"adapter_add", by, .forward = 3 * made, .operation = "residual",
                                                  .only_adds = true});
    b->tape.result = result;
    b->tape.is_below = is_below; /* other layers may take the same input */
}

/* Adapters that share what they are given. */
static double n_adapters(const struct dl_block *b, enum dl_adapter_target target)
{
    const double of_attention = 3, of_gated = 2;
    if (!dl_block_is_target(b, target)) return 0;
    if (!b->apart) return 1;
    return target == DL_TARGET_QKV ? of_attention : target == DL_TARGET_FC1 && dl_is_gated(b->o) ? of_gated : 1;
}

/* A frozen layer keeps nothing, and of the first block nothing is kept below its first adapter: autograd keeps what a
 * gradient needs, of which there is none (PEFT lets the embedding's result have one where blocks are recomputed; these
 * keep their input anyway). With dropout an adapter keeps what is left of its input, and the mask; without, the
 * input, which others may keep too. Each keeps its vectors of low rank. */
void dl_block_save_frozen(struct dl_block *b, double elements, dl_dimensions by, bool is_needed,
                          enum dl_adapter_target target)
{
    const double n = n_adapters(b, target), each = DL_ACTIVATION_BYTES + DL_MASK_BYTES;
    struct dl_saved *const saved = n > 0 ? dl_tape_kept(&b->tape) : dl_tape_saved(&b->tape);
    const bool is_needed_by_others = is_needed && !b->tape.is_below;
    const double shared = is_needed_by_others || (n > 0 && !b->adapters.dropout) ? DL_ACTIVATION_BYTES * elements : 0;
    const double dropped = b->adapters.dropout ? n * each * elements : 0;
    const double low = n * DL_ACTIVATION_BYTES * b->tokens * b->adapters.rank;
    const bool inside = by & DL_BY_INNER;
    *(inside ? &saved->inside_bytes : &saved->outside_bytes) += shared + dropped;
    saved->outside_bytes += low;
    saved->adapted_bytes += low + (inside ? 0 : shared + dropped);
}
