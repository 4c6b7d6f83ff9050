/* feed_forward.c - the second half of a block: two linear layers, or three if gated. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

bool dl_is_gated(const struct dl_transformer *o)
{
    return o->activation == DL_SWIGLU || o->activation == DL_GEGLU || o->activation == DL_CLAMPED_SWIGLU;
}

/* Saves what it is given (twice as much if gated) and its result, which the second linear layer is given; a relu's
 * backward needs the result alone. */
void dl_block_activation(struct dl_block *b, double elements, enum dl_block_module module)
{
    const enum dl_block_module around = b->tape.module;
    const bool needs_result = b->o->activation == DL_RELU;
    const double inputs = dl_is_gated(b->o) ? 2 * elements : elements;
    if (!needs_result) dl_tape_saved(&b->tape)->inside_bytes += DL_ACTIVATION_BYTES * inputs;
    b->tape.module = module;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"activation", DL_INSIDE, .forward = inputs + elements,
                                                  .input_gradient = inputs + elements + inputs,
                                                  .operation = dl_activations[b->o->activation]});
    dl_block_save_operand(b, elements, DL_INSIDE, needs_result, DL_TARGET_FC2);
    b->tape.module = around;
}

/* The second linear layer is given what is left; a relu's backward needs its own result beside that. */
static void drop_inside(struct dl_block *b, double elements)
{
    const double moved = (2 + DL_MASK_BYTES / DL_ACTIVATION_BYTES) * elements;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"ffn_dropout", DL_INSIDE, .forward = moved, .input_gradient = moved,
                                                  .operation = "dropout"});
    double *const kept = &dl_tape_saved(&b->tape)->inside_bytes;
    *kept += DL_MASK_BYTES * elements;
    if (b->o->activation == DL_RELU) *kept += DL_ACTIVATION_BYTES * elements;
}

void dl_block_feed(struct dl_block *b)
{
    const double hidden = (double)b->o->hidden, ffn = (double)b->o->ffn;
    b->tape.result = DL_RESULT_FC1;
    if (dl_is_gated(b->o)) {
        const struct dl_branch branches[] = {{"gate", ffn, 0}, {"up", ffn, 0}};
        dl_block_branches(b, &(struct dl_branches){"fc1", branches, DL_COUNT(branches), b->o->bias, DL_TARGET_FC1});
    } else {
        dl_block_linear(b, "fc1", ffn, hidden, dl_first_of_pair, DL_TARGET_FC1);
    }
    b->tape.result = DL_NO_RESULT;
    dl_block_activation(b, b->tokens * ffn, b->tape.module);
    if (b->o->ffn_dropout) drop_inside(b, b->tokens * ffn);
    dl_block_linear(b, "fc2", hidden, ffn, dl_second_of_pair, DL_TARGET_FC2);
}

void dl_block_feed_forward(struct dl_block *b)
{
    b->tape.module = DL_MODULE_FEED_FORWARD;
    dl_block_norm(b, "norm2", (double)b->o->hidden);
    dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_TARGET_FC1);
    dl_block_feed(b);
    b->tape.module = DL_NO_MODULE;
    dl_block_finish_half(b, "norm2_after");
}
