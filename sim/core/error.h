/* error.h - what is wrong with the input, where, and what would be right.
 *
 * Bad input is reported with dl_fail and travels up as a status; the first error wins and calls chain with ||.
 * Our own mistakes are asserts, and running out of memory stops the program (memory.h): the three are never mixed.
 *
 * Who wants all errors of a file sets `tell`: then readers of parts that do not depend on each other go on. Each part
 * is read like this, and nothing of one that was refused is used:
 *
 *     const size_t told = err->n_told;
 *     for (each part)
 *         if (read_part(part, err) && !dl_go_on(err)) return err->status;
 *     return dl_stop_if_told(err, told);
 */
#ifndef DL_CORE_ERROR_H
#define DL_CORE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#define DL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum dl_status {
    DL_OK = 0,
    DL_SYNTAX,     /* not JSON, or not what the command line allows */
    DL_KEY,        /* a key that is unknown, missing or given twice */
    DL_TYPE,       /* a value of another type */
    DL_RANGE,      /* a value outside of what is allowed */
    DL_NOT_FOUND,  /* a file or a name that does not exist */
    DL_IMPOSSIBLE, /* each value is fine, together they cannot be */
    DL_STALLED,    /* the simulation cannot go on: someone waits for ever */
    DL_LATE,       /* it was ended because it took longer than was allowed */
};

struct dl_error {
    enum dl_status status;
    char text[1024]; /* one line: place, what is wrong, what would be right; "": told already */
    void (*tell)(void *user, const char *text); /* OPTIONAL: gets errors after which a reader goes on */
    void *user;
    size_t n_told;
};

/* Record "where: message" unless an earlier error is there already; returns the status that err now holds.
 * `where` is a file with a JSON pointer ("frontier.json:/node/nics") or an option ("--bytes"); NULL for none. */
enum dl_status dl_fail(struct dl_error *err, enum dl_status status, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Whether to read on: always if there is no error; else only if it could be told, and then there is none any more. */
bool dl_go_on(struct dl_error *err);
/* The status of err, which is an error if any was told since `told` were. */
enum dl_status dl_stop_if_told(struct dl_error *err, size_t told);

/* The candidate closest to `word` by edit distance, whatever the case of letters, else the first that begins with it;
 * or NULL if none is close enough to be meant. */
const char *dl_nearest(const char *word, const char *const *candidates, size_t n_candidates);

/* What to say after an unknown word, each in `out`, which it returns: ", did you mean 'x'?" or, if nothing is near, "";
 * "x, y, z", all that there are; the first or, if nothing is near, "; there are x, y, z". */
enum { DL_HINT = 768 };
const char *dl_suggestion(const char *word, const char *const *candidates, size_t n_candidates, char out[DL_HINT]);
const char *dl_joined(const char *const *words, size_t n_words, char out[DL_HINT]);
const char *dl_hint(const char *word, const char *const *candidates, size_t n_candidates, char out[DL_HINT]);

#endif
