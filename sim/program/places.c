#include "sim/program/places.h"

#include <stddef.h>

const char *const dl_path_names[] = {
    "device-host", "device-storage", "device-node_storage", "host-storage", "host-node_storage", NULL,
};

const char *dl_path_copy_name(enum dl_path p) { return p == DL_PATH_HOST ? "host copy" : "storage copy"; }
