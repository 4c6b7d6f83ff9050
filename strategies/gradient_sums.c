#include "strategies/gradient_sums.h"

static struct dl_kernel sum_of(double elements)
{
    return (struct dl_kernel){
        .kind = DL_KERNEL_MEMORY, .name = "gradient_sum", .pass = DL_PASS_WEIGHT_GRADIENT, .elements = elements};
}

bool dl_sums_gradients_apart(const struct dl_setting *s)
{
    const struct dl_kernel any = sum_of(1);
    return s->micros > 1 && !s->streams_weights && dl_accumulated(s) == DL_ACCUMULATES_WHOLE &&
           dl_kernel_rule_for(&s->software->kernels, &any, dl_numbers_of(s, false));
}

enum dl_status dl_emit_gradient_sum(struct dl_stack *top, const struct dl_layer *layer, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const struct dl_on_rank trained = dl_layer_trained_on_rank(s, layer);
    const double bytes = (trained.common + trained.of_experts) * dl_gradient_bytes(s);
    const struct dl_event sum = {.kind = DL_EV_COMPUTE,
                                 .pass = DL_BACKWARD,
                                 .cause = DL_CAUSE_COMPUTE,
                                 .layer = layer,
                                 .gradient = DL_GRADIENT_WEIGHT,
                                 .kernel = sum_of(bytes / dl_precision_bytes(s->precision)),
                                 .n_tensors = layer->n_tensors};
    return bytes > 0 ? dl_emit(top, &sum, err) : DL_OK;
}
