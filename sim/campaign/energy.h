/* energy.h - what a training step draws: its devices by what they do, their nodes, the network, the site.
 *
 * With P the watts of a device, n devices in a node and the figures of the system file (topologies/facility.h),
 *
 *     node  = (n P + cpus + memory + nics + switches + other) (1 + fans_fraction) / supply_efficiency
 *     site  = (nodes x node + the job's share of the network) x PUE
 *
 * The rule to remember: a device always draws its idle power; what it does comes on top, and together that is never
 * above its limit. A job has the share of nodes and network that it has of the devices. */
#ifndef DL_CAMPAIGN_ENERGY_H
#define DL_CAMPAIGN_ENERGY_H

#include "sim/engine/training.h"
#include "strategies/lower.h"

/* What a device does. Those that wait for others poll for messages, which draws next to nothing. */
enum dl_activity { DL_COMPUTING, DL_MEMORY_BOUND, DL_COMMUNICATING, DL_WAITING, DL_N_ACTIVITIES };
const char *dl_activity_name(enum dl_activity activity);

struct dl_energy_request {
    const struct dl_topology *topology;
    const struct dl_device *device;
    const struct dl_lowered *lowered;
    const struct dl_training_result *result;
    uint32_t n_devices, n_stages;
    double pue; /* 0: not known, and what cools the machine is not counted */
};

/* Of a step, in the mean over devices and time. */
struct dl_energy {
    bool known;                      /* false: the device does not tell what it draws, and all is 0 */
    double seconds[DL_N_ACTIVITIES]; /* of a device; they sum to the step */
    double joules[DL_N_ACTIVITIES];  /* of a device, idle power included */
    double device_w;                 /* they over the step */
    double n_nodes, node_w;          /* of one node, from the wall; without "node_power": of its devices */
    double network_w;                /* of the job's share of it */
    double machine_w, site_w;        /* of all; with what cools it */
    double idle_site_w;              /* the same while all devices idle */
};

struct dl_energy dl_energy_of(const struct dl_energy_request *q);

/* From the watts of one device to those of a node. */
double dl_node_watts(const struct dl_topology *t, double device_w);

/* Of a run that goes on for so long. */
struct dl_footprint {
    double joules;                        /* of the site */
    double carbon_kg;                     /* 0: not known */
    double usd_of_devices, usd_of_energy; /* 0: not known */
};
struct dl_footprint dl_footprint_of(const struct dl_energy *e, const struct dl_facility *site, double seconds,
                                    double n_devices);
/* The same of one whose devices also idle for some time, as in recovery from failures. */
struct dl_footprint dl_footprint_with_idle(const struct dl_energy *e, const struct dl_facility *site, double busy_s,
                                           double idle_s, double n_devices);

/* Whether a figure at this place ("h100.json:/power/idle_w") is of the device's power, and does not change the step. */
bool dl_is_only_of_energy(const struct dl_device *d, const char *where);

#endif
