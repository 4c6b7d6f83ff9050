/* engine_alone.c - the analytic engine: every bundle as if it were alone on the machine.
 *
 * What remains of a training step is a longest path through programs whose sends and exchanges cost
 * alpha + bytes x beta; it is simulated in the order of time, because what is under way between stages slows the work
 * beside it. There is no SimGrid and nobody shares anything, so that all there is to do is to call what comes next: a
 * heap of dates. Events of one date come in the order in which they were added. Several engines may live in one
 * process. */
#include <math.h>

#include "sim/engine/dates.h"
#include "sim/engine/engines.h"

/* Of a topology; links that are used count with what uses them. Measured as in own_memory.c. */
enum { link_bytes = 36 };
enum { none = 0xffffffffu };

/* A timer, or a bundle: it waits for its latency, then it moves. */
struct slot {
    dl_event_fn done;
    void *user;
    double bytes, rate; /* bytes > 0: they are moved after the latency */
    uint32_t tag;
    uint32_t next_free;
    bool is_bundle;
};

struct engine {
    struct dl_engine base;
    double now_s;
    struct dl_dates dates; /* of slots */
    uint64_t n_events;
    struct slot *slots;
    size_t n_slots, slots_capacity;
    uint32_t free_slot;
    uint32_t *moving; /* slots of bundles that will move from this instant on */
    size_t n_moving, moving_capacity;
    size_t n_live; /* bundles begun and not ended */
};

static struct engine *engine_of(struct dl_engine *e) { return (struct engine *)e; }

/* ---- what happens ---- */

static uint32_t new_slot(struct engine *e)
{
    const uint32_t id = e->free_slot;
    if (id != none) {
        e->free_slot = e->slots[id].next_free;
        return id;
    }
    DL_GROW(e->slots, e->n_slots, e->slots_capacity);
    return (uint32_t)e->n_slots++;
}

static void timer(struct dl_engine *base, double date_s, dl_event_fn fire, void *user, uint32_t tag)
{
    struct engine *const e = engine_of(base);
    const uint32_t id = new_slot(e);
    e->slots[id] = (struct slot){.done = fire, .user = user, .tag = tag};
    dl_dates_add(&e->dates, fmax(date_s, e->now_s), id);
}

static void move(struct engine *e, uint32_t id)
{
    DL_GROW(e->moving, e->n_moving, e->moving_capacity);
    e->moving[e->n_moving++] = id;
}

/* Nothing to move, or nothing to move over and no cap: only the latency counts. */
static void start(struct dl_engine *base, const struct dl_bundle *b)
{
    struct engine *const e = engine_of(base);
    const uint32_t id = new_slot(e);
    const bool is_instant = b->bytes <= 0 || (b->n_hops == 0 && isinf(b->rate_cap_bytes_per_s));
    e->n_live++;
    e->slots[id] = (struct slot){.done = b->done,
                                 .user = b->user,
                                 .tag = b->tag,
                                 .bytes = is_instant ? 0 : b->bytes,
                                 .rate = fmin(b->rate_cap_bytes_per_s, b->alone_bytes_per_s),
                                 .is_bundle = true};
    if (is_instant || b->latency_s > 0)
        dl_dates_add(&e->dates, e->now_s + b->latency_s, id);
    else
        move(e, id);
}

/* After all else of the instant. */
static void move_all(struct engine *e)
{
    for (size_t i = 0; i < e->n_moving; i++) {
        struct slot *const s = &e->slots[e->moving[i]];
        assert(s->rate > 0);
        const double end_s = e->now_s + s->bytes / s->rate;
        s->bytes = 0;
        dl_dates_add(&e->dates, end_s, e->moving[i]);
    }
    e->n_moving = 0;
}

static void fire(struct engine *e, uint32_t id)
{
    const struct slot s = e->slots[id];
    e->n_events++;
    if (s.bytes > 0) {
        move(e, id);
        return;
    }
    e->n_live -= s.is_bundle;
    e->slots[id].next_free = e->free_slot;
    e->free_slot = id;
    if (s.done) s.done(s.user, s.tag);
}

/* What is added meanwhile, even at the same date, is of a later instant. */
static void advance(struct engine *e)
{
    const uint64_t later = dl_dates_later(&e->dates);
    e->now_s = e->dates.heap[0].date_s;
    while (e->dates.n && e->dates.heap[0].date_s == e->now_s && e->dates.heap[0].order < later) {
        const struct dl_date next = dl_dates_take(&e->dates);
        fire(e, dl_date_number(&next));
    }
    move_all(e);
    if (e->base.progress) e->base.progress(e->now_s, e->n_events);
}

static size_t run(struct dl_engine *base)
{
    struct engine *const e = engine_of(base);
    move_all(e);
    while (e->dates.n && isfinite(e->dates.heap[0].date_s)) advance(e);
    return e->n_live;
}

/* ---- from the outside ---- */

static struct dl_engine *create(const struct dl_engine_link *links, size_t n_links)
{
    (void)links, (void)n_links; /* bundles say what their links give them */
    struct engine *const e = dl_alloc(sizeof *e);
    e->base.kind = &dl_engine_alone;
    e->free_slot = none;
    return &e->base;
}

static double nothing_wanted(struct dl_engine *e, uint32_t link)
{
    (void)e, (void)link;
    return 0; /* nobody else is there */
}

static double now_s(const struct dl_engine *e) { return ((const struct engine *)e)->now_s; }

static uint64_t n_events(const struct dl_engine *e) { return ((const struct engine *)e)->n_events; }

static void destroy(struct dl_engine *base)
{
    struct engine *const e = engine_of(base);
    dl_free(e->dates.heap);
    dl_free(e->slots);
    dl_free(e->moving);
    dl_free(e);
}

const struct dl_engine_kind dl_engine_alone = {
    .name = "analytic",
    .doc = "latency and bandwidth on the routes; a collective shares links only with itself",
    .alone = true,
    .link_bytes = link_bytes,
    .create = create,
    .start = start,
    .timer = timer,
    .wanted_bytes_per_s = nothing_wanted,
    .now_s = now_s,
    .run = run,
    .n_events = n_events,
    .destroy = destroy,
};
