#include "topologies/transport_tunables.h"

#include <math.h>
#include <string.h>

#include "sim/core/facts.h"

struct listing {
    struct dl_tunables out;
    const struct dl_topology *topology;
    struct dl_arena *arena;
};

static void add(struct listing *l, struct dl_tunable c)
{
    if (c.base == 0) return;
    struct dl_tunable *const larger = dl_arena_alloc(l->arena, (l->out.n + 1) * sizeof *larger);
    if (l->out.n) memcpy(larger, l->out.items, l->out.n * sizeof *larger);
    larger[l->out.n++] = c;
    l->out.items = larger;
}

/* The number of a key, or each of a list of them, all like c. */
static void add_numbers(struct listing *l, const char *path, json_t *object, const char *key, struct dl_tunable c)
{
    const json_t *const value = json_object_get(object, key);
    c.object = object;
    c.key = key;
    c.index = SIZE_MAX;
    c.name = dl_arena_format(l->arena, "%s%s", path, key);
    c.base = json_number_value(value);
    if (json_is_number(value)) add(l, c);
    for (size_t i = 0; i < json_array_size(value); i++) {
        c.name = dl_arena_format(l->arena, "%s%s/%zu", path, key, i);
        c.base = json_number_value(json_array_get(value, i));
        c.index = i;
        add(l, c);
    }
}

/* Of a table by kind of link: the entry of this kind, made from that of all others if need be. */
static void add_entry(struct listing *l, const char *path, json_t *table, const char *kind, struct dl_tunable c)
{
    const json_t *const others = json_object_get(table, "*");
    c.added = kind && others && !json_object_get(table, kind);
    if (!kind || !json_is_object(table)) return;
    if (c.added) json_object_set_new(table, kind, json_deep_copy(others));
    add_numbers(l, path, table, kind, c);
}

static const struct dl_tunable a_share = {.max = 1, .is_share = true}, a_latency = {.max = 1, .is_latency = true};

static void add_latencies(struct listing *l, const char *path, json_t *object)
{
    static const char *const latencies[] = {"start_s", "direct_s", "pcie_s", "network_s"};
    for (size_t i = 0; i < DL_COUNT(latencies); i++) add_numbers(l, path, object, latencies[i], a_latency);
}

static void add_family(struct listing *l, const char *path, json_t *family)
{
    const struct dl_tunable a_rate = {.max = 1e15};
    add_latencies(l, path, family);
    add_numbers(l, path, family, "pump_port_fraction", a_share);
    add_entry(l, dl_arena_format(l->arena, "%spump_bytes_per_s/", path), json_object_get(family, "pump_bytes_per_s"),
              dl_transport_device_link(l->topology), a_rate);
}

static void add_protocol(struct listing *l, json_t *protocol)
{
    static const char *const families[] = {"peer", "tree", "switch"};
    const char *const name = json_string_value(json_object_get(protocol, "name"));
    const char *const path = dl_arena_format(l->arena, "protocols/%s/", name);
    add_entry(l, dl_arena_format(l->arena, "%snetwork_s/", path), json_object_get(protocol, "network_s"),
              dl_transport_network_link(l->topology), a_latency);
    add_latencies(l, dl_arena_format(l->arena, "%sabove/", path), json_object_get(protocol, "above"));
    for (size_t f = 0; f < DL_COUNT(families); f++)
        add_family(l, dl_arena_format(l->arena, "%s%s/", path, families[f]), json_object_get(protocol, families[f]));
}

struct dl_tunables dl_transport_tunables(struct dl_json doc, const struct dl_topology *t, struct dl_arena *arena)
{
    const struct dl_tunable a_factor = {.max = 10}, a_pace = {.max = 1};
    struct listing l = {.topology = t, .arena = arena};
    json_t *const protocols = json_object_get(doc.value, "protocols");
    add_numbers(&l, "", doc.value, "fill", a_factor);
    add_numbers(&l, "", doc.value, "drain", a_factor);
    add_numbers(&l, "", doc.value, "relay_efficiency", a_share);
    add_numbers(&l, "", doc.value, "reduction_s_per_byte", a_pace);
    for (uint16_t k = 0; k < t->n_link_kinds; k++)
        if (k != t->storage_link_kind)
            add_entry(&l, "efficiency/", json_object_get(doc.value, "efficiency"), t->link_kinds[k], a_share);
    for (size_t i = 0; i < json_array_size(protocols); i++) add_protocol(&l, json_array_get(protocols, i));
    return l.out;
}

/* Entries of a list come together: the first of them takes the key away. */
void dl_tunable_drop(const struct dl_tunable *c)
{
    if (c->added) json_object_del(c->object, c->key);
}

void dl_tunable_set(const struct dl_tunable *c, double value)
{
    dl_json_drop_interval(c->object, c->key);
    if (c->index == SIZE_MAX)
        json_object_set_new(c->object, c->key, json_real(value));
    else
        json_array_set_new(json_object_get(c->object, c->key), c->index, json_real(value));
}

static void state(json_t *object, const char *key, json_t *fact)
{
    json_t *facts = json_object_get(object, "facts");
    if (!facts) {
        facts = json_object();
        json_object_set_new(object, "facts", facts);
    }
    json_object_set_new(facts, key, fact);
}

void dl_tunable_state(const struct dl_tunable *c, double value, double low, double high, const char *source)
{
    dl_tunable_set(c, value);
    json_t *const fact = json_pack("{s:s, s:s}", "grade", "measured", "source", source);
    if (c->index == SIZE_MAX && !isnan(low)) {
        json_object_set_new(fact, "low", json_real(low));
        json_object_set_new(fact, "high", json_real(high));
    }
    state(c->object, c->key, fact);
}
