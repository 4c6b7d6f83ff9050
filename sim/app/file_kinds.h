/* file_kinds.h - the kinds of data files: what they are called, where shipped ones are, and what is first asked of one.
 *
 * To add a kind: one index here, one line in each table of file_kinds.c, and what follows from one in shown.c. */
#ifndef DL_APP_FILE_KINDS_H
#define DL_APP_FILE_KINDS_H

#include "sim/core/json.h"

enum dl_file_kind_index {
    DL_FILE_TOPOLOGY,
    DL_FILE_DEVICE,
    DL_FILE_TRANSPORT,
    DL_FILE_WORKLOAD,
    DL_FILE_STRATEGY,
    DL_FILE_SOFTWARE,
    DL_FILE_SCENARIO,
    DL_N_FILE_KINDS
};

struct dl_file_kind {
    enum dl_file_kind_index index;
    const char *name;   /* "topology", also in errors */
    const char *list;   /* of `dlsim list` */
    const char *schema; /* "dlsim/system/1" */
    const char *folder; /* OPTIONAL: of shipped ones; NULL: there are none */
    /* OPTIONAL: what is most asked of a file, in a few words; "": nothing. */
    const char *(*about)(struct dl_json doc, struct dl_arena *arena);
};
const struct dl_file_kind *dl_file_kind_get(enum dl_file_kind_index index);
extern const char *const dl_file_kind_names[]; /* by index; then NULL */
/* By the schema of the document; NULL: no such kind. */
const struct dl_file_kind *dl_file_kind_of(struct dl_json doc);

/* What a file is in a line: what is most asked, and its source. */
const char *dl_file_line(const struct dl_file_kind *kind, struct dl_json doc, struct dl_arena *arena);

/* Call visit for every shipped file of the kind, by name, with "like" applied; one that cannot be read is left out. */
void dl_each_shipped(const struct dl_file_kind *kind, struct dl_arena *arena,
                     void (*visit)(void *user, const struct dl_file_kind *kind, struct dl_json doc, const char *name),
                     void *user);

#endif
