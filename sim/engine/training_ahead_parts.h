/* training_ahead_parts.h - what the files training_ahead*.c share. */
#ifndef DL_ENGINE_TRAINING_AHEAD_PARTS_H
#define DL_ENGINE_TRAINING_AHEAD_PARTS_H

#include "sim/engine/dates.h"
#include "sim/engine/training_ahead.h"

/* What a lockstep group has more while it goes through its items. */
struct runner {
    double in_flight_until_s;   /* messages from and to its devices: those in line follow each other without a gap */
    double undelivered_until_s; /* its sends */
    double posted_s;            /* when an engine would have entered what it does now in its queue */
    double slow_rate;           /* of its work beside messages */
    bool is_beside;             /* its work has that rate, up to in_flight_until_s */
    double end_s;               /* of its items */
};

/* At least one message was under way. */
struct episode {
    double from_s, to_s;
};

struct ahead {
    struct runner *runners; /* by lockstep group */
    struct dl_dates dates;  /* of lockstep groups, one each */
    double *free_s;         /* by line: all of its messages have come */
    double sending_until_s; /* the last that was sent by now has come */
    struct episode *episodes;
    size_t n_episodes, episodes_capacity;
};

/* training_ahead_work.c: work as stretches of time. */
void dl_ahead_begin_work(struct dl_training *t, struct lockstep_group *c, const struct dl_part *part);
/* A message from or to its devices leaves now. */
void dl_ahead_meet_message(struct dl_training *t, struct lockstep_group *c, double until_s);
/* The alarm of its work has come; false: it is longer by messages that left since it was set. */
bool dl_ahead_end_work(struct dl_training *t, struct lockstep_group *c);

static inline struct runner *runner_of(const struct dl_training *t, const struct lockstep_group *c)
{
    return &t->ahead->runners[c - t->lockstep_groups];
}

#endif
