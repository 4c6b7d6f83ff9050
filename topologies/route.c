#include "topologies/route.h"

#include "sim/core/memory.h"
#include "sim/core/random.h"

void dl_route_clear(struct dl_route *route)
{
    route->n_hops = route->n_indexed = 0;
    route->latency_s = 0;
    route->reach = DL_REACH_DIRECT;
    route->relayed = false;
}

void dl_route_add(struct dl_route *route, uint32_t link, double weight)
{
    DL_GROW(route->hops, route->n_hops, route->capacity);
    route->hops[route->n_hops++] = (struct dl_hop){.link = link, .weight = weight};
}

/* ---- finding ---- */

static void grow_table(struct dl_route *route)
{
    enum { first = 64 }; /* a power of two, as all */
    if (2 * route->n_hops < route->n_places) return;
    if (!route->n_places) route->n_places = first;
    while (route->n_places <= 2 * route->n_hops) route->n_places *= 2;
    dl_free(route->table);
    dl_free(route->place_of_hop);
    route->table = dl_alloc(route->n_places * sizeof *route->table);
    route->place_of_hop = dl_alloc(route->n_places * sizeof *route->place_of_hop);
    route->n_indexed = 0;
}

/* Where it is in the table, or may be put. */
static size_t place_of(const struct dl_route *route, uint32_t link)
{
    const size_t mask = route->n_places - 1;
    for (size_t place = dl_mix(link) & mask;; place = (place + 1) & mask) {
        const uint32_t hop = route->table[place];
        const bool is_free = hop >= route->n_indexed || route->place_of_hop[hop] != place;
        if (is_free || route->hops[hop].link == link) return place;
    }
}

static void index_next(struct dl_route *route)
{
    const uint32_t hop = (uint32_t)route->n_indexed;
    const size_t place = place_of(route, route->hops[hop].link);
    route->table[place] = hop;
    route->place_of_hop[hop] = (uint32_t)place;
    route->n_indexed++;
}

size_t dl_route_find(struct dl_route *route, uint32_t link)
{
    enum { few = 16 };
    size_t i = 0;
    if (route->n_hops > few) {
        grow_table(route);
        while (route->n_indexed < route->n_hops) index_next(route);
        i = route->table[place_of(route, link)];
        return i < route->n_hops && route->hops[i].link == link ? i : route->n_hops;
    }
    while (i < route->n_hops && route->hops[i].link != link) i++;
    return i;
}

void dl_route_pass(struct dl_route *route, double weight, double latency_s, enum dl_reach reach)
{
    route->latency_s += weight * latency_s;
    if (reach > route->reach) route->reach = reach;
}

void dl_route_release(struct dl_route *route)
{
    dl_free(route->hops);
    dl_free(route->table);
    dl_free(route->place_of_hop);
    *route = (struct dl_route){0};
}
