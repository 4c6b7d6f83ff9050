/* segment_sums.h - what totals and parts of templates share: the work of instructions, added up. */
#ifndef DL_PROGRAM_SEGMENT_SUMS_H
#define DL_PROGRAM_SEGMENT_SUMS_H

#include "sim/program/segments.h"
#include "sim/program/streams.h"

static inline bool dl_is_kernel(const struct dl_instruction *i)
{
    return i->kind == DL_DO && i->cause != DL_CAUSE_HOST;
}

static inline void dl_segment_add(struct dl_segment *s, const struct dl_instruction *i)
{
    s->by_cause[i->cause] += i->device_s;
    s->seconds += i->device_s;
    s->flop += i->flop;
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) s->counted_flop[count] += i->counted_flop[count];
    s->by_ground[i->ground] += i->device_s;
}

/* What an instruction costs a device whose host is far ahead. */
void dl_price_on_device(struct dl_streams *s, const struct dl_instruction *i, struct dl_priced_work *out);
void dl_segment_add_priced(struct dl_segment *s, const struct dl_priced_work *work);
/* So many times what is in the other. */
void dl_segment_add_times(struct dl_segment *to, const struct dl_segment *s, double times);

#endif
