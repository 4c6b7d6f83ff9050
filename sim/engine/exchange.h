/* exchange.h - one collective being simulated: ranks run the programs of its algorithm and send each other messages.
 *
 * Step fidelity sends every message. Fluid fidelity folds a ring, and the whole of a pipelined tree, into one bundle
 * that moves all of its links at the pace of the slowest; the sends of a direct algorithm into one bundle per source;
 * and each round of all others into one bundle. */
#ifndef DL_ENGINE_EXCHANGE_H
#define DL_ENGINE_EXCHANGE_H

#include "sim/collective/collective.h"
#include "sim/collective/pace.h"
#include "sim/engine/wire.h"

struct dl_exchange_spec {
    struct dl_engine *engine;
    struct dl_wire *wire;
    const struct dl_collective *collective; /* prepared; must outlive the exchange, as must all the rest */
    const struct dl_pace *pace;
    bool fluid;
    bool is_in_step;  /* its messages share ports with those of other exchanges and do not stand in line with them */
    dl_event_fn done; /* OPTIONAL: when the last rank is through */
    void *user;
    uint32_t tag;
};

struct dl_exchange_result {
    bool complete;
    bool folded; /* run as bundles of many messages: by fluid fidelity, or because the software pipelines that finely */
    double time_s;
    uint64_t messages; /* of the algorithm, whatever the fidelity */
    uint64_t bundles;
    struct dl_causes causes; /* of the rank that ended last */
};

struct dl_exchange;
/* Begin at the engine's present time; free when the engine has run. */
struct dl_exchange *dl_exchange_start(const struct dl_exchange_spec *spec);
struct dl_exchange_result dl_exchange_result(const struct dl_exchange *x);
void dl_exchange_free(struct dl_exchange *x);

#endif
