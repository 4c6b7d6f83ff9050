/* recursive_doubling.c - a butterfly: in each of log2(p) steps pairs swap all they have (Thakur et al., IJHPCA 2005).
 */
#include "sim/core/memory.h"
#include "validation/mpi/collectives/butterfly.h"
#include "validation/mpi/collectives/swap.h"

struct dl_butterfly dl_butterfly_enter(const struct dl_team *team, dl_real *values, dl_real *heard, size_t n)
{
    struct dl_butterfly b = {.players = 1};
    while (b.players * 2 <= team->n) b.players *= 2;
    b.folded = team->n - b.players;
    b.me = team->rank - b.folded;
    if (team->rank >= 2 * b.folded) return b;
    b.me = team->rank % 2 ? team->rank / 2 : -1;
    if (b.me < 0) {
        MPI_Ssend(values, (int)n, DL_MPI_REAL, team->rank + 1, 0, team->comm);
        return b;
    }
    MPI_Recv(heard, (int)n, DL_MPI_REAL, team->rank - 1, 0, team->comm, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < n; i++) values[i] += heard[i];
    return b;
}

int dl_butterfly_partner(const struct dl_butterfly *b, int distance)
{
    const int player = b->me ^ distance;
    return player < b->folded ? 2 * player + 1 : player + b->folded;
}

void dl_butterfly_leave(const struct dl_butterfly *b, const struct dl_team *team, dl_real *values, size_t n)
{
    if (team->rank >= 2 * b->folded) return;
    if (b->me < 0)
        MPI_Recv(values, (int)n, DL_MPI_REAL, team->rank + 1, 0, team->comm, MPI_STATUS_IGNORE);
    else
        MPI_Ssend(values, (int)n, DL_MPI_REAL, team->rank - 1, 0, team->comm);
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    dl_real *const heard = dl_room(n);
    const struct dl_butterfly b = dl_butterfly_enter(team, values, heard, n);
    for (int distance = 1; b.me >= 0 && distance < b.players; distance *= 2) {
        const int partner = dl_butterfly_partner(&b, distance);
        dl_swap(team->comm, DL_MPI_REAL, (struct dl_outgoing){values, n, partner},
                (struct dl_incoming){heard, n, partner});
        for (size_t i = 0; i < n; i++) values[i] += heard[i];
    }
    dl_butterfly_leave(&b, team, values, n);
    dl_free(heard);
}

const struct dl_sum_algorithm dl_sum_recursive_doubling = {.name = "recursive_doubling", .sum = sum};
