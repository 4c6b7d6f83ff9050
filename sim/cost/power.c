#include "sim/cost/power.h"

#include <math.h>

#include "sim/cost/operations.h"

#define WATTS(name, doc)                                                                                               \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct dl_power, name), 1, 1e6, false, NULL, doc                                    \
    }
#define SHARE(name, doc)                                                                                               \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct dl_power, name), 0.01, 1, false, NULL, doc                                   \
    }
static const struct dl_field fields[] = {
    WATTS(limit_w, "power that the device may draw"),
    WATTS(idle_w, "power at the highest clock without work; that of kernels comes on top"),
    WATTS(memory_w, "power of memory-bound kernels, and of GEMMs for the time of their bytes"),
    WATTS(function_w, "power of norms, softmax and activations"),
    WATTS(optimizer_w, "power of the optimizer step"),
    WATTS(product_w, "power of arithmetic at the peak of its precision, in GEMMs"),
    WATTS(convolution_w, "the same in convolutions"),
    WATTS(fallback_w, "power of GEMMs whose rows do not begin at multiples of 16 bytes"),
    WATTS(attention_w, "power of fused attention"),
    WATTS(attention_backward_w, "the same in the backward"),
    SHARE(function_clock_share, "share of the time of norms, softmax and activations that scales with the clock"),
    SHARE(product_clock_share, "the same for GEMMs and convolutions"),
    SHARE(fallback_clock_share, "the same for GEMMs whose rows do not begin at multiples of 16 bytes"),
    SHARE(attention_clock_share, "the same for fused attention"),
    SHARE(product_timed_clock_fraction, "clock at which GEMMs were timed, over the highest"),
};

const struct dl_field *dl_power_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

enum dl_status dl_power_read(struct dl_json object, struct dl_arena *arena, const struct dl_power **out,
                             struct dl_error *err)
{
    struct dl_power *const p = dl_arena_alloc(arena, sizeof *p);
    if (dl_read(object, fields, DL_COUNT(fields), p, arena, err)) return err->status;
    const double least_w = p->idle_w + fmax(p->memory_w, p->optimizer_w); /* whatever the clock */
    if (p->limit_w < least_w)
        return dl_fail(err, DL_RANGE, dl_json_member(object, "limit_w", arena).where,
                       "must be at least idle_w and the larger of memory_w and optimizer_w, %g, got %g", least_w,
                       p->limit_w);
    *out = p;
    return DL_OK;
}

/* Those in fp32 are no work of matrix units; what they draw is not known, and taken to be as little. */
static bool is_fast_product(const struct dl_kernel *k, enum dl_precision precision)
{
    return k->kind == DL_KERNEL_CONV || (precision != DL_FP32 && dl_kernel_alignment(k, precision) == DL_ALIGNED);
}

/* A pixel is in several windows of a convolution, and moved once. */
static double moved_bytes(const struct dl_kernel *k, enum dl_precision precision)
{
    const double windows =
        k->window > 0 && k->stride > 0 ? fmax(k->window * k->window / (k->stride * k->stride), 1) : 1;
    const double in_windows = k->batch * k->m * (k->pass == DL_PASS_INPUT_GRADIENT ? k->n : k->k);
    const double bytes = dl_kernel_bytes(k, precision);
    if (k->kind != DL_KERNEL_CONV || k->elements > 0) return bytes;
    return bytes - in_windows * (1 - 1 / windows) * dl_precision_operand_bytes(precision);
}

/* Arithmetic and bytes go on at the same time, and each no faster than it can. */
static struct dl_draw product_draw(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                   const struct dl_price *alone)
{
    const struct dl_power *const p = d->power;
    const bool is_gemm = k->kind == DL_KERNEL_GEMM;
    const double timed_clock = is_gemm ? p->product_timed_clock_fraction : 1;
    const double seconds = alone->seconds / (1 + p->product_clock_share * (1 / timed_clock - 1));
    const double arithmetic_s = alone->flop / d->peak_flop_per_s[precision];
    const double memory_s = moved_bytes(k, precision) / d->memory_bytes_per_s;
    return (struct dl_draw){.seconds = seconds,
                            .clock_s = p->product_clock_share * seconds,
                            .memory_j = p->memory_w * fmin(memory_s, seconds),
                            .arithmetic_j = (is_gemm ? p->product_w : p->convolution_w) * fmin(arithmetic_s, seconds)};
}

static struct dl_draw arithmetic_draw(double seconds, double clock_share, double watts)
{
    return (struct dl_draw){.seconds = seconds, .clock_s = clock_share * seconds, .arithmetic_j = watts * seconds};
}

/* Copies and optimizers take as long at any clock. */
static struct dl_draw memory_draw(const struct dl_power *p, const struct dl_kernel *k, double seconds)
{
    const struct dl_operation *const operation = dl_operation_of(k);
    if (operation->is_function)
        return (struct dl_draw){.seconds = seconds,
                                .clock_s = p->function_clock_share * seconds,
                                .memory_j = fmin(p->memory_w, p->function_w) * seconds,
                                .arithmetic_j = fmax(p->function_w - p->memory_w, 0) * seconds};
    return (struct dl_draw){.seconds = seconds,
                            .memory_j = (operation->is_update ? p->optimizer_w : p->memory_w) * seconds};
}

struct dl_draw dl_draw_of(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                          const struct dl_price *alone)
{
    const struct dl_power *const p = d->power;
    switch (k->kind) {
    case DL_KERNEL_GEMM:
    case DL_KERNEL_CONV:
        if (is_fast_product(k, precision)) return product_draw(d, k, precision, alone);
        return arithmetic_draw(alone->seconds, p->fallback_clock_share, p->fallback_w);
    case DL_KERNEL_ATTENTION:
        return arithmetic_draw(alone->seconds, p->attention_clock_share,
                               k->backward ? p->attention_backward_w : p->attention_w);
    case DL_KERNEL_MEMORY: break;
    }
    return memory_draw(p, k, alone->seconds);
}

void dl_draw_add(struct dl_draw *sum, const struct dl_draw *more, double times)
{
    sum->seconds += times * more->seconds;
    sum->clock_s += times * more->clock_s;
    sum->memory_j += times * more->memory_j;
    sum->arithmetic_j += times * more->arithmetic_j;
}

double dl_draw_seconds(const struct dl_draw *draw, double clock)
{
    return draw->seconds + draw->clock_s * (1 / clock - 1);
}

/* The root of memory_j + arithmetic_j c = (limit_w - idle_w) (idle_s + seconds + clock_s (1 / c - 1)), if below 1. */
double dl_power_clock(const struct dl_power *p, const struct dl_draw *work, double idle_s)
{
    const double free_w = p->limit_w - p->idle_w;
    const double still_j = work->memory_j - free_w * (idle_s + work->seconds - work->clock_s);
    const double clock_j = free_w * work->clock_s;
    if (still_j + work->arithmetic_j <= clock_j || work->arithmetic_j == 0) return 1; /* memory alone is below it */
    return (sqrt(still_j * still_j + 4 * work->arithmetic_j * clock_j) - still_j) / (2 * work->arithmetic_j);
}
