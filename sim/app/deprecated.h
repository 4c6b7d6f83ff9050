/* deprecated.h - keys of files that have another name now; the old one is read for one release, and told of. */
#ifndef DL_APP_DEPRECATED_H
#define DL_APP_DEPRECATED_H

#include "sim/engine/scenario.h"

/* One line on standard error if the file has one. */
void dl_tell_old_key(const struct dl_scenario *scenario);

#endif
