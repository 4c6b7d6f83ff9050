/* slices.h - the parts of a torus that its owner gives to jobs, each of them a smaller torus or mesh: slices of TPU
 * pods.
 *
 * A job gets the smallest slice that holds it, and the network is then that of the slice. */
#ifndef DL_TOPOLOGIES_SLICES_H
#define DL_TOPOLOGIES_SLICES_H

#include "sim/core/json.h"

enum { DL_MAX_DIMENSIONS = 8 };

/* A torus, or a mesh in the dimensions that do not wrap. */
struct dl_pod_slice {
    size_t n_dimensions;
    int64_t size[DL_MAX_DIMENSIONS];
    bool wrap[DL_MAX_DIMENSIONS];
    uint32_t n_devices;
};

struct dl_slices {
    struct dl_pod_slice *items;
    size_t n;
};

/* [true, false, ...] with n items. */
enum dl_status dl_wrap_read(struct dl_json list, size_t n, bool *out, struct dl_arena *arena, struct dl_error *err);

/* The key "slices" of a torus, NULL if it has none. Those as large as the whole torus are left out. */
enum dl_status dl_slices_read(struct dl_json list, const struct dl_pod_slice *whole, uint32_t devices_per_node,
                              struct dl_arena *arena, struct dl_slices *out, struct dl_error *err);

/* The smallest with at least so many devices; NULL: only the whole torus has them. */
const struct dl_pod_slice *dl_slice_for(const struct dl_slices *slices, uint32_t n_devices);

/* "4x4x4 torus", "2x2x1 mesh", "8x16, wraps in dimension 1". */
enum { DL_SLICE_TEXT = 160 };
const char *dl_slice_text(const struct dl_pod_slice *slice, char *text);

#endif
