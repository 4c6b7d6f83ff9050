/* phase.h - algorithms made of phases, and phases made of rounds.
 *
 * A phase runs a pattern (ring, binomial tree, butterfly, ...) over teams of ranks: all of them, those of each node, or
 * the first ones of the nodes. A pattern is a pure function of (team size, member, round): in a round a member sends at
 * most one message and receives at most one. The program of a rank is its rounds in order, the SEND before the RECV. */
#ifndef DL_COLLECTIVE_PHASE_H
#define DL_COLLECTIVE_PHASE_H

#include "sim/collective/collective.h"

struct dl_message {
    uint32_t to;            /* member */
    struct dl_blocks parts; /* of as many parts as there are members, unless the pattern says otherwise */
    uint32_t first, merged; /* reducing: it holds the contributions of members first .. first + merged - 1 (cyclic) */
};

enum dl_rhythm {
    DL_SOMETIMES, /* a member may have nothing to do in a round; there are few rounds */
    DL_EVERY,     /* a member sends and receives in every round */
    DL_BURST,     /* the same, but all SENDs stand before all RECVs: nothing waits for anything */
};

struct dl_pattern {
    enum dl_rhythm rhythm;
    bool steady; /* all rounds have the same peers and sizes */
    bool whole;  /* a message carries the whole buffer; `parts` is not set */
    bool reduce;
    uint32_t (*rounds)(uint32_t size);
    /* What a member sends in a round; false: nothing. */
    bool (*send)(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out);
    /* Whose message a member receives in a round, or DL_NOBODY. */
    uint32_t (*source)(uint32_t size, uint32_t member, uint32_t round);
    /* OPTIONAL: a member that sends the largest message of a round. NULL: member 0. */
    uint32_t (*largest)(uint32_t size, uint32_t round);
};

enum dl_scope { DL_ALL_RANKS, DL_IN_NODE, DL_FIRST_OF_NODES };

struct dl_phase {
    const struct dl_pattern *pattern; /* NULL ends the list */
    enum dl_scope scope;
};

/* For the slots of an algorithm that has `phases`. */
bool dl_phases_next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out);
bool dl_phases_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out);
uint32_t dl_phases_peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank);

/* For the blocks slot: one block; as many as ranks. */
uint32_t dl_one_block(const struct dl_collective *c);
uint32_t dl_block_per_rank(const struct dl_collective *c);

extern const struct dl_pattern dl_ring_reduce_scatter, dl_ring_allgather;        /* ring.c */
extern const struct dl_pattern dl_binomial_reduce, dl_binomial_broadcast;        /* binomial.c */
extern const struct dl_pattern dl_binomial_gather, dl_binomial_scatter;          /* binomial.c */
extern const struct dl_pattern dl_halving_reduce_scatter, dl_doubling_allgather; /* butterfly.c */

/* n must not be 0. */
uint32_t dl_ceil_log2(uint32_t n);
uint32_t dl_floor_power_of_2(uint32_t n);

#endif
