#include "sim/program/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dl_refuse_words(struct dl_line_words *r, const char *format, ...)
{
    char where[200], text[DL_HINT + 100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, "%.180s:%u", r->file, r->line);
    dl_fail(r->err, DL_SYNTAX, where, "%s", text);
    return false;
}

void dl_split_words(struct dl_line_words *r, char *line)
{
    r->n_words = 0;
    for (char *at = line; r->n_words < DL_MOST_WORDS;) {
        at += strspn(at, " \t\r");
        if (!*at) break;
        const bool is_name = r->n_words && strcmp(r->words[r->n_words - 1], "name") == 0; /* the rest of the line */
        r->used[r->n_words] = false;
        r->words[r->n_words++] = at;
        at += is_name ? strlen(at) : strcspn(at, " \t\r");
        if (!*at) break;
        *at++ = '\0';
    }
}

/* The word after that one; NULL: it is not there. */
const char *dl_word_after(struct dl_line_words *r, const char *key)
{
    for (size_t i = 1; i + 1 < r->n_words; i++) {
        if (r->used[i] || strcmp(r->words[i], key) != 0) continue;
        r->used[i] = r->used[i + 1] = true;
        return r->words[i + 1];
    }
    return NULL;
}

bool dl_has_word(struct dl_line_words *r, const char *word)
{
    for (size_t i = 1; i < r->n_words; i++) {
        if (r->used[i] || strcmp(r->words[i], word) != 0) continue;
        r->used[i] = true;
        return true;
    }
    return false;
}

static double parse(struct dl_line_words *r, const char *word, double most)
{
    char *end;
    const double value = strtod(word, &end);
    if (*end || !isfinite(value) || value < 0 || value > most)
        dl_refuse_words(r, "'%.60s' is not a number that can stand here", word);
    return r->err->status ? 0 : value;
}

double dl_number_after(struct dl_line_words *r, const char *key)
{
    const char *const word = dl_word_after(r, key);
    return word ? parse(r, word, 1e300) : 0;
}

double dl_fraction_after(struct dl_line_words *r, const char *key)
{
    const double value = dl_number_after(r, key);
    if (value >= 1) dl_refuse_words(r, "'%s' must be below 1", key);
    return value;
}

uint32_t dl_whole_word(struct dl_line_words *r, const char *word, uint32_t limit)
{
    const double value = parse(r, word, limit - 1.0);
    if (value != floor(value)) dl_refuse_words(r, "'%.60s' must be a whole number", word);
    return r->err->status ? 0 : (uint32_t)value;
}

/* Required, and below the limit. */
uint32_t dl_whole_after(struct dl_line_words *r, const char *key, uint32_t limit)
{
    const char *const word = dl_word_after(r, key);
    if (!word || !limit) dl_refuse_words(r, word ? "there is nothing yet that '%s' could mean" : "needs '%s'", key);
    return r->err->status ? 0 : dl_whole_word(r, word, limit);
}

/* The word after the first, which has no key. */
const char *dl_second_word(struct dl_line_words *r)
{
    if (r->n_words < 2) return dl_refuse_words(r, "'%s' needs a word after it", r->words[0]), "";
    r->used[1] = true;
    return r->words[1];
}

int dl_word_choice(struct dl_line_words *r, const char *word, const char *const *names)
{
    char hint[DL_HINT];
    size_t n = 0, at;
    while (names[n]) n++;
    for (at = 0; at < n && strcmp(names[at], word) != 0; at++) continue;
    if (at == n) dl_refuse_words(r, "must be one of %s", dl_joined(names, n, hint));
    return at == n ? 0 : (int)at;
}

const char *dl_required_word(struct dl_line_words *r, const char *key)
{
    const char *const word = dl_word_after(r, key);
    if (!word) dl_refuse_words(r, "needs '%s'", key);
    return word ? word : "";
}
