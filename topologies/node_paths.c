#include "topologies/node_paths.h"

#include <math.h>

/* What a link costs a path: the time of a message of this size, large enough that bandwidth matters most. */
static const double cost_message_bytes = 1e6;

double dl_link_cost(double latency_s, double bandwidth_bytes_per_s)
{
    return latency_s + cost_message_bytes / bandwidth_bytes_per_s;
}

static double edge_cost(const struct dl_edge *edge)
{
    return dl_link_cost(edge->latency_s, edge->bandwidth_bytes_per_s);
}

static uint32_t link_source(const struct dl_node *node, uint32_t link)
{
    const struct dl_edge *const edge = &node->edges[link / 2];
    return link % 2 ? edge->b : edge->a;
}

static uint32_t link_target(const struct dl_node *node, uint32_t link) { return link_source(node, link ^ 1); }

/* The links out of vertex v are links[first[v]] to links[first[v + 1] - 1], in the order of their edges. */
struct neighbours {
    uint32_t *first, *links;
};

static struct neighbours neighbours_of(const struct dl_node *node)
{
    const uint32_t n_links = 2 * (uint32_t)node->n_edges;
    struct neighbours all = {dl_alloc((node->n_vertices + 2) * sizeof *all.first),
                             dl_alloc(n_links * sizeof *all.links)};
    uint32_t *const next = all.first + 1; /* counts, then places; after the filling these are the ends */
    for (uint32_t link = 0; link < n_links; link++) next[link_source(node, link) + 1]++;
    for (size_t v = 0; v < node->n_vertices; v++) next[v + 1] += next[v];
    for (uint32_t link = 0; link < n_links; link++) all.links[next[link_source(node, link)]++] = link;
    return all;
}

/* What a way to the target is and costs. Software takes the links between devices wherever they lead there, however
 * slow they are, and passes nothing on through a device otherwise: NCCL (graph/paths.cc) counts links before it looks
 * at rates and goes through a GPU only from NVLink to NVLink; Level Zero gives access to peers over the fabric, through
 * others too. So kinds come before costs; the last is for NICs that hang off devices. */
enum way_kind { OVER_DEVICES_ONLY, OVER_BUSES, THROUGH_DEVICES_TO_BUSES };

struct way {
    enum way_kind kind;
    double cost;
};

static bool is_better(struct way a, struct way b) { return a.kind == b.kind ? a.cost < b.cost : a.kind < b.kind; }

struct search {
    struct way *way; /* to the target, by vertex */
    bool *done;
    struct neighbours neighbours;
};

static const struct way no_way = {.kind = THROUGH_DEVICES_TO_BUSES, .cost = INFINITY};

/* By a link to vertex v, whose way this is. */
static struct way longer(struct way way, const struct dl_edge *edge, bool passes_device)
{
    const enum way_kind by_edge = edge->reach == DL_REACH_DIRECT ? OVER_DEVICES_ONLY : OVER_BUSES;
    const enum way_kind worse = way.kind > by_edge ? way.kind : by_edge;
    return (struct way){passes_device && worse != OVER_DEVICES_ONLY ? THROUGH_DEVICES_TO_BUSES : worse,
                        way.cost + edge_cost(edge)};
}

static uint32_t nearest_open(const struct search *s, size_t n)
{
    uint32_t best = UINT32_MAX;
    struct way best_way = no_way;
    for (uint32_t v = 0; v < n; v++) {
        if (s->done[v] || !is_better(s->way[v], best_way)) continue;
        best = v;
        best_way = s->way[v];
    }
    return best;
}

/* Dijkstra from the target backwards, so that the first edges of all vertices form one tree and a route may follow
 * them step by step. Of equally cheap ways the one over the nearer, then the lower vertex stays. */
static void find_paths_to(struct dl_node *node, uint32_t target, const struct search *s)
{
    const size_t n = node->n_vertices;
    for (size_t v = 0; v < n; v++) {
        s->way[v] = no_way;
        s->done[v] = !node->vertices[v].forwards; /* no way leads on from it */
        node->first_edge[v * n + target] = DL_NO_LINK;
    }
    s->way[target] = (struct way){0};
    s->done[target] = false;
    for (uint32_t v; (v = nearest_open(s, n)) != UINT32_MAX;) {
        const bool is_device = v != target && node->vertices[v].kind == DL_DEVICE;
        s->done[v] = true;
        for (uint32_t i = s->neighbours.first[v]; i < s->neighbours.first[v + 1]; i++) {
            const uint32_t link = s->neighbours.links[i], other = link_target(node, link);
            const struct way way = longer(s->way[v], &node->edges[link / 2], is_device);
            if (!is_better(way, s->way[other])) continue;
            s->way[other] = way;
            node->first_edge[other * n + target] = (uint16_t)(link ^ 1);
        }
    }
}

void dl_node_find_paths(struct dl_node *node)
{
    const size_t n = node->n_vertices;
    const struct search s = {dl_alloc(n * sizeof *s.way), dl_alloc(n * sizeof *s.done), neighbours_of(node)};
    node->first_edge = dl_alloc(n * n * sizeof *node->first_edge);
    for (uint32_t target = 0; target < n; target++) find_paths_to(node, target, &s);
    dl_free(s.way);
    dl_free(s.done);
    dl_free(s.neighbours.first);
    dl_free(s.neighbours.links);
}

static double path_cost(const struct dl_node *node, uint32_t from, uint32_t to)
{
    double cost = 0;
    while (from != to) {
        const uint16_t link = node->first_edge[from * node->n_vertices + to];
        if (link == DL_NO_LINK) return INFINITY;
        cost += edge_cost(&node->edges[link / 2]);
        from = link_target(node, link);
    }
    return cost;
}

void dl_node_assign_nics(struct dl_node *node)
{
    uint32_t *const uses = dl_alloc(node->n_nics * sizeof *uses);
    for (uint32_t device = 0; device < node->n_devices; device++) {
        uint32_t best = UINT32_MAX;
        double best_cost = INFINITY;
        for (uint32_t nic = 0; nic < node->n_nics; nic++) {
            const double cost = path_cost(node, device, node->nic_vertex[nic]);
            if (cost == INFINITY || cost > best_cost || (cost == best_cost && uses[nic] >= uses[best])) continue;
            best = nic;
            best_cost = cost;
        }
        if (best != UINT32_MAX) uses[best]++;
        node->device_nic[device] = best;
    }
    dl_free(uses);
}

static uint32_t count_links(const struct dl_node *node, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (; from != to; n++) {
        const uint16_t link = node->first_edge[from * node->n_vertices + to];
        if (link == DL_NO_LINK) return UINT32_MAX;
        from = link_target(node, link);
    }
    return n;
}

static uint32_t nearest_host(const struct dl_node *node, uint32_t device)
{
    uint32_t best = UINT32_MAX, fewest = UINT32_MAX;
    for (uint32_t v = 0; v < node->n_vertices; v++) {
        if (node->vertices[v].kind == DL_HOST) return v;
        if (!node->vertices[v].is_host || count_links(node, device, v) >= fewest) continue;
        best = v;
        fewest = count_links(node, device, v);
    }
    return best;
}

void dl_node_assign_hosts(struct dl_node *node)
{
    for (uint32_t device = 0; device < node->n_devices; device++)
        node->device_host[device] = nearest_host(node, device);
}

void dl_node_take_link(const struct dl_node *node, uint32_t link, uint32_t id, struct dl_route *out)
{
    const struct dl_edge *const edge = &node->edges[link / 2];
    if (out->n_hops && node->vertices[link_source(node, link)].kind == DL_DEVICE) out->relayed = true;
    dl_route_add(out, id, 1);
    dl_route_pass(out, 1, edge->latency_s, edge->reach);
}

bool dl_node_route(const struct dl_node *node, uint32_t from, uint32_t to, uint32_t first_link, struct dl_route *out)
{
    while (from != to) {
        const uint16_t link = node->first_edge[from * node->n_vertices + to];
        if (link == DL_NO_LINK) return false; /* only ever at the start: the rest of a way is a way */
        dl_node_take_link(node, link, first_link + link, out);
        from = link_target(node, link);
    }
    return true;
}
