/* interior_torus.c - devices joined to their neighbours along the dimensions of a torus: a pod of TPUs as one node. */
#include "topologies/interiors.h"

struct options {
    struct dl_int_list dimensions;
    double lane_bytes_per_s, latency_s;
    const char *link;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"dimensions", DL_INT_LIST, offsetof(struct options, dimensions), 1, DL_MAX_NODE_VERTICES, false, NULL,
     "devices along each dimension; the first varies fastest with their number"},
    {"lane_bytes_per_s", DL_NUMBER, offsetof(struct options, lane_bytes_per_s), 1, 1e18, false, NULL,
     "of a link, per direction"},
    {"latency_s", DL_NUMBER, offsetof(struct options, latency_s), 0, 1, false, NULL, "of a link"},
    {"link", DL_TEXT, offsetof(struct options, link), 0, 0, false, NULL, "kind of link, as transport files name it"},
};

static enum dl_status check_size(const struct options *o, struct dl_json part, uint32_t n_devices,
                                 struct dl_arena *arena, struct dl_error *err)
{
    int64_t product = 1;
    for (size_t d = 0; d < o->dimensions.n && product <= n_devices; d++) product *= o->dimensions.items[d];
    if (product == n_devices) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(part, "dimensions", arena).where,
                   "must multiply to the node's %u devices", n_devices);
}

/* A ring of two has one link. */
static void join_along(struct dl_node *node, const struct options *o, uint32_t stride, uint32_t size)
{
    for (uint32_t device = 0; device < node->n_devices; device++) {
        const bool is_last = device / stride % size == size - 1;
        if (size == 1 || (is_last && size == 2)) continue;
        const struct dl_edge edge = {.a = device,
                                     .b = is_last ? device - (size - 1) * stride : device + stride,
                                     .lanes = 1,
                                     .bandwidth_bytes_per_s = o->lane_bytes_per_s,
                                     .latency_s = o->latency_s,
                                     .link_kind = o->link,
                                     .reach = DL_REACH_DIRECT};
        dl_node_add_edge(node, edge);
    }
}

static enum dl_status build(const void *options, struct dl_json part, struct dl_node *node, struct dl_arena *arena,
                            struct dl_error *err)
{
    const struct options *const o = options;
    if (check_size(o, part, node->n_devices, arena, err)) return err->status;
    node->torus = o->dimensions;
    for (uint32_t d = 0, stride = 1; d < o->dimensions.n; stride *= (uint32_t)o->dimensions.items[d++])
        join_along(node, o, stride, (uint32_t)o->dimensions.items[d]);
    for (uint32_t device = 0; device < node->n_devices; device++) node->vertices[device].forwards = true;
    return DL_OK;
}

const struct dl_interior dl_interior_torus = {
    .name = "torus",
    .doc = "links between neighbours along dimensions that close to rings (a TPU pod as one node)",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
};
