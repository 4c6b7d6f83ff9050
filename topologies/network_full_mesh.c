/* network_full_mesh.c - a link of its own from each endpoint to each other one. */
#include "topologies/network_parts.h"

enum { max_endpoints = 2048 }; /* links grow with the square */

struct options {
    struct dl_cable cable;
};
static const struct options defaults;
static const struct dl_field fields[] = {DL_CABLE_FIELDS(struct options, cable)};

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    (void)arena;
    if (net->n_endpoints > max_endpoints)
        return dl_fail(err, DL_RANGE, net->where.where, "a full_mesh may have at most %d endpoints, here are %u",
                       max_endpoints, net->n_endpoints);
    const struct dl_cable cable = ((const struct options *)options)->cable;
    const struct dl_link_spec spec = {cable.bandwidth_bytes_per_s, cable.latency_s, cable.link_kind};
    const uint32_t n_links = net->n_endpoints * (net->n_endpoints - 1);
    dl_network_add_links(net, &spec, n_links);
    return DL_OK;
}

static enum dl_status route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                            const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    (void)key, (void)load, (void)err;
    const uint32_t others = net->n_endpoints - 1, place = to > from ? to - 1 : to;
    dl_network_hop(net, out, from * others + place, 1);
    return DL_OK;
}

static struct dl_link_ends ends(const struct dl_network *net, uint32_t link)
{
    const uint32_t others = net->n_endpoints - 1, from = link / others, place = link % others;
    return (struct dl_link_ends){from, place < from ? place : place + 1};
}

static void name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes)
{
    const struct dl_link_ends at = ends(net, link);
    char source[DL_MAX_NAME_BYTES], target[DL_MAX_NAME_BYTES];
    dl_network_endpoint_name(net, at.from, source, sizeof source);
    dl_network_endpoint_name(net, at.to, target, sizeof target);
    dl_network_cable_name(source, target, 0, 1, name, bytes);
}

const struct dl_network_kind dl_network_full_mesh = {
    .name = "full_mesh",
    .doc = "a link for each ordered pair of endpoints",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
    .route = route,
    .name_link = name_link,
    .ends = ends,
};
