/* pairwise.c - all-to-all in p - 1 steps, in each of which every member sends to one and hears from one. */
#include <string.h>

#include "validation/mpi/collectives/collectives.h"

void dl_pairwise_alltoall(const struct dl_team *team, const struct dl_parcels *p)
{
    const int me = team->rank;
    if (p->n_from[me]) memcpy(p->into[me], p->from[me], p->n_from[me]);
    for (int step = 1; step < team->n; step++) {
        const int to = (me + step) % team->n, from = (me - step + team->n) % team->n;
        MPI_Sendrecv(p->from[to], (int)p->n_from[to], MPI_BYTE, to, 0, p->into[from], (int)p->n_into[from], MPI_BYTE,
                     from, 0, team->comm, MPI_STATUS_IGNORE);
    }
}
