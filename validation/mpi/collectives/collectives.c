/* collectives.c - the only list of sums, and the one that MPI brings along. */
#include "validation/mpi/collectives/collectives.h"

#include <string.h>

static const struct dl_sum_algorithm *const algorithms[] = {
    &dl_sum_mpi, &dl_sum_ring, &dl_sum_tree, &dl_sum_recursive_doubling, &dl_sum_rabenseifner, &dl_sum_parameter_server,
};
enum { n_algorithms = sizeof algorithms / sizeof *algorithms };

const struct dl_sum_algorithm *dl_find_sum(const char *name)
{
    for (size_t i = 0; i < n_algorithms; i++)
        if (strcmp(algorithms[i]->name, name) == 0) return algorithms[i];
    return NULL;
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    MPI_Allreduce(MPI_IN_PLACE, values, (int)n, DL_MPI_REAL, MPI_SUM, team->comm);
}

const struct dl_sum_algorithm dl_sum_mpi = {.name = "mpi", .sum = sum};
