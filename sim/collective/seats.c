#include "sim/collective/seats.h"

static uint32_t rank_of(const struct dl_ranks *ranks, const struct dl_members *m, uint32_t first, uint32_t i)
{
    return first + dl_ranks_offset(ranks, m->digits, m->is_pair ? m->pair[i] : i);
}

static void list_devices(const struct dl_seats *seats, const struct dl_members *members, uint32_t first,
                         uint32_t *device)
{
    const struct dl_ranks *const ranks = seats->ranks;
    const uint32_t n = dl_members_count(ranks, members), n_servers = seats->n_servers;
    const uint32_t *const servers = seats->device_of_rank + dl_ranks_count(ranks, dl_ranks_all(ranks));
    for (uint32_t i = 0; i < n; i++) device[i] = seats->device_of_rank[rank_of(ranks, members, first, i)];
    for (uint32_t i = 0; i < n_servers; i++) device[n + i] = servers[i];
}

uint32_t *dl_seats_devices(const struct dl_seats *seats, const struct dl_members *members, dl_digits beside,
                           uint32_t rank)
{
    const uint32_t n = dl_ranks_count(seats->ranks, beside);
    const size_t of_group = dl_members_count(seats->ranks, members) + seats->n_servers;
    uint32_t *const devices = dl_alloc(n * of_group * sizeof *devices);
    for (uint32_t i = 0; i < n; i++)
        list_devices(seats, members, rank + dl_ranks_offset(seats->ranks, beside, i), devices + i * of_group);
    return devices;
}

static void open_group(const struct dl_seats *seats, const struct dl_members *members, uint32_t first,
                       struct dl_arena *arena, struct dl_group *out)
{
    const uint32_t n = dl_members_count(seats->ranks, members);
    uint32_t *const device = dl_arena_alloc(arena, (n + seats->n_servers) * sizeof *device);
    list_devices(seats, members, first, device);
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
