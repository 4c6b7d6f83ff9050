/* profile_command.c - time this machine's kernels: hands over to dlsim-profile, which needs nothing of the simulator;
 * for a GPU to dlsim-profile-cuda, which has its kernels besides and takes longer to build. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/app/commands.h"
#include "sim/core/home.h"

static bool wants_cuda(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i - 1], "--device") == 0 && strcmp(argv[i], "cuda") == 0) return true;
    return false;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    const bool is_cuda = wants_cuda(argc, argv);
    struct dl_arena *const arena = dl_arena_new();
    const char *const program = dl_arena_format(arena, "%s%s", dl_program_folder(arena), /* it is beside this one */
                                                is_cuda ? "dlsim-profile-cuda" : "dlsim-profile");
    if (access(program, X_OK))
        dl_fail(err, DL_IMPOSSIBLE, "profile", "%s is not there: %s", program,
                is_cuda ? "where there is nvcc, ninja dlsim-profile-cuda builds it, or kernels/build anywhere"
                        : "it is built where there is OpenBLAS (libopenblas-dev)");
    else if (execv(program, argv))
        dl_fail(err, DL_IMPOSSIBLE, "profile", "cannot start %s: %s", program, strerror(errno));
    dl_arena_free(arena);
    return 0;
}

const struct dl_command dl_command_profile = {
    .name = "profile",
    .doc = "time this machine's kernels into a device file",
    .usage = "profile [--device cpu|cuda] -o FILE [--time-limit SECONDS]",
    .run = run,
};
