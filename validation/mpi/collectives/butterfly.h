/* butterfly.h - a power of two of players; with others, as in MPICH: of the first ranks each even one hands its values
 * to the odd one beside it, and hears from it in the end. */
#ifndef DL_MPI_BUTTERFLY_H
#define DL_MPI_BUTTERFLY_H

#include "validation/mpi/collectives/collectives.h"

struct dl_butterfly {
    int players, folded; /* pairs */
    int me;              /* as a player; negative: none */
};

/* Those that do not play have handed over their values; `heard` has room for all of them. */
struct dl_butterfly dl_butterfly_enter(const struct dl_team *team, dl_real *values, dl_real *heard, size_t n);
/* The rank of the player at this distance, a power of two. */
int dl_butterfly_partner(const struct dl_butterfly *b, int distance);
/* Everyone has the values of the players. */
void dl_butterfly_leave(const struct dl_butterfly *b, const struct dl_team *team, dl_real *values, size_t n);

#endif
