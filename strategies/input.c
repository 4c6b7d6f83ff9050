/* input.c - samples are read, unpacked and copied to the device while it works on those before, or copied late.
 *
 * What a sample is says the workload ("samples"), what it takes to unpack one the software, where samples lie the
 * machine. Ranks that share a sample read it each. */
#include "strategies/strategies.h"

struct options {
    int64_t from; /* enum place */
    bool late;
};
enum place { nearest, memory, node_storage, storage };
static const char *const places[] = {"nearest", "memory", "node_storage", "storage", NULL};
static const enum dl_path paths[] = {DL_PATH_HOST, DL_PATH_HOST, DL_PATH_HOST_NODE_STORAGE, DL_PATH_HOST_STORAGE};
static const struct options defaults = {.from = nearest};
static const struct dl_field fields[] = {
    {"from", DL_CHOICE, offsetof(struct options, from), 0, 0, true, places,
     "where samples lie: in the memory of their node if its part of them fits, else in the node's storage, else in "
     "that which all nodes share; or in one of these; nearest if absent"},
    {"late", DL_BOOL, offsetof(struct options, late), 0, 0, true, NULL,
     "with from memory: samples lie there unpacked, and are copied to the device only when a forward needs them, which "
     "waits; false if absent"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->reads_ahead = !o->late;
    return DL_OK;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (o->late && o->from != memory)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "late"),
                       "needs \"from\": \"memory\": what lies elsewhere is read ahead");
    if (what->model->data.stored_bytes > 0) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, what->where,
                   "%s does not say what its samples are; it needs \"samples\" with \"count\" and \"stored_bytes\"",
                   what->model->name);
}

static bool begins_model(const struct dl_event *ev)
{
    return ev->kind == DL_EV_LAYER && ev->pass == DL_FORWARD && ev->layer->index == 0;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const struct dl_event read = {.kind = DL_EV_READ,
                                  .pass = DL_FORWARD,
                                  .cause = DL_CAUSE_INPUT,
                                  .path = paths[o->from],
                                  .from_nearest = o->from == nearest,
                                  .is_late = o->late};
    if (dl_emit(below, ev, err)) return err->status;
    return begins_model(ev) ? dl_emit(below, &read, err) : DL_OK;
}

static uint32_t place(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting)
{
    (void)options, (void)state, (void)setting;
    return layer->layer && layer->layer->index == 0;
}

const struct dl_strategy dl_strategy_input = {
    .name = "input",
    .doc = "samples are read, unpacked and copied while the device works on those before, or copied when it needs them",
    .needs_host = true, /* through which they come */
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .place = place,
};
