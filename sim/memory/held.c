#include "sim/memory/held.h"

#include <math.h>

#include "sim/memory/flat_gathers.h"
#include "sim/memory/lingering.h"

/* Communicators of stages and of replicas are made while the first step goes on, outside of the allocator, which does
 * not give back for them what it holds. */
static bool connects_late(const struct dl_setting *s)
{
    return dl_n_stages(s) > 1 || dl_ranks_count(&s->ranks, dl_along_replicas(s)) > 1;
}

/* An allocator that runs short itself gives back all that lingers and that gathers leave, and then finds room for
 * gathers where activations were, and for these where gathers were: from then on it holds none of them. */
static void add_held(const struct dl_held_request *r, const struct dl_program *program, struct dl_memory_use *use)
{
    const double lingers = dl_lingering_bytes(program, r->calls, r->setting);
    const double room = fmax(0, r->memory_bytes - use->peak - use->beside);
    const double more = lingers + dl_flat_gather_bytes(program, r->setting, use);
    use->fragmentation += more <= room ? more : 0;
    if (connects_late(r->setting)) use->beside += lingers;
}

void dl_memory_with_held(const struct dl_held_request *r, struct dl_memory_use *use)
{
    const uint32_t n_stages = dl_n_stages(r->setting);
    dl_memory_of_programs(r->programs, n_stages, r->setting->software, use);
    for (uint32_t i = 0; i < n_stages; i++) add_held(r, &r->programs[i], &use[i]);
}
