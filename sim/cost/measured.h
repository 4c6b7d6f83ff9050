/* measured.h - times of kernels on a device, and how they correct its model.
 *
 * A shape that was timed costs what was measured. For others the model gives the form of the function and the points
 * near by say how wrong it is there:
 *
 *     seconds = model(shape) x exp(estimate of log(measured / model) from the points near by, measured_kriging.c)
 *
 * Near is meant in the logarithms of (batch x m, n, k): a product twice as long is as far from this one as one half as
 * long; of a convolution also in that of the windows an element is in, as libraries compute those with one as plain
 * products; and in the powers of two that divide the bytes of rows, since what memories and caches move at once must
 * begin there. Other passes and rows for which libraries have other kernels are far, and have means of their own.
 * Kernels that are bound by memory have one dimension, in which their times are interpolated monotonically; or two,
 * their bytes and the width of their rows, n, where a table tells it.
 *
 * A device file has "measured": [{"kernel": "gemm", "pass": "forward", "precision": "bf16", "library": "cuBLAS 13.0",
 * "columns": ["batch", "m", "n", "k", "seconds", "spread"], "rows": [[1, 4096, 4096, 4096, 0.0002, 0.01], ...]}, ...]:
 * the kernel as dl_kernel_operation names it, fields of struct dl_kernel, and the relative spread of the times. */
#ifndef DL_COST_MEASURED_H
#define DL_COST_MEASURED_H

#include "sim/cost/device.h"

/* The tables of a device that is read but for them, and its "interpolation", which may be absent; out->measured then
 * points into the arena. */
enum dl_status dl_measured_read(struct dl_json tables, struct dl_json interpolation, struct dl_arena *arena,
                                struct dl_device *out, struct dl_error *err);

/* The keys of "interpolation" in a device file. */
const struct dl_field *dl_interpolation_fields(size_t *n_fields);

/* The device whose times its tables have. */
static inline const struct dl_device *dl_measured_on(const struct dl_device *d) { return d->timed ? d->timed : d; }

/* The price of the device's model, corrected by what was measured. */
struct dl_price dl_measured_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                  const struct dl_price *modelled);

#endif
