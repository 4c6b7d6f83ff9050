/* collective.h - an operation over a group of ranks, and the algorithms that carry it out as messages.
 *
 * An algorithm is a program per rank: a list of actions, each a SEND or a RECV, given by pure functions of
 * (lane, rank, step), so that nothing is stored however many messages there are. A SEND may go as soon as every RECV
 * before it has arrived (and is reduced, where it reduces); it does not block what follows. RECVs next to each other
 * may arrive in any order. There are no rounds: each rank goes on by itself.
 *
 * The data of a lane is cut into equal blocks; an action says which blocks it moves. The tests replay every program
 * over sets of contributions and check that each rank ends with exactly what it must.
 *
 * To add an algorithm: one file with a const struct dl_algorithm, one line in the table of algorithms.c; the battery
 * of the tests then runs over it. */
#ifndef DL_COLLECTIVE_COLLECTIVE_H
#define DL_COLLECTIVE_COLLECTIVE_H

#include "sim/collective/payload.h"
#include "sim/program/comm.h"
#include "topologies/transport.h"

struct dl_shapes; /* sim/collective/shapes.h */

/* Ranks 0..n-1 and where they sit. Nodes are numbered in order of their first rank. */
struct dl_group {
    uint32_t n;
    const uint32_t *device; /* per rank, and those of servers where there are any */
    uint32_t n_nodes;
    uint32_t *node;                     /* rank -> node of the group */
    uint32_t *slot;                     /* rank -> its place among the node's ranks */
    uint32_t *node_first;               /* node -> index into node_ranks; n_nodes + 1 entries */
    uint32_t *node_ranks;               /* ranks, node by node */
    uint32_t largest_node;              /* the first of those with the most ranks */
    bool even;                          /* every node holds equally many ranks */
    const struct dl_topology *topology; /* NULL: nothing is known of links */
    struct dl_shapes *shapes;           /* OPTIONAL, not owned: of rounds that were routed before (shapes.h) */
};

/* `device` has n entries, and more where an algorithm's servers will be used; it must outlive the group. */
void dl_group_init(struct dl_group *g, const struct dl_topology *t, const uint32_t *device, uint32_t n,
                   struct dl_arena *arena);
/* For tests: ranks_per_node consecutive ranks on a node, no topology. */
void dl_group_init_plain(struct dl_group *g, uint32_t n, uint32_t ranks_per_node, struct dl_arena *arena);

/* Bytes are counted as nccl-tests does: all-gather and reduce-scatter by the whole (gathered) buffer, all-to-all by the
 * buffer of one rank. Shifts and halos are counted as if they were gathered: all that ranks send, each as much as one
 * in the middle. The root, where there is one, is rank 0. */
struct dl_collective {
    enum dl_op op;
    const struct dl_algorithm *algorithm;
    const struct dl_group *group;
    double bytes;
    double back_fraction; /* DL_HALO: see comm.h */
    uint32_t chunks;      /* each lane is cut into so many independent pieces */
    bool pipelined;  /* the software cuts trees and chains finely: they are priced as their fold, its fill is their cost
                      */
    bool by_message; /* chunks are the pieces of that; otherwise it always runs folded */
    uint32_t servers; /* of a parameter server, each of an equal part of the data */
    struct dl_payload payload;
    const void *plan; /* the algorithm's own, made by prepare (arena memory) */
};

/* Blocks first, first + stride, ... modulo the lane's number of blocks. */
struct dl_blocks {
    uint32_t first, count, stride;
};

enum dl_action_kind { DL_SEND, DL_RECV };

struct dl_action {
    enum dl_action_kind kind;
    bool reduce; /* the receiver adds it to what it has (on both the SEND and its RECV) */
    uint32_t peer;
    struct dl_blocks blocks;
    uint32_t merged; /* how many ranks' contributions each sent block holds (the most, where they differ) */
    uint32_t posted; /* messages of the rank's lane that go at the same time, itself included; 0: it alone */
    /* On both the SEND and its RECV: the message goes only when both sides have come to it, each with all that it did
     * before finished, and both go on only when it has arrived and is reduced. */
    bool synchronous;
};

/* One round of the estimate: every rank that takes part sends one message of `blocks` blocks at once. */
struct dl_round {
    double repeat;   /* how often this round comes */
    uint32_t blocks; /* of the largest message */
    uint32_t merged; /* in the middle of its repetitions */
    bool reduce;
    bool together;    /* at the same time as the round before it: other messages of its senders */
    bool synchronous; /* as its actions are */
    uint32_t fan_in;  /* messages that one rank gets in it; 0: one */
};

#define DL_NOBODY UINT32_MAX

/* What fluid fidelity makes of a lane (see fold.h). */
enum dl_fold_kind {
    DL_FOLD_ROUNDS,  /* all messages of a round at once: one bundle for each round, one after the other */
    DL_FOLD_RING,    /* every rank always sends to the same next one: one bundle round the ring */
    DL_FOLD_TREE,    /* a pipeline in which all edges flow at once: one bundle over all of them */
    DL_FOLD_SOURCES, /* all sends of a rank at once: one bundle per source */
    DL_FOLD_SWITCH,  /* sums are made by switches, so there are no messages between ranks: one bundle, always */
};

/* How messages that a rank could send now wait for each other, lane by lane; all that are under way share the links. */
enum dl_queue {
    DL_QUEUE_PORT,   /* one port per rank, as in the textbook: one after the other */
    DL_QUEUE_POSTED, /* all posted at once, as libraries do: dl_most_posted are under way, the others follow */
    DL_QUEUE_PEER,   /* a stream to each peer, as the edges of a pipelined tree are: one after the other in each */
};
/* Of a rank in a group of so many: all of them, up to 512 ranks. Larger groups have few each, for all of theirs would
 * take hours to share their links: two are enough that a message that waits at a busy receiver holds up no other. */
uint32_t dl_most_posted(uint32_t n_ranks);

struct dl_phase; /* sim/collective/phase.h */

struct dl_algorithm {
    const char *name, *doc;
    enum dl_op op;
    bool has_servers; /* ranks beside the group, numbered from n */
    /* OPTIONAL: refuse what cannot be (DL_IMPOSSIBLE, saying what would be right) and make c->plan. */
    enum dl_status (*prepare)(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err);
    /* OPTIONAL: number of lanes that split the bytes and run side by side; NULL: one. */
    uint32_t (*lanes)(const struct dl_collective *c);
    /* OPTIONAL: the part of the bytes that a lane carries; NULL: equal parts. */
    double (*share)(const struct dl_collective *c, uint32_t lane);
    /* REQUIRED: into how many blocks a lane's data is cut. */
    uint32_t (*blocks)(const struct dl_collective *c);
    /* OPTIONAL: the place of a rank's part among the n parts of a lane's data, where operations give ranks parts of
     * it; NULL: its own number. */
    uint32_t (*part)(const struct dl_collective *c, uint32_t lane, uint32_t rank);
    /* REQUIRED: the step-th action of a rank in a lane; false after the last. */
    bool (*next)(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out);
    /* REQUIRED: the k-th round of the estimate; false after the last. */
    bool (*round)(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out);
    /* REQUIRED: to whom a rank sends in that round, or DL_NOBODY. */
    uint32_t (*peer)(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank);
    const struct dl_phase *phases; /* OPTIONAL: for those whose next, round and peer are those of phase.h */
    enum dl_queue queue;
    enum dl_fold_kind fold;
    enum dl_family family; /* which of the software's paths it takes */
    bool automatic;        /* `--algo auto` may choose it */
};
size_t dl_algorithm_count(void);
const struct dl_algorithm *dl_algorithm_get(size_t index);
/* By operation and name; the error lists what there is. */
enum dl_status dl_algorithm_find(enum dl_op op, const char *name, const struct dl_algorithm **out,
                                 struct dl_error *err);

/* Whether there are all that the software is said to have. */
enum dl_status dl_check_algorithms(struct dl_json transport_doc, const struct dl_transport *transport,
                                   struct dl_arena *arena, struct dl_error *err);

/* Of the group, and servers. */
uint32_t dl_collective_ranks(const struct dl_collective *c);
/* With defaults for the optional slots. */
uint32_t dl_collective_lanes(const struct dl_collective *c);
/* Dense bytes of one block of a lane's chunk. */
double dl_collective_block_bytes(const struct dl_collective *c, uint32_t lane);
/* Bus bandwidth by nccl-tests' convention. */
double dl_bus_bytes_per_s(enum dl_op op, uint32_t n, double bytes, double time_s);

#endif
