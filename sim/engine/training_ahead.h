/* training_ahead.h - the items of an iteration gone through at once, before the engine's clock moves.
 *
 * Where nobody shares a link and items only work, all that a stage does follows from its own clocks and from what its
 * neighbours have sent: when a message comes is known as soon as it is sent, so it is no event. The one thing that must
 * go in the order of time is the end of an item, because a message takes a share of what both of its stages compute
 * with from then on. So there is one event an item, in a tournament of one entry a stage. The rule to remember: a stage
 * may be ahead of the others, up to the end of its next item, but sends only when all others are at that date or later.
 *
 * The engine gets what comes after the items: each stage goes on by itself from the date at which it ends its last. */
#ifndef DL_ENGINE_TRAINING_AHEAD_H
#define DL_ENGINE_TRAINING_AHEAD_H

#include "sim/engine/training_parts.h"

/* t->ahead, if items can be gone through so; else it stays NULL. They can if
 * - links are not shared, one replica stands for all, and nobody looks at slices;
 * - lockstep groups begin an iteration together;
 * - every block of every sequence works, and does nothing else that others could see;
 * - no scenario slows work. */
void dl_ahead_open(struct dl_training *t);
void dl_ahead_close(struct dl_training *t);

/* All lockstep groups go through the items of an iteration that begins now. */
void dl_ahead_run(struct dl_training *t);
/* While they do: how long messages have been under way is noted up to now. */
void dl_ahead_pass_sending(struct dl_training *t);

#endif
