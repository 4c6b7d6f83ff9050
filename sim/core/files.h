/* files.h - finding and reading input files, and writing output files whole or not at all. */
#ifndef DL_CORE_FILES_H
#define DL_CORE_FILES_H

#include <stddef.h>

#include "sim/core/error.h"
#include "sim/core/memory.h"

/* The part after the last slash. */
const char *dl_base_name(const char *path);

/* Read a whole file of at most max_bytes; *text ends with a NUL and is the caller's to dl_free. */
enum dl_status dl_read_file(const char *path, size_t max_bytes, char **text, size_t *bytes, struct dl_error *err);

/* Write through a temporary beside the target and rename it; "-" is standard output. */
enum dl_status dl_write_file(const char *path, const char *text, size_t bytes, struct dl_error *err);

/* Whether that can be, before the work whose result it will hold: refuses a folder, and folders that are not there or
 * may not be written to. */
enum dl_status dl_check_output(const char *path, struct dl_error *err);

/* The path of NAME: itself if it is a path or exists, else NAME or NAME.json in the shipped folder
 * ("topologies/systems"). `what` names the thing in errors ("topology"). */
enum dl_status dl_find_file(const char *folder, const char *what, const char *name, struct dl_arena *arena,
                            const char **path, struct dl_error *err);

/* The shipped folder itself: below $DLSIM_HOME, or where dlsim was built. */
const char *dl_shipped(const char *folder, struct dl_arena *arena);
/* The name of a file without .json, if it ends so. */
const char *dl_without_json(const char *file, struct dl_arena *arena);

/* Names (without .json) of the files in a shipped folder, sorted. */
size_t dl_list_folder(const char *folder, struct dl_arena *arena, const char ***names);

#endif
