/* segment_sums.h - what totals and parts of templates share: the work of instructions, added up. */
#ifndef DL_PROGRAM_SEGMENT_SUMS_H
#define DL_PROGRAM_SEGMENT_SUMS_H

#include "sim/program/segments.h"
#include "sim/program/streams.h"

/* DL_DO: a kernel, or what the device waits for. */
static inline void dl_streams_do(struct dl_streams *s, const struct dl_instruction *i)
{
    if (i->cause == DL_CAUSE_HOST)
        dl_streams_work(s, i->device_s);
    else
        dl_streams_kernel(s, i->device_s, i->kernel);
}

static inline void dl_segment_add(struct dl_segment *s, const struct dl_instruction *i)
{
    s->by_cause[i->cause] += i->device_s;
    s->seconds += i->device_s;
    s->flop += i->flop;
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) s->counted_flop[count] += i->counted_flop[count];
    s->by_ground[i->ground] += i->device_s;
    if (dl_cause_is_kernels(i->cause)) s->by_class[i->kernel] += i->device_s;
}

/* What an instruction costs a device whose host is far ahead. */
void dl_price_on_device(struct dl_streams *s, const struct dl_instruction *i, struct dl_priced_work *out);
void dl_segment_add_priced(struct dl_segment *s, const struct dl_priced_work *work);
/* So many times what is in the other. */
void dl_segment_add_times(struct dl_segment *to, const struct dl_segment *s, double times);

#endif
