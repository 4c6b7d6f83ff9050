/* sink_host.c - copies between a device, its host and storage, and what the host updates. */
#include <math.h>
#include <stdlib.h>

#include "strategies/sink.h"

const struct dl_copy_rate *dl_sink_copy_rate(struct dl_sink *s, enum dl_path path, bool inwards, struct dl_error *err)
{
    const struct dl_estimator *const e = s->request->estimator;
    const uint32_t n = s->request->job->n_devices, per_node = e->topology->node.n_devices;
    const struct dl_copy_wish wish = {path, inwards, n, n < per_node ? n : per_node, NULL};
    struct dl_copy_rate *const rate = &s->copies[path][inwards];
    if (rate->bytes_per_s > 0 || dl_copy_rate(e->topology, &wish, e->bytes_per_s, rate)) return rate;
    dl_copy_refuse(e->topology, path, s->copies_where, err);
    return NULL;
}

static bool has_first_layer(const struct dl_sink *s, uint32_t rank)
{
    const struct dl_schedule *const schedule = &s->out->schedule;
    const uint32_t stage = dl_ranks_index(&s->request->job->setting.ranks, DL_ALONG_PIPELINE, rank);
    for (uint32_t path = 0; path < schedule->n_paths; path++)
        if (schedule->stage_of[path * schedule->n_positions] == stage) return true;
    return false;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Devices that read, node by node. */
static uint32_t list_readers(const struct dl_sink *s, uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < s->request->job->n_devices; rank++)
        if (has_first_layer(s, rank)) out[n++] = s->request->device_of_rank[rank];
    qsort(out, n, sizeof *out, by_number);
    return n;
}

/* How many from the first on are of its node. */
static uint32_t count_on_node(const struct dl_topology *t, const uint32_t *devices, uint32_t n)
{
    uint32_t same = 1;
    while (same < n && dl_topology_node_of(t, devices[same]) == dl_topology_node_of(t, devices[0])) same++;
    return same;
}

/* Of the node that has most of them. */
static bool find_read_rate(const struct dl_sink *s, enum dl_path path, struct dl_copy_rate *out)
{
    const struct dl_estimator *const e = s->request->estimator;
    uint32_t *const readers = dl_alloc(s->request->job->n_devices * sizeof *readers);
    struct dl_copy_wish wish = {path, true, list_readers(s, readers), 0, NULL};
    for (uint32_t i = 0, n; i < wish.n_devices; i += n) {
        n = count_on_node(e->topology, &readers[i], wish.n_devices - i);
        if (n <= wish.n_on_node) continue;
        wish.n_on_node = n;
        wish.on_node = &readers[i];
    }
    const bool found = dl_copy_rate(e->topology, &wish, e->bytes_per_s, out);
    dl_free(readers);
    return found;
}

const struct dl_copy_rate *dl_sink_read_rate(struct dl_sink *s, enum dl_path path, struct dl_error *err)
{
    struct dl_copy_rate *const rate = &s->reads[path];
    if (rate->bytes_per_s > 0 || find_read_rate(s, path, rate)) return rate;
    dl_copy_refuse(s->request->estimator->topology, path, s->copies_where, err);
    return NULL;
}

enum dl_status dl_sink_init_host(struct dl_sink *s, struct dl_error *err)
{
    s->copies_where = dl_stack_on_host(s->request->job->stack);
    if (!s->copies_where) return DL_OK;
    dl_sink_copy_rate(s, DL_PATH_HOST, false, err);
    return err->status;
}

uint32_t dl_sink_copy_call(struct dl_sink *s, struct dl_comm copy)
{
    struct dl_lowered *const out = s->out;
    const struct dl_copy_rate *const rate = copy.cause == DL_CAUSE_INPUT
                                                ? &s->reads[copy.path]
                                                : &s->copies[copy.path][copy.channel != DL_CHANNEL_COPIES_OUT];
    const double most = copy.most_bytes_per_s,
                 bytes_per_s = most > 0 ? fmin(rate->bytes_per_s, most) : rate->bytes_per_s;
    for (size_t i = 0; i < out->n_calls; i++) {
        const struct dl_comm *const c = &out->calls[i];
        if (c->channel == copy.channel && c->path == copy.path && c->bytes == copy.bytes &&
            c->most_bytes_per_s == most && c->cause == copy.cause)
            return (uint32_t)i;
    }
    copy.op = DL_COPY;
    copy.alone_s = rate->latency_s + copy.bytes / bytes_per_s;
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls] = copy;
    return (uint32_t)out->n_calls++;
}

/* Between device and host, for what does not fit on the device. */
static uint32_t call_of(struct dl_sink *s, enum dl_channel channel, double bytes)
{
    return dl_sink_copy_call(s, (struct dl_comm){.channel = channel, .bytes = bytes, .cause = DL_CAUSE_OFFLOAD});
}

void dl_sink_start_copy(struct dl_sink *s, size_t at, uint32_t call)
{
    const char *const name = dl_path_copy_name(s->out->calls[call].path);
    dl_template_insert(s->into, at, &(struct dl_instruction){.kind = DL_START, .name = name, .call = call});
}

void dl_sink_await_copy(struct dl_sink *s, uint32_t call)
{
    dl_template_add(s->into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = call});
}

enum dl_status dl_sink_copy(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const double fills_at = ev->to_new_memory ? s->request->job->setting.software->new_memory_bytes_per_s : 0;
    if (!dl_sink_copy_rate(s, ev->path, !ev->to_host, err)) return err->status;
    const uint32_t call =
        dl_sink_copy_call(s, (struct dl_comm){.channel = ev->to_host ? DL_CHANNEL_COPIES_OUT : DL_CHANNEL_COPIES_IN,
                                              .path = ev->path,
                                              .bytes = ev->bytes,
                                              .cause = ev->cause,
                                              .most_bytes_per_s = fills_at});
    dl_sink_start_copy(s, ev->async ? s->layer_begins : s->into->n_instructions, call);
    dl_sink_await_copy(s, call);
    return DL_OK;
}

/* Gradients on their way there, the update, and parameters on their way back go on at once: the longest counts. The
 * host reads and writes what a device would. */
enum dl_status dl_sink_host_update(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    for (int inwards = 0; inwards < 2; inwards++)
        if (!dl_sink_copy_rate(s, DL_PATH_HOST, inwards, err)) return err->status;
    if (s->copies[DL_PATH_HOST][false].memory_bytes_per_s == 0)
        return dl_fail(err, DL_IMPOSSIBLE, s->copies_where,
                       "%s does not say how fast its host is; its node needs \"host\" with \"memory_bytes_per_s\"",
                       s->request->estimator->topology->name);
    const struct dl_setting *const setting = &s->request->job->setting;
    const double parameters = ev->parameters_inside + ev->parameters_outside + ev->parameters_expert;
    const double update_s =
        parameters * dl_optimizer_moved_bytes(setting) / s->copies[DL_PATH_HOST][false].memory_bytes_per_s;
    const uint32_t there = call_of(s, DL_CHANNEL_COPIES_OUT, parameters * dl_gradient_bytes(setting));
    const uint32_t back = ev->bytes > 0 ? call_of(s, DL_CHANNEL_COPIES_IN, ev->bytes) : there;
    dl_sink_start_copy(s, s->into->n_instructions, there);
    if (back != there) dl_sink_start_copy(s, s->into->n_instructions, back);
    dl_template_add(s->into, &(struct dl_instruction){.name = "host update", .cause = ev->cause, .device_s = update_s});
    dl_sink_await_copy(s, there);
    if (back != there) dl_sink_await_copy(s, back);
    return DL_OK;
}
