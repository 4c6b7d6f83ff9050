#include "sim/engine/engines.h"

#include <string.h>

#include "sim/core/memory.h"

static const struct dl_engine_kind *const kinds[] = {&dl_engine_simgrid, &dl_engine_cm02, &dl_engine_alone};
const char *const dl_engine_names[] = {"simgrid", "cm02", "analytic", NULL};

struct dl_engine_link *dl_engine_links(const double *bytes_per_s, size_t n_links)
{
    struct dl_engine_link *const links = dl_alloc(n_links * sizeof *links);
    for (size_t i = 0; i < n_links; i++) links[i].bandwidth_bytes_per_s = bytes_per_s[i];
    return links;
}

size_t dl_engine_count(void) { return DL_COUNT(kinds); }

size_t dl_engine_sharing_count(void)
{
    size_t n = 0;
    while (n < DL_COUNT(kinds) && !kinds[n]->alone) n++;
    return n;
}

const struct dl_engine_kind *dl_engine_get(size_t index) { return kinds[index]; }

const struct dl_engine_kind *dl_engine_find(const char *name)
{
    for (size_t i = 0; i < DL_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}
