/* quantized_allreduce.c - gradients sent with fewer bits, or only the largest of them; packing is paid for.
 *
 *   qsgd     `bits` bits a value (QSGD, Alistarh et al., NeurIPS 2017)
 *   one_bit  signs, with what they lose added the next time (Seide et al. 2014; 1-bit Adam, Tang et al. 2021)
 *   top_k    the largest `ratio` of the values, the rest added the next time (SparCML, Renggli et al., SC19)
 *
 * What the bytes of a message are is the payload's affair (sim/collective/payload.h), and packing again on the way the
 * transport's. The device packs what it sends and unpacks the sum, each in one pass over the values; of an exchange
 * that goes on beside the backward the unpacking is booked where it starts. */
#include "strategies/choices.h"
#include "strategies/layer_memory.h"
#include "strategies/strategies.h"

static const char *const methods[] = {
    [DL_LOSSY_QSGD] = "qsgd", [DL_LOSSY_ONE_BIT] = "one_bit", [DL_LOSSY_TOP_K] = "top_k", [DL_LOSSY_TOP_K + 1] = NULL};
/* Kernels of kernels/problems/, whose times devices may have. */
static const struct {
    const char *pack, *unpack;
} passes[] = {[DL_LOSSY_QSGD] = {"quantize", "dequantize"},
              [DL_LOSSY_ONE_BIT] = {"one_bit", "one_bit_decode"},
              [DL_LOSSY_TOP_K] = {"topk", "unpack"}};

struct options {
    int64_t method, bits; /* bits, ratio 0: absent */
    double ratio;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"method", DL_CHOICE, offsetof(struct options, method), 0, 0, true, methods,
     "how values are packed; qsgd if absent"},
    {"bits", DL_INT, offsetof(struct options, bits), 1, 32, true, NULL, "of qsgd: bits per value; 8 if absent"},
    {"ratio", DL_NUMBER, offsetof(struct options, ratio), 1e-9, 1, true, NULL,
     "of top_k: share of the values that a rank sends; 0.01 if absent"},
};
static const double default_bits = 8, default_ratio = 0.01;
/* What was not sent is kept in fp32. */
static const double error_bytes = 4;

static bool keeps_error(const struct options *o) { return o->method != DL_LOSSY_QSGD; }

/* Of gradients that ZeRO quantises only sums across its shards are left. */
static enum dl_status check_left(const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    const bool has_sums = s->shard_ways && s->shard_ways < dl_n_replicas(s);
    if (!s->packs_gradients || has_sums) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, what->where,
                   "nothing is left to quantise beside scatter_bits of zero, unless its shard_ways are below the data "
                   "ways; leave one of both out");
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (o->bits && o->method != DL_LOSSY_QSGD)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "bits"), "only the method qsgd has bits, got %s",
                       methods[o->method]);
    if (o->ratio > 0 && o->method != DL_LOSSY_TOP_K)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "ratio"), "only the method top_k has a ratio, got %s",
                       methods[o->method]);
    return check_left(what, err);
}

static struct dl_payload payload_of(const struct options *o)
{
    if (o->method == DL_LOSSY_TOP_K)
        return (struct dl_payload){.kind = DL_TOPK, .ratio = o->ratio > 0 ? o->ratio : default_ratio};
    if (o->method == DL_LOSSY_ONE_BIT) return (struct dl_payload){.kind = DL_QUANTIZED, .bits = 1};
    return (struct dl_payload){.kind = DL_QUANTIZED, .bits = o->bits ? (double)o->bits : default_bits};
}

/* Read the gradients, and read and write the error; write what is sent. */
static double pack_bytes(const struct options *o, const struct dl_event *packed, double gradient_bytes)
{
    const double values = packed->bytes / DL_PAYLOAD_VALUE_BYTES;
    const double read_and_written = gradient_bytes + (keeps_error(o) ? 2 * error_bytes : 0);
    return values * read_and_written + dl_payload_bytes(&packed->payload, packed->bytes, 1);
}

/* Read the sum as it came, write it as gradients: of all values, or of a rank's part. */
static double unpack_bytes(const struct dl_event *packed, const struct dl_setting *s)
{
    const uint32_t n = dl_members_count(&s->ranks, &packed->members);
    const double dense = packed->bytes / (packed->op == DL_REDUCESCATTER ? n : 1);
    return dl_payload_bytes(&packed->payload, dense, n) + dense / DL_PAYLOAD_VALUE_BYTES * dl_gradient_bytes(s);
}

/* Of whole gradients, however they are held. */
static enum dl_status hold_errors(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    return dl_emit_alloc(below, DL_TENSOR_ERRORS, ev, dl_layer_trained(s, ev->layer) * error_bytes, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const bool is_held = ev->kind == DL_EV_ALLOC && ev->pass == DL_HOLD && ev->tensor == DL_TENSOR_PARAMETERS;
    if (is_held && keeps_error(options) && dl_copies(dl_stack_setting(below), false) > 1 && hold_errors(ev, below, err))
        return err->status;
    if (ev->kind != DL_EV_COLLECTIVE || ev->pass != DL_GRADIENT || dl_payload_is_packed(&ev->payload))
        return dl_emit(below, ev, err);
    const struct options *const o = options;
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event packed = *ev;
    packed.payload = payload_of(o);
    packed.bytes *= DL_PAYLOAD_VALUE_BYTES / dl_gradient_bytes(s); /* payloads count values of fp32 */
    const double pack = pack_bytes(o, &packed, dl_gradient_bytes(s));
    if (dl_emit_pass(below, passes[o->method].pack, pack, DL_GRADIENT, err) || dl_emit(below, &packed, err))
        return err->status;
    return dl_emit_pass(below, passes[o->method].unpack, unpack_bytes(&packed, s), DL_GRADIENT, err);
}

const struct dl_strategy dl_strategy_quantized_allreduce = {
    .name = "quantized_allreduce",
    .doc = "gradients sent with fewer bits, or only the largest of them",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .check = check,
    .rewrite = rewrite,
    .place = dl_any_place,
};
