/* ideal.h - parts of a step at their best, to see what they add (parts.h). */
#ifndef DL_SESSION_IDEAL_H
#define DL_SESSION_IDEAL_H

#include "sim/session/session.h"

/* Make ideal what the request of the session names, before anything is priced. The schedule is not among it: what is
 * at best there is less than any that could be simulated; its bubble is known from the causes of a step. */
void dl_session_idealize(struct dl_session *s);

#endif
