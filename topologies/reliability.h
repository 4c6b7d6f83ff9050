/* reliability.h - how often parts of a machine fail, and what a job then waits for.
 *
 * No step depends on any of it, only a whole run does (dl_json_facts_of_step). */
#ifndef DL_TOPOLOGIES_RELIABILITY_H
#define DL_TOPOLOGIES_RELIABILITY_H

#include "sim/core/json.h"

struct dl_reliability {
    double device_mtbf_hours, node_mtbf_hours, link_mtbf_hours; /* of one; 0: its failures are not counted */
    double detect_s, restart_s;
};

/* Whether anything fails. */
static inline bool dl_reliability_is_given(const struct dl_reliability *r)
{
    return r->device_mtbf_hours + r->node_mtbf_hours + r->link_mtbf_hours > 0;
}

/* An object that is absent leaves zeros. */
enum dl_status dl_reliability_read(struct dl_json object, struct dl_reliability *out, struct dl_arena *arena,
                                   struct dl_error *err);

#endif
