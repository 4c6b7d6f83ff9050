/* sequence.h - from the schedule of a pipeline to the sequences of its stages: which block each item runs, and where
 * its input comes from and its result goes to. */
#ifndef DL_STRATEGIES_SEQUENCE_H
#define DL_STRATEGIES_SEQUENCE_H

#include "strategies/lower.h"

/* Of all programs of a step; refused if items lack their partner or wait for each other in a circle. */
enum dl_status dl_write_sequences(struct dl_lowered *l, const struct dl_setting *setting, struct dl_error *err);
/* Of items that dl_check_items has let pass. */
void dl_write_checked_sequences(struct dl_lowered *l, const struct dl_setting *setting);

/* Every item is there once, on the stage that holds its part of the model, and the order of the items lets all of them
 * be worked on. */
enum dl_status dl_check_items(const struct dl_schedule *s, struct dl_error *err);

#endif
