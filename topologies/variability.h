/* variability.h - devices of one kind that are not equally fast: how far they spread, and how many nodes are slow.
 *
 * A device takes x s times as long as its file says. x is lognormal with mean 1, and s is the slowdown of its node: all
 * devices of a slow node have it, which a node is by chance. Ranks wait for each other, so a job runs at the pace of
 * the device that comes last; a simulation draws them, an analysis takes what is to be expected of the last. */
#ifndef DL_TOPOLOGIES_VARIABILITY_H
#define DL_TOPOLOGIES_VARIABILITY_H

#include "sim/core/json.h"

struct dl_variability {
    double spread_fraction;    /* standard deviation over mean of the time of devices for the same work; 0: none */
    double slow_node_fraction; /* of all nodes; 0: none */
    double slow_node_slowdown; /* their work takes so many times as long */
};

static inline bool dl_variability_is_given(const struct dl_variability *v)
{
    return v->spread_fraction > 0 || v->slow_node_fraction > 0;
}

/* An object that is absent leaves zeros. */
enum dl_status dl_variability_read(struct dl_json object, struct dl_variability *out, struct dl_arena *arena,
                                   struct dl_error *err);

/* Its keys, for `dlsim list`. */
const struct dl_field *dl_variability_fields(size_t *n_fields);

/* Of the first n devices of a node, in the run with this seed. */
void dl_variability_draw(const struct dl_variability *v, uint64_t seed, uint32_t node, uint32_t n, double *slowdowns);

/* Devices that do the same: those of a pipeline stage. */
struct dl_alike {
    double work_s;    /* of each */
    double network_s; /* that it waits for the network beside, which is not slowed */
    double n_devices; /* on so many nodes; a part of a node where others have the rest of it */
    double n_nodes;
};

/* Of those, the ones that are late first as all are slowed, and by how much their work must be so that they take what
 * is to be expected of the last device of all. */
struct dl_last {
    size_t which;
    double slowdown;
};
struct dl_last dl_variability_last(const struct dl_variability *v, const struct dl_alike *alike, size_t n);

#endif
