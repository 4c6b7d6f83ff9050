/* engine.h - simulated time and the bundles that share the network.
 *
 * A bundle is a flow over weighted links: it pays a latency, then moves its bytes at the rate that max-min fair sharing
 * gives it on all of its links at once (at rate r it takes weight x r of each link). Timers are all the rest of time.
 * SimGrid owns the clock. One process holds one simulation: what needs several forks. */
#ifndef DL_ENGINE_ENGINE_H
#define DL_ENGINE_ENGINE_H

#include <stdbool.h>

#include "sim/core/error.h"
#include "topologies/route.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*dl_event_fn)(void *user, uint32_t tag);
/* `done` is likely to be called soon: to fetch what it needs (dl_fetch), and nothing else. It comes nearer from call to
 * call: n_before is 3, 2, 1, then 0 when it is next, though any of these may be left out. So what was fetched at one of
 * them can be read at the next. */
typedef void (*dl_coming_fn)(dl_event_fn done, void *user, uint32_t tag, size_t n_before);

/* What is left of a bundle, and the links that it shall cross from now on: at first those that it crosses. */
struct dl_turn {
    const struct dl_hop *hops; /* those put here need to stay only until the function returns */
    size_t n_hops;
    double left_bytes;
};

struct dl_bundle {
    const struct dl_hop *hops;
    size_t n_hops;
    /* OPTIONAL: other bundles will take the same way, so its hops stay as they are as long as the engine, which keeps
     * its own number of the way here; 0 at first. NULL: hops are copied. */
    uint32_t *way;
    uint32_t n_posted; /* by its source at once, itself included, perhaps with thousands by others: what it leaves of
                          its links they may have a little later; 0: it is not posted */
    double latency_s;
    double bytes;                /* 0 is allowed: done after the latency */
    double rate_cap_bytes_per_s; /* INFINITY: none */
    double alone_bytes_per_s; /* what its links give it while nobody else is there; only the analytic engine reads it */
    dl_event_fn done;
    /* OPTIONAL: called if a link that it crosses changes, and, while one of them has failed, whenever any does. */
    void (*reroute)(void *user, uint32_t tag, struct dl_turn *turn);
    void *user;
    uint32_t tag;
};

struct dl_engine_link {
    double bandwidth_bytes_per_s;
    bool fatpipe; /* every bundle may have the whole bandwidth: sharing does not slow it */
};

/* Of so many links with these rates, for dl_free. */
struct dl_engine_link *dl_engine_links(const double *bytes_per_s, size_t n_links);

struct dl_engine;

struct dl_engine_kind {
    const char *name, *doc;
    bool whole_weights; /* cannot split a bundle over paths: weights must be integers; nor route it anew */
    bool alone;         /* every bundle as if no other were there: one replica stands for all, no link may change */
    double link_bytes;  /* of this computer's memory that a link takes */
    /* The links must outlive it, unchanged. An engine that is alone needs none. */
    struct dl_engine *(*create)(const struct dl_engine_link *links, size_t n_links);
    void (*start)(struct dl_engine *engine, const struct dl_bundle *bundle);
    void (*timer)(struct dl_engine *engine, double date_s, dl_event_fn fire, void *user, uint32_t tag);
    /* From now on; 0 stops every bundle that still crosses the link, after those that can have been routed anew, until
     * it is raised again. NULL: links stay as they are. */
    void (*set_bandwidth)(struct dl_engine *engine, uint32_t link, double bandwidth_bytes_per_s);
    double (*wanted_bytes_per_s)(struct dl_engine *engine, uint32_t link); /* for routing: see struct dl_load */
    double (*now_s)(const struct dl_engine *engine);
    /* Until nothing is left to happen. Returns the number of bundles that can never end. */
    size_t (*run)(struct dl_engine *engine);
    uint64_t (*n_events)(const struct dl_engine *engine);
    void (*destroy)(struct dl_engine *engine);
};
/* The first so many share links; the analytic one, after them, does not. */
size_t dl_engine_count(void);
size_t dl_engine_sharing_count(void);
const struct dl_engine_kind *dl_engine_get(size_t index);
const struct dl_engine_kind *dl_engine_find(const char *name); /* NULL: none of that name */
extern const char *const dl_engine_names[];                    /* in the same order; ends with NULL */

struct dl_engine {
    const struct dl_engine_kind *kind;
    dl_coming_fn coming; /* OPTIONAL; an engine need not call it */
    /* OPTIONAL: called at every instant, to show that something goes on. */
    void (*progress)(double now_s, uint64_t n_events);
};

#ifdef __cplusplus
}
#endif

#endif
