/* facility.h - what a machine draws besides its devices, and what power means where it stands.
 *
 * Watts are those during training, behind the power supplies, of one node or one piece. */
#ifndef DL_TOPOLOGIES_FACILITY_H
#define DL_TOPOLOGIES_FACILITY_H

#include "sim/core/json.h"

/* The object "node_power". */
struct dl_node_power {
    bool known;
    double cpus_w, memory_w, nics_w, switches_w, other_w;
    double fans_fraction;     /* of all the rest of the node, as heat is what they carry away */
    double supply_efficiency; /* of what is drawn from the wall */
};

/* The object "network_power". */
struct dl_network_power {
    bool known;
    double port_w;  /* of a switch: its power over its ports */
    double cable_w; /* of what makes light at both ends */
};

/* The object "site"; 0: not stated. */
struct dl_facility {
    double pue;
    double carbon_g_per_kwh, usd_per_kwh, usd_per_device_hour;
};

enum dl_status dl_node_power_read(struct dl_json object, struct dl_arena *arena, struct dl_node_power *out,
                                  struct dl_error *err);
enum dl_status dl_network_power_read(struct dl_json object, struct dl_arena *arena, struct dl_network_power *out,
                                     struct dl_error *err);
enum dl_status dl_facility_read(struct dl_json object, struct dl_arena *arena, struct dl_facility *out,
                                struct dl_error *err);

/* Their keys, for `dlsim list`. */
const struct dl_field *dl_node_power_fields(size_t *n_fields);
const struct dl_field *dl_network_power_fields(size_t *n_fields);
const struct dl_field *dl_facility_fields(size_t *n_fields);

#endif
