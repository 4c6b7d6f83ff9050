/* seats.h - on which devices the ranks of a job sit, and the groups of devices that communicate. */
#ifndef DL_STRATEGIES_SEATS_H
#define DL_STRATEGIES_SEATS_H

#include "strategies/strategy.h"

struct dl_seats {
    const struct dl_setting *setting;
    const uint32_t *device_of_rank; /* and those of servers */
    const struct dl_topology *topology;
};

/* The groups along some digits that begin side by side: one for each value of the digits `beside`, which are others,
 * from the group of this rank on. Servers follow the members of each. */
struct dl_group *dl_seats_groups(const struct dl_seats *seats, dl_digits along, dl_digits beside, uint32_t rank,
                                 struct dl_arena *arena);

#endif
