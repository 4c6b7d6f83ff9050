#include "topologies/transport.h"

#include <math.h>
#include <string.h>

#include "sim/core/facts.h"

struct options {
    bool adds_wire_latency, pipelines;
    int64_t port_busy;
    double fill, drain, relay_efficiency, reduction_s_per_byte, pack_s_per_byte, piece_bytes;
    struct dl_json efficiency, algorithms, protocols;
    const char *tuner;
};
enum { PORT_BYTES, PORT_MESSAGE };
static const char *const port_uses[] = {[PORT_BYTES] = "bytes", [PORT_MESSAGE] = "message", NULL};
static const struct options defaults = {.adds_wire_latency = true, .relay_efficiency = 1};
static const struct dl_field fields[] = {
    {"adds_wire_latency", DL_BOOL, offsetof(struct options, adds_wire_latency), 0, 0, true, NULL,
     "links' latencies come on top of the steps'"},
    {"fill", DL_NUMBER, offsetof(struct options, fill), 0, 10, true, NULL, "factor of the pipeline fill"},
    {"drain", DL_NUMBER, offsetof(struct options, drain), 0, 10, true, NULL, "steps that the last piece needs"},
    {"relay_efficiency", DL_NUMBER, offsetof(struct options, relay_efficiency), 0.01, 1, true, NULL,
     "of a hop that another device passes on"},
    {"reduction_s_per_byte", DL_NUMBER, offsetof(struct options, reduction_s_per_byte), 0, 1, true, NULL,
     "time to add one byte of what has come (gamma)"},
    {"pack_s_per_byte", DL_NUMBER, offsetof(struct options, pack_s_per_byte), 0, 1, true, NULL,
     "time to pack or unpack one dense byte of a lossy payload"},
    {"pipelines", DL_BOOL, offsetof(struct options, pipelines), 0, 0, true, NULL,
     "cuts trees and chains into small pieces"},
    {"piece_bytes", DL_NUMBER, offsetof(struct options, piece_bytes), 1, 1e12, true, NULL, "size of these pieces"},
    {"port_busy", DL_CHOICE, offsetof(struct options, port_busy), 0, 0, true, port_uses,
     "how long a message holds its ranks' ports: while its bytes move, or from its start to its arrival"},
    {"efficiency", DL_OBJECT, offsetof(struct options, efficiency), 0, 0, true, NULL,
     "achieved part of the bandwidth, by kind of link"},
    {"algorithms", DL_LIST, offsetof(struct options, algorithms), 0, 0, true, NULL, "those that the software has"},
    {"tuner", DL_TEXT, offsetof(struct options, tuner), 0, 0, true, NULL,
     "whose choice among algorithms is imitated; absent: the least estimate is chosen"},
    {"protocols", DL_LIST, offsetof(struct options, protocols), 0, 0, false, NULL, "ways to send"},
};

struct protocol_options {
    const char *name;
    double bandwidth_fraction;
    struct dl_json network_s, never_on, above, peer, tree, in_switch;
};
static const struct dl_field protocol_fields[] = {
    {"name", DL_TEXT, offsetof(struct protocol_options, name), 0, 0, false, NULL, "name"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct protocol_options, bandwidth_fraction), 0.01, 1, true, NULL,
     "payload per byte on the wire"},
    {"network_s", DL_OBJECT, offsetof(struct protocol_options, network_s), 0, 0, true, NULL,
     "more per message, by kind of network link"},
    {"never_on", DL_LIST, offsetof(struct protocol_options, never_on), 0, 0, true, NULL,
     "kinds of network link on which it does not work"},
    {"above", DL_OBJECT, offsetof(struct protocol_options, above), 0, 0, true, NULL,
     "what differs for messages of more than some bytes"},
    {"peer", DL_OBJECT, offsetof(struct protocol_options, peer), 0, 0, true, NULL, "rings and plain messages"},
    {"tree", DL_OBJECT, offsetof(struct protocol_options, tree), 0, 0, true, NULL, "trees"},
    {"switch", DL_OBJECT, offsetof(struct protocol_options, in_switch), 0, 0, true, NULL, "sums made by switches"},
};

struct family_options {
    double start_s, direct_s, pcie_s, network_s, port_fraction;
    struct dl_json pump, channel;
};
static const struct dl_field family_fields[] = {
    {"start_s", DL_NUMBER, offsetof(struct family_options, start_s), 0, 1, true, NULL, "once a collective"},
    {"direct_s", DL_NUMBER, offsetof(struct family_options, direct_s), 0, 1, true, NULL, "a message in the node"},
    {"pcie_s", DL_NUMBER, offsetof(struct family_options, pcie_s), 0, 1, true, NULL, "a message over PCIe"},
    {"network_s", DL_NUMBER, offsetof(struct family_options, network_s), 0, 1, true, NULL,
     "a message over the network"},
    {"pump_bytes_per_s", DL_OBJECT, offsetof(struct family_options, pump), 0, 0, true, NULL,
     "payload that a device's kernel moves, by kind of link in the node; a list: on 1, 2, more nodes"},
    {"presumed_channel_bytes_per_s", DL_OBJECT, offsetof(struct family_options, channel), 0, 0, true, NULL,
     "the same, as the software takes it for each NIC of a group when it chooses among algorithms"},
    {"pump_port_fraction", DL_NUMBER, offsetof(struct family_options, port_fraction), 0, 1, true, NULL,
     "the same as a part of the bandwidth of a device's port"},
};

struct above_options {
    double bytes, bandwidth_fraction, direct_s, pcie_s, network_s;
};
static const struct dl_field above_fields[] = {
    {"bytes", DL_NUMBER, offsetof(struct above_options, bytes), 1, 1e15, false, NULL,
     "the largest message that goes the usual way"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct above_options, bandwidth_fraction), 0.01, 1, true, NULL,
     "payload per byte on the wire"},
    {"direct_s", DL_NUMBER, offsetof(struct above_options, direct_s), 0, 1, true, NULL, "a message in the node"},
    {"pcie_s", DL_NUMBER, offsetof(struct above_options, pcie_s), 0, 1, true, NULL, "a message over PCIe"},
    {"network_s", DL_NUMBER, offsetof(struct above_options, network_s), 0, 1, true, NULL, "a message over the network"},
};

/* ---- figures by kind of link: {"nvlink3": x, "*": y} ---- */

static struct dl_json entry_for(struct dl_json table, const char *kind, struct dl_arena *arena)
{
    const struct dl_json entry = dl_json_member(table, kind, arena);
    return entry.value ? entry : dl_json_member(table, "*", arena);
}

static enum dl_status number_for(struct dl_json table, const char *kind, double min, double max, double otherwise,
                                 double *out, struct dl_arena *arena, struct dl_error *err)
{
    *out = otherwise;
    const struct dl_json entry = table.value && kind ? entry_for(table, kind, arena) : (struct dl_json){0};
    if (!entry.value) return DL_OK;
    *out = json_number_value(entry.value);
    if (json_is_number(entry.value) && *out >= min && *out <= max) return DL_OK;
    return dl_fail(err, DL_RANGE, entry.where, "must be a number in [%g, %g]", min, max);
}

static enum dl_status check_number(struct dl_json item, double min, double max, struct dl_error *err)
{
    const double x = json_number_value(item.value);
    if (!json_is_number(item.value)) return dl_fail(err, DL_TYPE, item.where, "must be a number");
    if (!(x >= min && x <= max)) return dl_fail(err, DL_RANGE, item.where, "must be a number in [%g, %g]", min, max);
    return DL_OK;
}

/* Every entry is looked at, also those of links that this machine does not have. */
static enum dl_status check_table(struct dl_json table, double min, double max, struct dl_arena *arena,
                                  struct dl_error *err)
{
    const char *key;
    json_t *value;
    const size_t told = err->n_told;
    if (table.value && dl_json_check_facts(table, arena, err) && !dl_go_on(err)) return err->status;
    json_object_foreach(table.value, key, value)
    {
        if (strcmp(key, "facts") == 0) continue;
        const struct dl_json entry = dl_json_member(table, key, arena);
        const size_t n = json_array_size(value);
        if (n == 0 && check_number(entry, min, max, err) && !dl_go_on(err)) return err->status;
        for (size_t i = 0; i < n; i++)
            if (check_number(dl_json_element(entry, i, arena), min, max, err) && !dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}

/* ---- the machine as the software sees it ---- */

const char *dl_transport_network_link(const struct dl_topology *t)
{
    return t->network.n_links ? t->link_kinds[t->links[t->network.first_link].kind] : NULL;
}

const char *dl_transport_device_link(const struct dl_topology *t)
{
    for (size_t e = 0; e < t->node.n_edges; e++)
        if (t->node.edges[e].reach == DL_REACH_DIRECT) return t->node.edges[e].link_kind;
    const bool has_parts = t->node.n_edges && t->node.vertices[t->node.edges[0].b].kind != DL_HOST;
    return has_parts ? t->node.edges[0].link_kind : dl_transport_network_link(t);
}

static double port_bytes_per_s(const struct dl_topology *t)
{
    double sum = 0;
    for (size_t e = 0; e < t->node.n_edges; e++) {
        const struct dl_edge *const edge = &t->node.edges[e];
        if (edge->reach == DL_REACH_DIRECT && (edge->a == 0 || edge->b == 0)) sum += edge->bandwidth_bytes_per_s;
    }
    return sum;
}

/* ---- protocols ---- */

struct context {
    const struct dl_topology *topology;
    uint32_t n_nodes;
    struct dl_arena *arena;
};

static enum dl_status read_pump(struct dl_json table, const struct context *x, double *out, struct dl_error *err)
{
    *out = INFINITY;
    const char *const kind = dl_transport_device_link(x->topology);
    if (check_table(table, 1, 1e15, x->arena, err)) return err->status;
    if (!table.value || !kind) return DL_OK;
    struct dl_json entry = entry_for(table, kind, x->arena);
    if (json_is_array(entry.value)) {
        const size_t by_span = x->n_nodes == 1 ? 0 : x->n_nodes == 2 ? 1 : 2, n = json_array_size(entry.value);
        if (n != 3) return dl_fail(err, DL_RANGE, entry.where, "must have 3 numbers: on 1, on 2, on more nodes");
        entry = dl_json_element(entry, by_span, x->arena);
    }
    if (entry.value) *out = json_number_value(entry.value);
    return DL_OK;
}

static enum dl_status read_family(struct dl_json from, enum dl_family family, const struct context *x,
                                  struct dl_protocol *p, struct dl_error *err)
{
    if (!from.value) return DL_OK;
    struct family_options o = {0};
    const size_t told = err->n_told;
    if ((dl_read(from, family_fields, DL_COUNT(family_fields), &o, x->arena, err) && !dl_go_on(err)) ||
        (read_pump(o.pump, x, &p->pump_bytes_per_s[family], err) && !dl_go_on(err)) ||
        (read_pump(o.channel, x, &p->presumed_channel_bytes_per_s[family], err) && !dl_go_on(err)) ||
        dl_stop_if_told(err, told))
        return err->status;
    const double port = port_bytes_per_s(x->topology); /* 0: no links in the node, so no port that could be the limit */
    if (o.port_fraction > 0 && port > 0) p->pump_bytes_per_s[family] = o.port_fraction * port;
    p->has_family[family] = true;
    p->start_s[family] = o.start_s;
    p->step_s[family][DL_REACH_DIRECT] = o.direct_s;
    p->step_s[family][DL_REACH_PCIE] = o.pcie_s;
    p->step_s[family][DL_REACH_NETWORK] = o.network_s;
    return DL_OK;
}

/* Pumps and switches cut into pieces of their own, whatever the size of a message is. */
static bool has_own_pieces(const struct dl_protocol *p)
{
    for (int family = 0; family < DL_N_FAMILIES; family++)
        if (p->has_family[family] && (family == DL_FAMILY_SWITCH || !isinf(p->pump_bytes_per_s[family]))) return true;
    return false;
}

static enum dl_status read_above(struct dl_json from, const struct context *x, struct dl_protocol *p,
                                 struct dl_error *err)
{
    struct above_options o = {.bandwidth_fraction = 1};
    if (!from.value) return DL_OK;
    if (dl_read(from, above_fields, DL_COUNT(above_fields), &o, x->arena, err)) return err->status;
    if (has_own_pieces(p))
        return dl_fail(err, DL_IMPOSSIBLE, from.where, "is for protocols that have no pump and no switch");
    p->above = (struct dl_above){.bytes = o.bytes, .bandwidth_fraction = o.bandwidth_fraction};
    p->above.step_s[DL_REACH_DIRECT] = o.direct_s;
    p->above.step_s[DL_REACH_PCIE] = o.pcie_s;
    p->above.step_s[DL_REACH_NETWORK] = o.network_s + p->network_s;
    return DL_OK;
}

static bool is_listed(struct dl_json list, const char *name)
{
    for (size_t i = 0; name && i < json_array_size(list.value); i++) {
        const json_t *const item = json_array_get(list.value, i);
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0) return true;
    }
    return false;
}

static enum dl_status read_protocol(struct dl_json from, const struct context *x, struct dl_transport *out,
                                    struct dl_error *err)
{
    struct protocol_options o = {.bandwidth_fraction = 1};
    struct dl_protocol p = {0};
    const char *const network = dl_transport_network_link(x->topology);
    const size_t told = err->n_told;
    if ((dl_read(from, protocol_fields, DL_COUNT(protocol_fields), &o, x->arena, err) && !dl_go_on(err)) ||
        (check_table(o.network_s, 0, 1, x->arena, err) && !dl_go_on(err)) ||
        (read_family(o.peer, DL_FAMILY_PEER, x, &p, err) && !dl_go_on(err)) ||
        (read_family(o.tree, DL_FAMILY_TREE, x, &p, err) && !dl_go_on(err)) ||
        (read_family(o.in_switch, DL_FAMILY_SWITCH, x, &p, err) && !dl_go_on(err)) || dl_stop_if_told(err, told) ||
        number_for(o.network_s, network, 0, 1, 0, &p.network_s, x->arena, err) || read_above(o.above, x, &p, err))
        return err->status;
    for (size_t i = 0; i < json_array_size(o.never_on.value); i++)
        if (!json_is_string(json_array_get(o.never_on.value, i)))
            return dl_fail(err, DL_TYPE, dl_json_element(o.never_on, i, x->arena).where, "must be a string");
    p.name = o.name;
    p.bandwidth_fraction = o.bandwidth_fraction;
    if (x->n_nodes == 1 || !is_listed(o.never_on, network)) out->protocols[out->n_protocols++] = p;
    return DL_OK;
}

static enum dl_status read_protocols(struct dl_json list, const struct context *x, struct dl_transport *out,
                                     struct dl_error *err)
{
    const size_t n = json_array_size(list.value);
    out->protocols = dl_arena_alloc(x->arena, n * sizeof *out->protocols);
    const size_t told = err->n_told;
    for (size_t i = 0; i < n; i++)
        if (read_protocol(dl_json_element(list, i, x->arena), x, out, err) && !dl_go_on(err)) return err->status;
    if (dl_stop_if_told(err, told)) return err->status;
    if (!out->n_protocols) return dl_fail(err, DL_IMPOSSIBLE, list.where, "has no protocol for this machine's network");
    return DL_OK;
}

static enum dl_status read_efficiency(struct dl_json table, const struct context *x, struct dl_transport *out,
                                      struct dl_error *err)
{
    const double at_least = 1e-6;
    if (check_table(table, at_least, 1, x->arena, err)) return err->status;
    for (uint16_t k = 0; k < x->topology->n_link_kinds; k++) {
        if (number_for(table, x->topology->link_kinds[k], at_least, 1, 1, &out->efficiency[k], x->arena, err))
            return err->status;
        if (k == x->topology->host_link_kind || k == x->topology->storage_link_kind)
            out->efficiency[k] = 1; /* the system file says what copies get */
    }
    return DL_OK;
}

static enum dl_status read_algorithms(struct dl_json list, struct dl_transport *out, struct dl_arena *arena,
                                      struct dl_error *err)
{
    const size_t told = err->n_told;
    out->n_algorithms = json_array_size(list.value);
    if (!list.value) return DL_OK;
    const char **const names = dl_arena_alloc(arena, out->n_algorithms * sizeof *names);
    for (size_t i = 0; i < out->n_algorithms; i++) {
        const struct dl_json item = dl_json_element(list, i, arena);
        if (!json_is_string(item.value)) dl_fail(err, DL_TYPE, item.where, "must be a string");
        if (!dl_go_on(err)) return err->status;
        if (json_is_string(item.value)) names[i] = dl_arena_string(arena, json_string_value(item.value));
    }
    out->algorithms = names;
    return dl_stop_if_told(err, told);
}

static bool has_pump(const struct dl_transport *t)
{
    for (size_t i = 0; i < t->n_protocols; i++)
        for (int family = 0; family < DL_N_FAMILIES; family++)
            if (t->protocols[i].has_family[family] && !isinf(t->protocols[i].pump_bytes_per_s[family])) return true;
    return false;
}

/* Pieces of software that pipelines, and what kernels pump, are many messages under way at once. */
static enum dl_status check_ports(struct dl_json doc, const struct options *o, const struct dl_transport *t,
                                  struct dl_arena *arena, struct dl_error *err)
{
    if (o->port_busy != PORT_MESSAGE || (!o->pipelines && !has_pump(t))) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(doc, "port_busy", arena).where,
                   "\"message\" is for software that does not pipeline and has no pump; use \"bytes\"");
}

enum dl_status dl_transport_read(struct dl_json doc, const struct dl_topology *t, uint32_t n_nodes,
                                 struct dl_arena *arena, struct dl_transport *out, struct dl_error *err)
{
    struct options o = defaults;
    const struct context x = {.topology = t, .n_nodes = n_nodes, .arena = arena};
    const size_t told = err->n_told;
    *out = (struct dl_transport){0};
    if ((dl_read_document(doc, "transport", fields, DL_COUNT(fields), &o, arena, err) && !dl_go_on(err)) ||
        (read_efficiency(o.efficiency, &x, out, err) && !dl_go_on(err)) ||
        (read_algorithms(o.algorithms, out, arena, err) && !dl_go_on(err)) ||
        (o.protocols.value && read_protocols(o.protocols, &x, out, err) && !dl_go_on(err)) ||
        (check_ports(doc, &o, out, arena, err) && !dl_go_on(err)) || dl_stop_if_told(err, told))
        return err->status;
    out->name = dl_document_name(doc, arena);
    out->adds_wire_latency = o.adds_wire_latency;
    out->fill = o.fill;
    out->drain = o.drain;
    out->relay_efficiency = o.relay_efficiency;
    out->reduction_s_per_byte = o.reduction_s_per_byte;
    out->pack_s_per_byte = o.pack_s_per_byte;
    out->pipelines = o.pipelines;
    out->holds_ports = o.port_busy == PORT_MESSAGE;
    out->piece_bytes = o.piece_bytes;
    out->tuner = o.tuner;
    return DL_OK;
}

static bool names(const char *entry, const char *operation, const char *algorithm)
{
    const char *const dot = strchr(entry, '.');
    if (!dot) return strcmp(entry, algorithm) == 0;
    const size_t length = (size_t)(dot - entry);
    return strncmp(entry, operation, length) == 0 && !operation[length] && strcmp(dot + 1, algorithm) == 0;
}

bool dl_transport_has(const struct dl_transport *transport, const char *operation, const char *algorithm)
{
    for (size_t i = 0; i < transport->n_algorithms; i++)
        if (names(transport->algorithms[i], operation, algorithm)) return true;
    return !transport->algorithms;
}

double *dl_transport_rates(const struct dl_transport *transport, const struct dl_topology *t)
{
    const size_t per_node = 2 * t->node.n_edges, n_of_nodes = t->n_nodes * per_node;
    double *const bytes_per_s = dl_alloc(t->n_links * sizeof *bytes_per_s);
    for (size_t i = 0; i < t->n_links; i = i + 1 == per_node ? n_of_nodes : i + 1)
        bytes_per_s[i] = t->links[i].bandwidth_bytes_per_s * transport->efficiency[t->links[i].kind];
    for (size_t i = per_node; i < n_of_nodes; i += per_node) /* nodes are alike */
        memcpy(bytes_per_s + i, bytes_per_s, per_node * sizeof *bytes_per_s);
    return bytes_per_s;
}
