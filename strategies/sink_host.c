/* sink_host.c - copies between a device and its host, and what the host updates. */
#include <math.h>

#include "strategies/sink.h"

enum dl_status dl_sink_init_host(struct dl_sink *s, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_estimator *const e = s->request->estimator;
    if (!setting->offload_where) return DL_OK;
    const uint32_t per_node = e->topology->node.n_devices, n = s->request->job->n_devices;
    if (!dl_host_link(e->topology, n < per_node ? n : per_node, e->bytes_per_s, &s->host))
        return dl_fail(err, DL_IMPOSSIBLE, setting->offload_where,
                       "%s says nothing of its host; its node needs \"host\" with \"link_bandwidth_bytes_per_s\"",
                       e->topology->name);
    if (setting->offload_optimizer > 0 && s->host.memory_bytes_per_s == 0)
        return dl_fail(err, DL_IMPOSSIBLE, setting->offload_where,
                       "%s does not say how fast its host is; its node needs \"host\" with \"memory_bytes_per_s\"",
                       e->topology->name);
    return DL_OK;
}

static double copy_s(const struct dl_sink *s, double bytes)
{
    return bytes > 0 ? s->host.latency_s + bytes / s->host.bytes_per_s : 0;
}

void dl_sink_copy(struct dl_sink *s, const struct dl_event *ev, double beside_s)
{
    const double fills_at = s->request->job->setting.software->new_memory_bytes_per_s;
    const double fills_s = ev->to_new_memory && fills_at > 0 ? ev->bytes / fills_at : 0;
    dl_template_add(s->into,
                    &(struct dl_instruction){.name = "host copy",
                                             .cause = ev->cause,
                                             .device_s = fmax(fmax(copy_s(s, ev->bytes), fills_s) - beside_s, 0)});
}

/* Gradients on their way there, the update, and parameters on their way back go on at once: the longest counts. The
 * host reads and writes what a device would. */
void dl_sink_host_update(struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const double parameters = ev->parameters_inside + ev->parameters_outside + ev->parameters_expert;
    const double update_s = parameters * dl_optimizer_moved_bytes(setting) / s->host.memory_bytes_per_s;
    const double there_s = copy_s(s, parameters * dl_gradient_bytes(setting)), back_s = copy_s(s, ev->bytes);
    dl_template_add(s->into, &(struct dl_instruction){.name = "host update",
                                                      .cause = ev->cause,
                                                      .device_s = fmax(update_s, fmax(there_s, back_s))});
}
