#include "sim/report/campaign_report.h"

#include <stdio.h>

#include "sim/core/json.h"
#include "sim/report/units.h"

static const double hour_s = 3600, day_s = 86400;

void dl_campaign_print(const struct dl_campaign *c)
{
    char a[DL_QUANTITY], b[DL_QUANTITY], d[DL_QUANTITY], e[DL_QUANTITY];
    printf("  whole run      %s steps", dl_format_count(c->n_steps, a));
    if (c->tokens > 0)
        printf(" for %s tokens", dl_format_parameters(c->tokens, b));
    else
        printf(" for %s samples", dl_format_count(c->samples, b));
    printf(": %s, %s device hours\n", dl_format_duration(c->seconds, d), dl_format_number(c->device_s / hour_s, e));
}

static void print_power(const struct dl_energy *e, const struct dl_facility *site)
{
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY], d[DL_QUANTITY], f[DL_QUANTITY];
    double step_s = 0;
    for (int i = 0; i < DL_N_ACTIVITIES; i++) step_s += e->seconds[i];
    printf("  power          %s a device, %s a node, network %s, machine %s", dl_format_watts(e->device_w, a),
           dl_format_watts(e->node_w, b), dl_format_watts(e->network_w, c), dl_format_watts(e->machine_w, d));
    if (site->pue > 0)
        printf(", site %s (PUE %g)\n", dl_format_watts(e->site_w, f), site->pue);
    else
        puts(" (cooling is not counted: no PUE is stated)");
    for (int i = 0; i < DL_N_ACTIVITIES; i++)
        if (e->seconds[i] > 0)
            printf("    %-15s %5.1f %% of the time, %s a device\n", dl_activity_name((enum dl_activity)i),
                   100 * e->seconds[i] / step_s, dl_format_watts(e->joules[i] / e->seconds[i], a));
}

static void print_footprint(const struct dl_campaign *c)
{
    const double g_per_kg = 1000;
    char a[DL_QUANTITY];
    printf("  energy         %s", dl_format_energy(c->footprint.joules, a));
    if (c->footprint.carbon_kg > 0)
        printf(", %s of CO2e (%g g a kWh)", dl_format_mass(c->footprint.carbon_kg * g_per_kg, a),
               c->site.carbon_g_per_kwh);
    putchar('\n');
}

static void print_money(const struct dl_campaign *c)
{
    const struct dl_footprint *const f = &c->footprint;
    char a[DL_QUANTITY];
    if (f->usd_of_devices == 0 && f->usd_of_energy == 0) return;
    printf("  money          ");
    if (f->usd_of_devices > 0)
        printf("$ %s for devices ($ %g an hour)", dl_format_number(f->usd_of_devices, a), c->site.usd_per_device_hour);
    if (f->usd_of_energy > 0)
        printf("%s$ %s for energy ($ %g a kWh)", f->usd_of_devices > 0 ? ", " : "",
               dl_format_number(f->usd_of_energy, a), c->site.usd_per_kwh);
    putchar('\n');
}

void dl_campaign_print_power(const struct dl_campaign *c)
{
    if (c->energy.known) {
        print_power(&c->energy, &c->site);
        print_footprint(c);
    } else {
        puts("  energy         unknown: the device file has no 'power'");
    }
    print_money(c);
}

void dl_footprint_print(const char *label, const struct dl_footprint *f)
{
    const double g_per_kg = 1000;
    const char *before = "";
    char a[DL_QUANTITY];
    if (f->joules + f->usd_of_devices == 0) return;
    printf("  %-14s ", label);
    if (f->joules > 0) printf("%s", dl_format_energy(f->joules, a)), before = ", ";
    if (f->carbon_kg > 0) printf(", %s of CO2e", dl_format_mass(f->carbon_kg * g_per_kg, a));
    if (f->usd_of_devices > 0) printf("%s$ %s for devices", before, dl_format_number(f->usd_of_devices, a));
    if (f->usd_of_energy > 0) printf(", $ %s for energy", dl_format_number(f->usd_of_energy, a));
    putchar('\n');
}

static json_t *known_or_null(double x) { return x > 0 ? dl_json_real(x) : json_null(); }

static json_t *activities_json(const struct dl_energy *e)
{
    json_t *const list = json_array();
    for (int i = 0; i < DL_N_ACTIVITIES; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f, s:f}", "activity", dl_activity_name((enum dl_activity)i),
                                                 "seconds", e->seconds[i], "joules", e->joules[i]));
    return list;
}

static json_t *power_json(const struct dl_energy *e)
{
    if (!e->known) return json_null();
    return dl_json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "device_w", e->device_w, "nodes", e->n_nodes, "node_w",
                        e->node_w, "network_w", e->network_w, "machine_w", e->machine_w, "site_w", e->site_w,
                        "activities", activities_json(e));
}

void dl_footprint_add_json(const struct dl_footprint *f, json_t *object)
{
    const double joules_per_kwh = 3.6e6;
    json_t *const more =
        dl_json_pack("{s:o, s:o, s:o, s:o}", "energy_kwh", known_or_null(f->joules / joules_per_kwh), "carbon_kg",
                     known_or_null(f->carbon_kg), "usd_of_devices", known_or_null(f->usd_of_devices), "usd_of_energy",
                     known_or_null(f->usd_of_energy));
    json_object_update(object, more);
    json_decref(more);
}

json_t *dl_campaign_json(const struct dl_campaign *c, const struct dl_sources *sources)
{
    json_t *const whole = dl_json_pack("{s:f, s:o, s:f, s:f, s:f, s:f, s:o, s:o}", "samples", c->samples, "tokens",
                                       known_or_null(c->tokens), "steps", c->n_steps, "seconds", c->seconds, "days",
                                       c->seconds / day_s, "device_hours", c->device_s / hour_s, "power",
                                       power_json(&c->energy), "power_sources", dl_sources_json(sources));
    dl_footprint_add_json(&c->footprint, whole);
    return whole;
}
