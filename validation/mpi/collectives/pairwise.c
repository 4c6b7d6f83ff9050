/* pairwise.c - all-to-all in p - 1 steps, in each of which every member sends to one and hears from one. */
#include <string.h>

#include "validation/mpi/collectives/collectives.h"
#include "validation/mpi/collectives/swap.h"

void dl_pairwise_alltoall(const struct dl_team *team, const struct dl_pairwise *p)
{
    const int me = team->rank;
    if (p->n_from[me]) memcpy(p->into[me], p->from[me], p->n_from[me]);
    for (int step = 1; step < team->n; step++) {
        const int to = (me + step) % team->n, from = (me - step + team->n) % team->n;
        dl_swap(team->comm, MPI_BYTE, (struct dl_outgoing){p->from[to], p->n_from[to], to},
                (struct dl_incoming){p->into[from], p->n_into[from], from});
    }
}
