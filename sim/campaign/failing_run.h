/* failing_run.h - the failures of a whole run: from what the system file says to checkpoints, goodput and days.
 *
 * Checkpoints go to the storage of the machine, which all nodes of the job write to at once, each no faster than its
 * links to the network. A checkpoint that is asynchronous stops training only while every device copies its part to
 * its host. */
#ifndef DL_CAMPAIGN_FAILING_RUN_H
#define DL_CAMPAIGN_FAILING_RUN_H

#include <stdbool.h>

#include "sim/campaign/energy.h"
#include "sim/campaign/failures.h"
#include "topologies/topology.h"

/* What the user says of checkpoints. */
struct dl_checkpoints {
    uint64_t steps; /* from one to the next; 0: as many as are best */
    bool asynchronous;
};

struct dl_failing_run_request {
    const struct dl_topology *topology;
    struct dl_checkpoints checkpoints;
    uint32_t n_devices, n_nodes;
    double checkpoint_bytes;
    double copied_bytes, copy_bytes_per_s; /* of a device to its host; 0 B/s: the system file tells of no way */
    double step_s, n_steps;
    const struct dl_energy *energy; /* of a step */
    const struct dl_facility *site;
    uint64_t seed;
};

/* DL_FAILS: it was found out; else why not. DL_TOO_OFTEN: checkpoints are asked for while others are being written;
 * steps.between is the fewest that would do. DL_NEVER_ENDS: there are more than a million failures. */
enum dl_failing_run_status {
    DL_FAILS,
    DL_NO_RELIABILITY,
    DL_NO_STORAGE,
    DL_NO_WAY_TO_HOST,
    DL_TOO_OFTEN,
    DL_NEVER_ENDS,
};

struct dl_failing_run {
    enum dl_failing_run_status status;
    /* Unless there is no reliability: */
    struct dl_failing kinds[DL_MAX_FAILING]; /* devices, nodes, links, as far as the file speaks of them */
    size_t n_kinds;
    double detect_s, restart_s;
    /* Nor no storage: */
    double checkpoint_bytes, write_bytes_per_s, read_bytes_per_s;
    double write_s, load_s;
    /* Nor no way to the host: */
    bool asynchronous;
    struct dl_restarts restarts;
    bool steps_given;
    struct dl_saved_steps steps;
    /* Only DL_FAILS: */
    double seconds, failures, device_s; /* mean of the whole run */
    /* Shares of it: they sum to 1. */
    double goodput, checkpointing, recovering, lost;
    struct dl_footprint footprint; /* devices idle in checkpoints and recovery */
    uint64_t seed, n_trials;
    struct dl_failures_simulated simulated;
};

struct dl_failing_run dl_failing_run(const struct dl_failing_run_request *q);

#endif
