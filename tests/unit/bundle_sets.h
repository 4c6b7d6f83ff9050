/* bundle_sets.h - random sets of bundles over random graphs, for tests that compare solvers.
 *
 * Links are the edges of a graph and a bundle takes a walk through it, or two walks that share its bytes. Dates, sizes
 * and bandwidths come half of the time from a few values, so that ties and simultaneous starts are frequent. */
#ifndef DL_TESTS_BUNDLE_SETS_H
#define DL_TESTS_BUNDLE_SETS_H

#include <math.h>
#include <string.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"
#include "sim/engine/engine.h"

enum { most_links = 24, most_vertices = 8, most_bundles = 14, most_hops = 12, most_changes = 8 };

struct timed_bundle {
    struct dl_bundle bundle; /* its tag is its index in the set */
    struct dl_hop hops[most_hops];
    double start_s;
};

/* From date_s on the link has this bandwidth. */
struct change {
    double date_s, bytes_per_s;
    uint32_t link;
};

struct bundle_set {
    struct dl_engine_link links[most_links];
    uint32_t tail[most_links], head[most_links]; /* vertices */
    struct timed_bundle bundles[most_bundles];
    struct change changes[most_changes];
    size_t n_links, n_bundles, n_changes;
};

enum weights { WHOLE_WEIGHTS, SPLIT_WEIGHTS };

static inline bool chance(gsl_rng *random, double probability) { return gsl_rng_uniform(random) < probability; }

static inline uint32_t below(gsl_rng *random, uint32_t n) { return (uint32_t)gsl_rng_uniform_int(random, n); }

/* One of three round values or anything, in [low, 8 low). */
static inline double some_value(gsl_rng *random, double low)
{
    static const double round_factors[] = {1, 2, 4};
    if (chance(random, 0.5)) return low * round_factors[below(random, DL_COUNT(round_factors))];
    return low * (1 + 7 * gsl_rng_uniform(random));
}

static const double some_bandwidth = 1e9, some_size = 1e6, some_latency = 1e-5, some_date = 5e-4;

/* A cycle through all vertices, so that no walk gets stuck, and more edges at random. */
static inline void draw_graph(struct bundle_set *set, gsl_rng *random)
{
    const uint32_t n_vertices = 3 + below(random, most_vertices - 2);
    set->n_links = n_vertices + below(random, most_links - n_vertices + 1);
    for (uint32_t i = 0; i < set->n_links; i++) {
        const bool fatpipe = chance(random, 0.15);
        set->links[i] = (struct dl_engine_link){some_value(random, some_bandwidth), fatpipe};
        set->tail[i] = i < n_vertices ? i : below(random, n_vertices);
        set->head[i] = i < n_vertices ? (i + 1) % n_vertices : below(random, n_vertices);
    }
}

static inline uint32_t draw_edge_from(const struct bundle_set *set, uint32_t vertex, gsl_rng *random)
{
    for (;;) {
        const uint32_t link = below(random, (uint32_t)set->n_links);
        if (set->tail[link] == vertex) return link;
    }
}

/* A link crossed again counts again, but for a fatpipe: SimGrid counts that once. */
static inline void cross(const struct bundle_set *set, struct timed_bundle *b, uint32_t link, double weight)
{
    size_t i = 0;
    while (i < b->bundle.n_hops && b->hops[i].link != link) i++;
    if (i == b->bundle.n_hops)
        b->hops[b->bundle.n_hops++] = (struct dl_hop){link, weight};
    else if (!set->links[link].fatpipe)
        b->hops[i].weight += weight;
}

static inline void draw_walk(const struct bundle_set *set, struct timed_bundle *b, double weight, gsl_rng *random)
{
    const uint32_t length = 1 + below(random, most_hops / 2);
    uint32_t vertex = set->tail[below(random, (uint32_t)set->n_links)];
    for (uint32_t i = 0; i < length; i++) {
        const uint32_t link = draw_edge_from(set, vertex, random);
        cross(set, b, link, weight);
        vertex = set->head[link];
    }
}

static inline void draw_bundle(struct bundle_set *set, enum weights weights, gsl_rng *random)
{
    struct timed_bundle *const b = &set->bundles[set->n_bundles];
    b->bundle = (struct dl_bundle){.hops = b->hops,
                                   .latency_s = chance(random, 0.3) ? 0 : some_value(random, some_latency),
                                   .bytes = chance(random, 0.07) ? 0 : some_value(random, some_size),
                                   .rate_cap_bytes_per_s =
                                       chance(random, 0.25) ? some_value(random, some_bandwidth / 4) : INFINITY,
                                   .tag = (uint32_t)set->n_bundles++};
    b->start_s = chance(random, 0.3) ? 0 : some_value(random, some_date);
    const double first = weights == WHOLE_WEIGHTS ? 1 : 0.05 + 0.9 * gsl_rng_uniform(random);
    draw_walk(set, b, first, random);
    if (weights == SPLIT_WEIGHTS) draw_walk(set, b, 1 - first, random);
}

static inline void draw_set(struct bundle_set *set, uint64_t number, enum weights weights)
{
    gsl_rng *const random = dl_random_new(1, weights == WHOLE_WEIGHTS ? "whole" : "split", number);
    memset(set, 0, sizeof *set);
    draw_graph(set, random);
    const uint32_t n_bundles = 1 + below(random, most_bundles);
    for (uint32_t i = 0; i < n_bundles; i++) draw_bundle(set, weights, random);
    gsl_rng_free(random);
}

/* SimGrid does not say which of two timers of the same date comes first, so a link changes only once, and back. */
static inline bool is_changed(const struct bundle_set *set, uint32_t link)
{
    for (size_t i = 0; i < set->n_changes; i++)
        if (set->changes[i].link == link) return true;
    return false;
}

/* Links that get another bandwidth, up to `most` times their own, or fail, and are as before later: every bundle can
 * end. */
static inline void draw_changes(struct bundle_set *set, uint64_t number, double most)
{
    gsl_rng *const random = dl_random_new(1, "changes", number);
    const uint32_t n_pairs = 1 + below(random, most_changes / 2);
    for (uint32_t i = 0; i < n_pairs; i++) {
        const uint32_t link = below(random, (uint32_t)set->n_links);
        if (is_changed(set, link)) continue;
        const double date_s = some_value(random, some_date);
        const double before = set->links[link].bandwidth_bytes_per_s;
        const double then = chance(random, 0.4) ? 0 : some_value(random, before * most / 8);
        set->changes[set->n_changes++] = (struct change){date_s, then, link};
        set->changes[set->n_changes++] = (struct change){date_s + some_value(random, some_date), before, link};
    }
    gsl_rng_free(random);
}

#endif
