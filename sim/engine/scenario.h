/* scenario.h - what goes wrong and when: links that slow down, fail and come back (schema dlsim/scenario/1).
 *
 *     {"schema": "dlsim/scenario/1", "source": "...", "links": [{"link": "leaf0 -> spine1", "at_s": 0.01,
 * "bandwidth_fraction": 0}]}
 */
#ifndef DL_ENGINE_SCENARIO_H
#define DL_ENGINE_SCENARIO_H

#include "sim/engine/engine.h"
#include "topologies/topology.h"

struct dl_link_change {
    uint32_t link;
    double at_s, bandwidth_fraction; /* of what the link has by its file; 0: it has failed */
};

struct dl_scenario {
    struct dl_link_change *changes;
    size_t n_changes;
    struct dl_engine *engine; /* once started */
    const struct dl_engine_link *links;
};

/* Links are found by their names in this topology; memory is the arena's. */
enum dl_status dl_scenario_read(struct dl_json doc, const struct dl_topology *t, struct dl_arena *arena,
                                struct dl_scenario *out, struct dl_error *err);

/* Set the timers. `links` are those that the engine was made with; everything must outlive the run. */
void dl_scenario_start(struct dl_scenario *s, struct dl_engine *engine, const struct dl_engine_link *links);

#endif
