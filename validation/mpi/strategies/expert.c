/* expert.c - experts over replicas: the tokens that travel to them are the units' affair (layers/experts.c), and as
 * many come as the router sends. */
#include "validation/mpi/train.h"

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    (void)t;
    if (dl_option_number(level, "imbalance") == 1) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, level->where, "'imbalance' is what the router makes it; leave it out");
}

const struct dl_real_strategy dl_real_expert = {.name = "expert", .begin = begin};
