/* estimate.h - the time of a collective by alpha, beta and gamma on its routes, without simulating it.
 *
 * It is the analytic engine for collectives, and what `--algo auto` compares. What folds is priced as its fold; the
 * rest round by round: the slowest latency, plus the bytes of the most loaded link, plus the reduction. */
#ifndef DL_COLLECTIVE_ESTIMATE_H
#define DL_COLLECTIVE_ESTIMATE_H

#include "sim/collective/fold.h"

struct dl_link_clock; /* sim/collective/clocks.h */
struct dl_kept;       /* sim/collective/kept.h */

/* Among those that were to be chosen from; algorithm is NULL: none is faster than the one chosen. */
struct dl_faster {
    const char *algorithm, *protocol;
    double time_s;
};

/* A choice of a tuner, for those who wonder about its times. */
struct dl_tuner_note {
    const char *op, *algorithm, *protocol;
    uint32_t n_ranks;
    double bytes, time_s;
    struct dl_faster faster;
};

struct dl_estimator {
    const struct dl_topology *topology;
    const struct dl_transport *transport;
    const double *bytes_per_s; /* by link, as the transport achieves it */
    bool fluid;                /* trees are taken as fully pipelined, whatever the chunks */
    bool by_message;           /* only what can be simulated message by message is chosen */
    struct dl_tally lane, round, all;
    struct dl_link_clock *link_clocks; /* scratch of rounds.c, by link */
    uint64_t n_rounds;         /* estimated so far, with repetitions: clocks of those before count for nothing */
    struct dl_tuner_note note; /* of all choices the one that loses most time; faster.algorithm is NULL: none does */
    struct dl_kept *kept;      /* NULL: nothing yet */
    bool shares_kept;          /* somebody else frees it */
};
void dl_estimator_init(struct dl_estimator *e, const struct dl_topology *t, const struct dl_transport *transport,
                       const double *bytes_per_s);
void dl_estimator_release(struct dl_estimator *e);

struct dl_estimate {
    double time_s;
    double presumed_s;                     /* what the software that chooses takes it for, at least time_s */
    double latency_s, wire_s, reduction_s; /* time = start + latency + max(wire, pump) + reduction; of a ring's latency
                                            * what does not pass while its slowest hop moves */
    struct dl_pace pace;
};

/* c must be prepared. The protocol must have the algorithm's family. */
enum dl_status dl_estimate(struct dl_estimator *e, const struct dl_collective *c, const struct dl_protocol *protocol,
                           struct dl_estimate *out, struct dl_error *err);
/* The same for who has no use for one that takes longer than most_s: its times may be INFINITY. */
enum dl_status dl_estimate_up_to(struct dl_estimator *e, const struct dl_collective *c,
                                 const struct dl_protocol *protocol, double most_s, struct dl_estimate *out,
                                 struct dl_error *err);
/* Whether it is priced as its fold, not round by round: where the fold is what will be run, or the same: a ring in one
 * piece. */
bool dl_estimates_by_fold(const struct dl_estimator *e, const struct dl_collective *c);
/* The time where so many times as much goes over the links. */
double dl_estimate_crowded_s(const struct dl_estimate *e, double crowding);

/* How many times longer than the first alone groups need the links that they share, all at the same time: exact for
 * rings, taken for all. */
enum dl_status dl_estimator_crowding(struct dl_estimator *e, const struct dl_group *groups, uint32_t n, double *out,
                                     struct dl_error *err);

#endif
