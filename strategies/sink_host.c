/* sink_host.c - copies between a device, its host and storage, and what the host updates. */
#include <math.h>

#include "strategies/sink.h"

/* NULL: the machine has no such path, and err says what its file needs. */
static const struct dl_copy_rate *rate_of(struct dl_sink *s, enum dl_path path, bool inwards, struct dl_error *err)
{
    const struct dl_estimator *const e = s->request->estimator;
    const uint32_t per_node = e->topology->node.n_devices, n = s->request->job->n_devices;
    const struct dl_copy_wish wish = {path, inwards, n, n < per_node ? n : per_node};
    struct dl_copy_rate *const out = &s->copies[path][inwards];
    if (out->bytes_per_s > 0 || dl_copy_rate(e->topology, &wish, e->bytes_per_s, out)) return out;
    dl_copy_refuse(e->topology, path, s->copies_where, err);
    return NULL;
}

enum dl_status dl_sink_init_host(struct dl_sink *s, struct dl_error *err)
{
    s->copies_where = dl_stack_on_host(s->request->job->stack);
    if (!s->copies_where) return DL_OK;
    rate_of(s, DL_PATH_HOST, false, err);
    return err->status;
}

/* All that are alike are one call. Their rate is known. */
static uint32_t call_of(struct dl_sink *s, enum dl_path path, enum dl_channel channel, double bytes,
                        double most_bytes_per_s)
{
    struct dl_lowered *const out = s->out;
    const struct dl_copy_rate *const rate = &s->copies[path][channel == DL_CHANNEL_COPIES_IN];
    const double bytes_per_s = most_bytes_per_s > 0 ? fmin(rate->bytes_per_s, most_bytes_per_s) : rate->bytes_per_s;
    for (size_t i = 0; i < out->n_calls; i++) {
        const struct dl_comm *const c = &out->calls[i];
        if (c->channel == channel && c->path == path && c->bytes == bytes && c->most_bytes_per_s == most_bytes_per_s)
            return (uint32_t)i;
    }
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls] = (struct dl_comm){.op = DL_COPY,
                                                .channel = channel,
                                                .path = path,
                                                .bytes = bytes,
                                                .cause = DL_CAUSE_OFFLOAD,
                                                .most_bytes_per_s = most_bytes_per_s,
                                                .alone_s = rate->latency_s + bytes / bytes_per_s};
    return (uint32_t)out->n_calls++;
}

static void start(struct dl_sink *s, size_t at, uint32_t call)
{
    const char *const name = dl_path_copy_name(s->out->calls[call].path);
    dl_template_insert(s->into, at, &(struct dl_instruction){.kind = DL_START, .name = name, .call = call});
}

static void await(struct dl_sink *s, uint32_t call)
{
    dl_template_add(s->into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = call});
}

enum dl_status dl_sink_copy(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const double fills_at = ev->to_new_memory ? s->request->job->setting.software->new_memory_bytes_per_s : 0;
    if (!rate_of(s, ev->path, !ev->to_host, err)) return err->status;
    const uint32_t call =
        call_of(s, ev->path, ev->to_host ? DL_CHANNEL_COPIES_OUT : DL_CHANNEL_COPIES_IN, ev->bytes, fills_at);
    start(s, ev->async ? s->layer_begins : s->into->n_instructions, call);
    await(s, call);
    return DL_OK;
}

/* Gradients on their way there, the update, and parameters on their way back go on at once: the longest counts. The
 * host reads and writes what a device would. */
enum dl_status dl_sink_host_update(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    for (int inwards = 0; inwards < 2; inwards++)
        if (!rate_of(s, DL_PATH_HOST, inwards, err)) return err->status;
    if (s->copies[DL_PATH_HOST][false].memory_bytes_per_s == 0)
        return dl_fail(err, DL_IMPOSSIBLE, s->copies_where,
                       "%s does not say how fast its host is; its node needs \"host\" with \"memory_bytes_per_s\"",
                       s->request->estimator->topology->name);
    const struct dl_setting *const setting = &s->request->job->setting;
    const double parameters = ev->parameters_inside + ev->parameters_outside + ev->parameters_expert;
    const double update_s =
        parameters * dl_optimizer_moved_bytes(setting) / s->copies[DL_PATH_HOST][false].memory_bytes_per_s;
    const uint32_t there = call_of(s, DL_PATH_HOST, DL_CHANNEL_COPIES_OUT, parameters * dl_gradient_bytes(setting), 0);
    const uint32_t back = ev->bytes > 0 ? call_of(s, DL_PATH_HOST, DL_CHANNEL_COPIES_IN, ev->bytes, 0) : there;
    start(s, s->into->n_instructions, there);
    if (back != there) start(s, s->into->n_instructions, back);
    dl_template_add(s->into, &(struct dl_instruction){.name = "host update", .cause = ev->cause, .device_s = update_s});
    await(s, there);
    if (back != there) await(s, back);
    return DL_OK;
}
