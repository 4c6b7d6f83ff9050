/* played.h - which collectives of ranks in lockstep are simulated, and on which lockstep groups. */
#ifndef DL_STRATEGIES_PLAYED_H
#define DL_STRATEGIES_PLAYED_H

#include "strategies/sink.h"

/* Those that may meet others, or cross links that change. Where they are more than the request's most_played: only
 * those of the lockstep groups that cross such links, and the others are priced. Then templates get their parts. */
enum dl_status dl_plan_lowered(struct dl_sink *s, struct dl_error *err);

/* Copies to and from the hosts, where their paths are shared or change. */
void dl_plan_copies(struct dl_sink *s, bool *simulated);

#endif
