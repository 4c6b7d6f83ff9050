#include "sim/collective/fold.h"

#include <math.h>

#include "sim/collective/shapes.h"

void dl_fold_release(struct dl_fold *fold)
{
    dl_free(fold->hops);
    *fold = (struct dl_fold){0};
}

enum dl_fold_kind dl_fold_kind(const struct dl_collective *c)
{
    const bool grows = c->payload.kind == DL_TOPK; /* from round to round: no two of its messages are equal */
    return grows && c->algorithm->fold != DL_FOLD_SWITCH ? DL_FOLD_ROUNDS : c->algorithm->fold;
}

double dl_round_latency_s(const struct dl_round *round, uint32_t n_ranks, double slowest_s, double all_s)
{
    return fmin(slowest_s, ceil(round->repeat / n_ranks) * all_s / round->repeat);
}

uint32_t dl_count_sequential(const struct dl_collective *c, uint32_t lane)
{
    struct dl_round round;
    uint32_t n = 0;
    for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round); k++) n += !round.together;
    return n;
}

uint32_t dl_fold_count(const struct dl_collective *c, uint32_t lane)
{
    if (c->group->n == 1) return 0;
    switch (dl_fold_kind(c)) {
    case DL_FOLD_SOURCES: return c->group->n;
    case DL_FOLD_ROUNDS: return dl_count_sequential(c, lane);
    default: return 1;
    }
}

bool dl_folds(const struct dl_collective *c, bool fluid) { return (fluid || dl_folds_always(c)) && c->group->n > 1; }

bool dl_folds_always(const struct dl_collective *c)
{
    return (c->pipelined && !c->by_message && dl_fold_kind(c) != DL_FOLD_ROUNDS) ||
           c->algorithm->fold == DL_FOLD_SWITCH;
}

struct context {
    const struct dl_collective *c;
    uint32_t lane;
    const struct dl_pace *pace;
    struct dl_tally *tally;
    struct dl_route route; /* scratch */
    struct dl_error *err;
    struct dl_booked booked;  /* what adaptive routing sees: what is in the tally already */
    double source_wire_bytes; /* all that the source sends at a time; 0: one message */
};

static double dense_bytes(const struct context *x, const struct dl_round *round)
{
    return round->blocks * dl_collective_block_bytes(x->c, x->lane) * x->c->chunks;
}

static double payload_bytes(const struct context *x, const struct dl_round *round)
{
    return dl_payload_bytes(&x->c->payload, dense_bytes(x, round), round->merged);
}

/* Of one of its messages: chunks go one after the other. */
static double message_bytes(const struct context *x, const struct dl_round *round)
{
    return payload_bytes(x, round) / x->c->chunks;
}

/* What a rank has to do for a message: pack what it sends, unpack and add what comes. */
static double work_s(const struct context *x, const struct dl_round *round)
{
    const double reduced = round->reduce ? payload_bytes(x, round) : 0;
    const double packed = dl_payload_packs(&x->c->payload) ? 2 * dense_bytes(x, round) : 0;
    return reduced * x->pace->reduction_s_per_byte + packed * x->pace->pack_s_per_byte;
}

static bool find_route(struct context *x, uint32_t from, uint32_t to)
{
    const struct dl_group *const g = x->c->group;
    const double own_share = x->source_wire_bytes > 0 ? x->booked.message_bytes / x->source_wire_bytes : 1;
    struct dl_booked booked = x->booked;
    booked.message_bytes /= own_share;
    const struct dl_load load = {dl_booked_bytes_per_s, &booked, own_share};
    return !dl_topology_route(g->topology, g->device[from], g->device[to], 0, &load, &x->route, x->err);
}

/* Payload, as messages of so many bytes, on the wire. */
static double wire_bytes(const struct context *x, double payload, double message)
{
    return payload / dl_pace_fraction(x->pace, message);
}

/* Book a payload on the links between two ranks, as messages of so many bytes; returns the latency of one. */
static double book(struct context *x, uint32_t from, uint32_t to, double payload, double message)
{
    x->booked.message_bytes = wire_bytes(x, payload, message);
    if (!find_route(x, from, to)) return 0;
    const double wire = dl_pace_wire_bytes(x->pace, &x->route, payload, message);
    for (size_t i = 0; i < x->route.n_hops; i++)
        dl_tally_add(x->tally, x->route.hops[i].link, wire * x->route.hops[i].weight);
    return dl_pace_latency_s(x->pace, &x->route, message);
}

/* Equal messages on a link are as many: not off by what summing their bytes rounds, since CM02 asks for whole weights.
 */
static double weight_of(double sum, double bytes)
{
    const double rounding = 1e-9, weight = sum / bytes;
    return fabs(weight - round(weight)) <= rounding * weight ? round(weight) : weight;
}

static void take_hops(struct context *x, struct dl_fold *out)
{
    for (size_t i = 0; i < x->tally->n_touched; i++) {
        const uint32_t link = x->tally->touched[i].link;
        DL_GROW(out->hops, out->n_hops, out->capacity);
        out->hops[out->n_hops++] =
            (struct dl_hop){.link = link, .weight = weight_of(x->tally->touched[i].weight, out->bytes)};
    }
    dl_tally_clear(x->tally);
}

/* ---- rings ---- */

/* What a rank sends and does in all steps; returns the bytes of a message: those of all rounds are alike, as a ring
 * passes equal parts on. */
static double sum_ring(const struct context *x, struct dl_fold *out)
{
    double message = 0;
    struct dl_round round;
    for (uint32_t k = 0; x->c->algorithm->round(x->c, x->lane, k, &round); k++) {
        message = message_bytes(x, &round);
        out->sent_bytes += round.repeat * payload_bytes(x, &round);
        out->n_steps += round.repeat;
        out->work_s += round.repeat * work_s(x, &round);
    }
    out->bytes = wire_bytes(x, out->sent_bytes, message);
    return message;
}

static void fold_ring(struct context *x, struct dl_fold *out)
{
    const struct dl_collective *const c = x->c;
    const uint32_t n = c->group->n;
    const double message = sum_ring(x, out);
    double *const latency_s = dl_alloc(n * sizeof *latency_s);
    for (uint32_t i = 0, rank = 0; i < n && !x->err->status; i++) {
        const uint32_t next = c->algorithm->peer(c, x->lane, 0, rank);
        latency_s[i] = book(x, rank, next, out->sent_bytes, message);
        rank = next;
    }
    out->latency_s = dl_slowest_stretch_s(latency_s, n, out->n_steps);
    dl_free(latency_s);
}

/* The links of its hops, hop after hop. */
struct ring_links {
    uint32_t *links;
    size_t n, capacity;
};

static void keep_links(const struct context *x, struct ring_links *kept)
{
    for (size_t i = 0; i < x->route.n_hops; i++) {
        DL_GROW(kept->links, kept->n, kept->capacity);
        kept->links[kept->n++] = x->route.hops[i].link;
    }
}

static double most_loaded_s(const uint32_t *links, size_t n, const struct dl_tally *bytes, const double *bytes_per_s)
{
    double most_s = 0;
    for (size_t i = 0; i < n; i++) most_s = fmax(most_s, dl_tally_at(bytes, links[i]) / bytes_per_s[links[i]]);
    return most_s;
}

enum dl_status dl_fold_ring_hops(const struct dl_collective *c, uint32_t lane, const struct dl_pace *pace,
                                 const struct dl_ring_loads *loads, struct dl_tally *tally, struct dl_ring_hop *hops,
                                 struct dl_error *err)
{
    struct context x = {.c = c,
                        .lane = lane,
                        .pace = pace,
                        .tally = tally,
                        .err = err,
                        .booked = {.tally = tally, .topology = c->group->topology}};
    struct dl_fold all = {0};
    struct ring_links kept = {0};
    const uint32_t n = c->group->n;
    const double message = sum_ring(&x, &all);
    size_t *const end = dl_alloc((n + 1) * sizeof *end);
    dl_tally_clear(tally);
    for (uint32_t i = 0, rank = 0; i < n && !err->status; i++) {
        const uint32_t next = c->algorithm->peer(c, lane, 0, rank);
        hops[i].latency_s = book(&x, rank, next, all.sent_bytes, message) + all.work_s / all.n_steps;
        keep_links(&x, &kept);
        end[i + 1] = kept.n;
        rank = next;
    }
    for (uint32_t i = 0; i < n && !err->status; i++) {
        const uint32_t *const links = &kept.links[end[i]];
        const size_t n_links = end[i + 1] - end[i];
        hops[i].move_s = most_loaded_s(links, n_links, loads->all_bytes, loads->bytes_per_s) / all.n_steps;
        hops[i].alone_s = most_loaded_s(links, n_links, tally, loads->bytes_per_s) / all.n_steps;
    }
    dl_tally_clear(tally);
    dl_free(end);
    dl_free(kept.links);
    dl_route_release(&x.route);
    return err->status;
}

/* Rounds that go together take as long as the slowest of them. */
static void pay_latency(const struct dl_round *round, double latency_s, double *together_s, struct dl_fold *out)
{
    out->latency_s += round->repeat * (round->together ? fmax(latency_s - *together_s, 0) : latency_s);
    *together_s = round->together ? fmax(latency_s, *together_s) : latency_s;
}

/* ---- trees: every edge carries the lane's bytes once, all at the same time ---- */

static void fold_tree(struct context *x, struct dl_fold *out)
{
    const struct dl_collective *const c = x->c;
    const uint32_t n = dl_collective_ranks(c);
    double *const sent = dl_alloc(n * sizeof *sent);
    double together_s = 0, work[2] = {0, 0}; /* on the way down, on the way up: a rank does each once */
    struct dl_round round;
    for (uint32_t k = 0; c->algorithm->round(c, x->lane, k, &round) && !x->err->status; k++) {
        const double payload = payload_bytes(x, &round), message = message_bytes(x, &round);
        double latency_s = 0;
        for (uint32_t rank = 0; rank < n; rank++) {
            const uint32_t to = c->algorithm->peer(c, x->lane, k, rank);
            if (to == DL_NOBODY) continue;
            latency_s = fmax(latency_s, book(x, rank, to, round.repeat * payload, message));
            sent[rank] += round.repeat * payload;
        }
        out->bytes = fmax(out->bytes, wire_bytes(x, payload, message));
        pay_latency(&round, latency_s, &together_s, out);
        work[round.reduce] = fmax(work[round.reduce], work_s(x, &round));
        out->n_steps += round.repeat;
    }
    for (uint32_t rank = 0; rank < n; rank++) out->sent_bytes = fmax(out->sent_bytes, sent[rank]);
    out->work_s = work[false] + work[true];
    dl_free(sent);
}

/* ---- all sends of one source at once ---- */

static double sent_by(const struct context *x, uint32_t source)
{
    const struct dl_collective *const c = x->c;
    struct dl_round round;
    double bytes = 0;
    for (uint32_t k = 0; c->algorithm->round(c, x->lane, k, &round); k++)
        if (c->algorithm->peer(c, x->lane, k, source) != DL_NOBODY)
            bytes += wire_bytes(x, payload_bytes(x, &round), message_bytes(x, &round));
    return bytes;
}

static void fold_source(struct context *x, uint32_t source, struct dl_fold *out)
{
    const struct dl_collective *const c = x->c;
    double together_s = 0;
    struct dl_round round;
    x->source_wire_bytes = sent_by(x, source);
    for (uint32_t k = 0; c->algorithm->round(c, x->lane, k, &round) && !x->err->status; k++) {
        const uint32_t to = c->algorithm->peer(c, x->lane, k, source);
        if (!round.together) out->n_steps++;
        if (to == DL_NOBODY) continue;
        const double payload = payload_bytes(x, &round), message = message_bytes(x, &round);
        out->bytes = fmax(out->bytes, wire_bytes(x, payload, message));
        pay_latency(&round, book(x, source, to, payload, message), &together_s, out);
        out->sent_bytes += payload;
        out->work_s += work_s(x, &round);
    }
}

void dl_fold_book(const struct dl_fold *fold, struct dl_tally *tally)
{
    for (size_t i = 0; i < fold->n_hops; i++)
        dl_tally_add(tally, fold->hops[i].link, fold->bytes * fold->hops[i].weight);
}

/* ---- all messages of the rounds that go together, of one chunk ---- */

/* The first round of those. */
static uint32_t first_of(const struct context *x, uint32_t which, struct dl_round *round)
{
    uint32_t k = 0;
    for (uint32_t n_begun = 0; x->c->algorithm->round(x->c, x->lane, k, round); k++) {
        n_begun += !round->together;
        if (n_begun > which) break;
    }
    return k;
}

/* As fold_messages, by a shape that may be known. */
static void fold_shape(struct context *x, uint32_t k, const struct dl_round *round, struct dl_fold *out)
{
    const double message = message_bytes(x, round), payload = round->repeat * message;
    const struct dl_shape *const shape = dl_shape_of(x->c, x->lane, k, x->pace, x->tally, x->err);
    if (!shape) return;
    out->bytes = wire_bytes(x, payload, message);
    out->latency_s = round->repeat * dl_shape_latency_s(shape, x->c, round, x->pace, message);
    out->work_s = round->repeat * fmax(round->fan_in, 1) * work_s(x, round) / x->c->chunks;
    out->n_steps = round->repeat;
    out->sent_bytes = payload;
    out->hops = dl_alloc(shape->n_hops * sizeof *out->hops);
    out->n_hops = out->capacity = shape->n_hops;
    for (size_t i = 0; i < shape->n_hops; i++)
        out->hops[i] = (struct dl_hop){.link = shape->hops[i].link, .weight = weight_of(shape->hops[i].weight, 1)};
}

static void fold_messages(struct context *x, uint32_t which, struct dl_fold *out)
{
    const struct dl_collective *const c = x->c;
    const uint32_t n = dl_collective_ranks(c);
    double *const sent = dl_alloc(n * sizeof *sent), together_s = 0;
    uint32_t n_begun = 0;
    struct dl_round round;
    for (uint32_t k = 0; c->algorithm->round(c, x->lane, k, &round) && !x->err->status; k++) {
        n_begun += !round.together;
        if (n_begun > which + 1) break;
        if (n_begun <= which) continue;
        const double message = message_bytes(x, &round), payload = round.repeat * message;
        double slowest_s = 0, all_s = 0;
        for (uint32_t rank = 0; rank < n; rank++) {
            const uint32_t to = c->algorithm->peer(c, x->lane, k, rank);
            if (to == DL_NOBODY) continue;
            const double latency_s = book(x, rank, to, payload, message);
            slowest_s = fmax(slowest_s, latency_s);
            all_s += latency_s;
            sent[rank] += payload;
        }
        out->bytes = fmax(out->bytes, wire_bytes(x, payload, message));
        pay_latency(&round, dl_round_latency_s(&round, n, slowest_s, all_s), &together_s, out);
        out->work_s += round.repeat * fmax(round.fan_in, 1) * work_s(x, &round) / c->chunks;
        out->n_steps += round.repeat;
    }
    for (uint32_t rank = 0; rank < n; rank++) out->sent_bytes = fmax(out->sent_bytes, sent[rank]);
    dl_free(sent);
}

static void fold_round(struct context *x, uint32_t which, struct dl_fold *out)
{
    struct dl_round round;
    const uint32_t k = first_of(x, which, &round);
    if (dl_has_shape(x->c, x->lane, k) && message_bytes(x, &round) > 0)
        fold_shape(x, k, &round, out);
    else
        fold_messages(x, which, out);
}

enum dl_status dl_fold_lane(const struct dl_collective *c, struct dl_fold_of of, const struct dl_pace *pace,
                            struct dl_tally *tally, struct dl_fold *out, struct dl_error *err)
{
    /* Rings have an endpoint's links for themselves, or share them with others that are as slow then; sources send to
     * all at once, and each is one of many on every link. */
    const struct dl_tally *const others = dl_fold_kind(c) == DL_FOLD_SOURCES ? of.others : NULL;
    struct context x = {.c = c,
                        .lane = of.lane,
                        .pace = pace,
                        .tally = tally,
                        .err = err,
                        .booked = {.tally = tally, .others = others, .topology = c->group->topology}};
    *out = (struct dl_fold){0};
    dl_tally_clear(tally);
    switch (dl_fold_kind(c)) {
    case DL_FOLD_RING: fold_ring(&x, out); break;
    case DL_FOLD_TREE: fold_tree(&x, out); break;
    case DL_FOLD_SOURCES: fold_source(&x, of.which, out); break;
    case DL_FOLD_SWITCH: dl_fold_switch(c, pace, tally, out, err); break;
    case DL_FOLD_ROUNDS: fold_round(&x, of.which, out); break;
    }
    take_hops(&x, out);
    dl_route_release(&x.route);
    return err->status;
}

double dl_count_messages(const struct dl_collective *c)
{
    double messages = 0;
    if (c->algorithm->fold == DL_FOLD_SWITCH) return 2.0 * c->group->n; /* every rank: up once, down once */
    struct dl_round round;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round); k++) {
            uint32_t senders = 0;
            for (uint32_t rank = 0; rank < dl_collective_ranks(c); rank++)
                senders += c->algorithm->peer(c, lane, k, rank) != DL_NOBODY;
            messages += round.repeat * senders;
        }
    return messages * c->chunks;
}
