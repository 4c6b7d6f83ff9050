/* strategies.c - the only list of what is trained for real; a new one is one file and one line here. */
#include <string.h>

#include "validation/mpi/train.h"

static const struct dl_real_strategy *const strategies[] = {
    &dl_real_pipeline, &dl_real_recompute,           &dl_real_tensor, &dl_real_expert, &dl_real_data,
    &dl_real_zero,     &dl_real_quantized_allreduce,
};

const struct dl_real_strategy *dl_find_real_strategy(const char *name)
{
    for (size_t i = 0; i < DL_COUNT(strategies); i++)
        if (strcmp(strategies[i]->name, name) == 0) return strategies[i];
    return NULL;
}
