/* repeats.h - where the sequence of a program repeats itself some micro-batches later.
 *
 * One forward and one backward, again and again, is a period of two items that shifts by one micro-batch. */
#ifndef DL_PROGRAM_REPEATS_H
#define DL_PROGRAM_REPEATS_H

#include "sim/program/program.h"

/* Each item from `first` to the one before `end` is the item a period before it, so many micro-batches later: with the
 * same block and partners, and tags that differ by as many. */
struct dl_repeats {
    uint32_t first, end;
    uint32_t period; /* items */
    uint32_t micros;
};

/* The longest such stretch around the middle of the sequence that has several periods; false: there is none. */
bool dl_repeats_find(const struct dl_program *p, struct dl_repeats *out);
/* The one that shifts by so many micro-batches. */
bool dl_repeats_find_shifted(const struct dl_program *p, uint32_t micros, struct dl_repeats *out);

#endif
