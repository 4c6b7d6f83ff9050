/* held.h - bytes on a device of each pipeline stage, with what its allocator holds of memory that is freed. */
#ifndef DL_MEMORY_HELD_H
#define DL_MEMORY_HELD_H

#include "sim/memory/memory_use.h"

struct dl_held_request {
    const struct dl_program *programs; /* of all stages */
    const struct dl_comm *calls;
    const struct dl_setting *setting;
    double memory_bytes; /* of a device */
};

/* As dl_memory_of_programs, and what lingers and what gathers leave. What decides whether a step fits is this. */
void dl_memory_with_held(const struct dl_held_request *request, struct dl_memory_use *use);

#endif
