/* step_clock.h - the clock of the devices over a whole step, by the power that its kernels draw. */
#ifndef DL_STRATEGIES_STEP_CLOCK_H
#define DL_STRATEGIES_STEP_CLOCK_H

#include "sim/cost/power.h"
#include "strategies/lower.h"

/* On all stages of a replica: kernels of a micro-batch, and those after the last. */
struct dl_step_draw {
    struct dl_draw micro[DL_N_BOUNDS], end[DL_N_BOUNDS];
};

/* Of all micro-batches and the end. */
struct dl_draw dl_step_draw_sum(const struct dl_step_draw *draw, enum dl_bound bound, const struct dl_setting *setting);

/* Over the highest, at which `l` was lowered. */
double dl_step_clock(const struct dl_power *power, const struct dl_setting *setting, const struct dl_lowered *l,
                     const struct dl_step_draw *draw);

#endif
