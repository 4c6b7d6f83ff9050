/* files_read.h - which inputs of an answer are not shipped with dlsim, and where they were read from. Their names
 * alone are not enough: a user's file may have any name. */
#ifndef DL_REPORT_FILES_READ_H
#define DL_REPORT_FILES_READ_H

#include "sim/core/json.h"

struct dl_files_read {
    struct dl_file_read {
        const char *what, *path; /* "transport", "./mine.json" */
    } items[8];
    size_t n;
};

/* Note the file of a document, unless it is in the shipped folder for such, or was made in memory. */
void dl_files_read_add(struct dl_files_read *files, const char *what, const char *folder, struct dl_json doc,
                       struct dl_arena *arena);
/* A line of a report; nothing if there are none. */
void dl_files_read_print(const struct dl_files_read *files);
/* An object of paths by what they are. */
json_t *dl_files_read_json(const struct dl_files_read *files);

#endif
