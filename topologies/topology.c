#include "topologies/topology.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topologies/networks.h"

#define MAX_DEVICES 2147483648.0 /* 2^31; NICs are counted alike */

enum { max_node_links = 1 << 25 }; /* so that a slip in a file is an error and not all of the memory */

struct options {
    int64_t nodes;
    const char *transport;
    double weight_memory_bytes;
    struct dl_json node, network, variability, reliability, storage, node_power, network_power, site;
};
static const struct options defaults = {.nodes = 1, .transport = "ideal"};
static const struct dl_field fields[] = {
    {"nodes", DL_INT, offsetof(struct options, nodes), 1, MAX_DEVICES, true, NULL, "number of nodes, all alike"},
    {"transport", DL_TEXT, offsetof(struct options, transport), 0, 0, true, NULL, "default transport file"},
    {"weight_memory_bytes", DL_NUMBER, offsetof(struct options, weight_memory_bytes), 1, 1e21, true, NULL,
     "for weights and optimizer states of all devices that stream them (MemoryX)"},
    {"node", DL_OBJECT, offsetof(struct options, node), 0, 0, false, NULL, "the inside of a node"},
    {"network", DL_OBJECT, offsetof(struct options, network), 0, 0, true, NULL, "what joins the nodes"},
    {"variability", DL_OBJECT, offsetof(struct options, variability), 0, 0, true, NULL,
     "devices that are slower than others"},
    {"reliability", DL_OBJECT, offsetof(struct options, reliability), 0, 0, true, NULL, "how often parts fail"},
    {"storage", DL_OBJECT, offsetof(struct options, storage), 0, 0, true, NULL, "a file system of all nodes"},
    {"node_power", DL_OBJECT, offsetof(struct options, node_power), 0, 0, true, NULL,
     "what a node draws besides its devices"},
    {"network_power", DL_OBJECT, offsetof(struct options, network_power), 0, 0, true, NULL, "what the network draws"},
    {"site", DL_OBJECT, offsetof(struct options, site), 0, 0, true, NULL, "what power means where the machine stands"},
};

uint16_t dl_topology_link_kind(struct dl_topology *t, const char *name)
{
    for (uint16_t k = 0; k < t->n_link_kinds; k++)
        if (t->link_kinds[k] == name || strcmp(t->link_kinds[k], name) == 0) return k;
    assert(t->n_link_kinds < DL_MAX_LINK_KINDS); /* nodes have few parts, networks few kinds of cables */
    t->link_kinds[t->n_link_kinds] = name;
    return t->n_link_kinds++;
}

static uint32_t links_per_node(const struct dl_topology *t) { return 2 * (uint32_t)t->node.n_edges; }

/* Endpoints of the network that a node has. */
static uint32_t endpoints_per_node(const struct dl_node *node) { return node->n_nics ? node->n_nics : node->n_devices; }

static enum dl_status check_size(const struct dl_topology *t, const struct options *o, struct dl_json doc,
                                 struct dl_error *err)
{
    const char *const where = dl_json_member(doc, "nodes", t->arena).where;
    const double nodes = (double)o->nodes;
    if (nodes * t->node.n_devices > MAX_DEVICES || nodes * endpoints_per_node(&t->node) > MAX_DEVICES)
        return dl_fail(err, DL_RANGE, where, "%lld nodes of %u devices and %u NICs are more than 2^31 of them",
                       (long long)o->nodes, t->node.n_devices, t->node.n_nics);
    const uint32_t n_links = links_per_node(t) + dl_node_storage_links(&t->node.storage);
    if (nodes * n_links > max_node_links)
        return dl_fail(err, DL_RANGE, where, "%lld nodes of %u links each are more than the %d that dlsim keeps",
                       (long long)o->nodes, n_links, max_node_links);
    if (o->nodes > 1 && !o->network.value)
        return dl_fail(err, DL_IMPOSSIBLE, where,
                       "%lld nodes need the key 'network' to be joined by; without it there is 1 node",
                       (long long)o->nodes);
    return DL_OK;
}

static void add_node_links(struct dl_topology *t)
{
    const size_t per_node = links_per_node(t);
    t->host_link_kind = DL_MAX_LINK_KINDS;
    t->n_links = t->links_capacity = t->n_nodes * per_node;
    if (!t->n_links) return;
    t->links = dl_alloc(t->n_links * sizeof *t->links);
    for (size_t i = 0; i < per_node; i++) {
        const struct dl_edge *const edge = &t->node.edges[i / 2];
        t->links[i] = (struct dl_link){.bandwidth_bytes_per_s = edge->bandwidth_bytes_per_s,
                                       .latency_s = edge->latency_s,
                                       .kind = dl_topology_link_kind(t, edge->link_kind)};
        if (t->node.vertices[edge->b].kind == DL_HOST) t->host_link_kind = t->links[i].kind;
    }
    for (size_t node = 1; node < t->n_nodes; node++)
        memcpy(t->links + node * per_node, t->links, per_node * sizeof *t->links);
}

/* A slice smaller than a node has only a part of its devices. */
static void cut(struct dl_topology *t, const struct dl_pod_slice *slice)
{
    t->n_whole_devices = t->n_devices;
    if (!slice) return;
    if (slice->n_devices < t->node.n_devices) t->node.n_devices = slice->n_devices;
    t->n_nodes = slice->n_devices / t->node.n_devices;
    t->n_devices = slice->n_devices;
}

static enum dl_status read_power(struct dl_topology *t, const struct options *o, struct dl_error *err)
{
    if ((o->node_power.value && dl_node_power_read(o->node_power, t->arena, &t->node_power, err) && !dl_go_on(err)) ||
        (o->network_power.value && dl_network_power_read(o->network_power, t->arena, &t->network_power, err) &&
         !dl_go_on(err)) ||
        (o->site.value && dl_facility_read(o->site, t->arena, &t->site, err) && !dl_go_on(err)))
        return err->status;
    return DL_OK;
}

/* The document and its node. The network depends on both, but its keys can be told wrong without them. */
static enum dl_status read_parts(struct dl_topology *t, struct options *o, struct dl_error *err)
{
    const size_t told = err->n_told;
    if (dl_read_document(t->doc, "system", fields, DL_COUNT(fields), o, t->arena, err) && !dl_go_on(err))
        return err->status;
    if (o->node.value && dl_node_read(o->node, &t->node, t->arena, err) && !dl_go_on(err)) return err->status;
    if (dl_variability_read(o->variability, &t->variability, t->arena, err) && !dl_go_on(err)) return err->status;
    if (dl_reliability_read(o->reliability, &t->reliability, t->arena, err) && !dl_go_on(err)) return err->status;
    if (dl_storage_read(o->storage, &t->storage, t->arena, err) && !dl_go_on(err)) return err->status;
    if (read_power(t, o, err)) return err->status;
    if (err->n_told == told) return DL_OK;
    struct dl_network unjoined = {0};
    if (o->network.value && dl_network_read(o->network, &unjoined, t->arena, err)) dl_go_on(err);
    return dl_stop_if_told(err, told);
}

static enum dl_status join_nodes(struct dl_topology *t, const struct options *o, const struct dl_pod_slice *slice,
                                 struct dl_error *err)
{
    t->network.topology = t;
    t->network.n_nodes = t->n_nodes;
    t->network.endpoints_per_node = endpoints_per_node(&t->node);
    t->network.slice = slice;
    return dl_network_read(o->network, &t->network, t->arena, err);
}

static enum dl_status build(struct dl_topology *t, const struct dl_pod_slice *slice, struct dl_error *err)
{
    struct options o = defaults;
    if (read_parts(t, &o, err) || check_size(t, &o, t->doc, err)) return err->status;
    t->name = dl_document_name(t->doc, t->arena);
    t->transport = o.transport;
    t->weight_memory_bytes = o.weight_memory_bytes;
    t->n_nodes = (uint32_t)o.nodes;
    t->n_devices = t->n_nodes * t->node.n_devices;
    cut(t, slice);
    add_node_links(t);
    if (o.network.value && join_nodes(t, &o, slice, err)) return err->status;
    dl_topology_add_storage(t);
    return DL_OK;
}

static enum dl_status read_part(struct dl_json doc, const struct dl_pod_slice *slice, struct dl_arena *arena,
                                struct dl_topology **out, struct dl_error *err)
{
    struct dl_topology *const t = dl_alloc(sizeof *t);
    t->arena = arena;
    t->doc = doc;
    t->condition = dl_alloc(sizeof *t->condition);
    if (build(t, slice, err)) {
        dl_topology_free(t);
        return err->status;
    }
    *out = t;
    return DL_OK;
}

enum dl_status dl_topology_read(struct dl_json doc, struct dl_arena *arena, struct dl_topology **out,
                                struct dl_error *err)
{
    return read_part(doc, NULL, arena, out, err);
}

uint32_t dl_topology_slice_devices(const struct dl_topology *t, uint32_t n_devices)
{
    const struct dl_pod_slice *const slice = dl_slice_for(&t->network.slices, n_devices);
    if (!t->network.slices.n) return t->n_devices;
    return slice ? slice->n_devices : t->n_whole_devices;
}

enum dl_status dl_topology_slice(const struct dl_topology *t, uint32_t n_devices, struct dl_topology **out,
                                 struct dl_error *err)
{
    const struct dl_pod_slice *const slice = dl_slice_for(&t->network.slices, n_devices);
    *out = NULL;
    if (dl_topology_slice_devices(t, n_devices) == t->n_devices) return DL_OK;
    return read_part(t->doc, slice, t->arena, out, err);
}

void dl_topology_free(struct dl_topology *t)
{
    if (!t) return;
    dl_node_release(&t->node);
    dl_condition_release(t->condition);
    dl_free(t->condition);
    dl_free(t->links);
    dl_free(t);
}

/* A link that is as fast as several of an endpoint stands for as many cables: trees keep those that are used alike as
 * one. */
static double cables_of(const struct dl_topology *t, uint32_t link)
{
    const struct dl_link *const links = t->links + t->network.first_link;
    return fmax(1, links[link].bandwidth_bytes_per_s / links[0].bandwidth_bytes_per_s);
}

/* A cable is two links, so that it and each of its ends are met twice. */
struct dl_cabling dl_topology_cabling(const struct dl_topology *t)
{
    const struct dl_network *const net = &t->network;
    struct dl_cabling all = {0};
    for (uint32_t link = 0; net->kind && link < net->n_links; link++) {
        const struct dl_link_ends ends = net->kind->ends(net, link);
        const double cables = cables_of(t, link) / 2;
        all.cables += cables;
        all.switch_ports += cables * ((ends.from >= net->n_endpoints) + (ends.to >= net->n_endpoints));
    }
    return all;
}

/* A device as routing sees it. */
struct place {
    uint32_t device, node, slot;
    uint32_t first_link; /* of its node */
};

static struct place place_of(const struct dl_topology *t, uint32_t device)
{
    const uint32_t node = dl_topology_node_of(t, device);
    return (struct place){device, node, device - node * t->node.n_devices, node * links_per_node(t)};
}

static enum dl_status no_way(const struct dl_topology *t, const struct place *from, const struct place *to,
                             const char *advice, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, t->name,
                   "no way from device %u (node%u: device%u) to device %u (node%u: device%u): %s", from->device,
                   from->node, from->slot, to->device, to->node, to->slot, advice);
}

/* Device -> its NIC -> network -> the other's NIC -> the other. */
static enum dl_status route_by_nics(const struct dl_topology *t, const struct place *from, const struct place *to,
                                    uint64_t key, const struct dl_load *load, struct dl_route *out,
                                    struct dl_error *err)
{
    static const char advice[] = "a device has no way to its NIC; join them by a part or let the mesh forward";
    const struct dl_node *const node = &t->node;
    const uint32_t from_nic = node->device_nic[from->slot], to_nic = node->device_nic[to->slot];
    if (from_nic == UINT32_MAX || to_nic == UINT32_MAX ||
        !dl_node_route(node, from->slot, node->nic_vertex[from_nic], from->first_link, out))
        return no_way(t, from, to, advice, err);
    const uint32_t source = from->node * node->n_nics + from_nic, target = to->node * node->n_nics + to_nic;
    /* Equal only where the other has no way to the NIC, else they had met inside. */
    if (source != target && t->network.kind->route(&t->network, source, target, key, load, out, err))
        return err->status;
    if (!dl_node_route(node, node->nic_vertex[to_nic], to->slot, to->first_link, out))
        return no_way(t, from, to, advice, err);
    return DL_OK;
}

static enum dl_status route_as_usual(const struct dl_topology *t, uint32_t from, uint32_t to, uint64_t key,
                                     const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    const struct place a = place_of(t, from), b = place_of(t, to);
    if (a.node == b.node && dl_node_route(&t->node, a.slot, b.slot, a.first_link, out)) return DL_OK;
    if (!t->network.kind) return no_way(t, &a, &b, "join them by a part, or let the mesh forward", err);
    if (t->node.n_nics) return route_by_nics(t, &a, &b, key, load, out, err);
    return t->network.kind->route(&t->network, from, to, key, load, out, err);
}

enum dl_status dl_topology_route(const struct dl_topology *t, uint32_t from, uint32_t to, uint64_t key,
                                 const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    assert(from != to && from < t->n_devices && to < t->n_devices);
    dl_route_clear(out);
    if (route_as_usual(t, from, to, key, load, out, err)) return err->status;
    if (dl_crosses_failed(t->condition, out)) dl_route_around(t, (struct dl_trip){from, to, key}, out);
    return DL_OK;
}

void dl_topology_link_name(const struct dl_topology *t, uint32_t link, char *name, size_t bytes)
{
    const uint32_t per_node = links_per_node(t);
    if (dl_is_storage_link(t, link)) {
        dl_storage_link_name(t, link, name, bytes);
        return;
    }
    if (t->network.kind && link >= t->network.first_link) {
        t->network.kind->name_link(&t->network, link - t->network.first_link, name, bytes);
        return;
    }
    const uint32_t local = link % per_node;
    const struct dl_edge *const edge = &t->node.edges[local / 2];
    const uint32_t from = local % 2 ? edge->b : edge->a, to = local % 2 ? edge->a : edge->b;
    snprintf(name, bytes, "node%u: %s -> %s", link / per_node, t->node.vertices[from].name, t->node.vertices[to].name);
}

/* The range of links that a name can belong to: those of one node, or those of the network. */
static void range_of(const struct dl_topology *t, const char *name, size_t *first, size_t *end)
{
    unsigned node;
    int length = 0;
    const size_t per_node = links_per_node(t);
    *first = t->n_nodes * per_node;
    *end = t->n_links;
    if (sscanf(name, "node%9u: %n", &node, &length) != 1 || !length || node >= t->n_nodes) return;
    *first = node * per_node;
    *end = *first + per_node;
}

/* Which is not among the others of its node. */
static uint32_t find_node_storage(const struct dl_topology *t, const char *name)
{
    unsigned node;
    char candidate[256];
    if (sscanf(name, "node%9u: ", &node) != 1 || node >= t->n_nodes) return UINT32_MAX;
    for (int out_of_it = 0; out_of_it < 2; out_of_it++) {
        const uint32_t link = dl_node_storage_link(t, node, out_of_it);
        if (link == UINT32_MAX) continue;
        dl_storage_link_name(t, link, candidate, sizeof candidate);
        if (strcmp(candidate, name) == 0) return link;
    }
    return UINT32_MAX;
}

uint32_t dl_topology_find_link(const struct dl_topology *t, const char *name)
{
    size_t first, end;
    range_of(t, name, &first, &end);
    char candidate[256];
    for (size_t link = first; link < end; link++) {
        dl_topology_link_name(t, (uint32_t)link, candidate, sizeof candidate);
        if (strcmp(candidate, name) == 0) return (uint32_t)link;
    }
    return find_node_storage(t, name);
}
