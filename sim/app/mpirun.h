/* mpirun.h - what dlsim does where mpirun has started several copies of it. */
#ifndef DL_APP_MPIRUN_H
#define DL_APP_MPIRUN_H

#include <stdbool.h>

#include "sim/core/error.h"

/* Copies of this process, by what the common launchers tell; 1 where there is none. */
int dl_mpirun_copies(void);

/* Become dlsim-sweep-mpi, which is beside this program, if it is a sweep; comes back only with an error. All other
 * commands are refused, since each copy would do the same. */
enum dl_status dl_mpirun_become(char **argv, bool is_sweep, struct dl_error *err);

#endif
