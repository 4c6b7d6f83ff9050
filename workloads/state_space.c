/* state_space.c - the mixer of Mamba-2 in the place of attention: a scan over the sequence, by chunks of it.
 *
 *   norm  in_proj  short_convolution  chunk_decay chunk_states pass_states chunk_scores chunk_scan  gated_norm out_proj
 *                 samples_first, if there are several, and back before the norm
 *
 * Dao and Gu 2024 (arXiv 2405.21060), section 6; kernels, what they move and what autograd keeps as in
 * state-spaces/mamba (ops/triton/ssd_combined.py, mamba_split_conv1d_scan_combined), called by Megatron-Core
 * (ssm/mamba_mixer.py), which has the norm apart. All between the projections is inside: ranks divide groups of heads.
 */
#include <math.h>

#include "workloads/transformer.h"
#include "workloads/workloads.h"

/* Elements of the tensors of a micro-batch, with two bytes each; what is kept in fp32 counts twice. */
struct sizes {
    double values;  /* tokens x heads x their size: x, z and what the mixer makes */
    double vectors; /* tokens x groups x state size: B, and as many of C */
    double steps;   /* tokens x heads: dt */
    double decays;  /* dt and the sums of what it decays by, in fp32 */
    double states;  /* chunks x heads x head size x state size */
    double scores;  /* chunks x groups x their length^2 */
    double columns; /* of z, x, B, C and dt together, for a token */
};
enum { fp32 = 2 };

static struct sizes sizes_of(const struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double heads = (double)o->state_heads, width = heads * (double)o->state_head_size;
    const double grouped = (double)(o->state_groups * o->state_size), chunk = (double)o->state_chunk;
    return (struct sizes){.values = b->tokens * width,
                          .vectors = b->tokens * grouped,
                          .steps = b->tokens * heads,
                          .decays = 2 * fp32 * b->tokens * heads,
                          .states = b->tokens / chunk * width * (double)o->state_size,
                          .scores = b->tokens * chunk * (double)o->state_groups,
                          .columns = 2 * width + 2 * grouped + heads};
}

static void add_pass(struct dl_block *b, const char *name, double forward, double backward)
{
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){name, DL_INSIDE, .forward = forward, .input_gradient = backward});
}

/* Megatron-Core has the samples of a token beside each other, mamba_ssm the tokens of a sample: what in_proj makes is
 * copied, and so is its gradient; what the scan makes only forward, as its backward takes gradients of any stride. */
static void copy_by_samples(struct dl_block *b, double forward, double backward)
{
    if (b->samples > 1)
        dl_tape_pass(&b->tape, &(struct dl_tape_pass){"samples_first", DL_INSIDE, .forward = 2 * forward,
                                                      .input_gradient = 2 * backward, .products = forward,
                                                      .backward_products = backward});
}

/* One filter for each channel of x, B and C, and SiLU; backward it is done once more, as its result is not kept. */
static void short_convolution(struct dl_block *b, const struct sizes *s)
{
    const double channels = s->values + 2 * s->vectors, each = channels / b->tokens;
    add_pass(b, "short_convolution", 2 * channels, (2 + 3) * channels);
    b->tape.layer->parameters_inside += each * ((double)b->o->state_window + 1); /* and biases */
    b->tape.layer->n_tensors += 2;
}

/* The states that chunks end with; backward once more, and the gradient of B. */
static void states_of_chunks(struct dl_block *b, const struct sizes *s)
{
    const double again = s->values + s->vectors + s->decays + fp32 * s->states;
    const double of_b = s->values + s->states + (1 + fp32) * s->vectors + s->decays + fp32 * s->steps;
    const double products = s->values * (double)b->o->state_size;
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"chunk_states", DL_INSIDE, .forward = again, .input_gradient = again + of_b,
                                        .products = products, .backward_products = 2 * products});
    add_pass(b, "pass_states", (fp32 + 1) * s->states, (2 * fp32 + 2 * fp32 + 2) * s->states);
}

/* Of all tokens of a chunk with each other, for a group; backward once more, and two for the gradients of C and B. */
static void scores_of_chunks(struct dl_block *b, const struct sizes *s)
{
    const double again = 2 * s->vectors + fp32 * s->scores, each = fp32 * s->scores + (1 + fp32 + 1) * s->vectors;
    const double products = s->scores * (double)b->o->state_size;
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"chunk_scores", DL_INSIDE, .forward = again, .input_gradient = again + 2 * each,
                                        .products = products, .backward_products = 3 * products});
}

/* Gradients of the scores, B and C come by parts of the heads of a group, in fp32, and are summed even if there is only
 * one part. */
static void sum_parts(struct dl_block *b, const struct sizes *s)
{
    const double summed = s->scores + 2 * s->vectors;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"sum_parts", DL_INSIDE, .input_gradient = 2 * fp32 * summed,
                                                  .backward_products = summed});
}

/* From states before a chunk and scores in it to what z gates. Backward kernels for z, the states, x, C, the scores and
 * the decays, of which each reads its operands; a causal mask halves what scores take. */
static void outputs_of_chunks(struct dl_block *b, const struct sizes *s)
{
    const double z = 6 * s->values, states = s->values + s->vectors + fp32 * s->states;
    const double x = 3 * s->values + fp32 * s->scores + s->vectors + s->states + s->decays + fp32 * s->steps;
    const double c = s->values + s->states + (1 + fp32) * s->vectors + s->decays;
    const double scores = 2 * s->values + fp32 * s->scores + s->decays, decays = scores;
    const double by_state = s->values * (double)b->o->state_size, in_chunk = s->values * (double)b->o->state_chunk / 2;
    const double flop_per_state = 7; /* as Megatron-LM counts (training/training.py, mamba_layer_flops) */
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"chunk_scan", DL_INSIDE,
                                                  .forward = 4 * s->values + s->vectors + s->decays + fp32 * s->scores +
                                                             s->states,
                                                  .input_gradient = z + states + x + c + scores + decays,
                                                  .flop = flop_per_state * by_state, .products = by_state + in_chunk,
                                                  .backward_products = 3 * (by_state + in_chunk)});
}

static void scan(struct dl_block *b, const struct sizes *s)
{
    const double again = s->steps + s->decays, gradients = (2 + 2 * fp32) * s->steps;
    add_pass(b, "chunk_decay", again, 2 * s->steps + again + gradients);
    states_of_chunks(b, s);
    scores_of_chunks(b, s);
    sum_parts(b, s);
    outputs_of_chunks(b, s);
    const double vectors_of_heads = 3; /* A, D and the bias of dt */
    b->tape.layer->parameters_inside += vectors_of_heads * (double)b->o->state_heads;
    b->tape.layer->n_tensors += vectors_of_heads;
}

/* Backward of mamba_ssm (ops/triton/layernorm_gated.py): programs of a warp for 256 columns, at most 8, and so many of
 * them that a unit has 4 warps; each goes through its rows one after the other. */
static double rows_of_unit(double rows, double columns)
{
    const double warps = fmin(fmax(exp2(ceil(log2(columns))) / 256, 1), 8);
    return rows / ceil(4 / warps);
}

/* Over the columns of each group, so that ranks need nothing of each other. */
static void norm_groups(struct dl_block *b, const struct sizes *s)
{
    const double width = s->values / b->tokens, groups = (double)b->o->state_groups, columns = width / groups;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"gated_norm", DL_INSIDE, .forward = 2 * s->values,
                                                  .input_gradient = 3 * s->values, .width = columns,
                                                  .backward_products = rows_of_unit(b->tokens * groups, columns)});
    b->tape.layer->parameters_inside += width;
    b->tape.layer->n_tensors += 1;
}

/* Kept inside: what in_proj makes, what the scan makes before and after z gates it, and the norm's result. */
void dl_block_mixer(struct dl_block *b)
{
    const struct sizes s = sizes_of(b);
    const double hidden = (double)b->o->hidden;
    b->tape.layer->state_groups = (double)b->o->state_groups;
    dl_block_norm(b, "norm1", hidden);
    dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_NO_TARGET);
    dl_block_linear(b, "in_proj", s.columns, hidden, dl_first_of_pair, DL_NO_TARGET);
    dl_tape_saved(&b->tape)->inside_bytes += DL_ACTIVATION_BYTES * (b->tokens * s.columns + 2 * s.values);
    copy_by_samples(b, b->tokens * s.columns, b->tokens * s.columns);
    short_convolution(b, &s);
    scan(b, &s);
    copy_by_samples(b, s.values, 0);
    norm_groups(b, &s);
    dl_block_save_operand(b, s.values, DL_INSIDE, false, DL_NO_TARGET);
    dl_block_linear(b, "out_proj", hidden, s.values / b->tokens, dl_second_of_pair, DL_NO_TARGET);
    dl_block_residual(b);
}
