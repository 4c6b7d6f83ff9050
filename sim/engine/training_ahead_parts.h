/* training_ahead_parts.h - what the files training_ahead* share. */
#ifndef DL_ENGINE_TRAINING_AHEAD_PARTS_H
#define DL_ENGINE_TRAINING_AHEAD_PARTS_H

#include "sim/engine/tournament.h"
#include "sim/engine/training_ahead.h"

/* What a lockstep group has more while it goes through its items. */
struct runner {
    struct lockstep_group *group;
    const struct dl_sequenced *item, *items_end; /* its item, and the end of all */
    const struct dl_sequenced *first;            /* of the items that make one step with it */
    struct dl_template *const *blocks;           /* of its program */
    const struct dl_part *part, *parts_end;      /* next one of its item, and the end of them */
    uint32_t onward_stage;                       /* that its channel onward leads to */
    uint32_t n_sends;                            /* of these items */
    bool waits_for_host;                         /* to send */
    bool is_beside;                              /* its work is slowed by messages, up to in_flight_until_s */
    double in_flight_until_s;   /* messages from and to its devices: those in line follow each other without a gap */
    double undelivered_until_s; /* its sends */
    double posted_s;            /* when an engine would have entered what it does now in its queue */
    struct course *course;      /* what is noted to leave periods out; NULL: nothing any more */
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
    struct delays before;       /* of all lockstep groups, when they begin */
    double sending_until_s;     /* the last that was sent by now has come */
    struct episode *episodes;
    size_t n_episodes, episodes_capacity;
};

/* training_ahead_items.c: the lockstep group goes to its first item, or waits for its inputs; all go on. True: a period
 * may be left out; false: all items are done. */
void dl_ahead_begin_items(struct dl_training *t, struct runner *r, double now);
bool dl_ahead_go_on(struct dl_training *t);
/* training_ahead.c: the lockstep group has done its last item. */
void dl_ahead_end_items(struct dl_training *t, struct runner *r, double now);

/* training_ahead_sending.c: items are done, and what of messages is still under way is left to the engine. */
void dl_ahead_leave_sending(struct dl_training *t);

static inline void end_sending(struct dl_training *t, struct ahead *a)
{
    struct busy *const b = &t->sending;
    b->total_s += a->sending_until_s - b->since_s;
    b->n = 0;
    DL_GROW(a->episodes, a->n_episodes, a->episodes_capacity);
    a->episodes[a->n_episodes++] = (struct episode){b->since_s, a->sending_until_s};
}

/* One more message leaves now. */
static inline void note_sending(struct dl_training *t, struct ahead *a, double until_s, double now)
{
    struct busy *const b = &t->sending;
    if (b->n && a->sending_until_s <= now) end_sending(t, a);
    if (!b->n) b->since_s = now;
    b->n = 1;
    a->sending_until_s = fmax(a->sending_until_s, until_s);
}

static inline struct runner *runner_of(const struct dl_training *t, const struct lockstep_group *c)
{
    return &t->ahead->runners[c->stage]; /* of the one replica */
}

#endif
