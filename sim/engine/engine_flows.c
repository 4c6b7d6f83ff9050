/* engine_flows.c - the default engine: bundles share links, by our own flows in SimGrid's time. */
#include "sim/core/memory.h"
#include "sim/engine/engines.h"
#include "sim/engine/flows.h"
#include "sim/engine/simgrid.h"

/* Of a topology, and for the solver; links that are used count with what uses them. Measured as in own_memory.c. */
enum { link_bytes = 56 };

struct engine {
    struct dl_engine base;
    struct dl_flows *flows;
};

static struct dl_flows *flows_of(const struct dl_engine *e) { return ((const struct engine *)e)->flows; }

static struct dl_engine *create(const struct dl_engine_link *links, size_t n_links)
{
    struct engine *const e = dl_alloc(sizeof *e);
    e->base.kind = &dl_engine_simgrid;
    e->flows = dl_flows_new(links, n_links);
    return &e->base;
}

static void start(struct dl_engine *e, const struct dl_bundle *bundle) { dl_flows_start(flows_of(e), bundle); }

static void timer(struct dl_engine *e, double date_s, dl_event_fn fire, void *user, uint32_t tag)
{
    dl_flows_timer(flows_of(e), date_s, fire, user, tag);
}

static void set_bandwidth(struct dl_engine *e, uint32_t link, double bytes_per_s)
{
    dl_flows_set_bandwidth(flows_of(e), link, bytes_per_s);
}

static double wanted_bytes_per_s(struct dl_engine *e, uint32_t link) { return dl_flows_wanted(flows_of(e), link); }

static double now_s(const struct dl_engine *e) { return dl_flows_now_s(flows_of(e)); }

static double next_s(void *user) { return dl_flows_next_s(flows_of(user)); }

static void advance(void *user)
{
    struct engine *const e = user;
    dl_flows_fetch(e->flows, e->base.coming);
    dl_flows_advance(e->flows);
    if (e->base.progress) e->base.progress(dl_flows_now_s(e->flows), dl_flows_n_events(e->flows));
}

static size_t run(struct dl_engine *e)
{
    dl_simgrid()->drive(&(struct dl_clockwork){.user = e, .next_s = next_s, .advance = advance});
    return dl_flows_n_live(flows_of(e));
}

static uint64_t n_events(const struct dl_engine *e) { return dl_flows_n_events(flows_of(e)); }

static void destroy(struct dl_engine *e)
{
    dl_flows_free(flows_of(e));
    dl_free(e);
}

const struct dl_engine_kind dl_engine_simgrid = {
    .name = "simgrid",
    .doc = "dlsim's own flow solver as a network model of SimGrid: messages share links",
    .link_bytes = link_bytes,
    .create = create,
    .start = start,
    .timer = timer,
    .set_bandwidth = set_bandwidth,
    .wanted_bytes_per_s = wanted_bytes_per_s,
    .now_s = now_s,
    .run = run,
    .n_events = n_events,
    .destroy = destroy,
};
