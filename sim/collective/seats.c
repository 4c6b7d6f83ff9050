#include "sim/collective/seats.h"

static uint32_t rank_of(const struct dl_ranks *ranks, const struct dl_members *m, uint32_t first, uint32_t i)
{
    return first + dl_ranks_offset(ranks, m->digits, m->is_pair ? m->pair[i] : i);
}

static void open_group(const struct dl_seats *seats, const struct dl_members *members, uint32_t first,
                       struct dl_arena *arena, struct dl_group *out)
{
    const struct dl_ranks *const ranks = seats->ranks;
    const uint32_t n = dl_members_count(ranks, members), n_servers = seats->n_servers;
    const uint32_t *const servers = seats->device_of_rank + dl_ranks_count(ranks, dl_ranks_all(ranks));
    uint32_t *const device = dl_arena_alloc(arena, (n + n_servers) * sizeof *device);
    for (uint32_t i = 0; i < n; i++) device[i] = seats->device_of_rank[rank_of(ranks, members, first, i)];
    for (uint32_t i = 0; i < n_servers; i++) device[n + i] = servers[i];
    dl_group_init(out, seats->topology, device, n, arena);
}

struct dl_group *dl_seats_groups(const struct dl_seats *seats, const struct dl_members *members, dl_digits beside,
                                 uint32_t rank, struct dl_arena *arena)
{
    const struct dl_ranks *const ranks = seats->ranks;
    const uint32_t n = dl_ranks_count(ranks, beside);
    struct dl_group *const groups = dl_arena_alloc(arena, n * sizeof *groups);
    for (uint32_t i = 0; i < n; i++)
        open_group(seats, members, rank + dl_ranks_offset(ranks, beside, i), arena, &groups[i]);
    return groups;
}
