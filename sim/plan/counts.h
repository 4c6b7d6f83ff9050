/* counts.h - how much there is to simulate: how often each collective of ranks in lockstep is started, by stage. */
#ifndef DL_PLAN_COUNTS_H
#define DL_PLAN_COUNTS_H

#include "strategies/lower.h"

struct dl_plan_counts {
    const struct dl_lowered *lowered;
    const struct dl_ranks *ranks;
    dl_digits in_lockstep;
    uint32_t n_stages;
    double *starts; /* by stage and call: that one lockstep group makes in a step */
};

void dl_plan_count(const struct dl_lowered *l, const struct dl_setting *setting, struct dl_plan_counts *out);
void dl_plan_counts_release(struct dl_plan_counts *c);
static inline double dl_plan_starts(const struct dl_plan_counts *c, uint32_t stage, size_t call)
{
    return c->starts[stage * c->lowered->n_calls + call];
}
/* What one start of a lockstep group is: each of its ranks is in one group of a kind. */
struct dl_played dl_plan_of_start(const struct dl_plan_counts *c, size_t call);
void dl_played_add(struct dl_played *sum, const struct dl_played *more, double times);
/* Of a call on so many lockstep groups of each stage. */
struct dl_played dl_plan_of_call(const struct dl_plan_counts *c, size_t call, const double *n_groups);
/* Of all these calls. */
struct dl_played dl_plan_of_calls(const struct dl_plan_counts *c, const bool *calls, const double *n_groups);
/* So many more of its kind may meet others, of which some are priced all the same. */
void dl_plan_tell(struct dl_lowered *l, const struct dl_comm *comm, double n, double n_priced);

#endif
