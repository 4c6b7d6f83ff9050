/* network_text.h - for tests of networks: one built from a short text, and its graph as read from the names of its
 * links. */
#ifndef DL_TESTS_NETWORK_TEXT_H
#define DL_TESTS_NETWORK_TEXT_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/system_text.h"
#include "topologies/networks.h"

#define LINK_OF_A_TEST "'bandwidth_bytes_per_s':25e9,'latency_s':1e-6,'link':'test'"

/* What a test needs of one network; the devices of its nodes are the endpoints. */
struct network_fixture {
    struct fixture f;
    struct dl_topology *t;
    const struct dl_network *net;
    struct dl_route route; /* of the last call of find_route */
};

struct shape {
    const char *kind;
    unsigned nodes, endpoints_per_node;
    const char *options; /* JSON without the braces, with ' for " */
};

static inline enum dl_status network_try_open(struct network_fixture *n, const struct shape *s)
{
    char text[8192];
    const int length =
        snprintf(text, sizeof text,
                 "{'schema':'dlsim/system/1','source':'a test','nodes':%u,'node':{'device':'none','devices':%u,"
                 "'parts':[]},'network':{'kind':'%s'," LINK_OF_A_TEST "%s%s}}",
                 s->nodes, s->endpoints_per_node, s->kind, *s->options ? "," : "", s->options);
    ck_assert(length > 0 && (size_t)length < sizeof text);
    *n = (struct network_fixture){.t = NULL};
    fixture_open(&n->f, text);
    return dl_topology_read(n->f.doc, n->f.arena, &n->t, &n->f.err);
}

static inline void network_open(struct network_fixture *n, const struct shape *s)
{
    ck_assert_msg(!network_try_open(n, s), "%s", n->f.err.text);
    n->net = &n->t->network;
}

static inline void network_close(struct network_fixture *n)
{
    dl_route_release(&n->route);
    dl_topology_free(n->t);
    fixture_close(&n->f);
}

static inline const struct dl_route *find_route(struct network_fixture *n, uint32_t from, uint32_t to, uint64_t key,
                                                const struct dl_load *load)
{
    dl_route_clear(&n->route);
    if (n->net->kind->route(n->net, from, to, key, load, &n->route, &n->f.err)) ck_abort_msg("%s", n->f.err.text);
    return &n->route;
}

/* Links that a message crosses, on average. */
static inline double hops_of(const struct dl_route *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n_hops; i++) sum += r->hops[i].weight;
    return sum;
}

/* The load of each link of the network when every endpoint sends one byte to every other. */
static inline double *load_of_all_to_all(struct network_fixture *n)
{
    double *const load = dl_alloc(n->net->n_links * sizeof *load);
    for (uint32_t from = 0; from < n->net->n_endpoints; from++)
        for (uint32_t to = 0; to < n->net->n_endpoints; to++) {
            if (from == to) continue;
            const struct dl_route *const r = find_route(n, from, to, 0, NULL);
            for (size_t i = 0; i < r->n_hops; i++) load[r->hops[i].link - n->net->first_link] += r->hops[i].weight;
        }
    return load;
}

enum { end_bytes = 96 };

/* Vertices are the distinct ends of "a -> b", in alphabetical order. */
struct drawing {
    uint32_t n_vertices, n_links;
    char (*vertices)[end_bytes];
    uint32_t *from, *to; /* per link */
};

static inline void ends_of_link(const struct dl_network *net, uint32_t link, char *from, char *to)
{
    char name[2 * end_bytes + 32];
    net->kind->name_link(net, link, name, sizeof name);
    if (sscanf(name, "%95s -> %95s", from, to) != 2) ck_abort_msg("'%s' must read 'a -> b'", name);
}

static inline int compare_text(const void *a, const void *b) { return strcmp(a, b); }

static inline uint32_t vertex_of(const struct drawing *d, const char *name)
{
    const char(*const found)[end_bytes] = bsearch(name, d->vertices, d->n_vertices, end_bytes, compare_text);
    return found ? (uint32_t)(found - (const char(*)[end_bytes])d->vertices) : UINT32_MAX;
}

static inline void draw(struct drawing *d, const struct dl_network *net)
{
    *d = (struct drawing){.n_links = net->n_links};
    char(*const ends)[end_bytes] = dl_alloc((size_t)2 * net->n_links * end_bytes);
    for (uint32_t l = 0; l < net->n_links; l++) ends_of_link(net, l, ends[2 * l], ends[2 * l + 1]);
    d->vertices = dl_alloc((size_t)2 * net->n_links * end_bytes);
    memcpy(d->vertices, ends, (size_t)2 * net->n_links * end_bytes);
    qsort(d->vertices, 2 * (size_t)net->n_links, end_bytes, compare_text);
    for (uint32_t i = 0; i < 2 * net->n_links; i++)
        if (d->n_vertices == 0 || strcmp(d->vertices[i], d->vertices[d->n_vertices - 1]))
            memmove(d->vertices[d->n_vertices++], d->vertices[i], end_bytes);
    d->from = dl_alloc(net->n_links * sizeof *d->from);
    d->to = dl_alloc(net->n_links * sizeof *d->to);
    for (uint32_t l = 0; l < net->n_links; l++) {
        d->from[l] = vertex_of(d, ends[2 * l]);
        d->to[l] = vertex_of(d, ends[2 * l + 1]);
    }
    dl_free(ends);
}

static inline void drawing_release(struct drawing *d)
{
    dl_free(d->vertices);
    dl_free(d->from);
    dl_free(d->to);
}

/* Hops from one vertex to all others by relaxing every link until nothing changes: slow, and not how any network does
 * it. */
static inline void distances_from(const struct drawing *d, uint32_t vertex, uint32_t *distance)
{
    for (uint32_t v = 0; v < d->n_vertices; v++) distance[v] = UINT32_MAX - 1;
    distance[vertex] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t l = 0; l < d->n_links; l++) {
            if (distance[d->from[l]] + 1 >= distance[d->to[l]]) continue;
            distance[d->to[l]] = distance[d->from[l]] + 1;
            changed = true;
        }
    }
}

#endif
