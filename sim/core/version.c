#include "sim/core/version.h"

const char *dl_version(void) { return DLSIM_VERSION; }
