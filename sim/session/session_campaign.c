/* session_campaign.c - the whole training run that the step of a session is one of. */
#include <string.h>

#include "sim/session/session.h"

static struct dl_energy energy_at(const struct dl_session *s, double pue)
{
    return dl_energy_of(&(struct dl_energy_request){.pue = pue,
                                                    .topology = s->machine.topology,
                                                    .device = &s->device,
                                                    .lowered = &s->lowered,
                                                    .result = &s->report.result,
                                                    .n_devices = s->job.n_devices + s->job.setting.servers,
                                                    .n_stages = dl_n_stages(&s->job.setting)});
}

struct dl_energy dl_session_energy(const struct dl_session *s) { return energy_at(s, s->machine.topology->site.pue); }

/* "file.json:/site/pue" is where --set topo.site.pue=1.2 goes. */
static bool is_set(const char *assignment, const char *prefix, const char *where)
{
    const char *pointer = strstr(where, ":/");
    const size_t length = strlen(prefix);
    if (!pointer || strncmp(assignment, prefix, length)) return false;
    for (assignment += length, pointer++; *pointer; pointer++, assignment++)
        if (*assignment != (*pointer == '/' ? '.' : *pointer)) return false;
    return *assignment == '=';
}

/* The file's source is not that of a figure that was overridden. */
static void mark_overridden(struct dl_sources *sources, const struct dl_texts *set)
{
    for (size_t i = 0; i < sources->n; i++)
        for (size_t k = 0; k < set->n; k++) {
            struct dl_source *const source = &sources->items[i];
            if (is_set(set->items[k], "topo", source->where) || is_set(set->items[k], "device", source->where))
                source->text = dl_given;
        }
}

/* What the command line says of the site, in the place of what the system file says. */
static struct dl_facility list_sources(struct dl_session *s, const struct dl_facility *site)
{
    static const char *const of_system[] = {"node_power", "network_power", "site"};
    struct dl_facility found = s->machine.topology->site;
    const struct {
        const char *option, *place;
        double value, *into;
    } given[] = {
        {"--pue", ":/site/pue", site->pue, &found.pue},
        {"--carbon-g-per-kwh", ":/site/carbon_g_per_kwh", site->carbon_g_per_kwh, &found.carbon_g_per_kwh},
        {"--usd-per-kwh", ":/site/usd_per_kwh", site->usd_per_kwh, &found.usd_per_kwh},
        {"--usd-per-device-hour", ":/site/usd_per_device_hour", site->usd_per_device_hour, &found.usd_per_device_hour}};
    struct dl_sources *const sources = &s->report.power_sources;
    dl_sources_add(sources, s->device_doc, "power", s->arena);
    for (size_t i = 0; i < DL_COUNT(of_system); i++)
        dl_sources_add(sources, s->machine.system_doc, of_system[i], s->arena);
    mark_overridden(sources, &s->request.set);
    for (size_t i = 0; i < DL_COUNT(given); i++) {
        if (given[i].value == 0) continue;
        dl_sources_give(sources, given[i].place, given[i].option, given[i].value);
        *given[i].into = given[i].value;
    }
    return found;
}

void dl_session_campaign(struct dl_session *s, const struct dl_amount *amount, const struct dl_facility *site)
{
    if (!dl_amount_is_given(amount)) return;
    const struct dl_facility found = list_sources(s, site);
    const struct dl_campaign_step step = {.seconds = s->report.result.step_s,
                                          .n_devices = s->job.n_devices + s->job.setting.servers,
                                          .samples = s->job.setting.global_batch,
                                          .tokens_per_sample = s->model.tokens_per_sample,
                                          .energy = energy_at(s, found.pue),
                                          .site = found};
    s->campaign = dl_campaign_of(amount, &step);
    s->report.campaign = &s->campaign;
}
