#define _POSIX_C_SOURCE 200809L /* readlink */
#include "sim/core/home.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/core/files.h"

const char *dl_program_folder(struct dl_arena *arena)
{
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    return dl_arena_format(arena, "%.*s", (int)(dl_base_name(self) - self), self);
}

/* Of an absolute path that ends with a slash, as does what is returned. */
static const char *parent(const char *folder, struct dl_arena *arena)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 2] != '/') length--;
    return dl_arena_format(arena, "%.*s", (int)(length > 1 ? length - 1 : length), folder);
}

const char *dl_home(struct dl_arena *arena)
{
    const char *const given = getenv("DLSIM_HOME"), *const here = dl_program_folder(arena);
    if (given && *given) return given;
    const char *const installed = dl_arena_format(arena, "%sshare/dlsim", *here ? parent(here, arena) : "");
    const char *const built = dl_arena_format(arena, "%sshare/dlsim", here);
    return access(installed, F_OK) && access(built, F_OK) == 0 ? built : installed;
}
