/* moe.c - the second half of a block as a mixture of experts, with shared ones beside them if there are any.
 *
 *   norm  router  [fc1 activation fc2]  [latent_down]  permute  fc1 activation fc2  unpermute  [latent_up]
 *                  shared experts                              batch = experts */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

double dl_expert_padding(const struct dl_transformer *o) { return o->capacity_factor > 0 ? o->capacity_factor : 1; }

static double width_of(const struct dl_transformer *o) { return (double)o->expert_hidden; }

/* Scores in fp32, of which each token's best top_k are kept. */
static void route(struct dl_block *b)
{
    const double n = (double)b->o->experts, fp32 = 2, scores = fp32 * b->tokens * n;
    dl_tape_product(&b->tape, &(struct dl_product){"router", 1, b->tokens, n, (double)b->o->hidden, dl_of_no_pair,
                                                   .stays_wide = true});
    dl_tape_pass(&b->tape,
                 &(struct dl_tape_pass){"top_k", DL_ACTIVATION, .forward = 2 * scores, .input_gradient = 3 * scores});
    dl_tape_saved(&b->tape)->outside_bytes += DL_ACTIVATION_BYTES * scores;
}

/* As the dense half: what they are given is saved by the router, which never takes it narrow. */
static void shared_experts(struct dl_block *b)
{
    const double hidden = (double)b->o->hidden, ffn = (double)(b->o->shared_experts * b->o->shared_ffn);
    b->tape.module = DL_MODULE_NORM;
    dl_tape_saved(&b->tape)->copied_outside_bytes += DL_ACTIVATION_BYTES * b->elements;
    b->tape.module = DL_MODULE_SHARED_EXPERTS;
    dl_block_linear(b, "shared_fc1", dl_is_gated(b->o) ? 2 * ffn : ffn, hidden, dl_first_of_pair, DL_NO_TARGET);
    dl_block_activation(b, b->tokens * ffn, b->tape.module);
    dl_block_linear(b, "shared_fc2", hidden, ffn, dl_second_of_pair, DL_NO_TARGET);
    b->tape.module = DL_MODULE_EXPERTS;
}

static void experts(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double n = (double)o->experts, hidden = width_of(o), ffn = (double)o->expert_ffn;
    const double tokens = (double)o->top_k * dl_expert_padding(o) * b->tokens;
    const bool has_places = o->capacity_factor > 0;
    dl_tape_dispatch(&b->tape, tokens * hidden);
    dl_tape_product(&b->tape, &(struct dl_product){"expert_fc1", n, tokens / n, dl_is_gated(o) ? 2 * ffn : ffn, hidden,
                                                   dl_first_of_pair, .has_bias = o->bias, .has_places = has_places});
    dl_block_activation(b, tokens * ffn, DL_MODULE_EXPERT_ACTIVATION);
    dl_tape_product(&b->tape, &(struct dl_product){"expert_fc2", n, tokens / n, hidden, ffn, dl_second_of_pair,
                                                   .has_bias = o->bias, .has_places = has_places});
    dl_tape_combine(&b->tape, tokens * hidden);
    dl_block_save_operand(b, tokens * hidden, DL_ACTIVATION, false, DL_NO_TARGET); /* of fc1 */
    dl_tape_saved(&b->tape)->gathered_bytes += DL_ACTIVATION_BYTES * tokens * hidden;
    dl_tape_saved(&b->tape)->outside_bytes += DL_ACTIVATION_BYTES * tokens * hidden;
    dl_tape_saved(&b->tape)->weighed_bytes += DL_ACTIVATION_BYTES * tokens * hidden;
}

/* One-hot matrices of tokens x places, of all experts, for each sample (Lepikhin et al. 2020, GShard, arXiv 2006.16668,
 * section 3; MaxText, layers/moe.py, dense_matmul): they are written for both ways, and the gradient of the weights of
 * tokens is one, too. */
static void one_hot_matrices(struct dl_block *b, double places)
{
    const double elements = b->tokens * places;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"one_hot", DL_ACTIVATION, .forward = 2 * elements,
                                                  .input_gradient = elements, .operation = "top_k"});
    dl_tape_saved(&b->tape)->outside_bytes += 2 * DL_ACTIVATION_BYTES * elements;
}

static void experts_by_gemms(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double seq = b->seq, hidden = width_of(o);
    const double places = (double)o->top_k * dl_expert_padding(o) * seq;
    const struct dl_kernel_dimensions to = {.batch = DL_BY_SAMPLE, .k = DL_BY_TOKEN};
    const struct dl_kernel_dimensions from = {.batch = DL_BY_SAMPLE, .m = DL_BY_TOKEN};
    one_hot_matrices(b, places);
    dl_tape_product(&b->tape,
                    &(struct dl_product){"to_places", b->samples, places, hidden, seq, to, .of_activations = true,
                                         .is_first = true, .stays_wide = true, .moves_tokens = true});
    experts(b);
    dl_tape_product(&b->tape, &(struct dl_product){"from_places", b->samples, seq, hidden, places, from,
                                                   .of_activations = true, .stays_wide = true, .moves_tokens = true});
}

static void experts_by_copies(struct dl_block *b)
{
    const double elements = b->tokens * width_of(b->o);
    const double copied = (double)b->o->top_k * dl_expert_padding(b->o) * elements;
    const double n = (double)b->o->experts;
    const struct dl_tape_pass permute = {
        "permute",     DL_ACTIVATION,     .forward = elements + copied, .input_gradient = elements + copied,
        .matrices = n, .tokens = elements};
    const struct dl_tape_pass unpermute = {
        "unpermute",   DL_ACTIVATION,     .forward = copied + elements, .input_gradient = 2 * copied + elements,
        .matrices = n, .tokens = elements};
    dl_tape_pass(&b->tape, &permute);
    experts(b);
    dl_tape_pass(&b->tape, &unpermute);
}

static void experts_of_tokens(struct dl_block *b)
{
    if (b->o->routes_by_gemms)
        experts_by_gemms(b);
    else
        experts_by_copies(b);
}

/* Tokens travel and are worked on in a smaller width, which the router and shared experts do not see (LatentMoE: NVIDIA
 * 2025, Nemotron 3, arXiv 2512.20856). Both products are whole on all ranks (Megatron-Core, transformer/moe). */
static void latent_experts(struct dl_block *b)
{
    const double hidden = (double)b->o->hidden, width = width_of(b->o);
    dl_tape_saved(&b->tape)->copied_outside_bytes += DL_ACTIVATION_BYTES * b->elements; /* what the router keeps, too */
    dl_block_linear(b, "latent_down", width, hidden, dl_of_no_pair, DL_NO_TARGET);
    experts_of_tokens(b);
    dl_block_save_operand(b, b->tokens * width, DL_ACTIVATION, false, DL_NO_TARGET);
    dl_block_linear(b, "latent_up", hidden, width, dl_of_no_pair, DL_NO_TARGET);
}

void dl_block_experts(struct dl_block *b)
{
    b->tape.module = DL_MODULE_NORM;
    dl_block_norm(b, "norm2", (double)b->o->hidden);
    dl_tape_saved(&b->tape)->outside_bytes += DL_ACTIVATION_BYTES * b->elements; /* what the router is given */
    b->tape.module = DL_MODULE_EXPERTS;
    route(b);
    if (b->o->shared_experts) shared_experts(b);
    if (b->o->expert_hidden == b->o->hidden)
        experts_of_tokens(b);
    else
        latent_experts(b);
    b->tape.module = DL_NO_MODULE;
    dl_block_finish_half(b, "norm2_after");
}
