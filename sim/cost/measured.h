/* measured.h - measured times of kernels on a device, and how they correct its model.
 *
 * A shape that was measured costs what was measured. For others the model gives the form of the function, and nearby
 * points say how wrong it is there:
 *
 *     seconds = model(shape) x exp(estimate of log(measured / model) from the nearby points, measured_kriging.c)
 *
 * Distances are in the logarithms of (batch x m, n, k): a GEMM twice as long is as far away as one half as long. For
 * convolutions they are also in that of the window, since libraries compute those of one pixel as plain GEMMs, and
 * for all in the alignment of rows, by powers of two. Other passes, and rows for which libraries have other kernels,
 * are far away and have means of their own. Memory-bound kernels have one dimension, in which their times are
 * interpolated monotonically; or two, their bytes and the width of their rows, n, where a table states it.
 *
 * A device file has "measured": [{"kernel": "gemm", "pass": "forward", "precision": "bf16", "library": "cuBLAS 13.0",
 * "columns": ["batch", "m", "n", "k", "seconds", "spread"], "rows": [[1, 4096, 4096, 4096, 0.0002, 0.01], ...]},
 * ...]: the kernel as dl_kernel_operation names it, fields of struct dl_kernel, and the relative spread of the times.
 * Tables may have a file of their own for each kind of kernel: {"kernels": "gemm", "file": NAME} in place of them.
 */
#ifndef DL_COST_MEASURED_H
#define DL_COST_MEASURED_H

#include "sim/cost/device.h"

/* What a device file says of measured times. */
struct dl_tables {
    struct dl_json list, interpolation; /* "measured" and "interpolation", which may be absent */
    unsigned kinds;                     /* bits of enum dl_kernel_kind: tables of others are not read */
};
enum { DL_ALL_KINDS = (1 << (DL_KERNEL_MEMORY + 1)) - 1 };

/* The tables of a device that is read but for them; out->measured then points into the arena. What was read of them,
 * also from files of their own, is afterwards the list, and nothing else is. */
enum dl_status dl_measured_read(const struct dl_tables *tables, struct dl_arena *arena, struct dl_device *out,
                                struct dl_error *err);

/* A file of tables, schema dlsim/kernels/1, without knowing a device; "cuBLAS, cuDNN": whose kernels were timed. */
enum dl_status dl_kernels_check(struct dl_json doc, struct dl_arena *arena, const char **libraries,
                                struct dl_error *err);

/* The keys of "interpolation" in a device file. */
const struct dl_field *dl_interpolation_fields(size_t *n_fields);

/* The device whose times its tables have. */
static inline const struct dl_device *dl_measured_on(const struct dl_device *d) { return d->timed ? d->timed : d; }

/* The price of the device's model, corrected by what was measured. */
struct dl_price dl_measured_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                  const struct dl_price *modelled);

#endif
