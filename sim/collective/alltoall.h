/* alltoall.h - what all-to-all algorithms share: block s*n + d is what source s has for destination d. */
#ifndef DL_COLLECTIVE_ALLTOALL_H
#define DL_COLLECTIVE_ALLTOALL_H

#include "sim/collective/collective.h"

uint32_t dl_alltoall_blocks(const struct dl_collective *c);

/* Refuse groups whose n * n blocks cannot be numbered. */
enum dl_status dl_alltoall_check(const struct dl_collective *c, struct dl_error *err);

#endif
