/* sink_input.c - samples on their way to the device: read from where they lie, unpacked by the host, copied.
 *
 * A pipeline of three: it moves at the pace of the slowest. The samples of a micro-batch are under way while the one
 * before it is worked on, and its forward waits for them; or they lie unpacked, and are copied when it begins. */
#include <math.h>

#include "strategies/sink.h"

/* What a node has of the data set, if all of them share it out. */
static double bytes_on_node(const struct dl_sink *s)
{
    const struct dl_samples *const data = &s->request->model->data;
    const uint32_t on_node = s->request->estimator->topology->node.n_devices, n = s->request->job->n_devices;
    return data->count * data->stored_bytes / ceil((double)n / on_node);
}

/* After the first epoch they are in memory if they fit; else where they were copied to before, or where they are. */
static enum dl_path path_to_nearest(const struct dl_sink *s)
{
    const struct dl_topology *const t = s->request->estimator->topology;
    if (bytes_on_node(s) <= t->node.host.memory_bytes) return DL_PATH_HOST;
    return dl_node_storage_link(t, 0, true) != UINT32_MAX ? DL_PATH_HOST_NODE_STORAGE : DL_PATH_HOST_STORAGE;
}

/* Of stored bytes, by all workers of a device. */
static double unpacked_bytes_per_s(const struct dl_sink *s)
{
    const struct dl_loader *const loader = &s->request->job->setting.software->loader;
    const double one = loader->unpacked_bytes_per_s[s->request->model->data.packing];
    return one > 0 ? one * loader->workers : INFINITY;
}

/* The device has nothing else to do until they are there. */
static enum dl_status copy_now(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const double bytes = s->request->job->setting.microbatch * s->request->model->data.device_bytes;
    if (!dl_sink_read_rate(s, DL_PATH_HOST, err)) return err->status;
    const uint32_t call = dl_sink_copy_call(
        s, (struct dl_comm){.channel = DL_CHANNEL_COPIES_IN, .path = DL_PATH_HOST, .bytes = bytes, .cause = ev->cause});
    dl_sink_start_copy(s, s->into->n_instructions, call);
    dl_sink_await_copy(s, call);
    return DL_OK;
}

enum dl_status dl_sink_read(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    if (ev->is_late) return copy_now(s, ev, err);
    const struct dl_samples *const data = &s->request->model->data;
    const double samples = s->request->job->setting.microbatch, unpacks_at = unpacked_bytes_per_s(s),
                 grows = data->device_bytes / data->stored_bytes;
    const enum dl_path path = ev->from_nearest ? path_to_nearest(s) : ev->path;
    const struct dl_copy_rate *const to_device = dl_sink_read_rate(s, DL_PATH_HOST, err);
    if (!to_device || !dl_sink_read_rate(s, path, err)) return err->status;
    const bool is_in_memory = path == DL_PATH_HOST;
    const double most = is_in_memory ? unpacks_at * grows : fmin(unpacks_at, to_device->bytes_per_s / grows);
    const uint32_t call = dl_sink_copy_call(
        s, (struct dl_comm){.channel = DL_CHANNEL_AHEAD,
                            .path = path,
                            .bytes = samples * (is_in_memory ? data->device_bytes : data->stored_bytes),
                            .cause = ev->cause,
                            .most_bytes_per_s = isinf(most) ? 0 : most});
    dl_sink_await_copy(s, call);
    dl_sink_start_copy(s, s->into->n_instructions, call);
    return DL_OK;
}
