/* training_ahead_parts.h - what the files training_ahead* share. */
#ifndef DL_ENGINE_TRAINING_AHEAD_PARTS_H
#define DL_ENGINE_TRAINING_AHEAD_PARTS_H

#include "sim/engine/tournament.h"
#include "sim/engine/training_ahead.h"

/* How late a lockstep group is: by messages of this iteration and those before it, by all else, and the sum. */
struct late {
    double by_messages_s, by_others_s, total_s;
};

/* Seconds that are not yet booked in the lockstep group. */
struct books {
    double bubble_s, messages_s, others_s, host_s, interference_s;
    double elapsed_s[DL_PHASE_BACKWARD + 1];
};

/* A lockstep group while it goes through its items: what the innermost loop looks at, close together. It is stored in
 * the group where others look at that. */
struct runner {
    /* Its work. */
    double until_s;           /* it ends then, as far as it is known what it is beside */
    double since_s, timed_s;  /* it began, and its rate has not changed since */
    double planned_s, left_s; /* by itself: all of it, and what was left then */
    double rate;
    double in_flight_until_s;   /* messages from and to its devices: those in line follow each other without a gap */
    const struct dl_part *work; /* NULL: there is none */
    bool is_beside;             /* it is slowed by messages, up to in_flight_until_s */
    bool slowed;                /* it was, or is */
    /* Its item. */
    bool waits_for_input, waits_for_host; /* to begin with it; to send what it has made */
    enum dl_step_phase phase;
    uint32_t stage, n_sends;                             /* of the items that make one step with it */
    uint32_t n_arrived, *arrived;                        /* as in the lockstep group */
    const struct dl_sequenced *item, *first, *items_end; /* it, the first of that step, and the end of all */
    const struct dl_part *part, *parts_end;              /* of it: the next one, and the end of them */
    struct dl_template *const *blocks;
    /* Clocks. */
    double host_s, waits_since_s;
    double undelivered_until_s; /* its sends */
    double posted_s;            /* when an engine would have entered what it does now in its queue */
    struct late late;
    double owed_s, item_s, input_s; /* as in the lockstep group */
    struct books books;
    struct course *course; /* what is noted to leave periods out; NULL: nothing yet, or any more */
    struct lockstep_group *group;
    uint32_t onward_stage; /* that its channel onward leads to */
    double end_s;          /* of its items */
};

/* At least one message was under way. */
struct episode {
    double from_s, to_s;
};

struct ahead {
    struct runner *runners;     /* by lockstep group */
    struct dl_tournament dates; /* of lockstep groups */
    double *free_s;             /* by line: all of its messages have come */
    struct left left;           /* to kernels beside messages */
    struct delays before;       /* of all lockstep groups, when they begin */
    double sending_until_s;     /* the last that was sent by now has come */
    struct episode *episodes;
    size_t n_episodes, episodes_capacity;
};

/* training_ahead_items.c: the lockstep group goes to its first item, or waits for its inputs; all go on. True: a period
 * may be left out; false: all items are done. */
void dl_ahead_begin_items(struct dl_training *t, struct runner *r, double now);
bool dl_ahead_go_on(struct dl_training *t);
/* training_ahead_state.c: what a runner has taken from its lockstep group, and to store it there again. */
void dl_ahead_load(struct dl_training *t, struct runner *r);
void dl_ahead_store(struct dl_training *t, struct runner *r);
/* Put the sum of delays from before in the place of them; and divide it again. */
void dl_ahead_sum_delays(struct delays *d);
void dl_ahead_divide_delays(struct lockstep_group *c, const struct delays *before);
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

#endif
