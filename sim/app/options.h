/* options.h - command-line options as a table, read with getopt_long; values are checked here, with the option's name
 * in the error. */
#ifndef DL_APP_OPTIONS_H
#define DL_APP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/core/error.h"
#include "sim/core/texts.h"

enum dl_option_type {
    DL_OPT_TEXT,   /* const char * */
    DL_OPT_OUTPUT, /* const char *: a file that will be written; refused at once where that cannot be */
    DL_OPT_COUNT,  /* uint64_t: a whole number, 1e6 is fine */
    DL_OPT_NUMBER, /* double */
    DL_OPT_BYTES,  /* double: a number with an optional k, M, G, T (1000) or Ki, Mi, Gi, Ti (1024) */
    DL_OPT_SIZES,  /* struct dl_sizes_range: FROM:TO or FROM:TO:N, both as DL_OPT_BYTES */
    DL_OPT_TEXTS,  /* struct dl_texts: may be given several times (sim/core/texts.h) */
    DL_OPT_CHOICE, /* const char *: one of choices */
    DL_OPT_FLAG,   /* bool: takes no value */
};

struct dl_sizes_range {
    double from, to; /* 0: not given */
    uint64_t n;      /* 0: as usual */
};

struct dl_option {
    const char *name;
    enum dl_option_type type;
    size_t offset;
    bool required;
    double min, max; /* DL_OPT_COUNT, DL_OPT_NUMBER, DL_OPT_BYTES, DL_OPT_SIZES */
    const char *const *choices;
    const char *doc;
};

/* Fill the struct at out, which holds the defaults. Words that are no options are an error unless `words` is given. */
enum dl_status dl_read_options(int argc, char **argv, const struct dl_option *options, size_t n_options, void *out,
                               struct dl_texts *words, struct dl_error *err);

/* Options are long ones; -o everybody writes short: make it --output, before they are read. */
void dl_lengthen_output(int argc, char **argv);

/* How an option is written: --name, and what it takes. */
enum { DL_OPTION_CALL = 200 };
const char *dl_option_call(const struct dl_option *o, char text[DL_OPTION_CALL]);

/* Whether there is --help or -h; then the usage, and what each option takes and is, have been printed. */
bool dl_helped(int argc, char **argv, const char *usage, const struct dl_option *options, size_t n_options);

/* Whether the answer is told as text beside this output (--json, --html; NULL: none): not if it is standard output. */
bool dl_tells_text(const char *output);

#endif
