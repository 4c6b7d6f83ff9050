/* home.h - where the program and its shipped files are. Nothing of it is compiled in, so that an installed dlsim may be
 * moved. */
#ifndef DL_CORE_HOME_H
#define DL_CORE_HOME_H

#include "sim/core/memory.h"

/* The folder of the running program, with a slash at the end. */
const char *dl_program_folder(struct dl_arena *arena);

/* The folder that topologies/, workloads/ and the others are in: $DLSIM_HOME; without it ../share/dlsim from the
 * program's folder, as installed; where that is not there, share/dlsim in it, a link that CMake makes where it builds.
 */
const char *dl_home(struct dl_arena *arena);

#endif
