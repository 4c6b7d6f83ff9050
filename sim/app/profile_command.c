/* profile_command.c - time this machine's kernels: hands over to dlsim-profile, which needs nothing of the simulator.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/app/commands.h"
#include "sim/core/files.h"

/* It is built beside this program. */
static const char *find_program(struct dl_arena *arena)
{
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    const size_t folder = (size_t)(dl_base_name(self) - self);
    return dl_arena_format(arena, "%.*sdlsim-profile", (int)folder, self);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    (void)argc; /* the list ends with NULL, as exec wants it */
    struct dl_arena *const arena = dl_arena_new();
    const char *const program = find_program(arena);
    if (access(program, X_OK))
        dl_fail(err, DL_IMPOSSIBLE, "profile", "%s is not there: it is built where there is OpenBLAS (libopenblas-dev)",
                program);
    else if (execv(program, argv))
        dl_fail(err, DL_IMPOSSIBLE, "profile", "cannot start %s: %s", program, strerror(errno));
    dl_arena_free(arena);
    return 0;
}

const struct dl_command dl_command_profile = {
    .name = "profile",
    .doc = "time this machine's kernels into a device file",
    .usage = "profile [--device cpu|cuda] -o FILE [--time-limit SECONDS]; see dlsim profile --help",
    .run = run,
};
