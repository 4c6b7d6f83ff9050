/* words.h - a line of text as words: first what it is, then keys with their values and single words, in any order.
 *
 * What is asked for counts as used, so that what is left over can be refused. After an error all of them answer with
 * nothing. */
#ifndef DL_PROGRAM_WORDS_H
#define DL_PROGRAM_WORDS_H

#include <stdint.h>

#include "sim/core/error.h"

enum { DL_MOST_WORDS = 48 };

struct dl_line_words {
    const char *file;
    unsigned line;
    struct dl_error *err;
    char *words[DL_MOST_WORDS];
    bool used[DL_MOST_WORDS];
    size_t n_words;
};

/* The line is changed. What follows the word `name` is one word up to the end of the line. */
void dl_split_words(struct dl_line_words *r, char *line);
/* Returns false. */
bool dl_refuse_words(struct dl_line_words *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The word after that one; NULL: it is not there. The other one refuses that. */
const char *dl_word_after(struct dl_line_words *r, const char *key);
const char *dl_required_word(struct dl_line_words *r, const char *key);
/* The second of the line, which has no key. */
const char *dl_second_word(struct dl_line_words *r);
bool dl_has_word(struct dl_line_words *r, const char *word);
/* A number from 0 on; 0 if it is not there. */
double dl_number_after(struct dl_line_words *r, const char *key);
/* The same, below 1. */
double dl_fraction_after(struct dl_line_words *r, const char *key);
/* A whole number below the limit; the other one is required. */
uint32_t dl_whole_word(struct dl_line_words *r, const char *word, uint32_t limit);
uint32_t dl_whole_after(struct dl_line_words *r, const char *key, uint32_t limit);
/* Which of the names, of which the last is NULL. */
int dl_word_choice(struct dl_line_words *r, const char *word, const char *const *names);

#endif
