#include "sim/engine/tap.h"

#include <math.h>
#include <string.h>

#include "sim/core/memory.h"

enum { none = 0xffffffffu };
static const double first_width_s = 1e-6;

/* A bundle on its way. */
struct watched {
    dl_event_fn done;
    void (*reroute)(void *user, uint32_t tag, struct dl_turn *turn);
    void *user;
    uint32_t tag;
    struct dl_hop *hops;
    size_t n_hops;
    double bytes, since_s;
    uint32_t next_free;
};

struct tap {
    struct dl_engine base;
    struct dl_engine_kind kind;
    struct dl_engine *inner;
    double **bins; /* by link; NULL: nothing yet */
    size_t n_links;
    double width_s;
    struct watched *watched;
    size_t n_watched, watched_capacity;
    uint32_t free_watched;
};

static struct tap *tap_of(struct dl_engine *e) { return (struct tap *)e; }
static const struct tap *const_tap_of(const struct dl_engine *e) { return (const struct tap *)e; }

/* ---- bins ---- */

static void join_pairs(double *bins)
{
    for (size_t i = 0; i < DL_TAP_BINS / 2; i++) bins[i] = bins[2 * i] + bins[2 * i + 1];
    memset(bins + DL_TAP_BINS / 2, 0, DL_TAP_BINS / 2 * sizeof *bins);
}

static void widen(struct tap *t)
{
    for (size_t i = 0; i < t->n_links; i++)
        if (t->bins[i]) join_pairs(t->bins[i]);
    t->width_s *= 2;
}

static void spread(const struct tap *t, double *bins, double from_s, double to_s, double bytes)
{
    const size_t first = (size_t)(from_s / t->width_s), last = (size_t)(to_s / t->width_s);
    if (first == last) {
        bins[first] += bytes;
        return;
    }
    for (size_t i = first; i <= last; i++) {
        const double begin_s = fmax((double)i * t->width_s, from_s), end_s = fmin((double)(i + 1) * t->width_s, to_s);
        bins[i] += bytes * fmax(end_s - begin_s, 0) / (to_s - from_s);
    }
}

static void keep(struct tap *t, const struct watched *w)
{
    const double now_s = t->inner->kind->now_s(t->inner);
    while (now_s >= t->width_s * DL_TAP_BINS) widen(t);
    for (size_t i = 0; i < w->n_hops; i++) {
        double **const bins = &t->bins[w->hops[i].link];
        if (!*bins) *bins = dl_alloc(DL_TAP_BINS * sizeof **bins);
        spread(t, *bins, w->since_s, now_s, w->bytes * w->hops[i].weight);
    }
}

double dl_tap_width_s(const struct dl_engine *e) { return const_tap_of(e)->width_s; }

const double *dl_tap_bins(const struct dl_engine *e, uint32_t link) { return const_tap_of(e)->bins[link]; }

/* ---- the engine ---- */

static void keep_hops(struct watched *w, const struct dl_hop *hops, size_t n_hops)
{
    w->hops = dl_alloc(n_hops * sizeof *w->hops);
    w->n_hops = n_hops;
    for (size_t i = 0; i < n_hops; i++) w->hops[i] = hops[i];
}

static void ended(void *user, uint32_t id)
{
    struct tap *const t = user;
    const struct watched w = t->watched[id]; /* a copy: its end may start more bundles */
    keep(t, &w);
    dl_free(w.hops);
    t->watched[id] = (struct watched){.next_free = t->free_watched};
    t->free_watched = id;
    if (w.done) w.done(w.user, w.tag);
}

/* What it has moved so far is kept for the links that it leaves. */
static void reroute(void *user, uint32_t id, struct dl_turn *turn)
{
    struct tap *const t = user;
    struct watched *const w = &t->watched[id];
    struct watched moved = *w;
    w->reroute(w->user, w->tag, turn);
    moved.bytes = fmax(w->bytes - turn->left_bytes, 0);
    if (moved.bytes > 0) keep(t, &moved);
    dl_free(w->hops);
    keep_hops(w, turn->hops, turn->n_hops);
    w->bytes = turn->left_bytes;
    w->since_s = t->inner->kind->now_s(t->inner);
}

static uint32_t new_watched(struct tap *t)
{
    const uint32_t id = t->free_watched;
    if (id != none) {
        t->free_watched = t->watched[id].next_free;
        return id;
    }
    DL_GROW(t->watched, t->n_watched, t->watched_capacity);
    return (uint32_t)t->n_watched++;
}

static void start(struct dl_engine *e, const struct dl_bundle *bundle)
{
    struct tap *const t = tap_of(e);
    const uint32_t id = new_watched(t);
    t->watched[id] = (struct watched){.done = bundle->done,
                                      .reroute = bundle->reroute,
                                      .user = bundle->user,
                                      .tag = bundle->tag,
                                      .bytes = bundle->bytes,
                                      .since_s = t->inner->kind->now_s(t->inner)};
    keep_hops(&t->watched[id], bundle->hops, bundle->n_hops);
    struct dl_bundle mine = *bundle;
    mine.done = ended;
    mine.reroute = bundle->reroute ? reroute : NULL;
    mine.user = t;
    mine.tag = id;
    t->inner->kind->start(t->inner, &mine);
}

static void timer(struct dl_engine *e, double date_s, dl_event_fn fire, void *user, uint32_t tag)
{
    tap_of(e)->inner->kind->timer(tap_of(e)->inner, date_s, fire, user, tag);
}

static void set_bandwidth(struct dl_engine *e, uint32_t link, double bytes_per_s)
{
    tap_of(e)->inner->kind->set_bandwidth(tap_of(e)->inner, link, bytes_per_s);
}

static double wanted_bytes_per_s(struct dl_engine *e, uint32_t link)
{
    return tap_of(e)->inner->kind->wanted_bytes_per_s(tap_of(e)->inner, link);
}

static double now_s(const struct dl_engine *e) { return const_tap_of(e)->inner->kind->now_s(const_tap_of(e)->inner); }

static size_t run(struct dl_engine *e) { return tap_of(e)->inner->kind->run(tap_of(e)->inner); }

static uint64_t n_events(const struct dl_engine *e)
{
    return const_tap_of(e)->inner->kind->n_events(const_tap_of(e)->inner);
}

static void destroy(struct dl_engine *e)
{
    struct tap *const t = tap_of(e);
    t->inner->kind->destroy(t->inner);
    for (size_t i = 0; i < t->n_links; i++) dl_free(t->bins[i]);
    for (size_t i = 0; i < t->n_watched; i++) dl_free(t->watched[i].hops); /* those that never ended */
    dl_free(t->bins);
    dl_free(t->watched);
    dl_free(t);
}

struct dl_engine *dl_tap_new(struct dl_engine *inner, size_t n_links)
{
    struct tap *const t = dl_alloc(sizeof *t);
    t->kind = (struct dl_engine_kind){.name = inner->kind->name,
                                      .doc = inner->kind->doc,
                                      .whole_weights = inner->kind->whole_weights,
                                      .start = start,
                                      .timer = timer,
                                      .set_bandwidth = set_bandwidth,
                                      .wanted_bytes_per_s = wanted_bytes_per_s,
                                      .now_s = now_s,
                                      .run = run,
                                      .n_events = n_events,
                                      .destroy = destroy};
    t->base.kind = &t->kind;
    t->inner = inner;
    t->bins = dl_alloc(n_links * sizeof *t->bins);
    t->n_links = n_links;
    t->width_s = first_width_s;
    t->free_watched = none;
    return &t->base;
}
