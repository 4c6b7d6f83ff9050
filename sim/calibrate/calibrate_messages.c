#include "sim/calibrate/calibrate_messages.h"

#include <math.h>
#include <string.h>

#include "sim/core/facts.h"
#include "topologies/transport_tunables.h"

struct figure {
    double value, low, high;
};

static json_t *member(json_t *object, const char *key)
{
    if (!json_object_get(object, key)) json_object_set_new(object, key, json_object());
    return json_object_get(object, key);
}

static void state(json_t *object, const char *key, struct figure f, double max, const char *source)
{
    const struct dl_tunable c = {.object = object, .key = key, .index = SIZE_MAX};
    dl_tunable_state(&c, fmin(f.value, max), fmin(f.low, max), fmin(f.high, max), source);
}

static void derive(json_t *object, const char *key, double value, const char *why)
{
    const struct dl_tunable c = {.object = object, .key = key, .index = SIZE_MAX};
    dl_tunable_set(&c, value);
    json_object_set_new(member(object, "facts"), key, json_sprintf("derived: %s", why));
}

static struct figure times(struct figure f, double factor)
{
    return (struct figure){factor * f.value, factor * f.low, factor * f.high};
}

static struct figure rate_of(const struct dl_line *l)
{
    return (struct figure){1 / l->slope, 1 / (l->slope + l->slope_pm), 1 / (l->slope - l->slope_pm)};
}

static struct figure latency_of(const struct dl_line *l, double wires_s)
{
    return (struct figure){fmax(l->intercept - wires_s, 0), fmax(l->intercept - l->intercept_pm - wires_s, 0),
                           fmax(l->intercept + l->intercept_pm - wires_s, 0)};
}

/* ---- the fit ---- */

static enum dl_status must_grow(const struct dl_line *l, const char *where, struct dl_error *err)
{
    if (l->slope > l->slope_pm) return DL_OK;
    return dl_fail(err, DL_RANGE, where,
                   "the times of messages do not grow with their bytes; sizes up to 1 MiB are needed");
}

static enum dl_status fit(struct dl_message_calibration *c, struct dl_error *err)
{
    struct figure best = {0};
    if (c->messages.n) {
        c->fit = dl_fit_messages(c->messages);
        if (must_grow(&c->fit.small, c->where, err) || must_grow(&c->fit.large, c->where, err)) return err->status;
        const struct figure small = rate_of(&c->fit.small), large = rate_of(&c->fit.large);
        best = small.value > large.value ? small : large;
    }
    if (c->stream.n) {
        const struct dl_message_fit stream = dl_fit_messages(c->stream);
        if (must_grow(&stream.large, c->where, err)) return err->status;
        const struct figure rate = rate_of(&stream.large);
        if (rate.value > best.value) best = rate;
    }
    c->bytes_per_s = best.value;
    c->bytes_per_s_low = best.low;
    c->bytes_per_s_high = best.high;
    return DL_OK;
}

/* ---- the wires ---- */

struct wires {
    struct dl_route route;
    double rate[DL_MAX_LINK_KINDS]; /* of messages, by kind of link; INFINITY: not on the way */
    uint16_t slowest;
};

static enum dl_status find_wires(const struct dl_message_calibration *c, struct wires *w, struct dl_error *err)
{
    const struct dl_topology *const t = c->topology;
    if (dl_topology_route(t, c->from, c->to, 0, NULL, &w->route, err)) return err->status;
    for (uint16_t k = 0; k < t->n_link_kinds; k++) w->rate[k] = INFINITY;
    for (size_t i = 0; i < w->route.n_hops; i++) {
        const struct dl_link *const link = &t->links[w->route.hops[i].link];
        w->rate[link->kind] = fmin(w->rate[link->kind], link->bandwidth_bytes_per_s / w->route.hops[i].weight);
        if (w->rate[link->kind] < w->rate[w->slowest]) w->slowest = link->kind;
    }
    return DL_OK;
}

static bool is_of_kind(const json_t *object, const char *kind)
{
    const json_t *const link = json_object_get(object, "link");
    return json_is_string(link) && strcmp(json_string_value(link), kind) == 0;
}

/* The parts of a system that have links of a kind. */
struct parts {
    json_t *items[16];
    size_t n;
};

static struct parts parts_of_kind(const json_t *system, const char *kind)
{
    const json_t *const node = json_object_get(system, "node"), *const inside = json_object_get(node, "parts");
    json_t *const others[] = {json_object_get(node, "nics"), json_object_get(system, "network")};
    struct parts out = {.n = 0};
    for (size_t i = 0; i < json_array_size(inside) + DL_COUNT(others) && out.n < DL_COUNT(out.items); i++) {
        json_t *const part = i < DL_COUNT(others) ? others[i] : json_array_get(inside, i - DL_COUNT(others));
        if (is_of_kind(part, kind)) out.items[out.n++] = part;
    }
    return out;
}

/* The bandwidth of the slowest wires becomes the one that was found, if nobody knew it. */
static bool replace_bandwidth(const struct dl_message_calibration *c, const struct wires *w)
{
    static const char *const keys[] = {"bandwidth_bytes_per_s", "lane_bytes_per_s"};
    const struct parts parts = parts_of_kind(c->system.value, c->link);
    json_t *const part = parts.n == 1 ? parts.items[0] : NULL; /* of several, it is not said which are the slowest */
    for (size_t i = 0; i < DL_COUNT(keys); i++) {
        const json_t *const old = json_object_get(part, keys[i]);
        if (!json_is_number(old) || dl_json_grade(part, keys[i]) != DL_ASSUMED) continue;
        const double unit = json_number_value(old) / w->rate[w->slowest];
        const struct figure found = {c->bytes_per_s, c->bytes_per_s_low, c->bytes_per_s_high};
        state(part, keys[i], times(found, unit), INFINITY, c->source);
        return true;
    }
    return false;
}

static bool ends(const char *text, const char *with)
{
    const size_t length = strlen(text), ending = strlen(with);
    return length >= ending && strcmp(text + length - ending, with) == 0;
}

static bool are_latencies_assumed(const struct parts *parts)
{
    for (size_t i = 0; i < parts->n; i++)
        if (dl_json_grade(parts->items[i], "latency_s") != DL_ASSUMED) return false;
    return parts->n > 0;
}

/* All that it has, as a network has several. */
static void scale_latencies(json_t *part, double factor)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(part, next, key, value)
    {
        if (json_is_number(value) && ends(key, "latency_s"))
            derive(part, key, factor * json_number_value(value),
                   "scaled, so that the wires take what small messages took");
    }
}

/* Wires cannot take longer than a small message does: those whose latency is only assumed take less. */
static enum dl_status shorten_wires(struct dl_message_calibration *c, const struct wires *w, struct dl_error *err)
{
    const struct dl_topology *const t = c->topology;
    const double excess_s = c->wire_latency_s - c->fit.small.intercept;
    double assumed_s[DL_MAX_LINK_KINDS] = {0}, sum_s = 0;
    if (!c->messages.n || excess_s <= 0) return DL_OK;
    for (size_t i = 0; i < w->route.n_hops; i++) {
        const struct dl_link *const link = &t->links[w->route.hops[i].link];
        const struct parts parts = parts_of_kind(c->system.value, t->link_kinds[link->kind]);
        if (!are_latencies_assumed(&parts)) continue;
        assumed_s[link->kind] += w->route.hops[i].weight * link->latency_s;
        sum_s += w->route.hops[i].weight * link->latency_s;
    }
    if (sum_s < excess_s)
        return dl_fail(err, DL_IMPOSSIBLE, c->system.where,
                       "a small message takes %.3g s, less than the latency_s of the wires on its way, %.3g s",
                       c->fit.small.intercept, c->wire_latency_s);
    for (uint16_t k = 0; k < t->n_link_kinds; k++) {
        const struct parts parts = parts_of_kind(c->system.value, t->link_kinds[k]);
        for (size_t i = 0; i < parts.n && assumed_s[k] > 0; i++) scale_latencies(parts.items[i], 1 - excess_s / sum_s);
    }
    c->wires_were_s = c->wire_latency_s;
    c->wire_latency_s = c->fit.small.intercept;
    return DL_OK;
}

static double efficiency_of(json_t *table, const char *kind)
{
    const json_t *entry = json_object_get(table, kind);
    if (!entry) entry = json_object_get(table, "*");
    return entry ? json_number_value(entry) : 1;
}

/* Links on the way that would be slower than what was found carry at least that. */
static enum dl_status set_efficiencies(struct dl_message_calibration *c, const struct wires *w, struct dl_error *err)
{
    json_t *const table = member(c->transport.value, "efficiency");
    const struct figure found = {c->bytes_per_s, c->bytes_per_s_low, c->bytes_per_s_high};
    for (uint16_t k = 0; k < c->topology->n_link_kinds; k++) {
        const char *const kind = c->topology->link_kinds[k];
        const bool slowest = k == w->slowest;
        if (isinf(w->rate[k])) continue;
        if (slowest && c->wire_is_replaced) {
            derive(table, kind, 1, "the bandwidth in the system file is an achieved one");
            continue;
        }
        if (c->bytes_per_s_low > w->rate[k])
            return dl_fail(err, DL_IMPOSSIBLE, c->system.where,
                           "messages are sent at %.4g bytes/s, more than the %.4g of its links of kind %s",
                           c->bytes_per_s, w->rate[k], kind);
        if (slowest || c->bytes_per_s > w->rate[k] * efficiency_of(table, kind))
            state(table, kind, times(found, 1 / w->rate[k]), 1, c->source);
    }
    return DL_OK;
}

/* ---- the ways to send ---- */

/* Between two ranks nothing else can be told: software that has more to it is not for this. */
static enum dl_status check_protocols(struct dl_json list, struct dl_arena *arena, struct dl_error *err)
{
    const size_t most = 2;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct dl_json protocol = dl_json_element(list, i, arena), peer = dl_json_member(protocol, "peer", arena);
        const struct dl_json above = dl_json_member(protocol, "above", arena);
        if (above.value)
            return dl_fail(err, DL_IMPOSSIBLE, above.where, "must be absent; dlsim-measure --pieces-above finds it");
        if (json_object_get(peer.value, "start_s") || json_object_get(peer.value, "pump_bytes_per_s"))
            return dl_fail(err, DL_IMPOSSIBLE, peer.where,
                           "has a start or a pump, which messages between two ranks do not tell; use --transport mpi");
    }
    if (json_array_size(list.value) > most)
        return dl_fail(err, DL_IMPOSSIBLE, list.where, "has more than the two protocols that messages can tell");
    return DL_OK;
}

static void split_protocol(json_t *list)
{
    json_t *const second = json_deep_copy(json_array_get(list, 0));
    json_object_set_new(json_array_get(list, 0), "name", json_string("eager"));
    json_object_set_new(second, "name", json_string("rendezvous"));
    json_array_append_new(list, second);
}

static void set_protocol(const struct dl_message_calibration *c, json_t *protocol, const struct dl_line *line,
                         enum dl_reach reach)
{
    static const char *const families[] = {"peer", "tree"};
    static const char *const keys[DL_N_REACHES] = {"direct_s", "pcie_s", "network_s"};
    const char *const network = dl_transport_network_link(c->topology);
    json_t *const more = json_object_get(protocol, "network_s");
    for (size_t f = 0; f < DL_COUNT(families); f++)
        state(member(protocol, families[f]), keys[reach], latency_of(line, c->wire_latency_s), 1, c->source);
    if (reach == DL_REACH_NETWORK && more) derive(more, network, 0, "all of it is in that of the families");
    state(protocol, "bandwidth_fraction", times(rate_of(line), 1 / c->bytes_per_s), 1, c->source);
}

static void set_protocols(const struct dl_message_calibration *c, enum dl_reach reach)
{
    json_t *const list = json_object_get(c->transport.value, "protocols");
    if (c->fit.two_ways && json_array_size(list) == 1) split_protocol(list);
    const size_t last = json_array_size(list) - 1;
    set_protocol(c, json_array_get(list, 0), &c->fit.small, reach);
    if (last) set_protocol(c, json_array_get(list, last), &c->fit.large, reach);
}

static bool adds_wire_latency(const json_t *transport)
{
    const json_t *const value = json_object_get(transport, "adds_wire_latency");
    return !value || json_is_true(value);
}

enum dl_status dl_calibrate_messages(struct dl_message_calibration *c, struct dl_arena *arena, struct dl_error *err)
{
    struct wires w = {0};
    if (!check_protocols(dl_json_member(c->transport, "protocols", arena), arena, err) && !fit(c, err) &&
        !find_wires(c, &w, err)) {
        c->link = c->topology->link_kinds[w.slowest];
        c->wire_latency_s = adds_wire_latency(c->transport.value) ? w.route.latency_s : 0;
        c->wire_is_replaced = replace_bandwidth(c, &w);
        if (!set_efficiencies(c, &w, err) && !shorten_wires(c, &w, err) && c->messages.n)
            set_protocols(c, w.route.reach);
    }
    dl_route_release(&w.route);
    return err->status;
}
