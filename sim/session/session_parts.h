/* session_parts.h - what the files session*.c share: how a session is played. */
#ifndef DL_SESSION_SESSION_PARTS_H
#define DL_SESSION_SESSION_PARTS_H

#include "sim/session/fidelities.h"
#include "sim/session/session.h"

static inline bool is_analytic(const struct dl_session *s) { return dl_session_engine(s)->alone; }

static inline bool is_fluid(const struct dl_session *s) { return dl_fidelity_is_fluid(s->request.fidelity); }

/* A limit that a request may have set. */
static inline double asked_or(double asked, double usual) { return asked > 0 ? asked : usual; }

/* For an engine that shares links; NULL: the machine is not kept, or the engine needs none. */
const struct dl_engine_link *dl_session_kept_links(const struct dl_session *s);

#endif
