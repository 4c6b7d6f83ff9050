/* collectives.h - sums and copies over a team of ranks, written with MPI's sends and receives.
 *
 * To add an algorithm for sums: one file with a const struct dl_sum_algorithm, one line in collectives.c. Names are
 * those of `dlsim list collectives`. */
#ifndef DL_MPI_COLLECTIVES_H
#define DL_MPI_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/core/memory.h"
#include "validation/mpi/real.h"

struct dl_team {
    MPI_Comm comm; /* of its members alone */
    int rank, n;
    /* Parameter servers, which are ranks of `world` beside the members. */
    MPI_Comm world;
    int first_server, n_servers, tag; /* the tag is the team's own */
};

struct dl_sum_algorithm {
    const char *name;
    /* REQUIRED: afterwards every member has the sum. */
    void (*sum)(const struct dl_team *team, dl_real *values, size_t n);
};
extern const struct dl_sum_algorithm dl_sum_mpi, dl_sum_ring, dl_sum_tree, dl_sum_recursive_doubling,
    dl_sum_rabenseifner, dl_sum_parameter_server;

/* NULL: there is none of that name. */
const struct dl_sum_algorithm *dl_find_sum(const char *name);

/* For values that are to come: not cleared, which would take as long as to receive them. */
static inline dl_real *dl_room(size_t n) { return dl_realloc(NULL, n * sizeof(dl_real)); }

/* Member i ends with the sum of part i (dl_part_of) at its place; the other places hold nothing of use. */
void dl_ring_scatter(const struct dl_team *team, dl_real *values, size_t n);
/* Member i brings part i. */
void dl_ring_gather(const struct dl_team *team, dl_real *values, size_t n);
/* The same for bytes of any kind; part i has bytes[i] at offset[i]. */
void dl_ring_gather_bytes(const struct dl_team *team, void *data, const size_t *bytes, const size_t *offset);

/* Pairwise: from[i] of n_from[i] bytes goes to member i, into[i] of n_into[i] bytes comes from it. */
struct dl_pairwise {
    void **from, **into;
    size_t *n_from, *n_into;
};
void dl_pairwise_alltoall(const struct dl_team *team, const struct dl_pairwise *messages);

/* One panel from `root` to all. */
void dl_tree_broadcast(const struct dl_team *team, dl_real *values, size_t n, int root);
/* The sum of all on `root`; the others' values are used up. */
void dl_tree_reduce(const struct dl_team *team, dl_real *values, size_t n, int root);

/* What a parameter server does: add what the members of each team send, until all workers have said goodbye. */
struct dl_service {
    MPI_Comm world;
    int n_workers, members;
    size_t most; /* values in a message */
};
void dl_serve_parameters(const struct dl_service *service);
/* What workers say to their servers at the end. */
void dl_dismiss_servers(const struct dl_team *team);

#endif
