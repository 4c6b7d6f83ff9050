#include "sim/collective/seats.h"

/* How far members are from the first rank of their group: the same in every group. */
static uint32_t *offsets_of(const struct dl_seats *seats, const struct dl_members *members, uint32_t n)
{
    uint32_t *const offsets = dl_alloc(n * sizeof *offsets);
    for (uint32_t i = 0; i < n; i++)
        offsets[i] = dl_ranks_offset(seats->ranks, members->digits, members->is_pair ? members->pair[i] : i);
    return offsets;
}

/* Of the members, then of servers. */
static void list_devices(const struct dl_seats *seats, const uint32_t *offsets, uint32_t n, uint32_t first,
                         uint32_t *device)
{
    const uint32_t *const of_first = seats->device_of_rank + first;
    for (uint32_t i = 0; i < n; i++) device[i] = of_first[offsets[i]];
    if (!seats->n_servers) return;
    const uint32_t *const servers = seats->device_of_rank + dl_ranks_count(seats->ranks, dl_ranks_all(seats->ranks));
    for (uint32_t i = 0; i < seats->n_servers; i++) device[n + i] = servers[i];
}

uint32_t *dl_seats_devices(const struct dl_seats *seats, const struct dl_members *members, dl_digits beside,
                           uint32_t rank)
{
    const uint32_t n_groups = dl_ranks_count(seats->ranks, beside), n = dl_members_count(seats->ranks, members);
    const size_t of_group = (size_t)n + seats->n_servers;
    uint32_t *const devices = dl_alloc(n_groups * of_group * sizeof *devices);
    uint32_t *const offsets = offsets_of(seats, members, n);
    for (uint32_t i = 0; i < n_groups; i++)
        list_devices(seats, offsets, n, rank + dl_ranks_offset(seats->ranks, beside, i), devices + i * of_group);
    dl_free(offsets);
    return devices;
}

struct dl_group *dl_seats_groups(const struct dl_seats *seats, const struct dl_members *members, dl_digits beside,
                                 uint32_t rank, struct dl_arena *arena)
{
    const uint32_t n_groups = dl_ranks_count(seats->ranks, beside), n = dl_members_count(seats->ranks, members);
    struct dl_group *const groups = dl_arena_alloc(arena, n_groups * sizeof *groups);
    uint32_t *const offsets = offsets_of(seats, members, n);
    for (uint32_t i = 0; i < n_groups; i++) {
        uint32_t *const device = dl_arena_alloc(arena, (n + seats->n_servers) * sizeof *device);
        list_devices(seats, offsets, n, rank + dl_ranks_offset(seats->ranks, beside, i), device);
        dl_group_init(&groups[i], seats->topology, device, n, arena);
    }
    dl_free(offsets);
    return groups;
}
