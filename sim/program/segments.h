/* segments.h - instructions become parts: those that other ranks can see, and segments of work between them.
 *
 * A collective of ranks in lockstep or a copy that is not simulated goes on by the clock of its channel (streams.h),
 * and is work at its wait: as much of it as is left. What an op between the two that others can see takes is not
 * counted. */
#ifndef DL_PROGRAM_SEGMENTS_H
#define DL_PROGRAM_SEGMENTS_H

#include "sim/program/program.h"

/* What an instruction is to host and device by themselves, with all collectives of ranks in lockstep priced. */
struct dl_priced_work {
    struct dl_instruction
        items[2]; /* DL_DO: a kernel; or what is left of a collective, and what it took from kernels */
    size_t n;
    bool is_beside;  /* of a collective: kernels went on beside it */
    bool is_network; /* the first is what is left of a collective */
};
void dl_priced_work(const struct dl_template *t, size_t at, const struct dl_comm *calls, struct dl_priced_work *out);

/* On a device that takes `pace` times as long for its work: the network does not. */
double dl_slowed_s(double seconds, double network_s, double pace);
/* The same of what has this cause. */
double dl_segment_slowed_s(const struct dl_segment *s, enum dl_cause cause, double pace);

/* Whether it starts or waits for a collective of ranks in lockstep or a copy, which may be priced. */
static inline bool dl_may_be_priced(const struct dl_instruction *i, const struct dl_comm *calls)
{
    const bool has_call = i->kind == DL_WAIT || i->kind == DL_START;
    return has_call && i->call != DL_EVERY_CALL && dl_comm_may_be_priced(&calls[i->call]);
}

/* Whether it is one kernel or collective, and nothing else; it must have its parts. */
bool dl_template_is_single(const struct dl_template *t);

/* Add up its work, with all collectives of ranks in lockstep priced. */
void dl_template_sum(struct dl_template *t, const struct dl_comm *calls);
/* Make its parts by the plan; of one that it is like first. An instruction starts when the one before it has ended and
 * it is launched. */
void dl_template_fuse(struct dl_template *t, const struct dl_comm *calls, const struct dl_plan *plan);

#endif
