#include "sim/campaign/energy.h"

#include <math.h>
#include <string.h>

static const char *const names[DL_N_ACTIVITIES] = {[DL_COMPUTING] = "computing",
                                                   [DL_MEMORY_BOUND] = "memory-bound",
                                                   [DL_COMMUNICATING] = "communicating",
                                                   [DL_WAITING] = "waiting"};

const char *dl_activity_name(enum dl_activity activity) { return names[activity]; }

/* Kernels are computing here, and divided later. */
static enum dl_activity activity_of(enum dl_cause cause)
{
    switch (cause) {
    case DL_CAUSE_COMPUTE:
    case DL_CAUSE_RECOMPUTE:
    case DL_CAUSE_OPTIMIZER:
    case DL_CAUSE_INTERFERENCE: return DL_COMPUTING;
    case DL_CAUSE_TENSOR:
    case DL_CAUSE_SEQUENCE:
    case DL_CAUSE_CONTEXT:
    case DL_CAUSE_EXPERT:
    case DL_CAUSE_PIPELINE:
    case DL_CAUSE_DATA:
    case DL_CAUSE_OFFLOAD: return DL_COMMUNICATING;
    case DL_CAUSE_INPUT:
    case DL_CAUSE_HOST:
    case DL_CAUSE_STRAGGLER:
    case DL_CAUSE_BUBBLE:
    case DL_N_CAUSES: break;
    }
    return DL_WAITING;
}

static double clock_of(const struct dl_lowered *l) { return l->clock > 0 ? l->clock : 1; }

static void add_seconds(const struct dl_energy_request *q, struct dl_energy *e)
{
    const double clock = clock_of(q->lowered);
    const double arithmetic_s = dl_draw_seconds(&q->lowered->draw[DL_BOUND_BY_ARITHMETIC], clock),
                 memory_s = dl_draw_seconds(&q->lowered->draw[DL_BOUND_BY_MEMORY], clock);
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        e->seconds[activity_of((enum dl_cause)cause)] += q->result->exposed_s[cause];
    if (arithmetic_s + memory_s > 0)
        e->seconds[DL_MEMORY_BOUND] = e->seconds[DL_COMPUTING] * memory_s / (arithmetic_s + memory_s);
    e->seconds[DL_COMPUTING] -= e->seconds[DL_MEMORY_BOUND];
}

/* While exchanges and sends hold kernels up, both draw: the kernels as in the rest of their time. */
static double held_up_j(const struct dl_energy_request *q, double kernels_j, double kernels_s)
{
    const struct dl_power *const p = q->device->power;
    const double held_up_s = q->result->exposed_s[DL_CAUSE_INTERFERENCE], alone_s = kernels_s - held_up_s;
    const double kernels_w = alone_s > 0 ? kernels_j / alone_s : 0;
    return held_up_s * fmin(p->limit_w - p->idle_w, kernels_w + p->communication_w);
}

/* Kernels are at most at the limit: one whose launches take longer than it does draws for its own time. */
static void add_joules(const struct dl_energy_request *q, struct dl_energy *e)
{
    const struct dl_power *const p = q->device->power;
    const double clock = clock_of(q->lowered), free_w = p->limit_w - p->idle_w;
    double beyond_j[DL_N_ACTIVITIES] = {
        [DL_COMPUTING] = dl_draw_joules(&q->lowered->draw[DL_BOUND_BY_ARITHMETIC], clock) / q->n_stages,
        [DL_MEMORY_BOUND] = dl_draw_joules(&q->lowered->draw[DL_BOUND_BY_MEMORY], clock) / q->n_stages,
        [DL_COMMUNICATING] = p->communication_w * e->seconds[DL_COMMUNICATING]};
    const double kernels_s = e->seconds[DL_COMPUTING] + e->seconds[DL_MEMORY_BOUND];
    beyond_j[DL_COMPUTING] += held_up_j(q, beyond_j[DL_COMPUTING] + beyond_j[DL_MEMORY_BOUND], kernels_s);
    for (int i = 0; i < DL_N_ACTIVITIES; i++) e->joules[i] = p->idle_w * e->seconds[i] + beyond_j[i];
    const double kernels_j = beyond_j[DL_COMPUTING] + beyond_j[DL_MEMORY_BOUND];
    const double most = kernels_j > 0 ? fmin(1, free_w * kernels_s / kernels_j) : 1;
    for (int i = DL_COMPUTING; i <= DL_MEMORY_BOUND; i++) e->joules[i] -= (1 - most) * beyond_j[i];
}

double dl_node_watts(const struct dl_topology *t, double device_w)
{
    const struct dl_node_power *const p = &t->node_power;
    const double devices_w = t->node.n_devices * device_w;
    if (!p->known) return devices_w;
    return (devices_w + p->cpus_w + p->memory_w + p->nics_w + p->switches_w + p->other_w) * (1 + p->fans_fraction) /
           p->supply_efficiency;
}

static double network_watts(const struct dl_topology *t)
{
    const struct dl_network_power *const p = &t->network_power;
    const struct dl_cabling cabling = dl_topology_cabling(t);
    return p->port_w * cabling.switch_ports + p->cable_w * cabling.cables;
}

struct dl_energy dl_energy_of(const struct dl_energy_request *q)
{
    const struct dl_topology *const t = q->topology;
    struct dl_energy e = {.known = q->device->power != NULL};
    if (!e.known) return e;
    add_seconds(q, &e);
    add_joules(q, &e);
    for (int i = 0; i < DL_N_ACTIVITIES; i++) e.device_w += e.joules[i] / q->result->step_s;
    e.n_nodes = (double)q->n_devices / t->node.n_devices;
    e.node_w = dl_node_watts(t, e.device_w);
    if (q->n_devices > t->node.n_devices) e.network_w = network_watts(t) * q->n_devices / t->n_devices;
    const double pue = q->pue > 0 ? q->pue : 1;
    e.machine_w = e.n_nodes * e.node_w + e.network_w;
    e.site_w = e.machine_w * pue;
    e.idle_site_w = (e.n_nodes * dl_node_watts(t, q->device->power->idle_w) + e.network_w) * pue;
    return e;
}

struct dl_footprint dl_footprint_with_idle(const struct dl_energy *e, const struct dl_facility *site, double busy_s,
                                           double idle_s, double n_devices)
{
    const double joules_per_kwh = 3.6e6, hour_s = 3600, g_per_kg = 1000;
    const double joules = e->site_w * busy_s + e->idle_site_w * idle_s, kwh = joules / joules_per_kwh;
    return (struct dl_footprint){.joules = joules,
                                 .carbon_kg = kwh * site->carbon_g_per_kwh / g_per_kg,
                                 .usd_of_devices = n_devices * (busy_s + idle_s) / hour_s * site->usd_per_device_hour,
                                 .usd_of_energy = kwh * site->usd_per_kwh};
}

struct dl_footprint dl_footprint_of(const struct dl_energy *e, const struct dl_facility *site, double seconds,
                                    double n_devices)
{
    return dl_footprint_with_idle(e, site, seconds, 0, n_devices);
}

bool dl_is_only_of_energy(const struct dl_device *d, const char *where)
{
    static const char of_communication[] = ":/power/communication_w", of_power[] = ":/power/";
    return strstr(where, dl_device_throttles(d) ? of_communication : of_power) != NULL;
}
