#include "topologies/route.h"

#include "sim/core/memory.h"

void dl_route_clear(struct dl_route *route)
{
    route->n_hops = 0;
    route->latency_s = 0;
    route->reach = DL_REACH_DIRECT;
    route->relayed = false;
}

void dl_route_add(struct dl_route *route, uint32_t link, double weight)
{
    DL_GROW(route->hops, route->n_hops, route->capacity);
    route->hops[route->n_hops++] = (struct dl_hop){.link = link, .weight = weight};
}

void dl_route_pass(struct dl_route *route, double weight, double latency_s, enum dl_reach reach)
{
    route->latency_s += weight * latency_s;
    if (reach > route->reach) route->reach = reach;
}

void dl_route_release(struct dl_route *route)
{
    dl_free(route->hops);
    *route = (struct dl_route){0};
}
