#include "topologies/machine_graph.h"

#include <math.h>

#include "sim/core/random.h"
#include "topologies/topology.h"

enum { none = 0xffffffffu };

/* A way to be looked at, the cheapest first. */
struct open {
    double cost;
    uint32_t vertex;
};

struct dl_machine_graph {
    uint32_t n_vertices, first_of_network;
    uint32_t *first, *out; /* the links out of vertex v: out[first[v]] to out[first[v + 1] - 1] */
    uint32_t *target;      /* by link */
    uint32_t *endpoint;    /* of a vertex of a node; none: it has none */
    uint32_t *owner;       /* of an endpoint: the vertex of its node */
    double *cost;          /* from the source, by vertex */
    uint32_t *by_link;     /* that a vertex is reached by; none: by the step between a NIC and its endpoint */
    uint32_t *by_vertex;   /* the vertex before it */
    bool *done;
    struct open *heap;
    size_t n_heap, heap_capacity;
    uint32_t *way;
    size_t n_way, way_capacity;
};

/* ---- making ---- */

static struct dl_link_ends ends_in_node(const struct dl_topology *t, uint32_t link)
{
    const uint32_t per_node = 2 * (uint32_t)t->node.n_edges, local = link % per_node;
    const uint32_t first = link / per_node * (uint32_t)t->node.n_vertices;
    const struct dl_edge *const edge = &t->node.edges[local / 2];
    return local % 2 ? (struct dl_link_ends){first + edge->b, first + edge->a}
                     : (struct dl_link_ends){first + edge->a, first + edge->b};
}

static struct dl_link_ends ends_of(const struct dl_machine_graph *g, const struct dl_topology *t, uint32_t link)
{
    if (!t->network.kind || link < t->network.first_link) return ends_in_node(t, link);
    struct dl_link_ends at = t->network.kind->ends(&t->network, link - t->network.first_link);
    at.from += g->first_of_network;
    at.to += g->first_of_network;
    return at;
}

static uint32_t vertex_of_endpoint(const struct dl_topology *t, uint32_t endpoint)
{
    const uint32_t per_node = t->network.endpoints_per_node, place = endpoint % per_node;
    const uint32_t local = t->node.n_nics ? t->node.nic_vertex[place] : place;
    return endpoint / per_node * (uint32_t)t->node.n_vertices + local;
}

static void join_endpoints(struct dl_machine_graph *g, const struct dl_topology *t)
{
    g->endpoint = dl_alloc(g->first_of_network * sizeof *g->endpoint);
    g->owner = dl_alloc(t->network.n_endpoints * sizeof *g->owner);
    for (uint32_t v = 0; v < g->first_of_network; v++) g->endpoint[v] = none;
    for (uint32_t e = 0; e < t->network.n_endpoints; e++) {
        g->owner[e] = vertex_of_endpoint(t, e);
        g->endpoint[g->owner[e]] = g->first_of_network + e;
    }
}

/* Count, sum up, fill. */
static void list_links(struct dl_machine_graph *g, const struct dl_topology *t)
{
    const uint32_t n_links = t->first_storage_link; /* no message of devices goes to storage */
    uint32_t *const source = dl_alloc(n_links * sizeof *source);
    g->target = dl_alloc(n_links * sizeof *g->target);
    g->n_vertices = g->first_of_network + t->network.n_endpoints;
    for (uint32_t link = 0; link < n_links; link++) {
        const struct dl_link_ends at = ends_of(g, t, link);
        source[link] = at.from;
        g->target[link] = at.to;
        if (at.from >= g->n_vertices) g->n_vertices = at.from + 1;
        if (at.to >= g->n_vertices) g->n_vertices = at.to + 1;
    }
    g->first = dl_alloc((g->n_vertices + 2) * sizeof *g->first);
    g->out = dl_alloc(n_links * sizeof *g->out);
    uint32_t *const next = g->first + 1;
    for (uint32_t link = 0; link < n_links; link++) next[source[link] + 1]++;
    for (uint32_t v = 0; v < g->n_vertices; v++) next[v + 1] += next[v];
    for (uint32_t link = 0; link < n_links; link++) g->out[next[source[link]]++] = link;
    dl_free(source);
}

struct dl_machine_graph *dl_machine_graph_new(const struct dl_topology *t)
{
    struct dl_machine_graph *const g = dl_alloc(sizeof *g);
    g->first_of_network = t->n_nodes * (uint32_t)t->node.n_vertices;
    join_endpoints(g, t);
    list_links(g, t);
    g->cost = dl_alloc(g->n_vertices * sizeof *g->cost);
    g->by_link = dl_alloc(g->n_vertices * sizeof *g->by_link);
    g->by_vertex = dl_alloc(g->n_vertices * sizeof *g->by_vertex);
    g->done = dl_alloc(g->n_vertices * sizeof *g->done);
    return g;
}

void dl_machine_graph_free(struct dl_machine_graph *g)
{
    if (!g) return;
    void *const blocks[] = {g->first,   g->out,       g->target, g->endpoint, g->owner, g->cost,
                            g->by_link, g->by_vertex, g->done,   g->heap,     g->way};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    dl_free(g);
}

/* ---- searching: Dijkstra from the source, until the target is reached ---- */

static bool is_before(const struct open *a, const struct open *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->vertex < b->vertex);
}

static void push(struct dl_machine_graph *g, struct open item)
{
    DL_GROW(g->heap, g->n_heap, g->heap_capacity);
    size_t i = g->n_heap++;
    for (; i && is_before(&item, &g->heap[(i - 1) / 2]); i = (i - 1) / 2) g->heap[i] = g->heap[(i - 1) / 2];
    g->heap[i] = item;
}

static struct open pop(struct dl_machine_graph *g)
{
    const struct open top = g->heap[0], last = g->heap[--g->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < g->n_heap; i = child) {
        if (child + 1 < g->n_heap && is_before(&g->heap[child + 1], &g->heap[child])) child++;
        if (!is_before(&g->heap[child], &last)) break;
        g->heap[i] = g->heap[child];
    }
    g->heap[i] = last;
    return top;
}

/* Of two ways that cost the same, the one whose last link has the greater hash. */
static bool is_preferred(const struct dl_machine_graph *g, uint32_t vertex, uint32_t link, struct dl_trip trip)
{
    const uint64_t seed = dl_mix((uint64_t)trip.from << 32 | trip.to) ^ trip.key;
    return g->by_link[vertex] != none && dl_mix(seed ^ link) > dl_mix(seed ^ g->by_link[vertex]);
}

static void reach(struct dl_machine_graph *g, uint32_t from, uint32_t link, uint32_t vertex, double cost,
                  struct dl_trip trip)
{
    const double rounding = 1e-12; /* ways of equal links in another order */
    if (g->done[vertex] || cost > g->cost[vertex] * (1 + rounding)) return;
    if (cost >= g->cost[vertex] * (1 - rounding) && !is_preferred(g, vertex, link, trip)) return;
    if (cost < g->cost[vertex]) push(g, (struct open){cost, vertex});
    g->cost[vertex] = fmin(cost, g->cost[vertex]);
    g->by_link[vertex] = link;
    g->by_vertex[vertex] = from;
}

static bool is_nic(const struct dl_topology *t, uint32_t v)
{
    return t->node.vertices[v % t->node.n_vertices].kind == DL_NIC;
}

static void go_along_links(struct dl_machine_graph *g, const struct dl_topology *t, uint32_t v, struct dl_trip trip)
{
    for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
        const uint32_t link = g->out[i];
        const double fraction = dl_link_fraction(t->condition, link);
        if (fraction == 0) continue;
        const double more = dl_link_cost(t->links[link].latency_s, fraction * t->links[link].bandwidth_bytes_per_s);
        reach(g, v, link, g->target[link], g->cost[v] + more, trip);
    }
}

/* A NIC passes on from its node to the network and back, no more; a device only if it forwards. */
static void go_on_in_node(struct dl_machine_graph *g, const struct dl_topology *t, uint32_t v, struct dl_trip trip)
{
    const bool begins = g->by_vertex[v] == none, crossed_over = !begins && g->by_link[v] == none;
    if (!begins && !is_nic(t, v) && !t->node.vertices[v % t->node.n_vertices].forwards) return;
    if (!crossed_over && g->endpoint[v] != none) reach(g, v, none, g->endpoint[v], g->cost[v], trip);
    if (crossed_over || !is_nic(t, v)) go_along_links(g, t, v, trip);
}

static void go_on_in_network(struct dl_machine_graph *g, const struct dl_topology *t, uint32_t v, struct dl_trip trip)
{
    const uint32_t place = v - g->first_of_network;
    const bool is_endpoint = place < t->network.n_endpoints, crossed_over = g->by_link[v] == none;
    if (is_endpoint && !crossed_over) reach(g, v, none, g->owner[place], g->cost[v], trip);
    if (!is_endpoint || crossed_over || t->network.kind->endpoints_forward) go_along_links(g, t, v, trip);
}

static size_t walk_back(struct dl_machine_graph *g, uint32_t to)
{
    g->n_way = 0;
    for (uint32_t v = to; g->by_vertex[v] != none; v = g->by_vertex[v]) {
        if (g->by_link[v] == none) continue;
        DL_GROW(g->way, g->n_way, g->way_capacity);
        g->way[g->n_way++] = g->by_link[v];
    }
    for (size_t i = 0; i < g->n_way / 2; i++) {
        const uint32_t other = g->way[g->n_way - 1 - i];
        g->way[g->n_way - 1 - i] = g->way[i];
        g->way[i] = other;
    }
    return g->n_way;
}

static uint32_t vertex_of_device(const struct dl_topology *t, uint32_t device)
{
    return device / t->node.n_devices * (uint32_t)t->node.n_vertices + device % t->node.n_devices;
}

size_t dl_machine_graph_search(struct dl_machine_graph *g, const struct dl_topology *t, struct dl_trip trip,
                               uint32_t **links)
{
    const uint32_t from = vertex_of_device(t, trip.from), to = vertex_of_device(t, trip.to);
    for (uint32_t v = 0; v < g->n_vertices; v++) {
        g->cost[v] = INFINITY;
        g->by_link[v] = g->by_vertex[v] = none;
        g->done[v] = false;
    }
    g->n_heap = 0;
    g->cost[from] = 0;
    push(g, (struct open){0, from});
    while (g->n_heap && !g->done[to]) {
        const uint32_t v = pop(g).vertex;
        if (g->done[v]) continue;
        g->done[v] = true;
        if (v < g->first_of_network)
            go_on_in_node(g, t, v, trip);
        else
            go_on_in_network(g, t, v, trip);
    }
    const size_t n = g->done[to] ? walk_back(g, to) : 0;
    *links = g->way;
    return n;
}
