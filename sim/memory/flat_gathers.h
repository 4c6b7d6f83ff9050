/* flat_gathers.h - what gathering parameters through flat buffers makes an allocator hold.
 *
 * At the end of a step with ZeRO 1 a rank copies its part of the parameters into a flat buffer, gathers those of all
 * replicas into as many, and these through one that has room for all. An allocator that does not move blocks finds room
 * for a buffer only where one as large was freed. */
#ifndef DL_MEMORY_FLAT_GATHERS_H
#define DL_MEMORY_FLAT_GATHERS_H

#include "sim/memory/memory_use.h"

/* What is held beyond the fullest moment `use` of a stage; 0 without flat_gathers of the software. */
double dl_flat_gather_bytes(const struct dl_program *program, const struct dl_setting *setting,
                            const struct dl_memory_use *use);

#endif
