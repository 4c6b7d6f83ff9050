/* training_steady.h - the steady part of a step: a few periods are played, the others are extrapolated.
 *
 * The rule to remember: no clock is changed. Once everything has repeated itself for two periods, lockstep groups skip
 * as many periods of their sequences as all of them still have before something else comes; messages under way are
 * those of the micro-batches skipped to. What the periods left out would have added is added at once. */
#ifndef DL_ENGINE_TRAINING_STEADY_H
#define DL_ENGINE_TRAINING_STEADY_H

#include "sim/engine/training_parts.h"

/* t->steady, if periods can be left out at all: else it stays NULL, and nobody calls the others. */
void dl_steady_open(struct dl_training *t);
void dl_steady_close(struct dl_training *t);

/* The lockstep group has ended its item. */
void dl_steady_note_item(struct dl_training *t, const struct lockstep_group *c);
/* A period of the first lockstep group has ended, and nobody is in the middle of something: leave out what can be. */
void dl_steady_try(void *training, uint32_t iteration);
/* Whether it has; NULL: it never will. */
const bool *dl_steady_due(const struct dl_training *t);
/* Whether periods of the iteration may still be left out; and where it is noted for that what a lockstep group does. */
bool dl_steady_watches(const struct dl_training *t, uint32_t iteration);
struct course *dl_steady_course(const struct dl_training *t, const struct lockstep_group *c);

/* Seconds of the periods left out: of all iterations, and of the last. */
struct dl_skipped {
    double all_s, last_s;
};
struct dl_skipped dl_steady_skipped(const struct dl_training *t);
/* The last iteration begins. */
void dl_steady_open_books(struct dl_training *t);

#endif
