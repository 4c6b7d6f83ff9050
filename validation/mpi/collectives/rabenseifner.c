/* rabenseifner.c - halves are summed and scattered, then gathered: the latency of a butterfly with the bytes of a ring
 * (Rabenseifner, ICCS 2004). */
#include "sim/core/memory.h"
#include "validation/mpi/collectives/butterfly.h"
#include "validation/mpi/collectives/swap.h"

static struct dl_range half(struct dl_range whole, bool upper)
{
    const size_t below = whole.n / 2;
    return upper ? (struct dl_range){whole.from + below, whole.n - below} : (struct dl_range){whole.from, below};
}

/* Keep one half of the range and give the other to the partner; then go on within the half, and gather it again. The
 * nearest partner comes first: most of the data stays near. */
static void scatter_and_gather(const struct dl_team *team, dl_real *values, dl_real *heard, struct dl_range range,
                               int step)
{
    if (step == dl_butterfly_size(team)) return;
    const int partner = team->rank ^ step;
    const bool upper = team->rank & step;
    const struct dl_range mine = half(range, upper), theirs = half(range, !upper);
    dl_swap(team->comm, DL_MPI_REAL, (struct dl_outgoing){values + theirs.from, theirs.n, partner},
            (struct dl_incoming){heard, mine.n, partner});
    for (size_t i = 0; i < mine.n; i++) values[mine.from + i] += heard[i];
    scatter_and_gather(team, values, heard, mine, 2 * step);
    dl_swap(team->comm, DL_MPI_REAL, (struct dl_outgoing){values + mine.from, mine.n, partner},
            (struct dl_incoming){values + theirs.from, theirs.n, partner});
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    dl_real *const heard = dl_alloc(n * sizeof *heard);
    if (dl_butterfly_enter(team, values, heard, n)) scatter_and_gather(team, values, heard, (struct dl_range){0, n}, 1);
    dl_butterfly_leave(team, values, n);
    dl_free(heard);
}

const struct dl_sum_algorithm dl_sum_rabenseifner = {.name = "rabenseifner", .sum = sum};
