/* expert.c - experts over replicas: the tokens that travel to them are the units' affair (layers/experts.c), and as
 * many come as the router sends. */
#include "validation/mpi/train.h"

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    (void)t;
    if (dl_option_number(level, "imbalance") != 1)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'imbalance' is what the router makes it; leave it out");
    if (dl_option_number(level, "overlap") != 0)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'overlap' is not trained; leave it out");
    if (dl_option_number(level, "dispatch") == DL_DISPATCH_TO_NODES)
        return dl_fail(err, DL_IMPOSSIBLE, level->where,
                       "tokens are trained to go to_experts only; leave out 'dispatch'");
    return DL_OK;
}

const struct dl_real_strategy dl_real_expert = {.name = "expert", .begin = begin};
