#include "topologies/facility.h"

#define WATTS(type, name, doc)                                                                                         \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct type, name), 0, 1e6, true, NULL, doc "; 0 if absent"                         \
    }
static const struct dl_field node_fields[] = {
    WATTS(dl_node_power, cpus_w, "power of the CPUs"),
    WATTS(dl_node_power, memory_w, "power of the host's memory"),
    WATTS(dl_node_power, nics_w, "power of the network adapters"),
    WATTS(dl_node_power, switches_w, "power of NVSwitches, PCIe switches and the like"),
    WATTS(dl_node_power, other_w, "power of storage, boards and management"),
    {"fans_fraction", DL_NUMBER, offsetof(struct dl_node_power, fans_fraction), 0, 1, true, NULL,
     "power of fans, over that of all the rest of the node; 0 if absent"},
    {"supply_efficiency", DL_NUMBER, offsetof(struct dl_node_power, supply_efficiency), 0.5, 1, true, NULL,
     "power behind the power supplies, over what they draw; 1 if absent"},
};
static const struct dl_field network_fields[] = {
    WATTS(dl_network_power, port_w, "power of a switch, over the number of its ports"),
    WATTS(dl_network_power, cable_w, "power of the transceivers at both ends of a cable"),
};
static const struct dl_field site_fields[] = {
    {"pue", DL_NUMBER, offsetof(struct dl_facility, pue), 1, 10, true, NULL,
     "power of the whole site over that of its machines (power usage effectiveness); 1 if absent"},
    {"carbon_g_per_kwh", DL_NUMBER, offsetof(struct dl_facility, carbon_g_per_kwh), 0.001, 5000, true, NULL,
     "grams of CO2e for a kWh; unknown if absent"},
    {"usd_per_kwh", DL_NUMBER, offsetof(struct dl_facility, usd_per_kwh), 1e-6, 1000, true, NULL,
     "price of energy; unknown if absent"},
    {"usd_per_device_hour", DL_NUMBER, offsetof(struct dl_facility, usd_per_device_hour), 1e-6, 1e6, true, NULL,
     "price of a device for an hour, all included; unknown if absent"},
};

enum dl_status dl_node_power_read(struct dl_json object, struct dl_arena *arena, struct dl_node_power *out,
                                  struct dl_error *err)
{
    *out = (struct dl_node_power){.known = true, .supply_efficiency = 1};
    return dl_read(object, node_fields, DL_COUNT(node_fields), out, arena, err);
}

enum dl_status dl_network_power_read(struct dl_json object, struct dl_arena *arena, struct dl_network_power *out,
                                     struct dl_error *err)
{
    *out = (struct dl_network_power){.known = true};
    return dl_read(object, network_fields, DL_COUNT(network_fields), out, arena, err);
}

enum dl_status dl_facility_read(struct dl_json object, struct dl_arena *arena, struct dl_facility *out,
                                struct dl_error *err)
{
    return dl_read(object, site_fields, DL_COUNT(site_fields), out, arena, err);
}

const struct dl_field *dl_node_power_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(node_fields);
    return node_fields;
}

const struct dl_field *dl_network_power_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(network_fields);
    return network_fields;
}

const struct dl_field *dl_facility_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(site_fields);
    return site_fields;
}
