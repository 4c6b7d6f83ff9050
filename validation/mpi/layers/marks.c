/* marks.c - where data that is whole becomes cut, and the other way round: in dlsim's workloads what enters
 * pairs of products and leaves them. What enters forward has a gradient that leaves backward. */
#include "validation/mpi/layers/units.h"

static struct dl_rows enter(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)u, (void)memo;
    return dl_tensor_enter(t, x);
}

static struct dl_rows leave(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)u, (void)memo;
    return x.at ? dl_tensor_leave(t, x) : x; /* nobody needs the gradient of the input of the first layer */
}

const struct dl_unit_kind dl_unit_enter = {"enter", enter, leave, NULL};
const struct dl_unit_kind dl_unit_leave = {"leave", leave, enter, NULL};
