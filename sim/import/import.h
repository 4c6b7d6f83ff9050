/* import.h - files of other tools as dlsim's own: a model as a workload, an argument list as a strategy.
 *
 * The rule to remember: nothing is dropped silently. A key that a reader does not know is refused by its place, and one
 * that it knows but dlsim has no counterpart for is listed with the reason.
 *
 * To add a format: a file in sim/import/ with a struct dl_import_format, and one line in formats.h. */
#ifndef DL_IMPORT_IMPORT_H
#define DL_IMPORT_IMPORT_H

#include "sim/core/json.h"

/* What has no counterpart. */
struct dl_left_out {
    const char *key;   /* as the file calls it: "/rope_theta", "--lr" */
    const char *value; /* as the file has it, shortened; "": none */
    const char *why;
    bool matters; /* time or memory would be others if it had one; false: neither depends on it */
};

/* What a file was turned into; either document may be NULL. The strings live in the arena that was given. */
struct dl_imported {
    const char *what;  /* what the file is: "a Hugging Face configuration, llama" */
    json_t *workload;  /* a document of schema dlsim/workload/1 */
    double parameters; /* of that workload, as dlsim counts them; set by dl_import */
    json_t *strategy;  /* a document of schema dlsim/strategy/1; it need not name a workload */
    json_t *software;  /* a document of schema dlsim/software/1, for that strategy in place of what it names */
    struct dl_left_out *left_out;
    size_t n_left_out, capacity;
};
void dl_imported_release(struct dl_imported *imported);

/* List something as left out. Strings other than the value must live as long as the arena; NULL value: none. */
void dl_leave_out(struct dl_imported *out, struct dl_left_out left, struct dl_arena *arena);

/* A value as it is shown beside its key: on one line, shortened. */
const char *dl_shown_value(const json_t *value, struct dl_arena *arena);

struct dl_import_format {
    const char *name, *doc;
    bool (*recognises)(const char *text, size_t bytes); /* REQUIRED: by the content; one format at most may */
    /* REQUIRED: `text` ends with a NUL and holds no other; `where` is the name of the file, for errors. */
    enum dl_status (*read)(const char *text, const char *where, struct dl_arena *arena, struct dl_imported *out,
                           struct dl_error *err);
};
size_t dl_import_format_count(void);
const struct dl_import_format *dl_import_format_get(size_t index);
extern const char *const dl_import_format_names[]; /* by index; then NULL */

/* Text as the format of this name, or, if NULL, as the one that recognises it; what it becomes is checked: a workload
 * that is handed out can be built, and a strategy fits to it. Release `out` whatever comes back. */
struct dl_foreign {
    const char *text; /* ends with a NUL */
    size_t bytes;
    const char *where;  /* name of the file, for errors */
    const char *format; /* NULL: find out */
};
enum dl_status dl_import(const struct dl_foreign *file, struct dl_arena *arena, struct dl_imported *out,
                         const struct dl_import_format **format, struct dl_error *err);

#endif
