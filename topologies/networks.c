#include "topologies/networks.h"

#include "topologies/kinds.h"
#include "topologies/topology.h"

/* The only list; a new network is one file and one line here. */
static const struct dl_network_kind *const networks[] = {
    &dl_network_crossbar,  &dl_network_full_mesh, &dl_network_fat_tree, &dl_network_rails,
    &dl_network_dragonfly, &dl_network_torus,     &dl_network_graph,
};

size_t dl_network_count(void) { return DL_COUNT(networks); }

const struct dl_network_kind *dl_network_get(size_t index) { return networks[index]; }

uint32_t dl_network_add_link(struct dl_network *net, const struct dl_link_spec *spec)
{
    struct dl_topology *const t = net->topology;
    DL_GROW(t->links, t->n_links, t->links_capacity);
    t->links[t->n_links++] = (struct dl_link){.bandwidth_bytes_per_s = spec->bandwidth_bytes_per_s,
                                              .latency_s = spec->latency_s,
                                              .kind = dl_topology_link_kind(t, spec->link_kind)};
    return net->n_links++;
}

void dl_network_add_links(struct dl_network *net, const struct dl_link_spec *spec, size_t n)
{
    struct dl_topology *const t = net->topology;
    if (!n) return;
    if (t->links_capacity < t->n_links + n) {
        t->links_capacity = t->n_links + n;
        t->links = dl_realloc(t->links, t->links_capacity * sizeof *t->links);
    }
    struct dl_link *const links = t->links + t->n_links;
    dl_network_add_link(net, spec);
    for (size_t i = 1; i < n; i++) links[i] = links[0];
    t->n_links += n - 1;
    net->n_links += (uint32_t)(n - 1);
}

void dl_network_hop(const struct dl_network *net, struct dl_route *route, uint32_t link, double weight)
{
    const uint32_t id = net->first_link + link;
    dl_route_add(route, id, weight);
    dl_route_pass(route, weight, net->topology->links[id].latency_s, DL_REACH_NETWORK);
}

struct common {
    const char *kind;
    bool reduces;
};
static const struct common common_defaults = {0};
static const struct dl_field common_fields[] = {
    {"kind", DL_TEXT, offsetof(struct common, kind), 0, 0, false, NULL, "kind of network"},
    {"reduces", DL_BOOL, offsetof(struct common, reduces), 0, 0, true, NULL, "switches can add (SHARP)"},
};

static enum dl_status read_options(struct dl_network *net, void **options, struct dl_arena *arena, struct dl_error *err)
{
    const char *names[DL_COUNT(networks) + 1] = {NULL};
    for (size_t i = 0; i < DL_COUNT(networks); i++) names[i] = networks[i]->name;
    int64_t chosen = 0;
    if (dl_read_kind(net->where, names, &chosen, arena, err)) return err->status;

    const struct dl_network_kind *const kind = networks[chosen];
    const struct dl_options own = {kind->fields, kind->n_fields, kind->options_size, kind->defaults};
    const struct dl_options common = {common_fields, DL_COUNT(common_fields), sizeof common_defaults, &common_defaults};
    struct dl_two_options both;
    if (dl_read_two(net->where, &own, &common, &both, arena, err)) return err->status;
    net->kind = kind;
    net->reduces = ((const struct common *)both.common)->reduces;
    *options = both.own;
    return DL_OK;
}

enum dl_status dl_network_read(struct dl_json object, struct dl_network *net, struct dl_arena *arena,
                               struct dl_error *err)
{
    void *options = NULL;
    net->where = object;
    if (!net->topology) return read_options(net, &options, arena, err);
    net->first_link = (uint32_t)net->topology->n_links;
    net->n_endpoints = net->n_nodes * net->endpoints_per_node;
    if (read_options(net, &options, arena, err)) return err->status;
    return net->kind->build(net, options, arena, err);
}

bool dl_network_reads_load(const struct dl_network *net)
{
    return net->kind && net->kind->reads_load && net->kind->reads_load(net);
}
