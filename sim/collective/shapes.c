#include "sim/collective/shapes.h"

#include <math.h>
#include <string.h>

struct known {
    struct dl_shape shape;
    uint32_t *peers; /* by rank: to whom it sends, or DL_NOBODY */
    uint32_t n;
    double relay_efficiency;
    uint64_t version; /* of the condition of the links */
};

struct dl_shapes {
    struct known **known;
    size_t n, capacity;
};

struct dl_shapes *dl_shapes_new(void) { return dl_alloc(sizeof(struct dl_shapes)); }

static void forget(struct known *known)
{
    dl_free(known->shape.hops);
    dl_free(known->peers);
    dl_free(known);
}

void dl_shapes_free(struct dl_shapes *shapes)
{
    if (!shapes) return;
    for (size_t i = 0; i < shapes->n; i++) forget(shapes->known[i]);
    dl_free(shapes->known);
    dl_free(shapes);
}

size_t dl_shapes_count(const struct dl_shapes *shapes) { return shapes->n; }

bool dl_has_shape(const struct dl_collective *c, uint32_t lane, uint32_t k)
{
    struct dl_round round, next;
    if (!c->group->shapes || !c->algorithm->round(c, lane, k, &round) || round.together) return false;
    return !c->algorithm->round(c, lane, k + 1, &next) || !next.together;
}

static struct known *peers_of(const struct dl_collective *c, uint32_t lane, uint32_t k, const struct dl_pace *pace)
{
    struct known *const asked = dl_alloc(sizeof *asked);
    asked->n = dl_collective_ranks(c);
    asked->relay_efficiency = pace->relay_efficiency;
    asked->version = c->group->topology->condition->version;
    asked->peers = dl_alloc(asked->n * sizeof *asked->peers);
    for (uint32_t rank = 0; rank < asked->n; rank++) asked->peers[rank] = c->algorithm->peer(c, lane, k, rank);
    return asked;
}

static bool is_same(const struct known *a, const struct known *b)
{
    return a->n == b->n && a->version == b->version && a->relay_efficiency == b->relay_efficiency &&
           memcmp(a->peers, b->peers, a->n * sizeof *a->peers) == 0;
}

static void reach(struct dl_shape *shape, const struct dl_route *route)
{
    struct dl_reached *const r = &shape->reached[route->reach];
    r->n++;
    r->slowest_s = fmax(r->slowest_s, route->latency_s);
    r->all_s += route->latency_s;
}

static void take_hops(struct dl_shape *shape, struct dl_tally *tally)
{
    shape->n_hops = tally->n_touched;
    shape->hops = dl_alloc(shape->n_hops * sizeof *shape->hops);
    for (size_t i = 0; i < tally->n_touched; i++) shape->hops[i] = tally->touched[i];
    dl_tally_clear(tally);
}

/* Message after message, each of one byte on the wire: adaptive routing sees those before it. */
static void route_all(const struct dl_group *g, struct known *known, struct dl_tally *tally, struct dl_error *err)
{
    struct dl_booked booked = {.tally = tally, .topology = g->topology, .message_bytes = 1};
    const struct dl_load load = {.wanted_bytes_per_s = dl_booked_bytes_per_s, .user = &booked, .own_share = 1};
    struct dl_route route = {0};
    for (uint32_t rank = 0; rank < known->n; rank++) {
        const uint32_t to = known->peers[rank];
        if (to == DL_NOBODY) continue;
        if (dl_topology_route(g->topology, g->device[rank], g->device[to], 0, &load, &route, err)) break;
        const double bytes = route.relayed ? 1 / known->relay_efficiency : 1;
        for (size_t i = 0; i < route.n_hops; i++) dl_tally_add(tally, route.hops[i].link, bytes * route.hops[i].weight);
        reach(&known->shape, &route);
    }
    dl_route_release(&route);
    take_hops(&known->shape, tally);
}

static const struct dl_shape *find(const struct dl_shapes *all, const struct known *asked)
{
    for (size_t i = 0; i < all->n; i++)
        if (is_same(all->known[i], asked)) return &all->known[i]->shape;
    return NULL;
}

const struct dl_shape *dl_shape_of(const struct dl_collective *c, uint32_t lane, uint32_t k, const struct dl_pace *pace,
                                   struct dl_tally *tally, struct dl_error *err)
{
    struct dl_shapes *const all = c->group->shapes;
    struct known *const asked = peers_of(c, lane, k, pace);
    const struct dl_shape *const found = find(all, asked);
    if (!found) route_all(c->group, asked, tally, err);
    if (found || err->status) {
        forget(asked);
        return found;
    }
    DL_GROW(all->known, all->n, all->capacity);
    all->known[all->n++] = asked;
    return &asked->shape;
}

double dl_shape_latency_s(const struct dl_shape *shape, const struct dl_collective *c, const struct dl_round *round,
                          const struct dl_pace *pace, double message_bytes)
{
    double slowest_s = 0, all_s = 0;
    for (int i = 0; i < DL_N_REACHES; i++) {
        const struct dl_reached *const r = &shape->reached[i];
        const struct dl_route slowest = {.reach = (enum dl_reach)i, .latency_s = r->slowest_s};
        const struct dl_route mean = {.reach = (enum dl_reach)i, .latency_s = r->n > 0 ? r->all_s / r->n : 0};
        if (r->n == 0) continue;
        slowest_s = fmax(slowest_s, dl_pace_latency_s(pace, &slowest, message_bytes));
        all_s += r->n * dl_pace_latency_s(pace, &mean, message_bytes);
    }
    return dl_round_latency_s(round, dl_collective_ranks(c), slowest_s, all_s);
}
