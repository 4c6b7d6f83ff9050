/* engine_cm02.c - SimGrid's own CM02 as reference: slower, and a message must not be split over paths. */
#include <assert.h>
#include <math.h>

#include "sim/core/memory.h"
#include "sim/engine/engines.h"
#include "sim/engine/events.h"
#include "sim/engine/simgrid.h"

struct waiting {
    dl_event_fn done;
    void *user;
    uint32_t tag, next_free;
};

struct engine {
    struct dl_engine base;
    uint32_t *path;
    size_t path_capacity;
    struct waiting *waiting; /* what bundles and timers will call */
    size_t n_waiting, waiting_capacity, n_live;
    uint32_t free_waiting;
    struct dl_events *timers; /* SimGrid does not keep the order of timers with the same date */
    uint64_t n_events;
};

enum { none = 0xffffffffu };

static struct dl_engine *create(const struct dl_engine_link *links, size_t n_links)
{
    struct engine *const e = dl_alloc(sizeof *e);
    e->base.kind = &dl_engine_cm02;
    e->free_waiting = none;
    e->timers = dl_events_new();
    dl_simgrid()->cm02_open(links, n_links, true);
    return &e->base;
}

/* It has happened: free its place, then tell. */
static void forget(struct engine *e, uint32_t id)
{
    const struct waiting w = e->waiting[id];
    e->waiting[id].next_free = e->free_waiting;
    e->free_waiting = id;
    e->n_events++;
    if (e->base.progress) e->base.progress(dl_simgrid()->cm02_now_s(), e->n_events);
    if (w.done) w.done(w.user, w.tag);
}

/* SimGrid takes no bandwidth of zero, only next to none: what ends later than this was on a link that had failed. */
static const double for_ever_s = 1e11;

static void ended(void *user, uint32_t id)
{
    struct engine *const e = user;
    if (dl_simgrid()->cm02_now_s() > for_ever_s) return;
    e->n_live--;
    forget(e, id);
}

static uint32_t remember(struct engine *e, struct waiting waiting)
{
    uint32_t id = e->free_waiting;
    if (id == none) {
        DL_GROW(e->waiting, e->n_waiting, e->waiting_capacity);
        id = (uint32_t)e->n_waiting++;
    } else {
        e->free_waiting = e->waiting[id].next_free;
    }
    e->waiting[id] = waiting;
    return id;
}

/* CM02 knows weights only as links that occur several times in a path. */
static size_t spell_out(struct engine *e, const struct dl_bundle *bundle)
{
    size_t n = 0;
    for (size_t i = 0; i < bundle->n_hops; i++) {
        assert(bundle->hops[i].weight == floor(bundle->hops[i].weight)); /* whole_weights: the caller sees to it */
        for (double w = 0; w < bundle->hops[i].weight; w++) {
            DL_GROW(e->path, n, e->path_capacity);
            e->path[n++] = bundle->hops[i].link;
        }
    }
    return n;
}

static void start(struct dl_engine *engine, const struct dl_bundle *bundle)
{
    struct engine *const e = (struct engine *)engine;
    const size_t n = spell_out(e, bundle);
    struct dl_bundle passed = *bundle;
    passed.tag = remember(e, (struct waiting){.done = bundle->done, .user = bundle->user, .tag = bundle->tag});
    e->n_live++;
    passed.user = e;
    passed.done = ended;
    dl_simgrid()->cm02_flow(e->path, n, &passed);
}

/* The first of SimGrid's timers at a date lets all of ours happen that are due, in the order in which they were set. */
static void fire_due(void *user, uint32_t ignored)
{
    (void)ignored;
    struct engine *const e = user;
    while (dl_events_next_s(e->timers) <= dl_simgrid()->cm02_now_s()) {
        dl_events_open(e->timers);
        for (uint32_t id; dl_events_take(e->timers, &id);) forget(e, id);
    }
}

static void timer(struct dl_engine *engine, double date_s, dl_event_fn fire, void *user, uint32_t tag)
{
    struct engine *const e = (struct engine *)engine;
    const double due_s = fmax(date_s, dl_simgrid()->cm02_now_s());
    dl_events_add(e->timers, due_s, remember(e, (struct waiting){.done = fire, .user = user, .tag = tag}));
    dl_simgrid()->cm02_timer(due_s, fire_due, e, 0);
}

static void set_bandwidth(struct dl_engine *engine, uint32_t link, double bytes_per_s)
{
    (void)engine;
    dl_simgrid()->cm02_set_bandwidth(link, bytes_per_s);
}

static double wanted_bytes_per_s(struct dl_engine *engine, uint32_t link)
{
    (void)engine;
    return dl_simgrid()->cm02_used(link);
}

static double now_s(const struct dl_engine *engine)
{
    (void)engine;
    return dl_simgrid()->cm02_now_s();
}

static size_t run(struct dl_engine *engine)
{
    dl_simgrid()->cm02_run();
    return ((struct engine *)engine)->n_live;
}

static uint64_t n_events(const struct dl_engine *engine) { return ((const struct engine *)engine)->n_events; }

static void destroy(struct dl_engine *engine)
{
    struct engine *const e = (struct engine *)engine;
    dl_events_free(e->timers);
    dl_free(e->path);
    dl_free(e->waiting);
    dl_free(e);
}

const struct dl_engine_kind dl_engine_cm02 = {
    .name = "cm02",
    .doc = "SimGrid's CM02, the reference of the tests; slower, no split paths",
    .whole_weights = true,
    .link_bytes = 680, /* SimGrid's own links, measured as in own_memory.c */
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
