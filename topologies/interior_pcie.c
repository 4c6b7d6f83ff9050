/* interior_pcie.c - devices below PCIe switches below sockets, and the links between the sockets:
 *
 *        socket0 ------- socket1
 *        /     \         /     \
 *     pcie0   pcie1   pcie2   pcie3
 *      / \     / \     / \     / \
 *     0   1   2   3   4   5   6   7
 */
#include <math.h>

#include "topologies/interiors.h"

struct options {
    int64_t sockets, switches;
    double bandwidth_bytes_per_s, latency_s;
    double switch_bandwidth_bytes_per_s;
    double socket_bandwidth_bytes_per_s, socket_latency_s;
    const char *link;
};
static const struct options defaults = {
    .sockets = 1,
    .switch_bandwidth_bytes_per_s = NAN, /* not given */
    .socket_bandwidth_bytes_per_s = NAN,
    .socket_latency_s = NAN,
};
enum { max_sockets = 64 };
static const struct dl_field fields[] = {
    {"sockets", DL_INT, offsetof(struct options, sockets), 1, max_sockets, true, NULL,
     "joined all to all; 1 if absent"},
    {"switches", DL_INT, offsetof(struct options, switches), 0, DL_MAX_NODE_VERTICES, true, NULL,
     "of all sockets together; 0: devices are joined to the sockets; 0 if absent"},
    {"bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct options, bandwidth_bytes_per_s), 1, 1e18, false, NULL,
     "of a device's link, per direction"},
    {"latency_s", DL_NUMBER, offsetof(struct options, latency_s), 0, 1, false, NULL,
     "of a device's link and of a switch's to its socket"},
    {"link", DL_TEXT, offsetof(struct options, link), 0, 0, false, NULL, "kind of link, as transport files name it"},
    {"switch_bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct options, switch_bandwidth_bytes_per_s), 1, 1e18, true,
     NULL, "of a switch to its socket; needed with switches"},
    {"socket_bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct options, socket_bandwidth_bytes_per_s), 1, 1e18, true,
     NULL, "between two sockets; needed with several sockets"},
    {"socket_latency_s", DL_NUMBER, offsetof(struct options, socket_latency_s), 0, 1, true, NULL,
     "between two sockets; needed with several sockets"},
};

static enum dl_status needs(struct dl_json part, const char *key, int64_t count, const char *of_what,
                            struct dl_error *err)
{
    return dl_fail(err, DL_KEY, part.where, "needs the key '%s' for %lld %s", key, (long long)count, of_what);
}

static enum dl_status check_division(struct dl_json part, const char *below, int64_t n_below, const char *above,
                                     int64_t n_above, struct dl_error *err)
{
    if (n_below % n_above == 0) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, part.where, "%lld %s do not fall in equal parts to %lld %s", (long long)n_below,
                   below, (long long)n_above, above);
}

static enum dl_status check(const struct options *o, struct dl_json part, const struct dl_node *node,
                            struct dl_error *err)
{
    if (o->switches && isnan(o->switch_bandwidth_bytes_per_s))
        return needs(part, "switch_bandwidth_bytes_per_s", o->switches, "switches", err);
    if (o->sockets > 1 && isnan(o->socket_bandwidth_bytes_per_s))
        return needs(part, "socket_bandwidth_bytes_per_s", o->sockets, "sockets", err);
    if (o->sockets > 1 && isnan(o->socket_latency_s))
        return needs(part, "socket_latency_s", o->sockets, "sockets", err);
    if (!o->switches) return check_division(part, "devices", node->n_devices, "sockets", o->sockets, err);
    if (check_division(part, "switches", o->switches, "sockets", o->sockets, err)) return err->status;
    return check_division(part, "devices", node->n_devices, "switches", o->switches, err);
}

/* The hubs of one level, in the order of their making. */
static uint32_t *add_hubs(struct dl_node *node, const char *prefix, int64_t count, struct dl_arena *arena)
{
    uint32_t *const hubs = dl_arena_alloc(arena, (size_t)count * sizeof *hubs);
    for (int64_t i = 0; i < count; i++) hubs[i] = dl_interior_add_hub(node, prefix, false, arena);
    return hubs;
}

static struct dl_edge edge_of(const struct options *o, double bandwidth_bytes_per_s)
{
    return (struct dl_edge){.lanes = 1,
                            .bandwidth_bytes_per_s = bandwidth_bytes_per_s,
                            .latency_s = o->latency_s,
                            .link_kind = o->link,
                            .reach = DL_REACH_PCIE};
}

/* below[i] gets a parent among the n_above hubs; NULL stands for the devices, whose vertices are 0, 1, ... */
static void deal(struct dl_node *node, struct dl_edge edge, const uint32_t *below, int64_t n_below,
                 const uint32_t *above, int64_t n_above)
{
    for (int64_t i = 0; i < n_below; i++) {
        edge.a = below ? below[i] : (uint32_t)i;
        edge.b = above[i / (n_below / n_above)];
        dl_node_add_edge(node, edge);
    }
}

static enum dl_status build(const void *options, struct dl_json part, struct dl_node *node, struct dl_arena *arena,
                            struct dl_error *err)
{
    const struct options *const o = options;
    if (check(o, part, node, err)) return err->status;
    const uint32_t *const sockets = add_hubs(node, "socket", o->sockets, arena);
    for (int64_t i = 0; i < o->sockets; i++) node->vertices[sockets[i]].is_host = true;
    const struct dl_edge device_edge = edge_of(o, o->bandwidth_bytes_per_s);
    if (o->switches) {
        const uint32_t *const switches = add_hubs(node, "pcie", o->switches, arena);
        deal(node, device_edge, NULL, node->n_devices, switches, o->switches);
        deal(node, edge_of(o, o->switch_bandwidth_bytes_per_s), switches, o->switches, sockets, o->sockets);
    } else {
        deal(node, device_edge, NULL, node->n_devices, sockets, o->sockets);
    }
    struct dl_edge between = edge_of(o, o->socket_bandwidth_bytes_per_s);
    between.latency_s = o->socket_latency_s;
    for (int64_t i = 0; i < o->sockets; i++)
        for (int64_t j = i + 1; j < o->sockets; j++) {
            between.a = sockets[i];
            between.b = sockets[j];
            dl_node_add_edge(node, between);
        }
    return DL_OK;
}

const struct dl_interior dl_interior_pcie = {
    .name = "pcie",
    .doc = "devices below PCIe switches below sockets",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
};
