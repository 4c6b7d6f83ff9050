/* simgrid_linked.c - of programs that are linked with simgrid.cpp. */
#include "sim/engine/simgrid.h"

const struct dl_adapter *dl_simgrid(void) { return &dl_simgrid_adapter; }

void dl_simgrid_load(void) {}

bool dl_simgrid_is_loaded(void) { return true; }
