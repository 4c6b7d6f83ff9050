/* recursive_doubling.c - a butterfly: in each of log2(p) steps pairs swap all they have (Thakur et al., IJHPCA 2005).
 */
#include "sim/core/memory.h"
#include "validation/mpi/collectives/butterfly.h"
#include "validation/mpi/collectives/swap.h"

int dl_butterfly_size(const struct dl_team *team)
{
    int size = 1;
    while (size * 2 <= team->n) size *= 2;
    return size;
}

bool dl_butterfly_enter(const struct dl_team *team, dl_real *values, dl_real *heard, size_t n)
{
    const int size = dl_butterfly_size(team), partner = team->rank + size;
    if (team->rank >= size) {
        MPI_Ssend(values, (int)n, DL_MPI_REAL, team->rank - size, 0, team->comm);
        return false;
    }
    if (partner >= team->n) return true;
    MPI_Recv(heard, (int)n, DL_MPI_REAL, partner, 0, team->comm, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < n; i++) values[i] += heard[i];
    return true;
}

void dl_butterfly_leave(const struct dl_team *team, dl_real *values, size_t n)
{
    const int size = dl_butterfly_size(team);
    if (team->rank >= size)
        MPI_Recv(values, (int)n, DL_MPI_REAL, team->rank - size, 0, team->comm, MPI_STATUS_IGNORE);
    else if (team->rank + size < team->n)
        MPI_Ssend(values, (int)n, DL_MPI_REAL, team->rank + size, 0, team->comm);
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    dl_real *const heard = dl_alloc(n * sizeof *heard);
    const bool goes_on = dl_butterfly_enter(team, values, heard, n);
    for (int step = 1; goes_on && step < dl_butterfly_size(team); step *= 2) {
        const int partner = team->rank ^ step;
        dl_swap(team->comm, DL_MPI_REAL, (struct dl_outgoing){values, n, partner},
                (struct dl_incoming){heard, n, partner});
        for (size_t i = 0; i < n; i++) values[i] += heard[i];
    }
    dl_butterfly_leave(team, values, n);
    dl_free(heard);
}

const struct dl_sum_algorithm dl_sum_recursive_doubling = {.name = "recursive_doubling", .sum = sum};
