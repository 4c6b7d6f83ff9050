/* zero_gradients.c - gradients of stage 3 go to those who hold their part: by a reduce-scatter; or quantised by
 * all-to-alls, first among neighbours, who sum, and then across them (qgZ of ZeRO++, Wang et al., ICLR 2024, 3.3;
 * DeepSpeed, runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce). That sends vectors, and
 * tensors that do not divide, by a reduce-scatter, and has other groups for its scales; here all gradients are packed
 * alike. */
#include "strategies/zero_parts.h"

static enum dl_status reduce_scatter(struct dl_event scatter, struct dl_zero_set set, double values,
                                     struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double bytes = values * dl_gradient_bytes(s), moved = bytes * s->software->scatter_moves;
    if (moved > 0 && dl_emit_pass(below, "bucket", moved, DL_GRADIENT, err)) return err->status;
    scatter.op = DL_REDUCESCATTER;
    scatter.parts_host_s = dl_zero_shards(s, set) * s->software->gather_part_host_s;
    return dl_zero_exchange(scatter, set, bytes, below, err);
}

/* ---- quantised ---- */

static struct dl_payload packed_gradients(const struct dl_zero_options *o)
{
    return (struct dl_payload){.kind = DL_QUANTIZED, .bits = (double)o->scatter_bits, .has_kernels = true};
}

static double packed_bytes(const struct dl_zero_options *o, double values)
{
    const struct dl_payload payload = packed_gradients(o);
    return dl_payload_bytes(&payload, values * DL_PAYLOAD_VALUE_BYTES, 1);
}

static enum dl_status all_to_all(const struct dl_zero_options *o, struct dl_event ev, dl_digits among, double values,
                                 struct dl_stack *below, struct dl_error *err)
{
    ev.kind = DL_EV_COLLECTIVE;
    ev.cause = DL_CAUSE_DATA;
    ev.op = DL_ALLTOALL;
    ev.members = (struct dl_members){.digits = among};
    ev.bytes = values * DL_PAYLOAD_VALUE_BYTES;
    ev.payload = packed_gradients(o);
    return dl_ranks_count(&dl_stack_setting(below)->ranks, among) > 1 ? dl_emit(below, &ev, err) : DL_OK;
}

/* What comes is summed as it is unpacked; between neighbours and others it is packed again by the same kernel. Where
 * the exchange goes on beside the backward, these passes are booked where it starts. */
static enum dl_status exchange_packed(const struct dl_zero_options *o, struct dl_event scatter, struct dl_zero_set set,
                                      double values, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double near = dl_secondary_shards(s, set.of_experts), all = dl_shards(s, set.of_experts);
    const double whole = packed_bytes(o, values), part = packed_bytes(o, values / near);
    const double gradient_bytes = dl_gradient_bytes(s);
    const dl_digits neighbours = dl_secondary_sharers(s, set.of_experts).digits;
    const dl_digits others = dl_sharers(s, set.of_experts).digits & ~neighbours;
    if (dl_emit_pass(below, "quantize", values * gradient_bytes + whole, DL_GRADIENT, err) ||
        all_to_all(o, scatter, neighbours, values, below, err) ||
        dl_emit_pass(below, "quantize", whole + part, DL_GRADIENT, err) ||
        all_to_all(o, scatter, others, values / near, below, err))
        return err->status;
    return dl_emit_pass(below, "dequantize", part + values / all * gradient_bytes, DL_GRADIENT, err);
}

/* ---- of a layer ---- */

static enum dl_status scatter_part(const struct dl_zero_options *o, const struct dl_event *ev, double part,
                                   struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event scatter = {.pass = DL_GRADIENT,
                                     .async = !s->software->waits_for_scatters,
                                     .last_micro = ev->last_micro,
                                     .handle = DL_EVERY_CALL};
    for (int of_experts = 0; of_experts < 2; of_experts++) {
        const struct dl_zero_set set = {.of_experts = of_experts};
        const double values = part * dl_zero_cut_parameters(ev, s, set);
        if (values <= 0) continue;
        if ((o->scatter_bits ? exchange_packed(o, scatter, set, values, below, err)
                             : reduce_scatter(scatter, set, values, below, err)))
            return err->status;
    }
    return DL_OK;
}

/* Those of a layer, or where matrices are gathered one by one, as many of them as fill a bucket. */
enum dl_status dl_zero_scatter(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                               struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_module_rules rules = dl_zero_rules(o, ev, s);
    double parts[DL_MOST_MODULES] = {1};
    const uint32_t n = dl_zero_gathers_modules(o, s) ? dl_modules_buckets(&rules, ev->layer, parts) : 1;
    for (uint32_t i = 0; i < n; i++)
        if (scatter_part(o, ev, parts[i], below, err)) return err->status;
    return DL_OK;
}
