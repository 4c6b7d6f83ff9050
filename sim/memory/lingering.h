/* lingering.h - memory that a program has freed and its allocator may not reuse yet.
 *
 * A collective of ranks in step runs on a stream of its own. What a reduce-scatter is given is freed as soon as it is
 * launched, but not reused before it is done. A host that is ahead of its device asks for new memory meanwhile: as much
 * as the reduce-scatters among its queued launches were given. It is ahead where the device has more to do, where other
 * hosts of its group are slower, and where what the device sends is not received yet. */
#ifndef DL_MEMORY_LINGERING_H
#define DL_MEMORY_LINGERING_H

#include "strategies/lower.h"

/* At the end of a forward, where most is saved. 0 without a launch_queue of the software. */
double dl_lingering_bytes(const struct dl_program *program, const struct dl_comm *calls,
                          const struct dl_setting *setting);

#endif
