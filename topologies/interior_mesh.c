/* interior_mesh.c - links straight from device to device: NVLink hybrid cube mesh, xGMI. */
#include "topologies/interiors.h"

struct options {
    struct dl_json pairs;
    double lane_bytes_per_s, latency_s;
    const char *link;
    bool forwards;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"pairs", DL_LIST, offsetof(struct options, pairs), 0, 0, false, NULL,
     "[[a, b, lanes], ...] of devices; [a, b] has one lane"},
    {"lane_bytes_per_s", DL_NUMBER, offsetof(struct options, lane_bytes_per_s), 1, 1e18, false, NULL,
     "of one lane, per direction"},
    {"latency_s", DL_NUMBER, offsetof(struct options, latency_s), 0, 1, false, NULL, "of a link"},
    {"link", DL_TEXT, offsetof(struct options, link), 0, 0, false, NULL, "kind of link, as transport files name it"},
    {"forwards", DL_BOOL, offsetof(struct options, forwards), 0, 0, true, NULL,
     "devices forward the traffic of others; false if absent"},
};

enum { max_lanes = 1024 };

struct pair {
    json_int_t a, b, lanes;
};

static enum dl_status read_pair(struct dl_json from, struct pair *out, struct dl_error *err)
{
    *out = (struct pair){.lanes = 1};
    const size_t n = json_array_size(from.value);
    json_int_t *const places[] = {&out->a, &out->b, &out->lanes};
    if (n < 2 || n > DL_COUNT(places))
        return dl_fail(err, DL_TYPE, from.where, "must be [device, device, lanes], or two devices for one lane");
    for (size_t i = 0; i < n; i++) {
        const json_t *const item = json_array_get(from.value, i);
        if (!json_is_integer(item)) return dl_fail(err, DL_TYPE, from.where, "must hold whole numbers only");
        *places[i] = json_integer_value(item);
    }
    return DL_OK;
}

static enum dl_status check_pair(struct dl_json from, const struct pair *p, uint32_t n_devices, struct dl_error *err)
{
    const json_int_t outside = p->a < 0 || p->a >= n_devices ? p->a : p->b;
    if (outside < 0 || outside >= n_devices)
        return dl_fail(err, DL_RANGE, from.where, "there is no device %lld: the node's devices are 0 to %u",
                       (long long)outside, n_devices - 1);
    if (p->a == p->b)
        return dl_fail(err, DL_RANGE, from.where, "joins device %lld with itself: a pair needs two devices",
                       (long long)p->a);
    if (p->lanes < 1 || p->lanes > max_lanes)
        return dl_fail(err, DL_RANGE, from.where, "lanes must be in [1, %d], got %lld", max_lanes, (long long)p->lanes);
    return DL_OK;
}

static enum dl_status add_pair(struct dl_json from, const struct options *o, struct dl_node *node, bool *joined,
                               struct dl_error *err)
{
    struct pair p;
    const uint32_t n = node->n_devices;
    if (read_pair(from, &p, err) || check_pair(from, &p, n, err)) return err->status;
    if (joined[p.a * n + p.b])
        return dl_fail(err, DL_RANGE, from.where, "devices %lld and %lld are joined twice: add up their lanes",
                       (long long)p.a, (long long)p.b);
    joined[p.a * n + p.b] = joined[p.b * n + p.a] = true;
    dl_node_add_edge(node, (struct dl_edge){.a = (uint32_t)p.a,
                                            .b = (uint32_t)p.b,
                                            .lanes = (uint32_t)p.lanes,
                                            .bandwidth_bytes_per_s = (double)p.lanes * o->lane_bytes_per_s,
                                            .latency_s = o->latency_s,
                                            .link_kind = o->link,
                                            .reach = DL_REACH_DIRECT});
    return DL_OK;
}

static enum dl_status build(const void *options, struct dl_json part, struct dl_node *node, struct dl_arena *arena,
                            struct dl_error *err)
{
    (void)part;
    const struct options *const o = options;
    bool *const joined = dl_alloc((size_t)node->n_devices * node->n_devices);
    for (size_t i = 0; i < json_array_size(o->pairs.value); i++)
        if (add_pair(dl_json_element(o->pairs, i, arena), o, node, joined, err)) break;
    dl_free(joined);
    for (uint32_t device = 0; o->forwards && device < node->n_devices; device++) node->vertices[device].forwards = true;
    return err->status;
}

const struct dl_interior dl_interior_mesh = {
    .name = "mesh",
    .doc = "links between pairs of devices (NVLink cube mesh, xGMI)",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
};
