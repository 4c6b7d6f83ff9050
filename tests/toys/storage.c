/* storage.c - samples are read from where they are stored before the forward of each micro-batch. */
#include "tests/toys/toys.h"

struct options {
    double bytes_per_sample;
    int64_t from;
};
static const struct options defaults = {0};
static const char *const places[] = {"storage", "node_storage", NULL};
static const enum dl_path paths[] = {DL_PATH_STORAGE, DL_PATH_NODE_STORAGE};
static const struct dl_field fields[] = {
    {"bytes_per_sample", DL_NUMBER, offsetof(struct options, bytes_per_sample), 0, 1e12, false, NULL,
     "read for each sample"},
    {"from", DL_CHOICE, offsetof(struct options, from), 0, 0, true, places, "that all share if absent, or the node's"},
};

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const struct dl_event read = {.kind = DL_EV_COPY,
                                  .pass = DL_FORWARD,
                                  .cause = DL_CAUSE_OFFLOAD,
                                  .path = paths[o->from],
                                  .bytes = o->bytes_per_sample * dl_stack_setting(below)->microbatch};
    if (dl_emit(below, ev, err)) return err->status;
    const bool begins = ev->kind == DL_EV_LAYER && ev->pass == DL_FORWARD && ev->layer->index == 0;
    return begins ? dl_emit(below, &read, err) : DL_OK;
}

const struct dl_strategy dl_toy_storage = {
    .name = "storage",
    .needs_host = true, /* through which samples come */
    .doc = "samples are read before their forward",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .rewrite = rewrite,
};
