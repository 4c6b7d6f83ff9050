#include "sim/collective/phase.h"

#include <assert.h>

uint32_t dl_one_block(const struct dl_collective *c)
{
    (void)c;
    return 1;
}

uint32_t dl_block_per_rank(const struct dl_collective *c) { return c->group->n; }

enum { highest_bit = 31 };

uint32_t dl_floor_power_of_2(uint32_t n) { return UINT32_C(1) << (highest_bit - __builtin_clz(n)); }

uint32_t dl_ceil_log2(uint32_t n) { return n > 1 ? highest_bit + 1 - (uint32_t)__builtin_clz(n - 1) : 0; }

/* The team of a rank, and its place in it. */
struct team {
    const struct dl_group *group;
    enum dl_scope scope;
    uint32_t size, member, node;
};

static bool find_team(const struct dl_group *g, enum dl_scope scope, uint32_t rank, struct team *out)
{
    if (scope == DL_ALL_RANKS) {
        *out = (struct team){g, scope, g->n, rank, 0};
        return true;
    }
    const uint32_t node = g->node[rank];
    if (scope == DL_IN_NODE) {
        *out = (struct team){g, scope, g->node_first[node + 1] - g->node_first[node], g->slot[rank], node};
        return true;
    }
    *out = (struct team){g, scope, g->n_nodes, node, node};
    return g->slot[rank] == 0;
}

static uint32_t rank_of(const struct team *t, uint32_t member)
{
    switch (t->scope) {
    case DL_IN_NODE: return t->group->node_ranks[t->group->node_first[t->node] + member];
    case DL_FIRST_OF_NODES: return t->group->node_ranks[t->group->node_first[member]];
    case DL_ALL_RANKS: break;
    }
    return member;
}

/* How many ranks stand behind `count` members of the team from `first` on. */
static uint32_t ranks_behind(const struct team *t, uint32_t first, uint32_t count)
{
    if (t->scope != DL_FIRST_OF_NODES) return count;
    const uint32_t *const start = t->group->node_first;
    const uint32_t end = first + count;
    if (end <= t->size) return start[end] - start[first];
    return t->group->n - start[first] + start[end - t->size];
}

/* From parts of the team's data to blocks of the lane: nodes own consecutive blocks, in the order of node_ranks. */
static struct dl_blocks blocks_of(const struct dl_collective *c, const struct team *t, struct dl_blocks parts)
{
    const uint32_t n_blocks = c->algorithm->blocks(c);
    if (t->scope == DL_ALL_RANKS || (t->scope == DL_FIRST_OF_NODES && n_blocks == t->size)) return parts;
    const uint32_t *const start = c->group->node_first;
    if (t->scope == DL_IN_NODE) return (struct dl_blocks){start[t->node] + parts.first, parts.count, parts.stride};
    assert(parts.count == 1);
    return (struct dl_blocks){start[parts.first], start[parts.first + 1] - start[parts.first], 1};
}

static bool op_reduces(enum dl_op op) { return op == DL_ALLREDUCE || op == DL_REDUCESCATTER || op == DL_REDUCE; }

static struct dl_action message_action(const struct dl_collective *c, const struct dl_pattern *p, const struct team *t,
                                       const struct dl_message *m)
{
    struct dl_action a = {.kind = DL_SEND, .reduce = p->reduce, .peer = rank_of(t, m->to)};
    a.blocks = p->whole ? (struct dl_blocks){0, c->algorithm->blocks(c), 1} : blocks_of(c, t, m->parts);
    if (p->reduce)
        a.merged = ranks_behind(t, m->first, m->merged);
    else
        a.merged = op_reduces(c->op) ? c->group->n : 1;
    return a;
}

static bool send_action(const struct dl_collective *c, const struct dl_pattern *p, const struct team *t, uint32_t round,
                        struct dl_action *out)
{
    struct dl_message m = {0};
    if (!p->send(t->size, t->member, round, &m)) return false;
    *out = message_action(c, p, t, &m);
    return true;
}

static bool recv_action(const struct dl_collective *c, const struct dl_pattern *p, const struct team *t, uint32_t round,
                        struct dl_action *out)
{
    const uint32_t source = p->source(t->size, t->member, round);
    if (source == DL_NOBODY) return false;
    struct dl_message m = {0};
    const bool sends = p->send(t->size, source, round, &m);
    assert(sends && m.to == t->member);
    (void)sends;
    *out = message_action(c, p, t, &m);
    out->kind = DL_RECV;
    out->peer = rank_of(t, source);
    return true;
}

/* Takes the steps of this phase from *step; true: *out is the action wanted. */
static bool sometimes_next(const struct dl_collective *c, const struct dl_pattern *p, const struct team *t,
                           uint32_t *step, struct dl_action *out)
{
    const uint32_t rounds = p->rounds(t->size);
    for (uint32_t round = 0; round < rounds; round++) {
        struct dl_message m;
        if (p->send(t->size, t->member, round, &m) && (*step)-- == 0) return send_action(c, p, t, round, out);
        if (p->source(t->size, t->member, round) != DL_NOBODY && (*step)-- == 0)
            return recv_action(c, p, t, round, out);
    }
    return false;
}

static bool regular_next(const struct dl_collective *c, const struct dl_pattern *p, const struct team *t,
                         uint32_t *step, struct dl_action *out)
{
    const uint32_t rounds = p->rounds(t->size), s = *step;
    if (s >= 2 * rounds) {
        *step = s - 2 * rounds;
        return false;
    }
    if (p->rhythm == DL_BURST) {
        const bool has_action = s < rounds ? send_action(c, p, t, s, out) : recv_action(c, p, t, s - rounds, out);
        out->posted = rounds;
        return has_action;
    }
    return s % 2 ? recv_action(c, p, t, s / 2, out) : send_action(c, p, t, s / 2, out);
}

bool dl_phases_next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    (void)lane;
    for (const struct dl_phase *phase = c->algorithm->phases; phase->pattern; phase++) {
        const struct dl_pattern *const p = phase->pattern;
        struct team t;
        if (!find_team(c->group, phase->scope, rank, &t)) continue;
        if ((p->rhythm == DL_SOMETIMES ? sometimes_next : regular_next)(c, p, &t, &step, out)) return true;
    }
    return false;
}

/* The phase of the k-th round of the estimate, its round in it, and the team with the most rounds; false after the
 * last. */
static bool find_round(const struct dl_collective *c, uint32_t k, const struct dl_phase **phase, struct team *largest,
                       uint32_t *round)
{
    const struct dl_group *const g = c->group;
    const uint32_t rank = g->node_ranks[g->node_first[g->largest_node]];
    for (const struct dl_phase *p = c->algorithm->phases; p->pattern; p++) {
        find_team(g, p->scope, rank, largest);
        const uint32_t rounds = p->pattern->rounds(largest->size);
        const uint32_t told = p->pattern->steady && rounds ? 1 : rounds;
        if (k < told) {
            *phase = p;
            *round = k;
            return true;
        }
        k -= told;
    }
    return false;
}

bool dl_phases_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    const struct dl_phase *phase;
    struct team t;
    uint32_t round;
    if (!find_round(c, k, &phase, &t, &round)) return false;
    const struct dl_pattern *const p = phase->pattern;
    const uint32_t rounds = p->rounds(t.size);
    if (p->steady) round = (rounds - 1) / 2;
    t.member = p->largest ? p->largest(t.size, round) : 0;
    struct dl_action sent;
    const bool sends = send_action(c, p, &t, round, &sent);
    assert(sends);
    (void)sends;
    if (phase->scope == DL_FIRST_OF_NODES) sent.blocks = blocks_of(c, &t, (struct dl_blocks){t.node, 1, 1});
    *out = (struct dl_round){.repeat = p->steady ? rounds : 1,
                             .blocks = sent.blocks.count,
                             .merged = sent.merged,
                             .reduce = p->reduce,
                             .together = p->rhythm == DL_BURST && round > 0};
    return true;
}

uint32_t dl_phases_peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane;
    const struct dl_phase *phase;
    struct team t;
    uint32_t round;
    struct dl_action sent;
    if (!find_round(c, k, &phase, &t, &round)) return DL_NOBODY;
    if (!find_team(c->group, phase->scope, rank, &t) || round >= phase->pattern->rounds(t.size)) return DL_NOBODY;
    return send_action(c, phase->pattern, &t, round, &sent) ? sent.peer : DL_NOBODY;
}
