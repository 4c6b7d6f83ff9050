/* tensor.c - the matrices of a layer cut by columns, then by rows (Megatron-LM), so that a pair of them needs one sum.
 *
 * Between the cut parts data is whole on every rank. With sequence parallelism it is cut there too, by tokens: the sum
 * becomes a reduce-scatter and the next pair begins with an all-gather, with the same bytes in all. */
#include "strategies/strategies.h"

struct options {
    int64_t ways;
    bool sequence;
};
static const struct options defaults = {.ways = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "ranks that share a layer"},
    {"sequence", DL_BOOL, offsetof(struct options, sequence), 0, 0, true, NULL, "cut tokens where data is whole"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->ways[DL_AXIS_TENSOR] = (uint32_t)o->ways;
    setting->sequence_parallel = o->sequence;
    return DL_OK;
}

/* Tokens are m, and what is summed over in the gradient of weights. */
static void cut_tokens(struct dl_kernel *k, double ways, enum dl_gradient gradient)
{
    if (k->kind == DL_KERNEL_MEMORY)
        k->elements /= ways;
    else
        *(gradient == DL_GRADIENT_WEIGHT ? &k->k : &k->m) /= ways;
}

/* Attention is cut by heads, and half a head is nothing. */
static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    for (size_t layer = 0; layer < what->model->n_layers; layer++)
        for (size_t i = 0; i < what->model->layers[layer].n_forward; i++) {
            const struct dl_kernel *const k = &what->model->layers[layer].forward[i].kernel;
            if (!k->attention_core || k->cut != DL_CUT_BATCH) continue;
            return dl_check_ways(what, (uint32_t)o->ways, k->batch / what->model->samples, "the heads", err);
        }
    return DL_OK;
}

static void cut(struct dl_kernel *k, double ways, bool sequence, enum dl_gradient gradient)
{
    switch (k->cut) {
    case DL_CUT_NOTHING: break;
    case DL_CUT_M: k->m /= ways; break;
    case DL_CUT_N: k->n /= ways; break;
    case DL_CUT_K: k->k /= ways; break;
    case DL_CUT_BATCH: k->batch /= ways; break;
    case DL_CUT_INSIDE: k->elements /= ways; break;
    case DL_CUT_OUTSIDE:
        if (sequence) cut_tokens(k, ways, gradient);
        break;
    }
}

/* Whole -> cut needs a sum on the way back only, cut -> whole on the way there only; marks follow the data's direction,
 * so that this is the same forward and backward. Sequence parallelism gathers at one and scatters at the other. */
static enum dl_status communicate(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                  struct dl_error *err)
{
    const bool enters = ev->mark == DL_WORK_ENTER;
    if (enters && !o->sequence) return DL_OK;
    struct dl_event collective = *ev;
    collective.kind = DL_EV_COLLECTIVE;
    collective.axis = DL_AXIS_TENSOR;
    collective.bytes = ev->elements * dl_precision_bytes(dl_stack_setting(below)->precision);
    collective.op = !o->sequence ? DL_ALLREDUCE : enters ? DL_ALLGATHER : DL_REDUCESCATTER;
    collective.cause = o->sequence ? DL_CAUSE_SEQUENCE : DL_CAUSE_TENSOR;
    return dl_emit(below, &collective, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (o->ways == 1) return dl_emit(below, ev, err);
    if (ev->kind == DL_EV_MARK && (ev->mark == DL_WORK_ENTER || ev->mark == DL_WORK_LEAVE))
        return communicate(o, ev, below, err);
    struct dl_event mine = *ev;
    if (ev->kind == DL_EV_COMPUTE) cut(&mine.kernel, (double)o->ways, o->sequence, ev->gradient);
    if (ev->kind == DL_EV_GRADIENT || ev->kind == DL_EV_UPDATE || ev->kind == DL_EV_LAYER_DONE)
        mine.parameters_inside /= (double)o->ways, mine.parameters_expert /= (double)o->ways;
    return dl_emit(below, &mine, err);
}

const struct dl_strategy dl_strategy_tensor = {
    .name = "tensor",
    .doc = "layers cut by columns and rows over `ways` ranks",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
};
