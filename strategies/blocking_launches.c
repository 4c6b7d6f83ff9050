/* blocking_launches.c - the host waits at every launch until the device has done it (CUDA_LAUNCH_BLOCKING=1, to find
 * errors or to get around hangs): it never runs ahead, so that its time adds to the device's, and nothing goes on
 * beside anything else. */
#include "strategies/strategies.h"

/* PyTorch 2.11 on a host with an H200, November 2026: layers of a transformer in eager code, with
 * CUDA_LAUNCH_BLOCKING=1 and without (validation/measured/blocking_launches.json). */
#define MEASURED_WAIT_S 8e-6

struct options {
    double wait_s;
};
static const struct options defaults = {.wait_s = MEASURED_WAIT_S};
static const struct dl_field fields[] = {
    {"wait_s", DL_NUMBER, offsetof(struct options, wait_s), 0, 1, true, NULL,
     "from a launch until its kernel begins, and from its end until the host knows; 8e-6 if absent"},
};

static double wait_s(const void *options) { return ((const struct options *)options)->wait_s; }

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    (void)options;
    if (dl_stack_replays_launches(what->stack))
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "graphs replay what is launched here; leave out one of the two");
    const bool is_known = s->software; /* not where a strategy is only read */
    if (is_known && dl_n_stages(s) > 1 && dl_sends_of(s) == DL_SENDS_ASYNCHRONOUS)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "%s sends from stage to stage without waiting, which blocking launches rule out",
                       s->software->name);
    return DL_OK;
}

/* What would go beside a product comes after it. */
static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    struct dl_event first = *ev, then = *ev;
    (void)options;
    if (ev->kind == DL_EV_COLLECTIVE) first.async = false;
    if (ev->kind != DL_EV_COMPUTE || ev->bytes <= 0) return dl_emit(below, &first, err);
    first.bytes = 0;
    then.kind = DL_EV_COLLECTIVE;
    then.cause = ev->beside;
    then.gradient = DL_GRADIENT_INPUT;
    return dl_emit(below, &first, err) ? err->status : dl_emit(below, &then, err);
}

const struct dl_strategy dl_strategy_blocking_launches = {
    .name = "blocking_launches",
    .doc = "the host waits at every launch until the device has done it",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .launch_wait_s = wait_s,
    .check = check,
    .rewrite = rewrite,
    .place = dl_any_place,
};
