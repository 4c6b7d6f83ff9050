/* log_text.h - lines of a log, and finding words and numbers in them. */
#ifndef DL_IMPORT_LOG_TEXT_H
#define DL_IMPORT_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/core/memory.h"

/* The lines of a stream, one after the other. A line longer than DL_LOG_LINE is cut there. */
enum { DL_LOG_LINE = 1 << 20 };
struct dl_log_lines {
    FILE *stream;
    char *text;    /* for dl_free */
    bool is_whole; /* the last line had its end: it was not cut off */
};
/* The next line, without its end, colours, and characters that are none; false: there is none. */
bool dl_log_next(struct dl_log_lines *lines);

/* What comes after the first `mark`, without blanks; NULL: it is not there. */
const char *dl_log_after(const char *line, const char *mark);
/* The number that the text begins with, with commas between thousands (5,856); *end is what comes after it. NULL for
 * end: something must come after it, or it may have been cut. False: there is none. */
bool dl_log_number(const char *text, double *value, const char **end);
/* The number after a mark; something must come after it. */
bool dl_log_number_after(const char *line, const char *mark, double *value);
/* The word or text up to one of the characters of `ends`, without blanks at its end. */
char *dl_log_until(const char *text, const char *ends, struct dl_arena *arena);

#endif
