/* network_graph.c - any graph given as a list of links; shortest paths by hops, equal ones by hash.
 *
 * Vertices are the endpoints, then the switches; all of them forward. The distance of each vertex from each endpoint is
 * found once, breadth first, when the network is built: a route then only walks downhill. */
#include "topologies/network_parts.h"

#include <assert.h>
#include <stdio.h>

enum { max_vertices = 4096, unreachable = 0xffff };

struct options {
    struct dl_cable cable;
    int64_t switches;
    struct dl_json links;
};
static const struct options defaults;
static const struct dl_field fields[] = {
    DL_CABLE_FIELDS(struct options, cable),
    {"switches", DL_INT, offsetof(struct options, switches), 0, max_vertices, true, NULL,
     "vertices that are no endpoints; 0 if absent"},
    {"links", DL_LIST, offsetof(struct options, links), 0, 0, false, NULL,
     "[a, b] or [a, b, bandwidth_bytes_per_s, latency_s]: endpoints count from 0, then switches"},
};

/* Edge e has the links 2e (a to b) and 2e + 1 (b to a). */
struct edge {
    uint32_t a, b;
};

struct graph {
    uint32_t n_vertices, n_edges;
    struct edge *edges;
    uint32_t *first;    /* vertex -> index into out; n_vertices + 1 entries */
    uint32_t *out;      /* the links that leave it, in the order of the file */
    uint16_t *distance; /* [endpoint * n_vertices + vertex] in hops to that endpoint */
};

static uint32_t source_of(const struct graph *g, uint32_t link)
{
    return link % 2 ? g->edges[link / 2].b : g->edges[link / 2].a;
}

static uint32_t target_of(const struct graph *g, uint32_t link)
{
    return link % 2 ? g->edges[link / 2].a : g->edges[link / 2].b;
}

static enum dl_status read_vertex(struct dl_json link, size_t place, uint32_t n_vertices, uint32_t *vertex,
                                  struct dl_error *err)
{
    const json_t *const item = json_array_get(link.value, place);
    const json_int_t index = json_integer_value(item);
    if (!json_is_integer(item) || index < 0 || index >= n_vertices)
        return dl_fail(err, DL_RANGE, link.where, "item %zu must be a vertex from 0 to %u", place, n_vertices - 1);
    *vertex = (uint32_t)index;
    return DL_OK;
}

static enum dl_status read_number(struct dl_json link, size_t place, double min, double max, double *out,
                                  struct dl_error *err)
{
    const json_t *const item = json_array_get(link.value, place);
    const double x = json_number_value(item);
    if (!json_is_number(item) || !(x >= min && x <= max))
        return dl_fail(err, DL_RANGE, link.where, "item %zu must be a number in [%g, %g]", place, min, max);
    *out = x;
    return DL_OK;
}

static enum dl_status read_link(struct dl_network *net, struct dl_json link, struct dl_link_spec spec,
                                struct edge *edge, struct dl_error *err)
{
    const struct graph *const g = net->state;
    const size_t n = json_array_size(link.value);
    if (!json_is_array(link.value) || (n != 2 && n != 4))
        return dl_fail(err, DL_TYPE, link.where, "must be [a, b] or [a, b, bandwidth_bytes_per_s, latency_s]");
    if (read_vertex(link, 0, g->n_vertices, &edge->a, err) || read_vertex(link, 1, g->n_vertices, &edge->b, err))
        return err->status;
    if (edge->a == edge->b) return dl_fail(err, DL_IMPOSSIBLE, link.where, "joins vertex %u with itself", edge->a);
    if (n == 4 && (read_number(link, 2, 1, 1e18, &spec.bandwidth_bytes_per_s, err) ||
                   read_number(link, 3, 0, 1, &spec.latency_s, err)))
        return err->status;
    dl_network_add_link(net, &spec);
    dl_network_add_link(net, &spec);
    return DL_OK;
}

/* Count, sum up, fill. */
static void list_links_by_source(struct graph *g, struct dl_arena *arena)
{
    const uint32_t n_links = 2 * g->n_edges;
    g->first = dl_arena_alloc(arena, (g->n_vertices + 1) * sizeof *g->first);
    g->out = dl_arena_alloc(arena, n_links * sizeof *g->out);
    for (uint32_t link = 0; link < n_links; link++) g->first[source_of(g, link) + 1]++;
    for (uint32_t v = 0; v < g->n_vertices; v++) g->first[v + 1] += g->first[v];
    uint32_t *const filled = dl_alloc(g->n_vertices * sizeof *filled);
    for (uint32_t link = 0; link < n_links; link++) {
        const uint32_t v = source_of(g, link);
        g->out[g->first[v] + filled[v]++] = link;
    }
    dl_free(filled);
}

static void find_distances(const struct graph *g, uint32_t endpoint, uint16_t *distance, uint32_t *queue)
{
    for (uint32_t v = 0; v < g->n_vertices; v++) distance[v] = unreachable;
    distance[endpoint] = 0;
    queue[0] = endpoint;
    for (uint32_t head = 0, tail = 1; head < tail; head++) {
        const uint32_t v = queue[head];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            const uint32_t next = target_of(g, g->out[i]);
            if (distance[next] != unreachable) continue;
            distance[next] = (uint16_t)(distance[v] + 1);
            queue[tail++] = next;
        }
    }
}

static enum dl_status read_links(struct dl_network *net, const struct options *o, struct graph *g,
                                 struct dl_arena *arena, struct dl_error *err)
{
    const size_t n = json_array_size(o->links.value);
    const struct dl_link_spec spec = {o->cable.bandwidth_bytes_per_s, o->cable.latency_s, o->cable.link_kind};
    if (dl_network_check_links(net, 2.0 * (double)n, err)) return err->status;
    g->n_edges = (uint32_t)n;
    g->edges = dl_arena_alloc(arena, n * sizeof *g->edges);
    for (size_t i = 0; i < n; i++)
        if (read_link(net, dl_json_element(o->links, i, arena), spec, &g->edges[i], err)) return err->status;
    return DL_OK;
}

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    const struct options *const o = options;
    const double n_vertices = net->n_endpoints + (double)o->switches;
    if (n_vertices > max_vertices)
        return dl_fail(err, DL_RANGE, net->where.where, "a graph may have at most %d vertices, here are %.0f",
                       max_vertices, n_vertices);
    struct graph *const g = dl_arena_alloc(arena, sizeof *g);
    g->n_vertices = (uint32_t)n_vertices;
    net->state = g;
    if (read_links(net, o, g, arena, err)) return err->status;
    list_links_by_source(g, arena);
    g->distance = dl_arena_alloc(arena, (size_t)net->n_endpoints * g->n_vertices * sizeof *g->distance);
    uint32_t *const queue = dl_alloc(g->n_vertices * sizeof *queue);
    for (uint32_t e = 0; e < net->n_endpoints; e++)
        find_distances(g, e, g->distance + (size_t)e * g->n_vertices, queue);
    dl_free(queue);
    return DL_OK;
}

static void name_vertex(const struct dl_network *net, uint32_t vertex, char *name, size_t bytes)
{
    if (vertex < net->n_endpoints)
        dl_network_endpoint_name(net, vertex, name, bytes);
    else
        snprintf(name, bytes, "switch%u", vertex - net->n_endpoints);
}

/* One of the links out of `at` that lead a hop nearer. */
static uint32_t choose_link(const struct graph *g, const uint16_t *distance, uint32_t at, uint64_t hash)
{
    uint32_t n_nearer = 0;
    for (uint32_t i = g->first[at]; i < g->first[at + 1]; i++)
        n_nearer += distance[target_of(g, g->out[i])] < distance[at];
    assert(n_nearer > 0); /* its distance came from there */
    uint32_t left = (uint32_t)(hash % n_nearer), i = g->first[at];
    for (;; i++)
        if (distance[target_of(g, g->out[i])] < distance[at] && left-- == 0) return g->out[i];
}

static enum dl_status route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                            const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    (void)load;
    const struct graph *const g = net->state;
    const uint16_t *const distance = g->distance + (size_t)to * g->n_vertices;
    if (distance[from] == unreachable) {
        char source[DL_MAX_NAME_BYTES], target[DL_MAX_NAME_BYTES];
        name_vertex(net, from, source, sizeof source);
        name_vertex(net, to, target, sizeof target);
        return dl_fail(err, DL_IMPOSSIBLE, net->where.where,
                       "no way from vertex %u (%s) to vertex %u (%s): 'links' must join them", from, source, to,
                       target);
    }
    for (uint32_t at = from; at != to;) {
        const uint32_t link = choose_link(g, distance, at, dl_network_hash(from, to, key, at));
        dl_network_hop(net, out, link, 1);
        at = target_of(g, link);
    }
    return DL_OK;
}

static void name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes)
{
    const struct graph *const g = net->state;
    const uint32_t from = source_of(g, link), to = target_of(g, link);
    uint32_t cable = 0, n_cables = 0;
    for (uint32_t i = g->first[from]; i < g->first[from + 1]; i++) {
        if (g->out[i] == link) cable = n_cables;
        n_cables += target_of(g, g->out[i]) == to;
    }
    char source[DL_MAX_NAME_BYTES], target[DL_MAX_NAME_BYTES];
    name_vertex(net, from, source, sizeof source);
    name_vertex(net, to, target, sizeof target);
    dl_network_cable_name(source, target, cable, n_cables, name, bytes);
}

static struct dl_link_ends ends(const struct dl_network *net, uint32_t link)
{
    const struct graph *const g = net->state;
    return (struct dl_link_ends){source_of(g, link), target_of(g, link)};
}

const struct dl_network_kind dl_network_graph = {
    .name = "graph",
    .doc = "any graph given as a list of links, shortest paths",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
    .route = route,
    .name_link = name_link,
    .ends = ends,
    .endpoints_forward = true,
};
