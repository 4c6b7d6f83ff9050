/* times.h - when the items of a schedule end, as far as is known, and when the next ones have their input. */
#ifndef DL_STRATEGIES_SCHEDULES_TIMES_H
#define DL_STRATEGIES_SCHEDULES_TIMES_H

#include "strategies/schedule.h"

struct dl_item_times {
    const struct dl_schedule *s;
    const struct dl_schedule_request *request;
    double *ends_s; /* by (kind, stage, chunk, micro); NaN: not known yet */
};

void dl_item_times_init(struct dl_item_times *t, const struct dl_schedule *s,
                        const struct dl_schedule_request *request);
void dl_item_times_release(struct dl_item_times *t);

/* Where the end of an item is kept. */
double *dl_item_end_s(const struct dl_item_times *t, uint32_t stage, struct dl_item item);

/* When the item's input is at its stage; NaN if that is not known yet. */
double dl_item_ready_s(const struct dl_item_times *t, uint32_t stage, struct dl_item item);

/* The stage that takes over from the item, or UINT32_MAX if none does. */
uint32_t dl_item_next_stage(const struct dl_schedule *s, uint32_t stage, struct dl_item item);

/* Seconds of the item by itself. */
double dl_item_seconds(const struct dl_schedule_request *request, enum dl_item_kind kind);

#endif
