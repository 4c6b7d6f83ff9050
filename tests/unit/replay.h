/* replay.h - runs the programs of a collective over sets of contributions, by the rules of collective.h alone.
 *
 * A block on a rank is the set of ranks whose values it holds. Messages of a pair arrive in order. Three schedules
 * decide who goes next: what a program does must not depend on it. `depth` counts messages that wait for each other. */
#ifndef DL_TESTS_REPLAY_H
#define DL_TESTS_REPLAY_H

#include <check.h>
#include <string.h>

#include "sim/collective/collective.h"
#include "sim/core/random.h"

/* As ck_assert_msg, which tells its parent of every success as well: too slow for millions of them. */
#define REQUIRE(condition, ...)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                                                   \
    } while (0)

enum { set_words = 2, most_members = 64 * set_words };

struct set {
    uint64_t word[set_words];
};

static inline void set_add(struct set *s, uint32_t member)
{
    REQUIRE(member < most_members, "sets are too small for %u", member);
    s->word[member / 64] |= UINT64_C(1) << member % 64;
}

static inline uint32_t set_size(const struct set *s)
{
    uint32_t size = 0;
    for (int i = 0; i < set_words; i++) size += (uint32_t)__builtin_popcountll(s->word[i]);
    return size;
}

static inline bool set_contains(const struct set *s, const struct set *part)
{
    for (int i = 0; i < set_words; i++)
        if (part->word[i] & ~s->word[i]) return false;
    return true;
}

static inline bool set_disjoint(const struct set *a, const struct set *b)
{
    for (int i = 0; i < set_words; i++)
        if (a->word[i] & b->word[i]) return false;
    return true;
}

static inline void set_join(struct set *into, const struct set *other)
{
    for (int i = 0; i < set_words; i++) into->word[i] |= other->word[i];
}

enum schedule { IN_ORDER, BACKWARDS, AT_RANDOM, N_SCHEDULES };

struct message {
    struct message *next;
    struct dl_action sent;
    uint32_t depth;
    struct set content[];
};

/* Where a rank is in its program: at a SEND, or at RECVs next to each other, which may end in any order. */
struct cursor {
    struct dl_action *window;
    bool *done;
    size_t n_window, n_done, capacity;
    uint32_t step, depth;
};

struct replay {
    const struct dl_collective *c;
    uint32_t lane, n_ranks, n_blocks;
    enum schedule schedule;
    gsl_rng *random;
    struct set *sets; /* [rank * n_blocks + block] */
    struct cursor *cursors;
    struct message **first, **last; /* [from * n_ranks + to] */
    double blocks_sent;
    uint32_t n_waiting, depth;
    uint64_t n_messages;
};

static inline struct set *replay_set(const struct replay *r, uint32_t rank, uint32_t block)
{
    return &r->sets[(size_t)rank * r->n_blocks + block];
}

static inline uint32_t block_at(const struct replay *r, const struct dl_blocks *blocks, uint32_t i)
{
    return (uint32_t)((blocks->first + (uint64_t)i * blocks->stride) % r->n_blocks);
}

static inline void replay_init(struct replay *r, const struct dl_collective *c, uint32_t lane, enum schedule schedule)
{
    *r = (struct replay){.c = c, .lane = lane, .schedule = schedule};
    r->n_ranks = dl_collective_ranks(c);
    r->n_blocks = c->algorithm->blocks(c);
    r->random = dl_random_new(1, "replay", c->group->n);
    r->sets = dl_alloc((size_t)r->n_ranks * r->n_blocks * sizeof *r->sets);
    r->cursors = dl_alloc(r->n_ranks * sizeof *r->cursors);
    r->first = dl_alloc((size_t)r->n_ranks * r->n_ranks * sizeof(struct message *));
    r->last = dl_alloc((size_t)r->n_ranks * r->n_ranks * sizeof(struct message *));
}

static inline void replay_release(struct replay *r)
{
    for (uint32_t rank = 0; rank < r->n_ranks; rank++) {
        dl_free(r->cursors[rank].window);
        dl_free(r->cursors[rank].done);
    }
    dl_free(r->cursors);
    dl_free(r->sets);
    dl_free(r->first);
    dl_free(r->last);
    gsl_rng_free(r->random);
}

static inline void check_action(const struct replay *r, uint32_t rank, const struct dl_action *a)
{
    REQUIRE(a->peer < r->n_ranks && a->peer != rank, "rank %u has the peer %u", rank, a->peer);
    REQUIRE(a->blocks.first < r->n_blocks && a->blocks.stride >= 1 && a->blocks.count >= 1 &&
                a->blocks.count <= r->n_blocks,
            "rank %u moves %u blocks from %u on, stride %u", rank, a->blocks.count, a->blocks.first, a->blocks.stride);
}

static inline bool is_plain_recv(const struct dl_action *a) { return a->kind == DL_RECV && !a->synchronous; }

/* Read the actions that the rank may do now; false: its program has ended. */
static inline bool fill_window(struct replay *r, uint32_t rank)
{
    struct cursor *const at = &r->cursors[rank];
    if (at->n_done < at->n_window) return true;
    at->n_window = at->n_done = 0;
    struct dl_action a = {0};
    while (r->c->algorithm->next(r->c, r->lane, rank, at->step, &a)) {
        if (at->n_window && !is_plain_recv(&a)) break;
        check_action(r, rank, &a);
        if (at->n_window == at->capacity) {
            at->capacity = 2 * at->capacity + 8;
            at->window = dl_realloc(at->window, at->capacity * sizeof *at->window);
            at->done = dl_realloc(at->done, at->capacity * sizeof *at->done);
        }
        at->window[at->n_window] = a;
        at->done[at->n_window++] = false;
        at->step++;
        if (!is_plain_recv(&a)) break;
    }
    return at->n_window > 0;
}

static inline struct message *make_message(struct replay *r, uint32_t rank, const struct dl_action *a)
{
    struct message *const m = dl_alloc(sizeof *m + a->blocks.count * sizeof *m->content);
    m->sent = *a;
    m->depth = r->cursors[rank].depth + 1;
    uint32_t most = 0;
    for (uint32_t i = 0; i < a->blocks.count; i++) {
        m->content[i] = *replay_set(r, rank, block_at(r, &a->blocks, i));
        const uint32_t size = set_size(&m->content[i]);
        REQUIRE(size > 0, "rank %u sends a block that it does not have", rank);
        if (size > most) most = size;
    }
    REQUIRE(a->merged == most || r->c->op == DL_BARRIER, "merged says %u, but it is %u", a->merged, most);
    r->blocks_sent += a->blocks.count;
    r->n_messages++;
    return m;
}

static inline void receive_block(const struct replay *r, struct set *mine, const struct set *incoming, bool reduce)
{
    if (reduce)
        REQUIRE(set_disjoint(mine, incoming), "a contribution is added twice");
    else if (r->c->op != DL_BARRIER)
        REQUIRE(set_contains(incoming, mine), "what was there is lost");
    set_join(mine, incoming);
}

static inline void receive_message(struct replay *r, uint32_t rank, const struct dl_action *a, struct message *m)
{
    const struct dl_action *const s = &m->sent;
    REQUIRE(a->blocks.first == s->blocks.first && a->blocks.count == s->blocks.count &&
                (a->blocks.count == 1 || a->blocks.stride == s->blocks.stride),
            "rank %u waits for other blocks than rank %u sends", rank, a->peer);
    REQUIRE(a->reduce == s->reduce && a->merged == s->merged && a->synchronous == s->synchronous,
            "ranks %u and %u do not agree on what their message is", rank, a->peer);
    for (uint32_t i = 0; i < a->blocks.count; i++)
        receive_block(r, replay_set(r, rank, block_at(r, &a->blocks, i)), &m->content[i], a->reduce);
    struct cursor *const at = &r->cursors[rank];
    if (m->depth > at->depth) at->depth = m->depth;
    if (m->depth > r->depth) r->depth = m->depth;
    dl_free(m);
}

static inline bool do_send(struct replay *r, uint32_t rank, const struct dl_action *a)
{
    struct message *const m = make_message(r, rank, a);
    const size_t pair = (size_t)rank * r->n_ranks + a->peer;
    if (r->first[pair])
        r->last[pair]->next = m;
    else
        r->first[pair] = m;
    r->last[pair] = m;
    r->n_waiting++;
    r->cursors[rank].n_done++;
    return true;
}

/* Both sides must have come to it; then it is done for both. */
static inline bool do_synchronous_send(struct replay *r, uint32_t rank, const struct dl_action *a)
{
    struct cursor *const from = &r->cursors[rank], *const to = &r->cursors[a->peer];
    if (!fill_window(r, a->peer)) return false;
    const struct dl_action *const other = &to->window[0];
    if (other->kind != DL_RECV || !other->synchronous || other->peer != rank) return false;
    if (from->depth < to->depth) from->depth = to->depth;
    receive_message(r, a->peer, other, make_message(r, rank, a));
    from->depth = to->depth;
    from->n_done = to->n_done = 1;
    return true;
}

static inline bool is_first_of_pair(const struct cursor *at, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (!at->done[j] && at->window[j].peer == at->window[i].peer) return false;
    return true;
}

static inline bool do_recv(struct replay *r, uint32_t rank)
{
    struct cursor *const at = &r->cursors[rank];
    const size_t n = at->n_window, start = r->schedule == AT_RANDOM ? gsl_rng_uniform_int(r->random, n) : 0;
    for (size_t k = 0; k < n; k++) {
        const size_t i = r->schedule == BACKWARDS ? n - 1 - k : (start + k) % n;
        const size_t pair = (size_t)at->window[i].peer * r->n_ranks + rank;
        struct message *const m = r->first[pair];
        if (at->done[i] || !m || !is_first_of_pair(at, i)) continue;
        r->first[pair] = m->next;
        r->n_waiting--;
        receive_message(r, rank, &at->window[i], m);
        at->done[i] = true;
        at->n_done++;
        return true;
    }
    return false;
}

static inline bool try_action(struct replay *r, uint32_t rank)
{
    if (!fill_window(r, rank)) return false;
    const struct dl_action a = r->cursors[rank].window[0];
    if (a.kind == DL_SEND) return a.synchronous ? do_synchronous_send(r, rank, &a) : do_send(r, rank, &a);
    return a.synchronous ? false : do_recv(r, rank);
}

static inline uint32_t rank_in_turn(struct replay *r, uint32_t turn)
{
    switch (r->schedule) {
    case BACKWARDS: return r->n_ranks - 1 - turn;
    case AT_RANDOM: return (uint32_t)gsl_rng_uniform_int(r->random, r->n_ranks);
    default: return turn;
    }
}

/* Until no rank can go on; then all programs must have ended and all messages must have been received. */
static inline void replay_run(struct replay *r)
{
    for (uint32_t idle = 0; idle < 2;) {
        if (idle) r->schedule = IN_ORDER; /* a random pass may miss whom it should have asked */
        bool moved = false;
        for (uint32_t turn = 0; turn < r->n_ranks; turn++) moved |= try_action(r, rank_in_turn(r, turn));
        idle = moved ? 0 : idle + 1;
    }
    for (uint32_t rank = 0; rank < r->n_ranks; rank++) REQUIRE(!fill_window(r, rank), "rank %u waits for ever", rank);
    REQUIRE(r->n_waiting == 0, "%u messages are never received", r->n_waiting);
}

#endif
