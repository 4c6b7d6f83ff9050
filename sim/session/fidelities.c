#include "sim/session/fidelities.h"

#include <string.h>

const char *const dl_fidelities[] = {"step", "fluid", NULL}; /* by whether it is fluid */

const char *dl_fidelity_name(bool fluid) { return dl_fidelities[fluid]; }

bool dl_fidelity_is_fluid(const char *name) { return strcmp(name, dl_fidelities[true]) == 0; }
