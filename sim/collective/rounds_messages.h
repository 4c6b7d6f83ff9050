/* rounds_messages.h - the messages of one round of a collective, for rounds.c: what they load, and what ranks have to
 * do for them. */
#ifndef DL_COLLECTIVE_ROUNDS_MESSAGES_H
#define DL_COLLECTIVE_ROUNDS_MESSAGES_H

#include "sim/collective/clocks.h"
#include "sim/collective/estimate.h"

/* A lane by itself, one chunk through the rounds so far. */
struct dl_round_lane {
    double latency_s, move_s, reduce_s, n_steps;
    double n_sequential;                        /* of the steps, those that do not go together with the one before */
    double together_latency_s, together_move_s; /* of the rounds that go together with the last one */
    struct dl_clocks alone;                     /* where ranks are followed: with its own load on the links */
    struct dl_clocks beside;                    /* of several: with the load of all lanes, nothing to reduce */
    struct dl_round round;                      /* the present one, and its messages */
    size_t first_message, n_messages;
    bool at_once; /* all that a rank sends in this round and others is under way together */
};

struct dl_rounds {
    bool follows;     /* each rank by itself; otherwise there is a barrier after each round */
    bool has_beside;  /* lanes share links; where ports are held they share those, and meet in their clocks */
    double move_s;    /* one chunk of all lanes through all rounds, each after the one before it */
    double after_s;   /* of it, in rounds after the last that reduces */
    double longest_s; /* message of a chunk */
    double first_s;   /* move of the first round */
    double together_move_s, together_work_s;
    double most_sent;              /* payload of one rank, if it sends in every round */
    double last_work_s;            /* of the busiest rank in the last round that reduces */
    double *work_s, *round_work_s; /* by rank: what it has to reduce and to pack */
    double *hop_s;                 /* by rank: latency of its message in this round */
    uint32_t n_ranks, n_lanes;
    struct dl_round_lane *lanes;
    struct dl_sending *messages; /* of this round, where ranks are followed */
    size_t n_messages, messages_capacity;
    struct dl_clock_pass *passes; /* of their routes */
    size_t n_passes, passes_capacity;
    struct dl_held_ports *held; /* by rank; NULL: ports are not held by messages */
    uint32_t *n_incoming;       /* by rank: messages for it in this round, where they are */
    uint64_t first, number;     /* of the first round, of the present one: counted on from estimate to estimate */
};

/* What each message of a round is: its bytes, and the seconds to pack and to take it. */
struct dl_round_message {
    double payload, pack_s, work_s;
};
struct dl_round_message dl_round_message(const struct dl_collective *c, uint32_t lane, const struct dl_round *round,
                                         const struct dl_pace *pace);

/* Book all messages of the present round of a lane, the k-th; returns its latency. */
double dl_round_book(struct dl_estimator *e, const struct dl_collective *c, uint32_t lane, uint32_t k,
                     const struct dl_pace *pace, struct dl_rounds *sum, struct dl_error *err);
/* A message has arrived when all have that share the most loaded link of its way. */
void dl_round_time_moves(const struct dl_estimator *e, const struct dl_tally *tally, const struct dl_round_lane *lane,
                         struct dl_rounds *sum);
/* Whether its pieces are few enough to be followed on their ways. */
bool dl_round_can_be_repeated(const struct dl_rounds *sum, double repeat);

#endif
