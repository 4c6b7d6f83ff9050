/* files.h - finding and reading input files, and writing output files whole or not at all. */
#ifndef DL_CORE_FILES_H
#define DL_CORE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/core/error.h"
#include "sim/core/memory.h"

/* The part after the last slash. */
const char *dl_base_name(const char *path);

/* Whether there is a file, which is neither a folder nor a device. */
bool dl_is_regular(const char *path);

/* Open a file to read it piece by piece, for fclose; *bytes is its size. Refuses what is no file, and one that is to be
 * written (planned.h). */
enum dl_status dl_open_input(const char *path, FILE **file, size_t *bytes, struct dl_error *err);
/* Read a whole file of at most max_bytes; *text ends with a NUL and is the caller's to dl_free. Refuses as above. */
enum dl_status dl_read_file(const char *path, size_t max_bytes, char **text, size_t *bytes, struct dl_error *err);

/* Write it whole or not at all (output.h); "-" is standard output. */
enum dl_status dl_write_file(const char *path, const char *text, size_t bytes, struct dl_error *err);

/* What a name stands for. With a slash it is a path. Without one it is a shipped file, NAME or NAME.json; if there is
 * none, such a file in the folder of the file that names it, or in the current folder. A shipped name always wins, so
 * that an answer that tells it does not depend on what lies about in a folder. */
struct dl_sought {
    const char *folder; /* shipped ("topologies/systems") */
    const char *what;   /* the thing in errors ("topology") */
    const char *name;
    const char *file; /* the path of the file that names it, to which it is relative; NULL: the command line does */
    bool is_unlisted; /* `dlsim list` has none of them */
};
enum dl_status dl_find_sought(const struct dl_sought *sought, struct dl_arena *arena, const char **path,
                              struct dl_error *err);
/* The same for a name of the command line. */
enum dl_status dl_find_file(const char *folder, const char *what, const char *name, struct dl_arena *arena,
                            const char **path, struct dl_error *err);
/* Whether the path is that of a file in the shipped folder, as dl_find_sought gives it. */
bool dl_is_shipped(const char *path, const char *folder, struct dl_arena *arena);

/* What a file must call another one, so that it is found from the folder of the first wherever dlsim runs: with a slash
 * in any case. Both folders must be there. */
const char *dl_name_from(const char *file, const char *other, struct dl_arena *arena);

/* The shipped folder itself, below dl_home. */
const char *dl_shipped(const char *folder, struct dl_arena *arena);
/* The name of a file without .json, if it ends so. */
const char *dl_without_json(const char *file, struct dl_arena *arena);

/* Names (without .json) of the files in a shipped folder, sorted. */
size_t dl_list_folder(const char *folder, struct dl_arena *arena, const char ***names);

#endif
