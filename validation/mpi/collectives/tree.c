/* tree.c - binomial trees: sums go up to a root and come down from it, log2(p) steps each way. */
#include "sim/core/memory.h"
#include "validation/mpi/collectives/collectives.h"

void dl_tree_reduce(const struct dl_team *team, dl_real *values, size_t n, int root)
{
    const int me = (team->rank - root + team->n) % team->n; /* the root is 0 */
    dl_real *const heard = dl_room(n);
    for (int step = 1; step < team->n; step *= 2) {
        if (me & step) {
            MPI_Ssend(values, (int)n, DL_MPI_REAL, (me - step + root) % team->n, 0, team->comm);
            break;
        }
        if (me + step >= team->n) continue;
        MPI_Recv(heard, (int)n, DL_MPI_REAL, (me + step + root) % team->n, 0, team->comm, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < n; i++) values[i] += heard[i];
    }
    dl_free(heard);
}

/* Who has not heard yet hears from the one whose lowest bit is not set; then it tells those below. */
void dl_tree_broadcast(const struct dl_team *team, dl_real *values, size_t n, int root)
{
    const int me = (team->rank - root + team->n) % team->n;
    int step = 1;
    while (step < team->n && !(me & step)) step *= 2;
    if (me) MPI_Recv(values, (int)n, DL_MPI_REAL, (me - step + root) % team->n, 0, team->comm, MPI_STATUS_IGNORE);
    while ((step /= 2) > 0)
        if (me + step < team->n) MPI_Ssend(values, (int)n, DL_MPI_REAL, (me + step + root) % team->n, 0, team->comm);
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    dl_tree_reduce(team, values, n, 0);
    dl_tree_broadcast(team, values, n, 0);
}

const struct dl_sum_algorithm dl_sum_tree = {.name = "tree", .sum = sum};
