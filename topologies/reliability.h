/* reliability.h - how often parts of a machine fail, what a job then waits for, and the storage of its checkpoints.
 *
 * No step depends on any of it, only a whole run does (dl_json_facts_of_step). */
#ifndef DL_TOPOLOGIES_RELIABILITY_H
#define DL_TOPOLOGIES_RELIABILITY_H

#include "sim/core/json.h"

struct dl_reliability {
    double device_mtbf_hours, node_mtbf_hours, link_mtbf_hours; /* of one; 0: its failures are not counted */
    double detect_s, restart_s;
};

/* Of the whole machine; 0: nothing is said of it. */
struct dl_storage {
    double write_bytes_per_s, read_bytes_per_s;
};

/* Whether anything fails. */
static inline bool dl_reliability_is_given(const struct dl_reliability *r)
{
    return r->device_mtbf_hours + r->node_mtbf_hours + r->link_mtbf_hours > 0;
}

/* An object that is absent leaves zeros. */
enum dl_status dl_reliability_read(struct dl_json object, struct dl_reliability *out, struct dl_arena *arena,
                                   struct dl_error *err);
enum dl_status dl_storage_read(struct dl_json object, struct dl_storage *out, struct dl_arena *arena,
                               struct dl_error *err);

#endif
