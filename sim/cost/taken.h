/* taken.h - what collectives and sends take from kernels that overlap with them, by class of kernel.
 *
 * They hold some units of a device and move data through its memory. How much kernels lose was measured on Hopper
 * (validation/measured/beside.json); docs/formats.md says what is known of why. */
#ifndef DL_COST_TAKEN_H
#define DL_COST_TAKEN_H

#include "sim/core/json.h"
#include "sim/program/comm.h"
#include "workloads/workload.h"

enum dl_kernel_class dl_class_of_kernel(const struct dl_kernel *k);

/* The objects "taken_by_exchanges" and "taken_by_sends" of a device file; nothing is taken if it has no value. */
enum dl_status dl_taken_read(struct dl_json object, struct dl_arena *arena, struct dl_taken *out, struct dl_error *err);

/* Their keys, for `dlsim list`. */
const struct dl_field *dl_taken_fields(size_t *n_fields);

#endif
