#define _GNU_SOURCE /* strncasecmp */
#include "sim/core/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/core/memory.h"
#include "sim/core/visible.h"

enum dl_status dl_fail(struct dl_error *err, enum dl_status status, const char *where, const char *format, ...)
{
    if (err->status != DL_OK) return err->status;
    err->status = status;
    enum { longest_place = sizeof err->text / 2 }; /* a hostile name must not push out what is wrong */
    size_t used = 0;
    if (where) {
        snprintf(err->text, sizeof err->text, "%.*s: ", longest_place, where);
        used = strlen(err->text);
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->text + used, sizeof err->text - used, format, arguments);
    va_end(arguments);
    dl_make_visible(err->text);
    return status;
}

bool dl_go_on(struct dl_error *err)
{
    if (!err->status) return true;
    if (!err->tell) return false;
    if (*err->text) {
        err->tell(err->user, err->text);
        err->n_told++;
    }
    err->status = DL_OK;
    err->text[0] = '\0';
    return true;
}

enum dl_status dl_stop_if_told(struct dl_error *err, size_t told)
{
    if (!err->status && err->n_told > told) err->status = DL_IMPOSSIBLE;
    return err->status;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    const size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein distance by one row of the table. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(b);
    size_t *const row = dl_alloc((n + 1) * sizeof *row);
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            const size_t above = row[j + 1];
            row[j + 1] = smallest(above + 1, row[j] + 1,
                                  diagonal + (tolower((unsigned char)a[i]) != tolower((unsigned char)b[j])));
            diagonal = above;
        }
    }
    const size_t distance = row[n];
    dl_free(row);
    return distance;
}

/* The first of those that begin with it. */
static const char *longer(const char *word, const char *const *candidates, size_t n_candidates)
{
    const size_t length = strlen(word), least = 3; /* shorter ones begin too much */
    for (size_t i = 0; i < n_candidates && length >= least; i++)
        if (strncasecmp(word, candidates[i], length) == 0) return candidates[i];
    return NULL;
}

const char *dl_nearest(const char *word, const char *const *candidates, size_t n_candidates)
{
    enum { longest_word = 64 }; /* nobody mistypes a key of this length; keeps hostile input cheap */
    if (strlen(word) > longest_word) return NULL;
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2; /* more slips than this make another word */
    for (size_t i = 0; i < n_candidates; i++) {
        const size_t distance = edit_distance(word, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best ? best : longer(word, candidates, n_candidates);
}

const char *dl_suggestion(const char *word, const char *const *candidates, size_t n_candidates, char out[DL_HINT])
{
    const char *const nearest = dl_nearest(word, candidates, n_candidates);
    out[0] = '\0';
    if (nearest) snprintf(out, DL_HINT, ", did you mean '%s'?", nearest);
    return out;
}

const char *dl_joined(const char *const *words, size_t n_words, char out[DL_HINT])
{
    out[0] = '\0';
    for (size_t i = 0; i < n_words; i++) {
        const size_t used = strlen(out);
        snprintf(out + used, DL_HINT - used, "%s%s", i ? ", " : "", words[i]);
    }
    return out;
}

const char *dl_hint(const char *word, const char *const *candidates, size_t n_candidates, char out[DL_HINT])
{
    char all[DL_HINT];
    if (!*dl_suggestion(word, candidates, n_candidates, out) && n_candidates)
        snprintf(out, DL_HINT, "; there are %s", dl_joined(candidates, n_candidates, all));
    return out;
}
