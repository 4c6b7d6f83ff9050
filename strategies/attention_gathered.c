/* attention_gathered.c - all keys and values are gathered first, and backward their gradients scattered (Llama 3, arXiv
 * 2407.21783, section 3.3.2). */
#include "strategies/attention.h"

static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    (void)o;
    return (struct dl_operator_layouts){
        .inside = dl_by_tokens, .outside = dl_by_tokens, .used = dl_by_tokens, .made = dl_by_tokens};
}

/* Of a causal mask the last rank needs 1 - 1 / (2 ways) of its scores, the mean rank half of them. */
static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const double ways = dl_stack_setting(below)->ways[DL_AXIS_CONTEXT];
    struct dl_event part = *ev;
    part.kernel.m /= ways;
    if (ev->kernel.causal && !o->zigzag) {
        part.kernel.causal = false;
        part.kernel.n *= 1 - 0.5 / ways;
        part.mean_work = 0.5 / (1 - 0.5 / ways);
    }
    return dl_emit(below, &part, err);
}

const struct dl_operator dl_operator_gathered_keys = {
    .name = "gathered_keys",
    .among = DL_ALONG_CONTEXT,
    .layouts = layouts,
    .check = dl_attention_check_tokens,
    .kernel = kernel,
};
