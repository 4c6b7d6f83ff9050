#include "sim/app/mpirun.h"

#include <stdlib.h>
#include <unistd.h>

#include "sim/core/home.h"

int dl_mpirun_copies(void)
{
    /* Open MPI and those that descend from it; MPICH, Intel MPI and others with its process manager. */
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const char *const text = getenv(sizes[i]);
        if (text) return atoi(text);
    }
    return 1;
}

enum dl_status dl_mpirun_become(char **argv, bool is_sweep, struct dl_error *err)
{
    struct dl_arena *const arena = dl_arena_new();
    if (!is_sweep)
        dl_fail(err, DL_IMPOSSIBLE, "mpirun",
                "has started %d copies, which would all do the same; only `dlsim sweep` uses more than one",
                dl_mpirun_copies());
    else if (execv(dl_arena_format(arena, "%sdlsim-sweep-mpi", dl_program_folder(arena)), argv))
        dl_fail(err, DL_NOT_FOUND, "mpirun",
                "this dlsim was built without MPI; install it (Debian: libopenmpi-dev) and build again, or give each "
                "job a --shard");
    dl_arena_free(arena);
    return err->status;
}
