/* rounds.h - a collective priced by its rounds: latencies, the bytes of the most loaded link of each way, reduction.
 *
 * Message by message each rank goes on by itself (clocks.h); in fluid fidelity, and where a round of all lanes has more
 * messages than are followed, a round begins when the slowest message of the one before has come. */
#ifndef DL_COLLECTIVE_ROUNDS_H
#define DL_COLLECTIVE_ROUNDS_H

#include "sim/collective/estimate.h"

struct dl_rounds_sums {
    double sent_bytes; /* payload of one rank, if it sends in every round */
    double n_steps;
    bool beyond; /* it takes more than limit_s; how much was not looked at */
};

/* The parts of `out`; out->pace must be there. */
enum dl_status dl_estimate_rounds(struct dl_estimator *e, const struct dl_collective *c, double limit_s,
                                  struct dl_estimate *out, struct dl_rounds_sums *sums, struct dl_error *err);

#endif
