/* attention_ring.c - keys and values go round, each block of them while attention works on the one before (Liu et al.,
 * Ring Attention, arXiv 2310.01889); backward their gradients follow a step behind, and in the end go home.
 *
 * Under a causal mask later tokens have more to do; zigzag gives each rank a part from the front and one from the back,
 * so that all do as much. */
#include "strategies/attention.h"

static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    (void)o;
    return (struct dl_operator_layouts){.inside = dl_by_tokens,
                                        .outside = dl_by_tokens,
                                        .used = dl_by_tokens,
                                        .made = dl_by_tokens,
                                        .keys = dl_by_tokens};
}

/* In step i a rank works on the keys of the i-th before it. Causal: on its own only half is needed; on others all or
 * nothing, the ways - i later ranks all; in zigzag on half of each. */
static struct dl_event block_of(const struct dl_operator_options *o, const struct dl_event *ev, double ways, uint32_t i)
{
    struct dl_event block = *ev;
    block.kernel.m /= ways;
    block.kernel.n /= ways;
    if (!ev->kernel.causal || i == 0) return block;
    block.kernel.causal = false;
    if (o->zigzag)
        block.kernel.n /= 2;
    else
        block.mean_work = (ways - i) / ways;
    return block;
}

static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_operator_layouts l = layouts(o);
    const double key_bytes = dl_attention_bytes(&l, ev, s).keys;
    const uint32_t ways = s->ways[DL_AXIS_CONTEXT];
    const bool backward = ev->pass == DL_BACKWARD;
    for (uint32_t i = 0; i < ways; i++) {
        struct dl_event block = block_of(o, ev, ways, i);
        block.op = DL_SENDRECV;
        block.members.digits = DL_ALONG_CONTEXT;
        block.beside = DL_CAUSE_CONTEXT;
        block.bytes = (i + 1 < ways ? key_bytes : 0) + (backward && i > 0 ? key_bytes : 0);
        if (dl_emit(below, &block, err)) return err->status;
    }
    return backward ? dl_attention_send(ev, DL_SENDRECV, key_bytes, below, err) : DL_OK;
}

const struct dl_operator dl_operator_ring = {
    .name = "ring",
    .among = DL_ALONG_CONTEXT,
    .layouts = layouts,
    .check = dl_attention_check_tokens,
    .kernel = kernel,
};
