/* butterfly.h - what algorithms on powers of two do with the members beyond: each of these gives its values to one of
 * the first before, and gets the sum after. */
#ifndef DL_MPI_BUTTERFLY_H
#define DL_MPI_BUTTERFLY_H

#include "validation/mpi/collectives/collectives.h"

/* The members that go on: a power of two. */
int dl_butterfly_size(const struct dl_team *team);
/* Whether this member goes on. `heard` has room for n values. */
bool dl_butterfly_enter(const struct dl_team *team, dl_real *values, dl_real *heard, size_t n);
void dl_butterfly_leave(const struct dl_team *team, dl_real *values, size_t n);

#endif
