/* output.h - files that are written: whole or not at all.
 *
 * The rule to remember: what is written goes to a new file beside the target, which nobody can have prepared, and takes
 * the target's place at the end. A link stays a link: the file that it leads to is replaced, and its mode stays. What
 * is no file (a device, a pipe, "-" and /dev/stdout) is written to as it is. One output at a time. Needs nothing but
 * the C library, because dlsim-profile has nothing else. */
#ifndef DL_CORE_OUTPUT_H
#define DL_CORE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum { DL_LONGEST_PATH = 4096 };

struct dl_output {
    FILE *stream; /* to write to */
    char target[DL_LONGEST_PATH];
    char temporary[DL_LONGEST_PATH]; /* empty: the target itself is written to */
};

/* Why this cannot be written, to ask before the work whose result it will hold; NULL: it can. */
const char *dl_why_not_written(const char *path);

/* NULL, or what is wrong; then there is nothing to close. SIGINT, SIGTERM and SIGHUP remove what is not whole yet. */
const char *dl_output_open(struct dl_output *o, const char *path);
/* Puts it into its place if it is whole and could all be written; otherwise the target is what it was. */
const char *dl_output_close(struct dl_output *o, bool is_whole);

/* Whether two names, of files that need not be there yet, are of one file. "-" is standard output. */
bool dl_is_same_file(const char *a, const char *b);

#endif
