/* fingerprint.h - a SHA-256 of all that decides an answer, so that two answers can be known to be of the same question.
 *
 * The rule to remember: content counts, not where it was read from or how it was written down. Documents are added when
 * `like` and --set have been applied, with the order of keys and the layout of the file left out. */
#ifndef DL_CORE_FINGERPRINT_H
#define DL_CORE_FINGERPRINT_H

#include "sim/core/json.h"
#include "sim/core/sha256.h"

struct dl_fingerprint {
    struct dl_sha256 hash;
};

/* Begins with the version of dlsim: another one may answer differently. */
void dl_fingerprint_begin(struct dl_fingerprint *f);

/* Each with a name for what it is. A text or a value may be NULL: there is none. */
void dl_fingerprint_text(struct dl_fingerprint *f, const char *what, const char *text);
void dl_fingerprint_number(struct dl_fingerprint *f, const char *what, double x);
void dl_fingerprint_json(struct dl_fingerprint *f, const char *what, const json_t *value);

/* A document, but for the names of other files in it, which may be spelt in many ways: the values at these paths
 * ("node.device"; the list ends with NULL). Those files are added themselves. */
void dl_fingerprint_document(struct dl_fingerprint *f, const char *what, const json_t *doc, const char *const *names);

/* The text of a file. */
enum dl_status dl_fingerprint_file(struct dl_fingerprint *f, const char *what, const char *path, struct dl_error *err);

void dl_fingerprint_end(struct dl_fingerprint *f, char hex[DL_SHA256_HEX]);

#endif
