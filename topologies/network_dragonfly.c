/* network_dragonfly.c - dragonflies (Kim, Dally, Scott, Abts, ISCA 2008): groups of switches, global links between each
 * pair of groups. Inside a group: all to all (Slingshot), a grid whose rows and columns are all to all (Aries), or
 * leaves below spines that hold the global links (dragonfly+). */
#include "topologies/network_dragonfly.h"

#include <math.h>
#include <stdio.h>

enum { max_groups = 65536, max_nodes = 65536, max_switches = 1024, max_links_per_pair = 1024 };

static const char *const locals[] = {"all_to_all", "grid", "leaf_spine", NULL};
static const char *const routings[] = {"minimal", "valiant", "adaptive", NULL};

struct options {
    struct dl_cable cable;
    int64_t groups, nodes_per_group, switches_per_group, links_per_group_pair, spines, local, routing;
    double local_bandwidth_bytes_per_s, local_latency_s, global_bandwidth_bytes_per_s, global_latency_s;
    struct dl_int_list grid;
    bool nics_across_switches;
};

static const struct options defaults = {
    .local_bandwidth_bytes_per_s = NAN, /* as the endpoint's */
    .local_latency_s = NAN,
    .global_bandwidth_bytes_per_s = NAN,
    .global_latency_s = NAN,
    .local = DL_LOCAL_ALL_TO_ALL,
    .routing = DL_DRAGONFLY_ADAPTIVE,
};

static const struct dl_field fields[] = {
    DL_CABLE_FIELDS(struct options, cable),
    {"groups", DL_INT, offsetof(struct options, groups), 1, max_groups, false, NULL, "number of groups"},
    {"nodes_per_group", DL_INT, offsetof(struct options, nodes_per_group), 1, max_nodes, false, NULL,
     "nodes of each group"},
    {"switches_per_group", DL_INT, offsetof(struct options, switches_per_group), 1, max_switches, false, NULL,
     "switches of a group that have endpoints"},
    {"links_per_group_pair", DL_INT, offsetof(struct options, links_per_group_pair), 1, max_links_per_pair, false, NULL,
     "parallel global links between two groups"},
    {"local_bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct options, local_bandwidth_bytes_per_s), 1, 1e18, true,
     NULL, "between two switches of a group, all cables together; the endpoint's if absent"},
    {"local_latency_s", DL_NUMBER, offsetof(struct options, local_latency_s), 0, 1, true, NULL,
     "between two switches of a group; the endpoint's if absent"},
    {"global_bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct options, global_bandwidth_bytes_per_s), 1, 1e18, true,
     NULL, "of one global link; the endpoint's if absent"},
    {"global_latency_s", DL_NUMBER, offsetof(struct options, global_latency_s), 0, 1, true, NULL,
     "of one global link; the endpoint's if absent"},
    {"local", DL_CHOICE, offsetof(struct options, local), 0, 0, true, locals,
     "how the switches of a group are joined; all_to_all if absent"},
    {"grid", DL_INT_LIST, offsetof(struct options, grid), 1, max_switches, true, NULL,
     "columns and rows of a grid; needed with local grid"},
    {"spines", DL_INT, offsetof(struct options, spines), 1, max_switches, true, NULL,
     "spine switches of a group; needed with local leaf_spine"},
    {"nics_across_switches", DL_BOOL, offsetof(struct options, nics_across_switches), 0, 0, true, NULL,
     "the NICs of a node are on different switches; false if absent"},
    {"routing", DL_CHOICE, offsetof(struct options, routing), 0, 0, true, routings,
     "minimal; valiant: over other groups; adaptive: both, by load; adaptive if absent"},
};

static enum dl_status check_local(const struct dl_network *net, const struct options *o, struct dl_error *err)
{
    const bool is_grid = o->local == DL_LOCAL_GRID, is_leaf_spine = o->local == DL_LOCAL_LEAF_SPINE;
    if (is_grid != (o->grid.n > 0))
        return dl_fail(err, DL_KEY, net->where.where, "'grid' and local 'grid' go together: give both or neither");
    if (is_leaf_spine != (o->spines > 0))
        return dl_fail(err, DL_KEY, net->where.where,
                       "'spines' and local 'leaf_spine' go together: give both or neither");
    if (is_grid && (o->grid.n != 2 || o->grid.items[0] * o->grid.items[1] != o->switches_per_group))
        return dl_fail(err, DL_IMPOSSIBLE, net->where.where,
                       "'grid' must be [columns, rows] with %lld switches in all, as switches_per_group says",
                       (long long)o->switches_per_group);
    return DL_OK;
}

static double count_local_links(const struct options *o)
{
    const double n = (double)o->switches_per_group;
    switch (o->local) {
    case DL_LOCAL_GRID: return n * (double)(o->grid.items[0] - 1 + o->grid.items[1] - 1);
    case DL_LOCAL_LEAF_SPINE: return 2 * n * (double)o->spines;
    default: return n * (n - 1);
    }
}

static enum dl_status check_size(const struct dl_network *net, const struct options *o, struct dl_error *err)
{
    const double groups = (double)o->groups;
    const double n_links = 2.0 * net->n_endpoints + groups * count_local_links(o) +
                           groups * (groups - 1) * (double)o->links_per_group_pair;
    const double n_places = groups * (double)o->nodes_per_group * net->endpoints_per_node;
    if (dl_network_check_places(net, n_places, net->n_endpoints, "'groups' or 'nodes_per_group'", err))
        return err->status;
    return dl_network_check_links(net, n_links, err);
}

static double given_or(double value, double otherwise) { return isnan(value) ? otherwise : value; }

static void describe(struct dl_dragonfly *d, const struct options *o)
{
    *d = (struct dl_dragonfly){
        .local = (enum dl_dragonfly_local)o->local,
        .routing = (enum dl_dragonfly_routing)o->routing,
        .n_groups = (uint32_t)o->groups,
        .nodes_per_group = (uint32_t)o->nodes_per_group,
        .n_switches = (uint32_t)o->switches_per_group,
        .n_spines = (uint32_t)o->spines,
        .n_columns = o->grid.n ? (uint32_t)o->grid.items[0] : 0,
        .n_rows = o->grid.n ? (uint32_t)o->grid.items[1] : 0,
        .links_per_pair = (uint32_t)o->links_per_group_pair,
        .n_local = (uint32_t)count_local_links(o),
        .local_bandwidth_bytes_per_s = given_or(o->local_bandwidth_bytes_per_s, o->cable.bandwidth_bytes_per_s),
        .global_bandwidth_bytes_per_s = given_or(o->global_bandwidth_bytes_per_s, o->cable.bandwidth_bytes_per_s),
        .nics_across_switches = o->nics_across_switches,
    };
}

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    const struct options *const o = options;
    if (check_local(net, o, err) || check_size(net, o, err)) return err->status;
    struct dl_dragonfly *const d = dl_arena_alloc(arena, sizeof *d);
    describe(d, o);
    net->state = d;
    const struct dl_link_spec endpoint = {o->cable.bandwidth_bytes_per_s, o->cable.latency_s, o->cable.link_kind},
                              local = {d->local_bandwidth_bytes_per_s, given_or(o->local_latency_s, o->cable.latency_s),
                                       o->cable.link_kind},
                              global = {d->global_bandwidth_bytes_per_s,
                                        given_or(o->global_latency_s, o->cable.latency_s), o->cable.link_kind};
    dl_network_add_links(net, &endpoint, 2 * (size_t)net->n_endpoints);
    d->first_local = net->n_links;
    dl_network_add_links(net, &local, (size_t)d->n_groups * d->n_local);
    d->first_global = net->n_links;
    dl_network_add_links(net, &global, (size_t)d->n_groups * (d->n_groups - 1) * d->links_per_pair);
    return DL_OK;
}

uint32_t dl_dragonfly_group(const struct dl_network *net, uint32_t endpoint)
{
    const struct dl_dragonfly *const d = net->state;
    return endpoint / net->endpoints_per_node / d->nodes_per_group;
}

/* NICs across switches, as in Slingshot cabinets: a chassis has a switch for each NIC of a node, NIC k of its nodes on
 * its switch k. Where the switches do not fall into such chassis, endpoints are dealt round. */
uint32_t dl_dragonfly_switch(const struct dl_network *net, uint32_t endpoint)
{
    const struct dl_dragonfly *const d = net->state;
    const uint32_t n_nics = net->endpoints_per_node, nic = endpoint % n_nics;
    const uint64_t node = endpoint / n_nics % d->nodes_per_group, n_chassis = d->n_switches / n_nics;
    if (!d->nics_across_switches) return (uint32_t)(node * d->n_switches / d->nodes_per_group);
    if (d->n_switches % n_nics) return (uint32_t)((node * n_nics + nic) % d->n_switches);
    return (uint32_t)(node * n_chassis / d->nodes_per_group) * n_nics + nic;
}

/* The place of `other` in a list of all but `self`. */
static uint32_t among_others(uint32_t other, uint32_t self) { return other > self ? other - 1 : other; }
static uint32_t of_others(uint32_t place, uint32_t self) { return place >= self ? place + 1 : place; }

bool dl_dragonfly_joined(const struct dl_dragonfly *d, uint32_t from, uint32_t to)
{
    switch (d->local) {
    case DL_LOCAL_GRID: return from / d->n_columns == to / d->n_columns || from % d->n_columns == to % d->n_columns;
    case DL_LOCAL_LEAF_SPINE: return (from < d->n_switches) != (to < d->n_switches);
    default: return true;
    }
}

static uint32_t grid_link(const struct dl_dragonfly *d, uint32_t from, uint32_t to)
{
    const uint32_t first = from * (d->n_columns - 1 + d->n_rows - 1);
    if (from / d->n_columns == to / d->n_columns) return first + among_others(to % d->n_columns, from % d->n_columns);
    return first + d->n_columns - 1 + among_others(to / d->n_columns, from / d->n_columns);
}

uint32_t dl_dragonfly_local_link(const struct dl_dragonfly *d, uint32_t group, uint32_t from, uint32_t to)
{
    const uint32_t first = d->first_local + group * d->n_local;
    switch (d->local) {
    case DL_LOCAL_GRID: return first + grid_link(d, from, to);
    case DL_LOCAL_LEAF_SPINE:
        if (from < d->n_switches) return first + from * d->n_spines + (to - d->n_switches);
        return first + d->n_switches * d->n_spines + (from - d->n_switches) * d->n_switches + to;
    default: return first + from * (d->n_switches - 1) + among_others(to, from);
    }
}

uint32_t dl_dragonfly_global_link(const struct dl_dragonfly *d, uint32_t group, uint32_t other, uint32_t j)
{
    return d->first_global + (group * (d->n_groups - 1) + among_others(other, group)) * d->links_per_pair + j;
}

/* The global links of a group are dealt round its gateways, those to the next group first: each gateway holds equally
 * many but for one, and all groups look alike. */
uint32_t dl_dragonfly_gateway(const struct dl_dragonfly *d, uint32_t group, uint32_t other, uint32_t j)
{
    const uint32_t distance = (other + d->n_groups - group) % d->n_groups - 1;
    const uint64_t port = (uint64_t)distance * d->links_per_pair + j;
    if (d->local == DL_LOCAL_LEAF_SPINE) return d->n_switches + (uint32_t)(port % d->n_spines);
    return (uint32_t)(port % d->n_switches);
}

static void grid_ends(const struct dl_dragonfly *d, uint32_t link, uint32_t *from, uint32_t *to)
{
    const uint32_t per_switch = d->n_columns - 1 + d->n_rows - 1, place = link % per_switch;
    *from = link / per_switch;
    const uint32_t column = *from % d->n_columns, row = *from / d->n_columns;
    if (place < d->n_columns - 1)
        *to = row * d->n_columns + of_others(place, column);
    else
        *to = of_others(place - (d->n_columns - 1), row) * d->n_columns + column;
}

static void local_ends(const struct dl_dragonfly *d, uint32_t link, uint32_t *from, uint32_t *to)
{
    const uint32_t n_up = d->n_switches * d->n_spines;
    if (d->local == DL_LOCAL_GRID) {
        grid_ends(d, link, from, to);
    } else if (d->local == DL_LOCAL_ALL_TO_ALL) {
        *from = link / (d->n_switches - 1);
        *to = of_others(link % (d->n_switches - 1), *from);
    } else if (link < n_up) {
        *from = link / d->n_spines;
        *to = d->n_switches + link % d->n_spines;
    } else {
        *from = d->n_switches + (link - n_up) / d->n_switches;
        *to = (link - n_up) % d->n_switches;
    }
}

static uint32_t vertex_of(const struct dl_network *net, uint32_t group, uint32_t index)
{
    const struct dl_dragonfly *const d = net->state;
    return net->n_endpoints + group * (d->n_switches + d->n_spines) + index;
}

static struct dl_link_ends ends_of_endpoint_link(const struct dl_network *net, uint32_t link)
{
    const uint32_t endpoint = link / 2;
    const uint32_t at = vertex_of(net, dl_dragonfly_group(net, endpoint), dl_dragonfly_switch(net, endpoint));
    return link % 2 ? (struct dl_link_ends){at, endpoint} : (struct dl_link_ends){endpoint, at};
}

static struct dl_link_ends ends_of_global_link(const struct dl_network *net, uint32_t global)
{
    const struct dl_dragonfly *const d = net->state;
    const uint32_t j = global % d->links_per_pair, pair = global / d->links_per_pair;
    const uint32_t group = pair / (d->n_groups - 1), other = of_others(pair % (d->n_groups - 1), group);
    return (struct dl_link_ends){vertex_of(net, group, dl_dragonfly_gateway(d, group, other, j)),
                                 vertex_of(net, other, dl_dragonfly_gateway(d, other, group, j))};
}

static struct dl_link_ends ends(const struct dl_network *net, uint32_t link)
{
    const struct dl_dragonfly *const d = net->state;
    if (link < d->first_local) return ends_of_endpoint_link(net, link);
    if (link >= d->first_global) return ends_of_global_link(net, link - d->first_global);
    const uint32_t local = link - d->first_local, group = local / d->n_local;
    uint32_t from, to;
    local_ends(d, local % d->n_local, &from, &to);
    return (struct dl_link_ends){vertex_of(net, group, from), vertex_of(net, group, to)};
}

static void name_vertex(const struct dl_network *net, uint32_t vertex, char *name, size_t bytes)
{
    const struct dl_dragonfly *const d = net->state;
    if (vertex < net->n_endpoints) {
        dl_network_endpoint_name(net, vertex, name, bytes);
        return;
    }
    const uint32_t per_group = d->n_switches + d->n_spines, place = vertex - net->n_endpoints;
    const uint32_t group = place / per_group, index = place % per_group;
    if (d->local != DL_LOCAL_LEAF_SPINE)
        snprintf(name, bytes, "group%u.switch%u", group, index);
    else if (index < d->n_switches)
        snprintf(name, bytes, "group%u.leaf%u", group, index);
    else
        snprintf(name, bytes, "group%u.spine%u", group, index - d->n_switches);
}

static void name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes)
{
    const struct dl_dragonfly *const d = net->state;
    const bool is_global = link >= d->first_global;
    const struct dl_link_ends at = ends(net, link);
    char source[DL_MAX_NAME_BYTES], target[DL_MAX_NAME_BYTES];
    name_vertex(net, at.from, source, sizeof source);
    name_vertex(net, at.to, target, sizeof target);
    dl_network_cable_name(source, target, is_global ? (link - d->first_global) % d->links_per_pair : 0,
                          is_global ? d->links_per_pair : 1, name, bytes);
}

static bool adapts(const struct dl_network *net)
{
    return ((const struct dl_dragonfly *)net->state)->routing == DL_DRAGONFLY_ADAPTIVE;
}

const struct dl_network_kind dl_network_dragonfly = {
    .name = "dragonfly",
    .doc = "groups of switches, global links between each pair of groups",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
    .route = dl_dragonfly_route,
    .name_link = name_link,
    .ends = ends,
    .reads_load = adapts,
};
