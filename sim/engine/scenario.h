/* scenario.h - faults that a file injects into a run: slow or failed links, slow replicas and stages, jitter (schema
 * dlsim/scenario/1).
 *
 *     {"schema": "dlsim/scenario/1", "source": "...",
 *      "links": [{"link": "leaf0 -> spine1", "at_s": 0.01, "bandwidth_fraction": 0}],
 *      "replicas": [{"stage": 0, "replica": 1, "slowdown": 1.2}], "jitter": {"fraction": 0.02}}
 *
 * All three are optional; an entry without a stage (or replica) is of every stage (or replica). */
#ifndef DL_ENGINE_SCENARIO_H
#define DL_ENGINE_SCENARIO_H

#include "sim/engine/wire.h"

struct dl_link_change {
    uint32_t link;
    double at_s, bandwidth_fraction; /* of what the link has by its file; 0: it has failed */
};

#define DL_EVERY UINT32_MAX

struct dl_slow_replica {
    uint32_t stage, replica; /* or DL_EVERY */
    double slowdown;         /* its work takes so many times as long */
};

struct dl_scenario {
    struct dl_link_change *changes;
    size_t n_changes;
    struct dl_slow_replica *slow;
    size_t n_slow;
    double jitter_fraction; /* standard deviation over mean of each stretch of work that nothing interrupts */
    const char *old_key;    /* the place of "crews", as "replicas" was called; NULL: it is not used */
    struct dl_wire *wire;   /* once started */
};

/* What a scenario can speak of. */
struct dl_scenario_scope {
    const struct dl_topology *topology; /* links are found by their names in it */
    uint32_t n_stages, n_replicas;      /* 0: there are none */
    const uint32_t *devices;            /* that take part: links that fail for good must leave a way between them */
    uint32_t n_devices;
};

/* Memory is the arena's. Without a scope (NULL) names are not looked for, and nothing can be started. */
enum dl_status dl_scenario_read(struct dl_json doc, const struct dl_scenario_scope *scope, struct dl_arena *arena,
                                struct dl_scenario *out, struct dl_error *err);

/* Of a stage of a replica: the product of all that name it. */
double dl_scenario_slowdown(const struct dl_scenario *s, uint32_t stage, uint32_t replica);

/* Set the timers of the wire's engine, before anything is sent: what changes at 0 s is so from the start. Everything
 * must outlive the run. */
void dl_scenario_start(struct dl_scenario *s, struct dl_wire *wire);

#endif
