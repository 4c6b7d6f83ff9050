/* places.h - between which places of a machine a copy goes. */
#ifndef DL_PROGRAM_PLACES_H
#define DL_PROGRAM_PLACES_H

#include <stdbool.h>

/* The storage is a file system that all nodes share; that of a node is the node's own. */
enum dl_path {
    DL_PATH_HOST, /* from each device to its host */
    DL_PATH_STORAGE,
    DL_PATH_NODE_STORAGE,
    DL_PATH_HOST_STORAGE, /* from the host of each device, whose links to it stay free */
    DL_PATH_HOST_NODE_STORAGE,
    DL_N_PATHS,
};
extern const char *const dl_path_names[]; /* "device-host", ...; then NULL */

static inline bool dl_path_begins_at_device(enum dl_path p) { return p < DL_PATH_HOST_STORAGE; }
static inline bool dl_path_ends_in_shared_storage(enum dl_path p)
{
    return p == DL_PATH_STORAGE || p == DL_PATH_HOST_STORAGE;
}
static inline bool dl_path_ends_in_node_storage(enum dl_path p)
{
    return p == DL_PATH_NODE_STORAGE || p == DL_PATH_HOST_NODE_STORAGE;
}
/* What a copy is called in timelines. */
const char *dl_path_copy_name(enum dl_path p);

#endif
