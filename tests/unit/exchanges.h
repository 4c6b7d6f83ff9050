/* exchanges.h - eight replicas on a network so slow that the step is its bytes, for tests of what they exchange. */
#ifndef DL_TESTS_EXCHANGES_H
#define DL_TESTS_EXCHANGES_H

#include "tests/unit/divided_step.h"
#include "tests/unit/workload_counts.h"

#define BATCH "'devices':8,'global_batch':24" /* three micro-batches for each of eight replicas */
#define DEVICE_MEMORY_BYTES_PER_S 1e18        /* of the ideal device */

static const double replicas = 8, exactly = 1e-6;

#define ZERO(options) "{'name':'data'},{'name':'zero'," options "}"
#define ZERO_OVERLAP(options) "{'name':'data','overlap':true},{'name':'zero'," options "}"

static inline struct training_outcome play(struct dl_session *t, const struct step *step)
{
    open_step(t, step);
    const struct training_outcome outcome = training_simulate(t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s: %s", step->stack, outcome.err.text);
    return outcome;
}

#endif
