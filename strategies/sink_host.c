/* sink_host.c - copies between a device and its host, and what the host updates. */
#include <math.h>

#include "strategies/sink.h"

enum dl_status dl_sink_init_host(struct dl_sink *s, struct dl_error *err)
{
    const struct dl_estimator *const e = s->request->estimator;
    const char *const where = dl_stack_on_host(s->request->job->stack);
    if (!where) return DL_OK;
    const uint32_t per_node = e->topology->node.n_devices, n = s->request->job->n_devices;
    if (!dl_host_link(e->topology, n < per_node ? n : per_node, e->bytes_per_s, &s->host))
        return dl_fail(err, DL_IMPOSSIBLE, where,
                       "%s says nothing of its host; its node needs \"host\" with \"link_bandwidth_bytes_per_s\"",
                       e->topology->name);
    return DL_OK;
}

/* All that are alike are one call. */
static uint32_t call_of(struct dl_sink *s, enum dl_channel channel, double bytes, double most_bytes_per_s)
{
    struct dl_lowered *const out = s->out;
    const double bytes_per_s = most_bytes_per_s > 0 ? fmin(s->host.bytes_per_s, most_bytes_per_s) : s->host.bytes_per_s;
    for (size_t i = 0; i < out->n_calls; i++) {
        const struct dl_comm *const c = &out->calls[i];
        if (c->channel == channel && c->bytes == bytes && c->most_bytes_per_s == most_bytes_per_s) return (uint32_t)i;
    }
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls] = (struct dl_comm){.op = DL_COPY,
                                                .channel = channel,
                                                .bytes = bytes,
                                                .cause = DL_CAUSE_OFFLOAD,
                                                .most_bytes_per_s = most_bytes_per_s,
                                                .alone_s = s->host.latency_s + bytes / bytes_per_s};
    return (uint32_t)out->n_calls++;
}

static void start(struct dl_sink *s, size_t at, uint32_t call)
{
    dl_template_insert(s->into, at, &(struct dl_instruction){.kind = DL_START, .name = "host copy", .call = call});
}

static void await(struct dl_sink *s, uint32_t call)
{
    dl_template_add(s->into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = call});
}

void dl_sink_copy(struct dl_sink *s, const struct dl_event *ev)
{
    const double fills_at = ev->to_new_memory ? s->request->job->setting.software->new_memory_bytes_per_s : 0;
    const uint32_t call = call_of(s, ev->to_host ? DL_CHANNEL_COPIES_OUT : DL_CHANNEL_COPIES_IN, ev->bytes, fills_at);
    start(s, ev->async ? s->layer_begins : s->into->n_instructions, call);
    await(s, call);
}

/* Gradients on their way there, the update, and parameters on their way back go on at once: the longest counts. The
 * host reads and writes what a device would. */
enum dl_status dl_sink_host_update(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    if (s->host.memory_bytes_per_s == 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_stack_on_host(s->request->job->stack),
                       "%s does not say how fast its host is; its node needs \"host\" with \"memory_bytes_per_s\"",
                       s->request->estimator->topology->name);
    const struct dl_setting *const setting = &s->request->job->setting;
    const double parameters = ev->parameters_inside + ev->parameters_outside + ev->parameters_expert;
    const double update_s = parameters * dl_optimizer_moved_bytes(setting) / s->host.memory_bytes_per_s;
    const uint32_t there = call_of(s, DL_CHANNEL_COPIES_OUT, parameters * dl_gradient_bytes(setting), 0);
    const uint32_t back = ev->bytes > 0 ? call_of(s, DL_CHANNEL_COPIES_IN, ev->bytes, 0) : there;
    start(s, s->into->n_instructions, there);
    if (back != there) start(s, s->into->n_instructions, back);
    dl_template_add(s->into, &(struct dl_instruction){.name = "host update", .cause = ev->cause, .device_s = update_s});
    await(s, there);
    if (back != there) await(s, back);
    return DL_OK;
}
