/* played.h - which collectives of ranks in lockstep are simulated, and on which lockstep groups. */
#ifndef DL_STRATEGIES_PLAYED_H
#define DL_STRATEGIES_PLAYED_H

#include "strategies/sink.h"

/* Where those that may meet others, or cross links that change, are more than the request's most_played: play those
 * of the lockstep groups that cross such links, and time the others. */
void dl_limit_played(struct dl_sink *s);

#endif
