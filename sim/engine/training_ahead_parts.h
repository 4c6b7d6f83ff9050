/* training_ahead_parts.h - what the files training_ahead* share. */
#ifndef DL_ENGINE_TRAINING_AHEAD_PARTS_H
#define DL_ENGINE_TRAINING_AHEAD_PARTS_H

#include "sim/engine/tournament.h"
#include "sim/engine/training_ahead.h"

/* What a lockstep group has more while it goes through its items. */
struct runner {
    const struct dl_program *program;
    double in_flight_until_s;   /* messages from and to its devices: those in line follow each other without a gap */
    double undelivered_until_s; /* its sends */
    double posted_s;            /* when an engine would have entered what it does now in its queue */
    double slow_rate;           /* of its work beside messages */
    bool is_beside;             /* its work has that rate, up to in_flight_until_s */
    uint32_t n_before;          /* items that make one step with the one that it is at */
    double *input_s;            /* when they came, by tag, as long as that is looked at; NULL: it is not */
    double end_s;               /* of its items */
};

/* At least one message was under way. */
struct episode {
    double from_s, to_s;
};

struct ahead {
    struct runner *runners;     /* by lockstep group */
    struct dl_tournament dates; /* of lockstep groups */
    double *free_s;             /* by line: all of its messages have come */
    double slowing;             /* how much longer kernels take beside messages */
    double sending_until_s;     /* the last that was sent by now has come */
    struct episode *episodes;
    size_t n_episodes, episodes_capacity;
};

/* training_ahead_sending.c: when messages are under way. All that were sent by now have come by now; one more is sent;
 * items are done, and the rest is left to the engine. */
void dl_ahead_end_sending(struct dl_training *t);
void dl_ahead_leave_sending(struct dl_training *t);

static inline void pass_sending(struct dl_training *t)
{
    if (t->sending.n && t->ahead->sending_until_s <= t->ahead_s) dl_ahead_end_sending(t);
}

static inline void note_sending(struct dl_training *t, double until_s)
{
    if (!t->sending.n) t->sending.since_s = t->ahead_s;
    t->sending.n = 1;
    t->ahead->sending_until_s = fmax(t->ahead->sending_until_s, until_s);
}

static inline struct runner *runner_of(const struct dl_training *t, const struct lockstep_group *c)
{
    return &t->ahead->runners[c->stage]; /* of the one replica */
}

#endif
