/* repeats.h - where the sequence of a program repeats itself some micro-batches later.
 *
 * One forward and one backward, again and again, is a period of two items that shifts by one micro-batch. */
#ifndef DL_PROGRAM_REPEATS_H
#define DL_PROGRAM_REPEATS_H

#include "sim/program/program.h"

/* The longest such stretch around the middle of the sequence that has several periods; false: there is none. */
bool dl_repeats_find(const struct dl_program *p, struct dl_repeats *out);
/* The one that shifts by so many micro-batches. */
bool dl_repeats_find_shifted(const struct dl_program *p, uint32_t micros, struct dl_repeats *out);
/* Of all stages of a step, by the same micro-batches: as far as the first that has none. */
void dl_repeats_note(struct dl_program *programs, uint32_t n_stages);

#endif
