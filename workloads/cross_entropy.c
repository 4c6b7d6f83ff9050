/* cross_entropy.c - the loss that networks end in: a softmax of the logits, and the logarithm of the right one's share.
 */
#include "workloads/tape.h"
#include "workloads/workloads.h"

/* The logits are turned into fp32, and what the softmax makes of them is kept for backward. */
void dl_tape_cross_entropy(struct dl_tape *tape, double logits, dl_dimensions by)
{
    const double fp32 = 2; /* counts twice */
    const struct dl_tape_pass convert = {"logits_to_fp32", by, .forward = (1 + fp32) * logits,
                                         .input_gradient = (fp32 + 1) * logits};
    const struct dl_tape_pass loss = {"cross_entropy", by, .forward = 2 * fp32 * logits,
                                      .input_gradient = 2 * fp32 * logits};
    dl_tape_pass(tape, &convert);
    dl_tape_pass(tape, &loss);
    struct dl_layer *const layer = tape->layer;
    const bool is_inside = by & DL_BY_INNER;
    *(is_inside ? &layer->saved.inside_bytes : &layer->saved.outside_bytes) += DL_ACTIVATION_BYTES * fp32 * logits;
    *(is_inside ? &layer->logits : &layer->whole_logits) += logits;
}
