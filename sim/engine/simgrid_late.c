/* simgrid_late.c - of the program: SimGrid is loaded when something is first simulated. With what it brings along
 * (ns-3) it takes as many instructions as a short run, which commands that simulate nothing need not spend. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/core/home.h"
#include "sim/engine/simgrid.h"

/* simgrid.cpp as a library: beside the program where it was built, and where it is installed. */
static const char *const places[] = {"dlsim-simgrid.so", "../lib/dlsim/dlsim-simgrid.so"};

static const struct dl_adapter *adapter;

static const char *find_library(struct dl_arena *arena)
{
    const char *const folder = dl_program_folder(arena);
    for (size_t i = 0; i < DL_COUNT(places); i++) {
        const char *const path = dl_arena_format(arena, "%s%s", folder, places[i]);
        if (access(path, F_OK) == 0) return path;
    }
    return dl_arena_format(arena, "%s%s", folder, places[0]);
}

void dl_simgrid_load(void)
{
    struct dl_arena *const arena = dl_arena_new();
    void *const library = adapter ? NULL : dlopen(find_library(arena), RTLD_LAZY);
    if (library) adapter = dlsym(library, "dl_simgrid_adapter");
    dl_arena_free(arena);
}

bool dl_simgrid_is_loaded(void) { return adapter; }

/* Inside a simulation there is nobody to hand an error to: as without memory, this ends the program. */
const struct dl_adapter *dl_simgrid(void)
{
    if (!adapter) dl_simgrid_load();
    if (adapter) return adapter;
    fprintf(stderr,
            "dlsim: the library with SimGrid cannot be loaded: %s; build or install dlsim again, or use --engine "
            "analytic\n",
            dlerror());
    _Exit(2);
}
