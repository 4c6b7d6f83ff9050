/* quantized_allreduce.c - send gradients with fewer bits, pay for packing. */
#include "strategies/strategies.h"

struct options {
    int64_t bits;
};
static const struct options defaults = {.bits = 8};
static const struct dl_field fields[] = {
    {"bits", DL_INT, offsetof(struct options, bits), 1, 32, true, NULL, "per value"},
};

/* Payloads count values of fp32 (payload.c), whatever gradients are accumulated in. */
static const double payload_value_bytes = 4;

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    struct dl_event packed = *ev;
    if (ev->kind == DL_EV_COLLECTIVE && ev->pass == DL_GRADIENT) {
        packed.payload = (struct dl_payload){.kind = DL_QUANTIZED, .bits = (double)o->bits};
        packed.bytes *= payload_value_bytes / dl_gradient_bytes(dl_stack_setting(below));
    }
    return dl_emit(below, &packed, err);
}

const struct dl_strategy dl_strategy_quantized_allreduce = {
    .name = "quantized_allreduce",
    .doc = "gradients sent with `bits` bits per value",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .rewrite = rewrite,
};
