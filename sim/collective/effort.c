#include "sim/collective/effort.h"

#include <math.h>

#include "sim/collective/fold.h"

double dl_count_bundles(const struct dl_collective *c, bool fluid)
{
    if (!dl_folds(c, fluid)) return dl_count_messages(c);
    double n = 0;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) n += dl_fold_count(c, lane);
    return dl_fold_kind(c) == DL_FOLD_ROUNDS ? n * c->chunks : n;
}

static uint32_t count_senders(const struct dl_collective *c, uint32_t lane, uint32_t k)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < dl_collective_ranks(c); rank++)
        n += c->algorithm->peer(c, lane, k, rank) != DL_NOBODY;
    return n;
}

/* Chunks and lanes go on by themselves. */
static void add_lane(const struct dl_collective *c, uint32_t lane, struct dl_effort *out)
{
    double together = 0, most = 0;
    struct dl_round round;
    for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round); k++) {
        const double n = count_senders(c, lane, k);
        together = round.together ? together + n : n;
        most = fmax(most, together);
        out->messages += c->chunks * round.repeat * n;
    }
    out->in_flight += c->chunks * most;
}

enum dl_status dl_count_links(const struct dl_collective *c, double *out, struct dl_error *err)
{
    struct dl_route route = {0};
    struct dl_round round;
    double sum = 0, n = 0;
    uint32_t n_rounds = 0;
    while (c->algorithm->round(c, 0, n_rounds, &round)) n_rounds++;
    for (uint32_t rank = 0; rank < dl_collective_ranks(c) && n_rounds && !err->status; rank++) {
        const uint32_t to = c->algorithm->peer(c, 0, rank % n_rounds, rank), *const device = c->group->device;
        if (to == DL_NOBODY) continue;
        dl_topology_route(c->group->topology, device[rank], device[to], 0, NULL, &route, err);
        sum += (double)route.n_hops;
        n++;
    }
    dl_route_release(&route);
    *out = n > 0 ? sum / n : 0;
    return err->status;
}

enum dl_status dl_effort_of(const struct dl_collective *c, struct dl_effort *out, struct dl_error *err)
{
    *out = (struct dl_effort){0};
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) add_lane(c, lane, out);
    return dl_count_links(c, &out->links, err);
}

double dl_effort_together(const struct dl_effort *e, uint32_t n)
{
    return n * e->messages * n * e->in_flight * e->links;
}
