/* recompute.c - blocks keep their input and do their forward again before their backward (step.c does). */
#include "validation/mpi/train.h"

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    if (t->s->recompute == DL_RECOMPUTE_SELECTIVE)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "selective is not trained; take full");
    if (dl_option_number(level, "every") > 1)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'every' is not trained; leave it out");
    t->recomputed = level->options;
    return DL_OK;
}

const struct dl_real_strategy dl_real_recompute = {.name = "recompute", .begin = begin};
