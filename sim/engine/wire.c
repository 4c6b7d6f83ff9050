#include "sim/engine/wire.h"

#include <math.h>
#include <string.h>

#include "sim/collective/fold.h"
#include "sim/core/memory.h"
#include "sim/engine/ports.h"

enum { none = 0xffffffffu };

struct posted {
    struct dl_wire_message message;
    dl_arrival_fn arrive;
    void *user;
    double sent_s, moving_s;   /* when it was sent, when its bytes began to move */
    double alone_s, latency_s; /* on an empty network; kept here because the way may lead elsewhere by then */
    uint32_t port;
    uint32_t receiving_port; /* where ports are held */
    uint32_t next;           /* in a port's queue; next free one */
};

struct dl_wire {
    struct dl_engine *engine;
    const struct dl_topology *topology;
    const double *bytes_per_s; /* by link */
    struct dl_error *err;
    struct dl_load load;
    struct dl_ports *ports;
    struct dl_carried carried;
    struct dl_tally scratch[DL_N_SCRATCHES]; /* made when first asked for */
    struct dl_route other_way;               /* scratch: of a message that is routed anew */
    bool expects_changes;
    struct posted *messages;
    size_t n_messages, messages_capacity;
    uint32_t free_message;
};

static double wanted_bytes_per_s(void *user, uint32_t link)
{
    struct dl_engine *const engine = user;
    return engine->kind->wanted_bytes_per_s(engine, link);
}

struct dl_wire *dl_wire_new(struct dl_engine *engine, const struct dl_topology *t, const double *bytes_per_s,
                            struct dl_error *err)
{
    struct dl_wire *const w = dl_alloc(sizeof *w);
    w->engine = engine;
    w->topology = t;
    w->bytes_per_s = bytes_per_s;
    w->err = err;
    w->load = (struct dl_load){.wanted_bytes_per_s = wanted_bytes_per_s, .user = engine};
    dl_carried_init(&w->carried, bytes_per_s, t->n_links);
    w->ports = dl_ports_new();
    w->free_message = none;
    return w;
}

void dl_wire_free(struct dl_wire *w)
{
    if (!w) return;
    dl_ports_free(w->ports);
    for (size_t i = 0; i < DL_N_SCRATCHES; i++) dl_tally_release(&w->scratch[i]);
    dl_route_release(&w->other_way);
    dl_carried_release(&w->carried);
    dl_free(w->messages);
    dl_free(w);
}

void dl_wire_book_hops(struct dl_wire *w, const struct dl_hop *hops, size_t n_hops, double bytes)
{
    dl_carried_book(&w->carried, hops, n_hops, bytes);
}

static void book(struct dl_wire *w, struct dl_way *way)
{
    dl_wire_book_hops(w, way->route.hops, way->route.n_hops, way->bytes);
    way->bytes = 0;
}

void dl_wire_release_way(struct dl_wire *w, struct dl_way *way)
{
    book(w, way);
    dl_route_release(&way->route);
    way->known = false;
}

static bool has_whole_weights(const struct dl_hop *hops, size_t n_hops)
{
    for (size_t i = 0; i < n_hops; i++)
        if (hops[i].weight != floor(hops[i].weight)) return false;
    return true;
}

enum dl_status dl_wire_check(const struct dl_wire *w, const struct dl_hop *hops, size_t n_hops)
{
    if (!w->engine->kind->whole_weights || has_whole_weights(hops, n_hops)) return DL_OK;
    return dl_fail(w->err, DL_IMPOSSIBLE, "--engine",
                   "%s cannot split a message over paths as this network's routing does; use --engine simgrid",
                   w->engine->kind->name);
}

double dl_wire_alone(const struct dl_wire *w, const struct dl_hop *hops, size_t n_hops)
{
    double rate = INFINITY;
    for (size_t i = 0; i < n_hops; i++) {
        const double fraction = dl_link_fraction(w->topology->condition, hops[i].link);
        rate = fmin(rate, w->bytes_per_s[hops[i].link] * fraction / hops[i].weight);
    }
    return rate;
}

struct dl_tally *dl_wire_scratch(struct dl_wire *w, enum dl_scratch which)
{
    struct dl_tally *const tally = &w->scratch[which];
    if (!tally->place_of) dl_tally_init(tally, w->topology->n_links);
    return tally;
}

struct dl_engine *dl_wire_engine(const struct dl_wire *w) { return w->engine; }

struct dl_error *dl_wire_error(const struct dl_wire *w) { return w->err; }

static bool is_current(const struct dl_wire *w, const struct dl_way *way, uint32_t from, uint32_t to)
{
    return way->known && way->from == from && way->to == to && way->version == w->topology->condition->version &&
           !dl_network_reads_load(&w->topology->network);
}

/* 0: it is not posted. */
static uint32_t posted_with(const struct dl_wire_message *m) { return m->queue == DL_QUEUE_POSTED ? m->n_posted : 0; }

static bool find_route(struct dl_wire *w, const struct dl_wire_message *m, struct dl_route *out)
{
    const uint64_t no_key = 0; /* routes that hash tell pairs apart, not messages */
    const uint32_t n_posted = posted_with(m);
    struct dl_load load = w->load;
    load.own_share = n_posted ? 1.0 / n_posted : 1;
    return !dl_topology_route(w->topology, m->from, m->to, no_key, &load, out, w->err) &&
           !dl_wire_check(w, out->hops, out->n_hops);
}

/* Apart from what comes with every message. */
static __attribute__((noinline)) bool find_anew(struct dl_wire *w, const struct dl_wire_message *m)
{
    struct dl_way *const way = m->way;
    book(w, way);
    way->known = false;
    way->port = 0;
    if (!find_route(w, m, &way->route)) return false;
    way->version = w->topology->condition->version;
    way->from = m->from;
    way->to = m->to;
    way->known = true;
    way->alone_bytes_per_s = dl_wire_alone(w, way->route.hops, way->route.n_hops);
    return true;
}

/* Fill the message's way; false: there is none, and the wire's error says so. */
static bool find(struct dl_wire *w, const struct dl_wire_message *m)
{
    return is_current(w, m->way, m->from, m->to) || find_anew(w, m);
}

static uint32_t new_message(struct dl_wire *w)
{
    const uint32_t id = w->free_message;
    if (id != none) {
        w->free_message = w->messages[id].next;
        return id;
    }
    DL_GROW(w->messages, w->n_messages, w->messages_capacity);
    return (uint32_t)w->n_messages++;
}

static void leave_ports(struct dl_wire *w, uint32_t id);

static void arrive(void *user, uint32_t id)
{
    struct dl_wire *const w = user;
    if (w->messages[id].message.pace->holds_ports) leave_ports(w, id);
    const struct posted p = w->messages[id]; /* a copy: arrival may send more messages */
    w->messages[id].next = w->free_message;
    w->free_message = id;
    p.arrive(p.user, &p.message);
}

static void moved(void *user, uint32_t id);

static void take_other_way(void *user, uint32_t id, struct dl_turn *turn)
{
    struct dl_wire *const w = user;
    const struct dl_wire_message *const m = &w->messages[id].message;
    if (find_route(w, m, &w->other_way)) dl_wire_turn(w, turn, w->other_way.hops, w->other_way.n_hops);
}

static void start(struct dl_wire *w, uint32_t id)
{
    struct posted *const p = &w->messages[id];
    struct dl_wire_message *const m = &p->message;
    if (!find(w, m)) return;
    p->moving_s = w->engine->kind->now_s(w->engine);
    const double wire_bytes = dl_pace_wire_bytes(m->pace, &m->way->route, m->bytes, m->bytes);
    p->alone_s = wire_bytes / fmin(m->way->alone_bytes_per_s, m->rate_cap_bytes_per_s);
    p->latency_s = dl_pace_latency_s(m->pace, &m->way->route, m->bytes);
    m->way->bytes += wire_bytes;
    if (w->expects_changes) book(w, m->way);
    const struct dl_bundle bundle = {.hops = m->way->route.hops,
                                     .n_hops = m->way->route.n_hops,
                                     .n_posted = posted_with(m),
                                     .bytes = wire_bytes,
                                     .rate_cap_bytes_per_s = m->rate_cap_bytes_per_s,
                                     .alone_bytes_per_s = m->way->alone_bytes_per_s,
                                     .done = moved,
                                     .reroute = take_other_way,
                                     .user = w,
                                     .tag = id};
    w->engine->kind->start(w->engine, &bundle);
}

static void wait_at(struct dl_wire *w, struct dl_port *port, uint32_t id)
{
    w->messages[id].next = none;
    if (port->first_waiting == none)
        port->first_waiting = id;
    else
        w->messages[port->last_waiting].next = id;
    port->last_waiting = id;
}

/* Whether it has a place there at once. */
static bool enter(struct dl_wire *w, uint32_t number, uint32_t most, uint32_t id)
{
    struct dl_port *const port = dl_port_at(w->ports, number);
    if (port->n_moving == most) {
        wait_at(w, port, id);
        return false;
    }
    port->n_moving++;
    return true;
}

/* Who waited at the port waited for the one that leaves: from here on they have the same history. Returns who has its
 * place now; none: nobody waited. */
static uint32_t leave(struct dl_wire *w, uint32_t number, const struct posted *p)
{
    struct dl_port *const port = dl_port_at(w->ports, number);
    const uint32_t id = port->first_waiting;
    if (id == none) {
        port->n_moving--;
        return none;
    }
    struct posted *const next = &w->messages[id];
    port->first_waiting = next->next;
    if (next->sent_s < w->engine->kind->now_s(w->engine)) next->message.causes = p->message.causes;
    return id;
}

/* It has the port of its sender. */
static void go(struct dl_wire *w, uint32_t id)
{
    const struct posted *const p = &w->messages[id];
    if (!p->message.pace->holds_ports || enter(w, p->receiving_port, 1, id)) start(w, id);
}

static void leave_port(struct dl_wire *w, const struct posted *p)
{
    const uint32_t next = leave(w, p->port, p);
    if (next != none) go(w, next);
}

static void leave_ports(struct dl_wire *w, uint32_t id)
{
    const struct posted p = w->messages[id];
    const uint32_t next = leave(w, p.receiving_port, &p);
    if (next != none) start(w, next);
    leave_port(w, &p);
}

static void moved(void *user, uint32_t id)
{
    struct dl_wire *const w = user;
    struct posted *const p = &w->messages[id];
    struct dl_causes *const causes = &p->message.causes;
    const double now_s = w->engine->kind->now_s(w->engine);
    const double took_s = now_s - p->moving_s;
    causes->bandwidth_s += fmin(p->alone_s, took_s);
    causes->sharing_s += fmax(took_s - p->alone_s, 0);
    const double wait_s = p->latency_s;
    if (!p->message.pace->holds_ports) leave_port(w, p);
    w->messages[id].message.causes.latency_s += wait_s;
    if (wait_s > 0)
        w->engine->kind->timer(w->engine, now_s + wait_s, arrive, w, id);
    else
        arrive(w, id);
}

/* Once for all messages that go the same way. */
static uint32_t port_of(struct dl_wire *w, const struct dl_wire_message *message)
{
    struct dl_way *const way = message->way;
    if (way->port) return way->port - 1;
    const struct dl_port_key key = {.lane = message->lane,
                                    .link = way->route.hops[0].link,
                                    .to = message->queue == DL_QUEUE_PEER ? message->to : DL_ANYBODY};
    way->port = dl_port_find(w->ports, &key) + 1;
    return way->port - 1;
}

static uint32_t port_of_device(struct dl_wire *w, uint32_t device, bool receives)
{
    return dl_port_find(w->ports, &(struct dl_port_key){.lane = DL_EVERY_LANE, .link = device, .to = receives});
}

void dl_wire_send(struct dl_wire *w, const struct dl_wire_message *message, dl_arrival_fn on_arrival, void *user)
{
    if (!find(w, message)) return;
    const bool holds = message->pace->holds_ports;
    const uint32_t id = new_message(w);
    w->messages[id] = (struct posted){.message = *message,
                                      .arrive = on_arrival,
                                      .user = user,
                                      .sent_s = w->engine->kind->now_s(w->engine),
                                      .port = holds ? port_of_device(w, message->from, false) : port_of(w, message),
                                      .receiving_port = holds ? port_of_device(w, message->to, true) : none,
                                      .next = none};
    const uint32_t most = message->queue == DL_QUEUE_POSTED && !holds ? message->most_posted : 1;
    if (enter(w, w->messages[id].port, most, id)) go(w, id);
}

/* ---- what links carry ---- */

void dl_wire_expect_changes(struct dl_wire *w) { w->expects_changes = true; }

bool dl_wire_expects_changes(const struct dl_wire *w) { return w->expects_changes; }

void dl_wire_turn(struct dl_wire *w, struct dl_turn *turn, const struct dl_hop *hops, size_t n_hops)
{
    dl_carried_turn(&w->carried, turn, hops, n_hops);
}

/* The engine asks all that crosses the link where to go now, and so tells what has not crossed it yet. */
void dl_wire_change_link(struct dl_wire *w, uint32_t link, double fraction)
{
    struct dl_engine *const engine = w->engine;
    dl_condition_set(w->topology->condition, w->topology, link, fraction);
    dl_carried_begin_change(&w->carried, link);
    engine->kind->set_bandwidth(engine, link, w->bytes_per_s[link] * fraction);
    dl_carried_end_change(&w->carried, fraction, engine->kind->now_s(engine));
}

size_t dl_wire_busiest(const struct dl_wire *w, struct dl_link_load *out, size_t most)
{
    return dl_carried_busiest(&w->carried, out, most);
}

size_t dl_wire_loads(const struct dl_wire *w, struct dl_link_load *out) { return dl_carried_all(&w->carried, out); }
