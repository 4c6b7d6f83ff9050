/* seats.h - on which device each rank of a job runs, and so the devices of each group that communicates. */
#ifndef DL_COLLECTIVE_SEATS_H
#define DL_COLLECTIVE_SEATS_H

#include "sim/collective/collective.h"

struct dl_seats {
    const struct dl_ranks *ranks;
    const uint32_t *device_of_rank; /* and those of servers */
    uint32_t n_servers;
    const struct dl_topology *topology;
};

/* Groups side by side: one for each value of the digits `beside`, which are others than those of the members, from the
 * group of this rank on, which must be the first in all of them. Servers follow the members of each. */
struct dl_group *dl_seats_groups(const struct dl_seats *seats, const struct dl_members *members, dl_digits beside,
                                 uint32_t rank, struct dl_arena *arena);

/* How far their members, without servers, are from that rank, group by group; free with dl_free. */
uint32_t *dl_seats_offsets(const struct dl_ranks *ranks, const struct dl_members *members, dl_digits beside);
/* With them: their devices alone, group by group, servers last in each. */
void dl_seats_devices(const struct dl_seats *seats, const uint32_t *offsets, uint32_t n_groups, uint32_t n_members,
                      uint32_t rank, uint32_t *devices);

#endif
