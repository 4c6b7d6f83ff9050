/* json.h - strict reading of data files through tables of fields, and writing of results.
 *
 * The rule to remember: a key that no field names is an error, so a misspelt option is never silently ignored.
 * Every value keeps the place it came from ("frontier.json:/node/nics/0"), and errors name it.
 * Any object may hold "facts" about its keys, see facts.h. */
#ifndef DL_CORE_JSON_H
#define DL_CORE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/core/error.h"
#include "sim/core/memory.h"

struct dl_json {
    json_t *value;     /* NULL: absent */
    const char *where; /* file:/json/pointer */
    const char *file;  /* path of the file it was read from, to which names in it are relative; NULL: none */
};

struct dl_int_list {
    int64_t *items;
    size_t n;
};

enum dl_type {
    DL_INT,      /* int64_t */
    DL_NUMBER,   /* double */
    DL_BOOL,     /* bool */
    DL_TEXT,     /* const char * */
    DL_CHOICE,   /* int64_t: index into choices */
    DL_INT_LIST, /* struct dl_int_list; min and max bound each item */
    DL_LIST,     /* struct dl_json: an array, read by its owner */
    DL_OBJECT,   /* struct dl_json: an object, read by its owner */
    DL_ANY,      /* struct dl_json */
};

struct dl_field {
    const char *key;
    enum dl_type type;
    size_t offset; /* of the member in the struct that dl_read fills */
    double min, max;
    bool optional;              /* absent leaves the default that the struct held before */
    const char *const *choices; /* DL_CHOICE: ends with NULL */
    const char *doc;            /* shown by `dlsim list` */
};

/* Parse a file. The document is released with json_decref(doc->value). */
enum dl_status dl_json_load(const char *path, struct dl_arena *arena, struct dl_json *doc, struct dl_error *err);

/* From now on call seen() with every file that this process loads; NULL: with none. */
typedef void (*dl_load_fn)(void *user, const char *path, const char *text, size_t bytes);
void dl_json_watch(dl_load_fn seen, void *user);

/* Parse `bytes` of text that came from `name`; the same checks as for a file. */
enum dl_status dl_json_parse(const char *text, size_t bytes, const char *name, struct dl_arena *arena,
                             struct dl_json *doc, struct dl_error *err);

/* Fill the struct at `out` from the object by its fields; refuses unknown keys, wrong types and values out of range. */
enum dl_status dl_read(struct dl_json object, const struct dl_field *fields, size_t n_fields, void *out,
                       struct dl_arena *arena, struct dl_error *err);

/* Say that the value is of another type than the one wanted ("a list"). */
enum dl_status dl_wrong_type(struct dl_json from, const char *wanted, struct dl_error *err);

/* Whether "schema" is dlsim/KIND/1. */
enum dl_status dl_check_schema(struct dl_json doc, const char *kind, struct dl_arena *arena, struct dl_error *err);

/* The schema is checked; then as dl_read, with the keys schema and source taken care of. A file need not have a source;
 * one that it has must say something. */
enum dl_status dl_read_document(struct dl_json doc, const char *kind, const struct dl_field *fields, size_t n_fields,
                                void *out, struct dl_arena *arena, struct dl_error *err);

/* The name of the file that the document was read from, without folder and .json. */
const char *dl_document_name(struct dl_json doc, struct dl_arena *arena);

/* A member or an element with its place; value is NULL if there is none. */
/* The same document for one more, who releases it too. */
static inline struct dl_json dl_json_shared(struct dl_json doc)
{
    json_incref(doc.value);
    return doc;
}
struct dl_json dl_json_member(struct dl_json object, const char *key, struct dl_arena *arena);
struct dl_json dl_json_element(struct dl_json array, size_t index, struct dl_arena *arena);

/* The range that dl_read allowed for the number at this place of a document, if it read one there into this arena. */
bool dl_json_range(struct dl_arena *arena, const char *where, double *min, double *max);

/* For answers: as json_real and json_pack, but a number that is not finite, which JSON cannot hold, is kept as a mark
 * that dl_write_json finds, where Jansson would leave out the key or the whole object. */
json_t *dl_json_real(double x);
json_t *dl_json_pack(const char *format, ...);

/* The value as text for free(), written as Jansson's flags say; NULL, and an error of this place, if it holds a number
 * that is not finite. */
char *dl_json_dump(const char *where, json_t *value, size_t flags, struct dl_error *err);

/* Write the value to a file, or to standard output for "-", and release it. Nothing is written of one that holds a
 * number that is not finite. */
enum dl_status dl_write_json(const char *path, json_t *value, struct dl_error *err);
/* The same for text that is JSON already. Characters that terminals would obey are escaped. */
enum dl_status dl_write_json_text(const char *path, const char *text, size_t bytes, struct dl_error *err);

/* Apply "path.to.key=JSON" to the document. A path part that names no key of an array is looked up among the "name"s of
 * its elements. New keys are made; whether they mean anything is for the reader of the document to say. A fact keeps no
 * interval of a value that is no longer there.
 * With + in front, an element of that name is added to a list that has none: "+stack.zero.stage=1"; "+stack.zero" and
 * "+stack.zero={...}" add it as it stands there, and are refused where there is one. "-path.to.key" takes out a key or
 * an element, which must be there. */
enum dl_status dl_json_set(struct dl_json doc, const char *assignment, struct dl_arena *arena, struct dl_error *err);

#endif
