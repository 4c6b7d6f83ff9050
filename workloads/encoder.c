/* encoder.c - the halves of a transformer with an encoder and a decoder (Vaswani et al. 2017, arXiv 1706.03762; T5):
 * what the decoder has of the encoder.
 *
 * The rule to remember: what the encoder made is one tensor, which all blocks of the decoder attend to. It is kept
 * once, with the embedding, whatever blocks recompute; its gradient is summed block by block. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

void dl_block_keep_encoded(struct dl_block *b)
{
    dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_NO_TARGET);
}

void dl_block_end_encoder(struct dl_block *b)
{
    if (!b->o->final_norm) return;
    dl_block_turn_to_encoder(b);
    dl_block_norm(b, "encoder_norm", (double)b->o->hidden);
    dl_block_turn_to_decoder(b);
}

/* Of the encoder's tokens. */
static void keys_values(struct dl_block *b)
{
    const double moved_by_sum = 3;
    dl_block_turn_to_encoder(b);
    if (!b->is_first) /* backward comes to that last */
        dl_tape_pass(&b->tape, &(struct dl_tape_pass){"encoder_gradient", DL_ACTIVATION, .operation = "residual",
                                                      .input_gradient = moved_by_sum * b->elements});
    const struct dl_branch each[] = {dl_block_keys(b, "cross_k"), dl_block_keys(b, "cross_v")};
    dl_block_branches(b, &(struct dl_branches){"cross_kv", each, DL_COUNT(each), b->o->qkv_bias, DL_NO_TARGET});
    dl_block_turn_to_decoder(b);
}

static void queries(struct dl_block *b)
{
    const struct dl_branch one = dl_block_queries(b, "cross_q");
    dl_tape_enter(&b->tape, b->elements);
    dl_block_branches(b, &(struct dl_branches){one.name, &one, 1, b->o->qkv_bias, DL_NO_TARGET});
}

void dl_block_cross_attention(struct dl_block *b)
{
    dl_block_norm(b, "cross_norm", (double)b->o->hidden);
    dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_NO_TARGET); /* of queries */
    b->tape.result = DL_RESULT_QKV;
    keys_values(b);
    queries(b);
    b->tape.result = DL_NO_RESULT;
    b->crosses = true;
    dl_block_attend_to(b);
    b->crosses = false;
    dl_block_finish_half(b, "cross_norm_after");
}
