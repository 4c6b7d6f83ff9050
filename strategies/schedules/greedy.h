/* greedy.h - an order of F, B and W for any times and any limit of memory. */
#ifndef DL_STRATEGIES_SCHEDULES_GREEDY_H
#define DL_STRATEGIES_SCHEDULES_GREEDY_H

#include "strategies/schedules/schedules.h"

enum dl_greedy_preference { DL_GREEDY_BACKWARD, DL_GREEDY_FORWARD, DL_GREEDY_OTHER };

struct dl_greedy {
    uint32_t limit;                   /* activations that a stage may hold; at least the chunks */
    enum dl_greedy_preference prefer; /* where a B and an F are both ready; OTHER: than the last */
    double patience;                  /* wait for a B or F that comes within this share of a W */
};

/* Fill the order of a schedule that was initialised and placed: one path, at most two chunks. */
void dl_schedule_greedy(struct dl_schedule *s, const struct dl_schedule_request *request,
                        const struct dl_greedy *policy);

#endif
