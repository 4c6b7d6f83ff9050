#include "topologies/node.h"

#include <string.h>

#include "topologies/interiors.h"
#include "topologies/node_paths.h"

enum {
    max_parts = 32,             /* each brings at most one kind of link, so that these stay few */
    max_edges = DL_NO_LINK / 2, /* so that every directed link has a number below DL_NO_LINK */
};

uint32_t dl_node_add_vertex(struct dl_node *node, struct dl_vertex vertex)
{
    DL_GROW(node->vertices, node->n_vertices, node->vertices_capacity);
    node->vertices[node->n_vertices] = vertex;
    return (uint32_t)node->n_vertices++;
}

void dl_node_add_edge(struct dl_node *node, struct dl_edge edge)
{
    DL_GROW(node->edges, node->n_edges, node->edges_capacity);
    node->edges[node->n_edges++] = edge;
}

uint32_t dl_node_find(const struct dl_node *node, const char *name)
{
    for (uint32_t v = 0; v < node->n_vertices; v++)
        if (strcmp(node->vertices[v].name, name) == 0) return v;
    return UINT32_MAX;
}

static enum dl_status check_size(const struct dl_node *node, struct dl_json where, struct dl_error *err)
{
    if (node->n_vertices > DL_MAX_NODE_VERTICES)
        return dl_fail(err, DL_RANGE, where.where,
                       "brings the node to %zu devices, hubs, NICs and host; it may have %d", node->n_vertices,
                       DL_MAX_NODE_VERTICES);
    if (node->n_edges > max_edges)
        return dl_fail(err, DL_RANGE, where.where, "brings the node to %zu links; it may have %d", node->n_edges,
                       max_edges);
    return DL_OK;
}

/* If any errors have been told since `told` were, the parts are read but not built. */
static enum dl_status read_parts(struct dl_json parts, struct dl_node *node, size_t told, struct dl_arena *arena,
                                 struct dl_error *err)
{
    const size_t n = json_array_size(parts.value);
    if (n > max_parts) return dl_fail(err, DL_RANGE, parts.where, "has %zu parts; a node may have %d", n, max_parts);
    for (size_t i = 0; i < n; i++) {
        const struct dl_json part = dl_json_element(parts, i, arena);
        struct dl_node *const whole = err->n_told > told ? NULL : node; /* later parts stand on those before */
        if ((dl_interior_read(part, whole, arena, err) || check_size(node, part, err)) && !dl_go_on(err)) break;
    }
    return dl_stop_if_told(err, told);
}

struct nics {
    int64_t count;
    struct dl_json attach;
    const char *link;
    double bandwidth_bytes_per_s, latency_s;
    struct dl_int_list affinity;
};
static const struct dl_field nic_fields[] = {
    {"count", DL_INT, offsetof(struct nics, count), 1, DL_MAX_NODE_VERTICES, false, NULL, "NICs of a node"},
    {"attach", DL_LIST, offsetof(struct nics, attach), 0, 0, false, NULL, "per NIC: the device or hub it is joined to"},
    {"link", DL_TEXT, offsetof(struct nics, link), 0, 0, false, NULL, "kind of link, for transports"},
    {"bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct nics, bandwidth_bytes_per_s), 1, 1e18, false, NULL,
     "of the link between a NIC and what it is joined to, per direction"},
    {"latency_s", DL_NUMBER, offsetof(struct nics, latency_s), 0, 1, false, NULL, "of that link"},
    {"affinity", DL_INT_LIST, offsetof(struct nics, affinity), 0, DL_MAX_NODE_VERTICES, true, NULL,
     "per device: the NIC that serves it; absent: the nearest, least used"},
};

static enum dl_status no_such_vertex(const struct dl_node *node, struct dl_json name, size_t n_candidates,
                                     struct dl_arena *arena, struct dl_error *err)
{
    const char **const names = dl_arena_alloc(arena, n_candidates * sizeof *names);
    for (size_t v = 0; v < n_candidates; v++) names[v] = node->vertices[v].name;
    const char *const wrong = json_string_value(name.value);
    const char *const nearest = dl_nearest(wrong, names, n_candidates);
    if (nearest)
        return dl_fail(err, DL_NOT_FOUND, name.where, "the node has no '%.60s', did you mean '%s'?", wrong, nearest);
    return dl_fail(err, DL_NOT_FOUND, name.where, "the node has no '%.60s': name a device (device0) or a hub of a part",
                   wrong);
}

static enum dl_status attach_nic(const struct nics *nics, size_t index, struct dl_node *node, struct dl_arena *arena,
                                 struct dl_error *err)
{
    const struct dl_json name = dl_json_element(nics->attach, index, arena);
    if (!json_is_string(name.value))
        return dl_fail(err, DL_TYPE, name.where, "must be the name of a device (\"device0\") or of a hub");
    const uint32_t at = dl_node_find(node, json_string_value(name.value));
    const size_t n_others = node->n_vertices - index;
    if (at >= n_others) return no_such_vertex(node, name, n_others, arena, err); /* NICs are joined to no NIC */
    const char *const nic_name = dl_arena_format(arena, "nic%zu", index);
    node->nic_vertex[index] = dl_node_add_vertex(node, (struct dl_vertex){.kind = DL_NIC, .name = nic_name});
    dl_node_add_edge(node, (struct dl_edge){.a = at,
                                            .b = node->nic_vertex[index],
                                            .lanes = 1,
                                            .bandwidth_bytes_per_s = nics->bandwidth_bytes_per_s,
                                            .latency_s = nics->latency_s,
                                            .link_kind = nics->link,
                                            .reach = DL_REACH_PCIE});
    return DL_OK;
}

static enum dl_status read_affinity(const struct nics *nics, struct dl_json where, struct dl_node *node,
                                    struct dl_error *err)
{
    if (nics->affinity.n != node->n_devices)
        return dl_fail(err, DL_RANGE, where.where, "must hold one NIC for each of the %u devices, got %zu",
                       node->n_devices, nics->affinity.n);
    for (uint32_t device = 0; device < node->n_devices; device++) {
        const int64_t nic = nics->affinity.items[device];
        if (nic >= node->n_nics)
            return dl_fail(err, DL_RANGE, where.where, "gives device %u NIC %lld; the NICs are 0 to %u", device,
                           (long long)nic, node->n_nics - 1);
        node->device_nic[device] = (uint32_t)nic;
    }
    return DL_OK;
}

static enum dl_status add_nics(const struct nics *nics, struct dl_json object, struct dl_node *node,
                               struct dl_arena *arena, struct dl_error *err)
{
    node->n_nics = (uint32_t)nics->count;
    node->nic_vertex = dl_arena_alloc(arena, node->n_nics * sizeof *node->nic_vertex);
    node->device_nic = dl_arena_alloc(arena, node->n_devices * sizeof *node->device_nic);
    if (json_array_size(nics->attach.value) != node->n_nics)
        return dl_fail(err, DL_RANGE, nics->attach.where, "must name one place for each of the %u NICs, got %zu",
                       node->n_nics, json_array_size(nics->attach.value));
    for (size_t i = 0; i < node->n_nics; i++)
        if (attach_nic(nics, i, node, arena, err)) return err->status;
    return check_size(node, object, err);
}

static enum dl_status finish(const struct nics *nics, struct dl_json object, struct dl_node *node,
                             struct dl_arena *arena, struct dl_error *err)
{
    dl_node_find_paths(node);
    node->device_host = dl_arena_alloc(arena, node->n_devices * sizeof *node->device_host);
    dl_node_assign_hosts(node);
    if (!node->n_nics) return DL_OK;
    if (nics->affinity.items) return read_affinity(nics, dl_json_member(object, "affinity", arena), node, err);
    dl_node_assign_nics(node);
    return DL_OK;
}

static const struct dl_field host_fields[] = {
    {"link_bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct dl_node_host, link_bandwidth_bytes_per_s), 1, 1e18, true,
     NULL, "of each device to the host, per direction, all at once; absent: as the PCIe part gives"},
    {"link_latency_s", DL_NUMBER, offsetof(struct dl_node_host, link_latency_s), 0, 1, true, NULL, "of that link"},
    {"memory_bytes", DL_NUMBER, offsetof(struct dl_node_host, memory_bytes), 1, 1e18, true, NULL, "of the host"},
    {"memory_bytes_per_s", DL_NUMBER, offsetof(struct dl_node_host, memory_bytes_per_s), 1, 1e18, true, NULL,
     "that the host's memory sustains"},
    {"slowdown", DL_NUMBER, offsetof(struct dl_node_host, slowdown), 0.05, 20, true, NULL,
     "times of the host that software files tell are so many times as long here; 1 if absent"},
};

/* A path of its own for each device. Without a bandwidth there is none, and sockets of a PCIe part are the host. */
static enum dl_status add_host(struct dl_json object, struct dl_node *node, struct dl_error *err)
{
    if (node->host.link_bandwidth_bytes_per_s == 0) return DL_OK;
    const uint32_t host =
        dl_node_add_vertex(node, (struct dl_vertex){.kind = DL_HOST, .name = "host", .is_host = true});
    for (uint32_t device = 0; device < node->n_devices; device++)
        dl_node_add_edge(node, (struct dl_edge){.a = device,
                                                .b = host,
                                                .lanes = 1,
                                                .bandwidth_bytes_per_s = node->host.link_bandwidth_bytes_per_s,
                                                .latency_s = node->host.link_latency_s,
                                                .link_kind = "host copies",
                                                .reach = DL_REACH_PCIE});
    return check_size(node, object, err);
}

struct options {
    const char *device;
    int64_t devices;
    struct dl_json parts, nics, host, storage;
};
static const struct dl_field fields[] = {
    {"device", DL_TEXT, offsetof(struct options, device), 0, 0, false, NULL, "name of the device file"},
    {"devices", DL_INT, offsetof(struct options, devices), 1, DL_MAX_NODE_VERTICES, false, NULL, "devices of a node"},
    {"parts", DL_LIST, offsetof(struct options, parts), 0, 0, true, NULL, "what joins the devices"},
    {"nics", DL_OBJECT, offsetof(struct options, nics), 0, 0, true, NULL, "what joins the node to the network"},
    {"host", DL_OBJECT, offsetof(struct options, host), 0, 0, true, NULL, "the computer that the devices are in"},
    {"storage", DL_OBJECT, offsetof(struct options, storage), 0, 0, true, NULL, "drives of the node's own"},
};

enum dl_status dl_node_read(struct dl_json object, struct dl_node *node, struct dl_arena *arena, struct dl_error *err)
{
    struct options o = {0};
    struct nics nics = {0};
    const size_t told = err->n_told;
    *node = (struct dl_node){0};
    if (dl_read(object, fields, DL_COUNT(fields), &o, arena, err) && !dl_go_on(err)) return err->status;
    node->device = o.device;
    node->n_devices = (uint32_t)o.devices;
    for (uint32_t i = 0; i < node->n_devices; i++)
        dl_node_add_vertex(node, (struct dl_vertex){.kind = DL_DEVICE, .name = dl_arena_format(arena, "device%u", i)});
    if ((read_parts(o.parts, node, told, arena, err) && !dl_go_on(err)) ||
        (o.host.value && dl_read(o.host, host_fields, DL_COUNT(host_fields), &node->host, arena, err) &&
         !dl_go_on(err)) ||
        (dl_storage_read(o.storage, &node->storage, arena, err) && !dl_go_on(err)) ||
        (o.nics.value && dl_read(o.nics, nic_fields, DL_COUNT(nic_fields), &nics, arena, err) && !dl_go_on(err)) ||
        dl_stop_if_told(err, told) || (o.nics.value && add_nics(&nics, o.nics, node, arena, err)) ||
        add_host(o.host, node, err))
        return err->status;
    return finish(&nics, o.nics, node, arena, err);
}

void dl_node_release(struct dl_node *node)
{
    dl_free(node->vertices);
    dl_free(node->edges);
    dl_free(node->first_edge);
    *node = (struct dl_node){0};
}
