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

/* What goes round, of one rank: keys and values, and their gradients. */
struct round_bytes {
    double keys, gradients;
};

static struct round_bytes round_bytes(const struct dl_attention_bytes *own, const struct dl_setting *s)
{
    const struct dl_ring_code *const code = &s->software->ring;
    const double keys = code->repeats_keys ? 2 * own->queries : own->keys;
    const double wider = code->gradient_bytes > 0 ? code->gradient_bytes / dl_precision_bytes(s->precision) : 1;
    return (struct round_bytes){.keys = keys, .gradients = wider * keys};
}

/* Beside a block go the keys of the next one, or with the first those of all, and backward the gradients of the one
 * before. */
static void send_beside(struct dl_event *block, uint32_t i, uint32_t ways, bool gathers_once, struct round_bytes bytes)
{
    const bool backward = block->pass == DL_BACKWARD;
    block->members.digits = DL_ALONG_CONTEXT;
    block->beside = DL_CAUSE_CONTEXT;
    block->op = gathers_once && i == 0 ? DL_ALLGATHER : DL_SENDRECV;
    block->bytes = backward && i > 0 ? bytes.gradients : 0;
    if (gathers_once && i == 0) block->bytes = ways * bytes.keys;
    if (!gathers_once && i + 1 < ways) block->bytes += bytes.keys;
}

static enum dl_status merge(const struct dl_event *ev, double query_bytes, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_ring_code *const code = &s->software->ring;
    const double moves = ev->pass == DL_BACKWARD ? code->merge_backward_moves : code->merge_moves;
    const double elements = moves * query_bytes / dl_precision_bytes(s->precision);
    const struct dl_event pass = {.kind = DL_EV_COMPUTE,
                                  .pass = ev->pass,
                                  .cause = ev->cause,
                                  .layer = ev->layer,
                                  .kernel = {.kind = DL_KERNEL_MEMORY, .name = "merge", .elements = elements}};
    return elements > 0 ? dl_emit(below, &pass, err) : DL_OK;
}

static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_operator_layouts l = layouts(o);
    const struct dl_attention_bytes own = dl_attention_bytes(&l, ev, s);
    const struct round_bytes bytes = round_bytes(&own, s);
    const uint32_t ways = s->ways[DL_AXIS_CONTEXT];
    for (uint32_t i = 0; i < ways; i++) {
        struct dl_event block = block_of(o, ev, ways, i);
        send_beside(&block, i, ways, s->software->ring.gathers_once, bytes);
        if (dl_emit(below, &block, err) || merge(ev, own.queries, below, err)) return err->status;
    }
    return ev->pass == DL_BACKWARD ? dl_attention_send(ev, DL_SENDRECV, bytes.gradients, below, err) : DL_OK;
}

const struct dl_operator dl_operator_ring = {
    .name = "ring",
    .among = DL_ALONG_CONTEXT,
    .layouts = layouts,
    .check = dl_attention_check_tokens,
    .kernel = kernel,
};
