/* network_crossbar.c - one ideal switch: endpoints share nothing but their own links. */
#include "topologies/network_parts.h"

struct options {
    struct dl_cable cable;
};
static const struct options defaults;
static const struct dl_field fields[] = {DL_CABLE_FIELDS(struct options, cable)};

static uint32_t up_link(uint32_t endpoint) { return 2 * endpoint; }
static uint32_t down_link(uint32_t endpoint) { return 2 * endpoint + 1; }

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    (void)arena;
    const struct dl_cable cable = ((const struct options *)options)->cable;
    const struct dl_link_spec spec = {cable.bandwidth_bytes_per_s, cable.latency_s, cable.link_kind};
    if (dl_network_check_links(net, 2.0 * net->n_endpoints, err)) return err->status;
    dl_network_add_links(net, &spec, 2 * (size_t)net->n_endpoints);
    return DL_OK;
}

static enum dl_status route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                            const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    (void)key, (void)load, (void)err;
    dl_network_hop(net, out, up_link(from), 1);
    dl_network_hop(net, out, down_link(to), 1);
    return DL_OK;
}

static void name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes)
{
    char endpoint[DL_MAX_NAME_BYTES];
    dl_network_endpoint_name(net, link / 2, endpoint, sizeof endpoint);
    if (link == up_link(link / 2))
        dl_network_cable_name(endpoint, "switch", 0, 1, name, bytes);
    else
        dl_network_cable_name("switch", endpoint, 0, 1, name, bytes);
}

static struct dl_link_ends ends(const struct dl_network *net, uint32_t link)
{
    const uint32_t endpoint = link / 2, the_switch = net->n_endpoints;
    return link == up_link(endpoint) ? (struct dl_link_ends){endpoint, the_switch}
                                     : (struct dl_link_ends){the_switch, endpoint};
}

const struct dl_network_kind dl_network_crossbar = {
    .name = "crossbar",
    .doc = "a non-blocking switch: a link up and a link down for each endpoint",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
    .route = route,
    .name_link = name_link,
    .ends = ends,
};
