/* kept_schedules.h - schedules whose order does not depend on times, with the sequences of their stages: made and
 * checked once for all configurations that have the same counts.
 *
 * The rule to remember: what is taken stays until it is given back; of the rest the oldest goes when there are many. */
#ifndef DL_STRATEGIES_KEPT_SCHEDULES_H
#define DL_STRATEGIES_KEPT_SCHEDULES_H

#include "strategies/lower.h"

struct dl_kept_schedules *dl_kept_schedules_new(void);
/* All must have been given back. */
void dl_kept_schedules_free(struct dl_kept_schedules *k);

/* The schedule of the setting, in l->schedule, and l->kept if it is one of these; else it is made in the arena, and
 * l->kept stays NULL. k is OPTIONAL: NULL keeps nothing. */
enum dl_status dl_kept_schedule_take(struct dl_kept_schedules *k, const struct dl_setting *setting,
                                     struct dl_arena *arena, struct dl_lowered *l, struct dl_error *err);
/* The sequences of l->programs: those kept with its schedule, or as dl_write_sequences writes them. */
enum dl_status dl_kept_sequences_take(struct dl_lowered *l, const struct dl_setting *setting, struct dl_error *err);
void dl_kept_schedule_give_back(struct dl_kept_schedule *kept);

#endif
