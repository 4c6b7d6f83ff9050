#include "topologies/condition.h"

#include "topologies/machine_graph.h"
#include "topologies/topology.h"

void dl_condition_release(struct dl_condition *c)
{
    dl_free(c->fraction);
    dl_machine_graph_free(c->graph);
    *c = (struct dl_condition){0};
}

void dl_condition_set(struct dl_condition *c, const struct dl_topology *t, uint32_t link, double fraction)
{
    if (!c->fraction) {
        c->fraction = dl_alloc(t->n_links * sizeof *c->fraction);
        for (size_t i = 0; i < t->n_links; i++) c->fraction[i] = 1;
    }
    c->n_failed -= c->fraction[link] == 0;
    c->fraction[link] = fraction;
    c->n_failed += fraction == 0;
    c->version++;
}

void dl_condition_reset(struct dl_condition *c)
{
    dl_free(c->fraction);
    c->fraction = NULL;
    c->n_failed = 0;
    c->version++;
}

bool dl_crosses_failed(const struct dl_condition *c, const struct dl_route *route)
{
    for (size_t i = 0; c->n_failed && i < route->n_hops; i++)
        if (c->fraction[route->hops[i].link] == 0) return true;
    return false;
}

static void take_link(const struct dl_topology *t, uint32_t link, struct dl_route *route)
{
    if (t->network.kind && link >= t->network.first_link)
        dl_network_hop(&t->network, route, link - t->network.first_link, 1);
    else
        dl_node_take_link(&t->node, link % (2 * (uint32_t)t->node.n_edges), link, route);
}

bool dl_route_around(const struct dl_topology *t, struct dl_trip trip, struct dl_route *route)
{
    struct dl_condition *const c = t->condition;
    if (!c->graph) c->graph = dl_machine_graph_new(t);
    uint32_t *links;
    const size_t n = dl_machine_graph_search(c->graph, t, trip, &links);
    if (n == 0) return false;
    dl_route_clear(route);
    for (size_t i = 0; i < n; i++) take_link(t, links[i], route);
    return true;
}
