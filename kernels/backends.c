/* backends.c - the only list of backends. */
#include <string.h>

#include "kernels/kernel.h"

static const struct dl_backend *const backends[] = {
#ifndef DLSIM_WITHOUT_CPU
    &dl_backend_cpu,
#endif
#ifdef DLSIM_CUDA
    &dl_backend_cuda,
#endif
};

size_t dl_backend_count(void) { return sizeof backends / sizeof *backends; }
const struct dl_backend *dl_backend_get(size_t index) { return backends[index]; }

const struct dl_backend *dl_backend_find(const char *name)
{
    for (size_t i = 0; i < dl_backend_count(); i++)
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    return NULL;
}

const struct dl_routine *dl_routine_get(const struct dl_backend *b, size_t index)
{
    for (const struct dl_routine *const *table = b->tables; *table; table++)
        for (const struct dl_routine *r = *table; r->problem; r++)
            if (index-- == 0) return r;
    return NULL;
}

size_t dl_routine_count(const struct dl_backend *b)
{
    size_t n = 0;
    while (dl_routine_get(b, n)) n++;
    return n;
}
