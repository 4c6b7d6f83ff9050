/* power.h - the clock of a device with a power limit, and what kernels take at that clock.
 *
 * A kernel timed alone for long runs at the clock that its own power allows. Within a step it runs at the clock that
 * the average power of all kernels allows (governors really look back only some tens of milliseconds). With c the
 * clock as a fraction of the highest, a kernel takes
 *
 *     seconds + clock_s (1 / c - 1)        and, beyond idle power,    memory_j + arithmetic_j c
 *
 * where clock_s is the part of its time that scales with the clock; that of memory does not. The energy of an operation
 * scales with the square of the voltage, taken as with the clock: under limits down to 500 of its 700 W kernels of an
 * H200 take what follows within 5 % (tests/unit/power_limits.c), under 400 W products 6 % more.
 *
 * Of most devices only the limit and the idle power are known. Then kernels draw shares of what is between the two, and
 * the clock is left alone: the model of such a device has the limit in its rates. */
#ifndef DL_COST_POWER_H
#define DL_COST_POWER_H

#include "sim/cost/device.h"

/* Watts are beside idle_w, at the highest clock. */
struct dl_power {
    double limit_w, idle_w;
    double communication_w;      /* of collectives and sends; waiting for others draws nothing */
    double older_power_fraction; /* of kernels for the generation before it, over that of its own */
    bool throttles;              /* all below is known, and the clock follows; else it is 0 but for the next */
    double best_flop_per_s[DL_N_PRECISIONS]; /* of a large product, which draws the limit */
    double memory_w;   /* of kernels that are bound by memory; of products in proportion to their bytes */
    double function_w; /* of norms, softmax and activations, which compute beside */
    double optimizer_w;
    double product_w;     /* of arithmetic at the peak of its precision */
    double fp8_product_w; /* the same in fp8, where sums that leave the tensor cores draw more */
    double convolution_w; /* the same: much of what they multiply is 0, which takes less */
    double fallback_w;    /* of products whose rows do not begin as the fastest kernels want it */
    double attention_w, attention_backward_w;
    double function_clock_share, product_clock_share, fallback_clock_share, attention_clock_share; /* of their time */
    double product_timed_clock_fraction; /* at which products were timed, over the highest */
};

/* What kernels take and draw at the highest clock. */
struct dl_draw {
    double seconds, clock_s, memory_j, arithmetic_j;
};

/* What kernels are apart for: those of memory move what they compute on. */
enum dl_bound { DL_BOUND_BY_ARITHMETIC, DL_BOUND_BY_MEMORY, DL_N_BOUNDS };
enum dl_bound dl_bound_of(const struct dl_kernel *k);

/* The object "power" of a device file. */
enum dl_status dl_power_read(struct dl_json object, struct dl_arena *arena, struct dl_power **out,
                             struct dl_error *err);

/* Once the device can price kernels: what it needs of them. */
void dl_power_complete(struct dl_power *p, const struct dl_device *d);

/* Its keys, for `dlsim list`. */
const struct dl_field *dl_power_fields(size_t *n_fields);

/* Of a kernel with that price; the device must tell what it draws. */
struct dl_draw dl_draw_of(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                          const struct dl_price *alone);
static inline void dl_draw_add(struct dl_draw *sum, const struct dl_draw *more, double times)
{
    sum->seconds += times * more->seconds;
    sum->clock_s += times * more->clock_s;
    sum->memory_j += times * more->memory_j;
    sum->arithmetic_j += times * more->arithmetic_j;
}
/* It takes so many times as long, with so many times the energy. */
void dl_draw_slow(struct dl_draw *draw, double times, double energy);
double dl_draw_seconds(const struct dl_draw *draw, double clock);
/* Beyond idle power. */
double dl_draw_joules(const struct dl_draw *draw, double clock);

/* The fraction of the highest clock at which the work, and idling for idle_s beside it, draw no more than they may. */
double dl_power_clock(const struct dl_power *p, const struct dl_draw *work, double idle_s);

#endif
