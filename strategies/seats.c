#include "strategies/seats.h"

static void open_group(const struct dl_seats *seats, dl_digits along, uint32_t first, struct dl_arena *arena,
                       struct dl_group *out)
{
    const struct dl_ranks *const ranks = &seats->setting->ranks;
    const uint32_t n = dl_ranks_count(ranks, along), n_servers = seats->setting->servers;
    const uint32_t *const servers = seats->device_of_rank + dl_ranks_count(ranks, dl_ranks_all(ranks));
    uint32_t *const device = dl_arena_alloc(arena, (n + n_servers) * sizeof *device);
    for (uint32_t i = 0; i < n; i++) device[i] = seats->device_of_rank[first + dl_ranks_offset(ranks, along, i)];
    for (uint32_t i = 0; i < n_servers; i++) device[n + i] = servers[i];
    dl_group_init(out, seats->topology, device, n, arena);
}

struct dl_group *dl_seats_groups(const struct dl_seats *seats, dl_digits along, dl_digits beside, uint32_t rank,
                                 struct dl_arena *arena)
{
    const struct dl_ranks *const ranks = &seats->setting->ranks;
    const uint32_t n = dl_ranks_count(ranks, beside);
    struct dl_group *const groups = dl_arena_alloc(arena, n * sizeof *groups);
    for (uint32_t i = 0; i < n; i++)
        open_group(seats, along, rank + dl_ranks_offset(ranks, beside, i), arena, &groups[i]);
    return groups;
}
