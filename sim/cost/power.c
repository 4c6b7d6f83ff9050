#include "sim/cost/power.h"

#include <math.h>

#include "sim/cost/operations.h"

/* Shares of what is between idle power and the limit, for devices of which no more is known: those of the H200, where
 * they were measured one by one (topologies/devices/h200.json). A norm or an attention is at the limit. So is a product
 * that is less than a fifth slower than large ones: at the highest clock a large one would draw 1011 W x 0.716 of the
 * peak, which is 1.25 of 577 W, and is slowed down for it. */
static const double product_share = 1.25, memory_share = 0.85, optimizer_share = 0.72, communication_share = 0.23;

#define WATTS(name, optional, doc)                                                                                     \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct dl_power, name), 1, 1e6, optional, NULL, doc                                 \
    }
#define OF_KERNELS(name, min, max, doc)                                                                                \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct dl_power, name), min, max, true, NULL, doc "; unknown if absent"             \
    }
#define DRAWN(name, doc) OF_KERNELS(name, 1, 1e6, doc)
#define SHARE(name, doc) OF_KERNELS(name, 0.01, 1, doc)
static const struct dl_field fields[] = {
    WATTS(limit_w, false, "power that the device may draw"),
    WATTS(idle_w, false, "power at the highest clock without work; that of kernels comes on top"),
    WATTS(communication_w, true, "power of collectives and sends; 0.23 of limit_w - idle_w if absent"),
    {"older_power_fraction", DL_NUMBER, offsetof(struct dl_power, older_power_fraction), 0.01, 1, true, NULL,
     "power of kernels written for the generation before, over that of current ones; 1 if absent"},
    DRAWN(memory_w, "power of memory-bound kernels, and of GEMMs for the time of their bytes"),
    DRAWN(function_w, "power of norms, softmax and activations"),
    DRAWN(optimizer_w, "power of the optimizer step"),
    DRAWN(product_w, "power of arithmetic at the peak of its precision, in GEMMs"),
    DRAWN(convolution_w, "the same in convolutions"),
    DRAWN(fallback_w, "power of GEMMs whose rows do not begin at multiples of 16 bytes"),
    DRAWN(attention_w, "power of fused attention"),
    DRAWN(attention_backward_w, "the same in the backward"),
    SHARE(function_clock_share, "share of the time of norms, softmax and activations that scales with the clock"),
    SHARE(product_clock_share, "the same for GEMMs and convolutions"),
    SHARE(fallback_clock_share, "the same for GEMMs whose rows do not begin at multiples of 16 bytes"),
    SHARE(attention_clock_share, "the same for fused attention"),
    SHARE(product_timed_clock_fraction, "clock at which GEMMs were timed, over the highest"),
    WATTS(fp8_product_w, true, "power of arithmetic at the peak in GEMMs of fp8; product_w if absent"),
};
enum { first_of_kernels = 4, n_needed = DL_COUNT(fields) - 1 }; /* stated all or none; the last only with them */

const struct dl_field *dl_power_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

/* What kernels draw is stated whole, or not at all. */
static enum dl_status check_kernels(struct dl_json object, bool *stated, struct dl_error *err)
{
    size_t n = 0;
    const char *lacking = NULL;
    for (size_t i = first_of_kernels; i < DL_COUNT(fields); i++) {
        if (json_object_get(object.value, fields[i].key))
            n++;
        else if (!lacking && i < n_needed)
            lacking = fields[i].key;
    }
    *stated = n > 0;
    if (n == 0 || !lacking) return DL_OK;
    return dl_fail(err, DL_KEY, object.where,
                   "the key '%s' is missing; what kernels draw is stated whole, or not at all", lacking);
}

enum dl_status dl_power_read(struct dl_json object, struct dl_arena *arena, struct dl_power **out, struct dl_error *err)
{
    struct dl_power *const p = dl_arena_alloc(arena, sizeof *p);
    p->older_power_fraction = 1;
    if (dl_read(object, fields, DL_COUNT(fields), p, arena, err) || check_kernels(object, &p->throttles, err))
        return err->status;
    const double least_w = p->idle_w + fmax(p->communication_w, fmax(p->memory_w, p->optimizer_w)); /* at any clock */
    if (p->limit_w < least_w)
        return dl_fail(err, DL_RANGE, dl_json_member(object, "limit_w", arena).where,
                       "must be at least idle_w and the largest of memory_w, optimizer_w and communication_w, %g, got "
                       "%g",
                       least_w, p->limit_w);
    if (p->fp8_product_w == 0) p->fp8_product_w = p->product_w;
    if (p->communication_w == 0) p->communication_w = communication_share * (p->limit_w - p->idle_w);
    *out = p;
    return DL_OK;
}

/* Large enough that launches, waves and memory do not count. */
void dl_power_complete(struct dl_power *p, const struct dl_device *d)
{
    const double side = 8192;
    const struct dl_kernel large = {
        .kind = DL_KERNEL_GEMM, .name = "large", .batch = 1, .m = side, .n = side, .k = side};
    for (int i = 0; i < DL_N_PRECISIONS && !p->throttles; i++) {
        if (!dl_device_supports(d, (enum dl_precision)i)) continue;
        const struct dl_price price = dl_price(d, &large, (enum dl_precision)i);
        p->best_flop_per_s[i] = price.flop / price.seconds;
    }
}

/* Those in fp32 are no work of matrix units; what they draw is not known, and taken to be as little. */
static bool is_fast_product(const struct dl_kernel *k, enum dl_precision precision)
{
    return k->kind == DL_KERNEL_CONV || (precision != DL_FP32 && dl_kernel_alignment(k, precision) == DL_ALIGNED);
}

static double arithmetic_w(const struct dl_power *p, const struct dl_kernel *k, enum dl_precision precision)
{
    if (k->kind == DL_KERNEL_CONV) return p->convolution_w;
    return precision == DL_FP8 ? p->fp8_product_w : p->product_w;
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
    const double memory_s = dl_kernel_bytes(k, precision) / d->memory_bytes_per_s;
    return (struct dl_draw){.seconds = seconds,
                            .clock_s = p->product_clock_share * seconds,
                            .memory_j = p->memory_w * fmin(memory_s, seconds),
                            .arithmetic_j = arithmetic_w(p, k, precision) * fmin(arithmetic_s, seconds)};
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

/* Seconds at the limit that draw as much. */
static double seconds_at_limit(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                               const struct dl_price *alone)
{
    const struct dl_operation *operation;
    switch (k->kind) {
    case DL_KERNEL_GEMM:
    case DL_KERNEL_CONV:
        return fmin(alone->seconds, product_share * alone->flop / d->power->best_flop_per_s[precision] +
                                        memory_share * dl_kernel_bytes(k, precision) / d->memory_bytes_per_s);
    case DL_KERNEL_ATTENTION: return alone->seconds;
    case DL_KERNEL_MEMORY: break;
    }
    operation = dl_operation_of(k);
    return alone->seconds * (operation->is_function ? 1 : operation->is_update ? optimizer_share : memory_share);
}

static struct dl_draw simple_draw(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                  const struct dl_price *alone)
{
    const double free_w = d->power->limit_w - d->power->idle_w;
    return (struct dl_draw){.seconds = alone->seconds, .memory_j = free_w * seconds_at_limit(d, k, precision, alone)};
}

struct dl_draw dl_draw_of(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                          const struct dl_price *alone)
{
    const struct dl_power *const p = d->power;
    if (!p->throttles) return simple_draw(d, k, precision, alone);
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

enum dl_bound dl_bound_of(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_MEMORY ? DL_BOUND_BY_MEMORY : DL_BOUND_BY_ARITHMETIC;
}

void dl_draw_slow(struct dl_draw *draw, double times, double energy)
{
    draw->seconds *= times;
    draw->clock_s *= times;
    draw->memory_j *= energy;
    draw->arithmetic_j *= energy;
}

double dl_draw_seconds(const struct dl_draw *draw, double clock)
{
    return draw->seconds + draw->clock_s * (1 / clock - 1);
}

double dl_draw_joules(const struct dl_draw *draw, double clock) { return draw->memory_j + draw->arithmetic_j * clock; }

/* The root of memory_j + arithmetic_j c = (limit_w - idle_w) (idle_s + seconds + clock_s (1 / c - 1)), if below 1. */
double dl_power_clock(const struct dl_power *p, const struct dl_draw *work, double idle_s)
{
    const double free_w = p->limit_w - p->idle_w;
    const double still_j = work->memory_j - free_w * (idle_s + work->seconds - work->clock_s);
    const double clock_j = free_w * work->clock_s;
    if (still_j + work->arithmetic_j <= clock_j || work->arithmetic_j == 0) return 1; /* memory alone is below it */
    return (sqrt(still_j * still_j + 4 * work->arithmetic_j * clock_j) - still_j) / (2 * work->arithmetic_j);
}
