/* fold.h - many messages as one weighted bundle.
 *
 * Exact for a ring of equal hops: its bundle moves 2(P-1)/P of the bytes over all of its links at once and pays the sum
 * of the hop latencies that one piece meets on its way. An approximation for unequal rings and under contention, where
 * one slow hop slows all of the bundle at once; the tests tabulate by how much. What is neither ring nor tree goes
 * round by round: all messages of a round are one bundle, and the next round begins when all have arrived. */
#ifndef DL_COLLECTIVE_FOLD_H
#define DL_COLLECTIVE_FOLD_H

#include "sim/collective/collective.h"
#include "sim/collective/pace.h"
#include "sim/collective/ring_time.h"
#include "sim/core/memory.h"

/* Bytes by link. Few links of a large machine are touched at a time. */
struct dl_tally {
    uint32_t *place_of;     /* by link: among those that were touched, + 1; 0: it was not */
    struct dl_hop *touched; /* in that order; weights are bytes */
    size_t n_touched, capacity, n_links;
};
static inline double dl_tally_at(const struct dl_tally *tally, uint32_t link)
{
    return tally->place_of[link] ? tally->touched[tally->place_of[link] - 1].weight : 0;
}
void dl_tally_init(struct dl_tally *tally, size_t n_links);
void dl_tally_release(struct dl_tally *tally);
void dl_tally_clear(struct dl_tally *tally);
static inline void dl_tally_add(struct dl_tally *tally, uint32_t link, double bytes)
{
    if (bytes <= 0) return;
    const uint32_t place = tally->place_of[link];
    if (place) {
        tally->touched[place - 1].weight += bytes;
        return;
    }
    DL_GROW(tally->touched, tally->n_touched, tally->capacity);
    tally->touched[tally->n_touched++] = (struct dl_hop){.link = link, .weight = bytes};
    tally->place_of[link] = (uint32_t)tally->n_touched;
}
/* The most seconds that a link needs for its bytes. */
double dl_tally_seconds(const struct dl_tally *tally, const double *bytes_per_s);

/* The tally as a load for adaptive routing: as many messages as have been booked on a link, each at an endpoint's rate;
 * of a source that sends many at a time, all of them together at that rate. */
struct dl_booked {
    const struct dl_tally *tally, *others; /* others: of bundles that start together with it; NULL: none */
    const struct dl_topology *topology;
    double message_bytes;
};
double dl_booked_bytes_per_s(void *booked, uint32_t link);

struct dl_fold {
    struct dl_hop *hops; /* weights are relative to `bytes` */
    size_t n_hops, capacity;
    double bytes;      /* on the wire, between two ranks that talk; all chunks, unless it is of a round */
    double latency_s;  /* that one piece meets on its way */
    double sent_bytes; /* payload that the busiest rank sends */
    double work_s;     /* that one rank spends adding, packing and unpacking */
    double n_steps;
};
void dl_fold_release(struct dl_fold *fold);

/* The algorithm's, but for messages that grow on the way: those go round by round. */
enum dl_fold_kind dl_fold_kind(const struct dl_collective *c);

/* How many bundles a lane folds into: 1, one per source, or one per round, which then follow each other, in every
 * chunk; 0: nothing is to be done. */
uint32_t dl_fold_count(const struct dl_collective *c, uint32_t lane);

/* Whether it is run folded: in fluid fidelity, or always, because switches or finely pipelined software do so. */
bool dl_folds(const struct dl_collective *c, bool fluid);
bool dl_folds_always(const struct dl_collective *c);

/* One bundle of a collective: the which-th of a lane; of a round: that of one chunk. */
struct dl_fold_of {
    uint32_t lane, which;
    const struct dl_tally
        *others; /* what the bundles made before it have booked, for adaptive routing; NULL: nothing */
};

/* Its links. `tally` is scratch, cleared before and after. */
enum dl_status dl_fold_lane(const struct dl_collective *c, struct dl_fold_of of, const struct dl_pace *pace,
                            struct dl_tally *tally, struct dl_fold *out, struct dl_error *err);

/* The hops of a lane that is a ring, from rank 0 on, on links that carry all_bytes in all of its steps. `tally` as
 * above.
 */
struct dl_ring_loads {
    const struct dl_tally *all_bytes;
    const double *bytes_per_s; /* by link */
};
enum dl_status dl_fold_ring_hops(const struct dl_collective *c, uint32_t lane, const struct dl_pace *pace,
                                 const struct dl_ring_loads *loads, struct dl_tally *tally, struct dl_ring_hop *hops,
                                 struct dl_error *err);

/* Add its bytes to a tally. */
void dl_fold_book(const struct dl_fold *fold, struct dl_tally *tally);

/* The one bundle of an algorithm whose sums are made by switches (in_network.c). */
void dl_fold_switch(const struct dl_collective *c, const struct dl_pace *pace, struct dl_tally *tally,
                    struct dl_fold *out, struct dl_error *err);

/* The latency of each time that a round comes: the slowest of its messages, which sum to all_s; where it comes again
 * and again, a piece that is passed on to the same peers meets no more than all of them in as many turns as it makes.
 */
double dl_round_latency_s(const struct dl_round *round, uint32_t n_ranks, double slowest_s, double all_s);

/* Rounds of a lane that follow each other: those that go together count as one. */
uint32_t dl_count_sequential(const struct dl_collective *c, uint32_t lane);
/* Messages that the algorithm sends in all, by its rounds. */
double dl_count_messages(const struct dl_collective *c);

#endif
