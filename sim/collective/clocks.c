#include "sim/collective/clocks.h"

#include <math.h>

void dl_clocks_init(struct dl_clocks *c, uint32_t n_ranks, enum dl_queue queue, struct dl_held_ports *held)
{
    *c = (struct dl_clocks){.n_ranks = n_ranks, .queue = queue, .held = held};
    c->now = dl_alloc(n_ranks * sizeof *c->now);
    c->then = dl_alloc(n_ranks * sizeof *c->then);
    c->work_s = dl_alloc(n_ranks * sizeof *c->work_s);
    c->port = dl_alloc(n_ranks * sizeof *c->port);
}

void dl_clocks_release(struct dl_clocks *c)
{
    void *const blocks[] = {c->now, c->then, c->work_s, c->port};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
}

/* Messages of a round share links and arrive together: what is to be done with them comes afterwards. */
static struct dl_clock when_done(const struct dl_clocks *c, uint32_t rank)
{
    const struct dl_clock *const then = &c->then[rank];
    return (struct dl_clock){then->at_s + c->work_s[rank], then->latency_s, then->work_s + c->work_s[rank]};
}

static void begin_round(struct dl_clocks *c)
{
    for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
        c->now[rank] = c->then[rank] = when_done(c, rank);
        c->work_s[rank] = 0;
    }
}

/* Of rounds before, what is on a link already goes first; what comes later does not. */
static double wait_for_links(const struct dl_sendings *s, const struct dl_sending *m, uint64_t number, double ready_s)
{
    double start_s = ready_s;
    for (size_t i = m->first_pass; i < m->first_pass + m->n_passes; i++) {
        struct dl_link_clock *const link = &s->links[s->passes[i].link];
        if (link->round < s->first) *link = (struct dl_link_clock){0};
        if (link->round < number) {
            link->before = link->now;
            link->round = number;
        }
        if (ready_s >= link->before.from_s) start_s = fmax(start_s, link->before.until_s);
    }
    return start_s;
}

static void occupy_links(const struct dl_sendings *s, const struct dl_sending *m, double start_s)
{
    for (size_t i = m->first_pass; i < m->first_pass + m->n_passes; i++) {
        const double own_s = s->passes[i].own_s;
        struct dl_busy *const busy = &s->links[s->passes[i].link].now;
        if (own_s <= 0) continue;
        if (start_s > busy->until_s + own_s) *busy = (struct dl_busy){start_s, start_s}; /* another fits in between */
        busy->until_s = fmax(busy->until_s, start_s) + own_s;
    }
}

/* What leaves by a port goes one after the other. */
static double wait_for_port(struct dl_clocks *c, const struct dl_sendings *s, const struct dl_sending *m,
                            double ready_s)
{
    const uint32_t link = m->n_passes ? s->passes[m->first_pass].link : UINT32_MAX;
    struct dl_port_clock *const port = &c->port[m->from];
    if (c->held) return fmax(ready_s, fmax(c->held[m->from].out.free_s, c->held[m->to].in.free_s));
    if (c->queue == DL_QUEUE_PORT && port->link == link) ready_s = fmax(ready_s, port->free_s);
    *port = (struct dl_port_clock){link, ready_s + m->move_s};
    return ready_s;
}

static void hold(struct dl_held_port *port, double from_s, double until_s)
{
    port->free_s = until_s;
    port->held_s += until_s - from_s;
}

/* When it arrives. */
static double travel(struct dl_clocks *c, const struct dl_sendings *s, const struct dl_sending *m, uint64_t number,
                     double ready_s)
{
    double start_s = wait_for_port(c, s, m, ready_s);
    if (s->links) {
        start_s = wait_for_links(s, m, number, start_s);
        occupy_links(s, m, start_s);
        c->port[m->from].free_s = start_s + m->move_s;
    }
    const double end_s = start_s + m->move_s + m->latency_s;
    if (c->held) {
        hold(&c->held[m->from].out, start_s, end_s);
        hold(&c->held[m->to].in, start_s, end_s);
    }
    return end_s;
}

/* What comes through a port that is held comes one after the other: it is worked on meanwhile. */
static void receive(struct dl_clocks *c, const struct dl_sending *m)
{
    struct dl_clock *const to = &c->then[m->to];
    if (!c->held) {
        c->work_s[m->to] += m->work_s;
        return;
    }
    to->at_s += m->work_s;
    to->work_s += m->work_s;
}

static void send(struct dl_clocks *c, const struct dl_sendings *s, const struct dl_sending *m, uint64_t number)
{
    const struct dl_clock *const from = &c->now[m->from];
    struct dl_clock *const to = &c->then[m->to];
    const bool synchronous = s->round->synchronous;
    const double ready_s = synchronous ? fmax(from->at_s, c->now[m->to].at_s) : from->at_s;
    const double end_s = travel(c, s, m, number, ready_s + m->pack_s);
    if (end_s > to->at_s) *to = (struct dl_clock){end_s, from->latency_s + m->latency_s, from->work_s + m->pack_s};
    receive(c, m);
    if (synchronous) c->then[m->from] = when_done(c, m->to);
}

void dl_clocks_add(struct dl_clocks *c, const struct dl_sendings *s)
{
    for (uint64_t i = 0; i < (uint64_t)s->round->repeat; i++) {
        if (i > 0 || !s->round->together) begin_round(c);
        for (size_t k = 0; k < s->n; k++) send(c, s, &s->messages[k], s->number + i);
    }
}

struct dl_clock dl_clocks_latest(const struct dl_clocks *c)
{
    struct dl_clock latest = {0};
    for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
        const struct dl_clock done = when_done(c, rank);
        if (done.at_s > latest.at_s) latest = done;
    }
    return latest;
}

void dl_clocks_meet(struct dl_clocks *c, double latency_s, double move_s, double work_s)
{
    const struct dl_clock last = dl_clocks_latest(c);
    const struct dl_clock all = {last.at_s + latency_s + move_s + work_s, last.latency_s + latency_s,
                                 last.work_s + work_s};
    for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
        c->then[rank] = all;
        c->work_s[rank] = 0;
    }
}
