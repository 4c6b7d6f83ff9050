/* fidelities.h - how collectives are simulated: message by message, or as flows that share links. */
#ifndef DL_SESSION_FIDELITIES_H
#define DL_SESSION_FIDELITIES_H

#include <stdbool.h>

/* The names of --fidelity; they end with NULL. */
extern const char *const dl_fidelities[];

const char *dl_fidelity_name(bool fluid);
/* Whether one of those names is that of flows. */
bool dl_fidelity_is_fluid(const char *name);

#endif
