#include "sim/collective/seats.h"

uint32_t *dl_seats_offsets(const struct dl_ranks *ranks, const struct dl_members *members, dl_digits beside)
{
    const uint32_t n_groups = dl_ranks_count(ranks, beside), n = dl_members_count(ranks, members);
    uint32_t *const offsets = dl_alloc((size_t)n_groups * n * sizeof *offsets);
    for (uint32_t i = 0; i < n; i++)
        offsets[i] = dl_ranks_offset(ranks, members->digits, members->is_pair ? members->pair[i] : i);
    for (uint32_t k = n_groups; k-- > 0;) {
        const uint32_t first = dl_ranks_offset(ranks, beside, k);
        for (uint32_t i = 0; i < n; i++) offsets[(size_t)k * n + i] = first + offsets[i];
    }
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

void dl_seats_devices(const struct dl_seats *seats, const uint32_t *offsets, uint32_t n_groups, uint32_t n_members,
                      uint32_t rank, uint32_t *devices)
{
    const size_t of_group = (size_t)n_members + seats->n_servers;
    for (uint32_t i = 0; i < n_groups; i++)
        list_devices(seats, offsets + (size_t)i * n_members, n_members, rank, devices + i * of_group);
}

struct dl_group *dl_seats_groups(const struct dl_seats *seats, const struct dl_members *members, dl_digits beside,
                                 uint32_t rank, struct dl_arena *arena)
{
    const uint32_t n_groups = dl_ranks_count(seats->ranks, beside), n = dl_members_count(seats->ranks, members);
    struct dl_group *const groups = dl_arena_alloc(arena, n_groups * sizeof *groups);
    uint32_t *const offsets = dl_seats_offsets(seats->ranks, members, beside);
    for (uint32_t i = 0; i < n_groups; i++) {
        uint32_t *const device = dl_arena_alloc(arena, (n + seats->n_servers) * sizeof *device);
        list_devices(seats, offsets + (size_t)i * n, n, rank, device);
        dl_group_init(&groups[i], seats->topology, device, n, arena);
    }
    dl_free(offsets);
    return groups;
}
