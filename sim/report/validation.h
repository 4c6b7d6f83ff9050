/* validation.h - what was measured beside what is predicted: errors of rows, of families of rows, and of all.
 *
 * error = (predicted - measured) / measured. A row that could not be predicted is counted as failed, and is in no mean,
 * as is one that nothing was published of.
 */
#ifndef DL_REPORT_VALIDATION_H
#define DL_REPORT_VALIDATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/core/memory.h"
#include "sim/report/constants.h"
#include "sim/report/discrepancy.h"
#include "sim/report/parts.h"

enum dl_quantity {
    DL_STEP,       /* seconds of a step */
    DL_SPEEDUP,    /* of two ways to train: samples a second of the second over those of the first */
    DL_DIFFERENCE, /* of two ways to train: seconds of a step of the second less those of the first */
};

/* Whether the run that a row tells of had enough memory. */
enum dl_row_end { DL_END_NOT_SAID, DL_RAN, DL_RAN_OUT_OF_MEMORY };

struct dl_logged; /* log_report.h */

struct dl_compared {
    const char *id, *source;
    const char *model;         /* rows of the same one are compared with each other */
    const char *assumed;       /* "": nothing; else what the source does not say */
    const char *failure;       /* NULL: predicted */
    const char *const *traits; /* what it may have in common with others, as many for every row; then NULL */
    const char *note;          /* NULL, or why the two may differ */
    enum dl_quantity quantity;
    double measured_s, predicted_s;      /* no seconds if it is a speed-up; measured NAN: nothing is published */
    double mfu, hfu;                     /* published shares of peak; 0: not */
    double predicted_mfu, predicted_hfu; /* counted as those */
    const char *attention_flop;          /* how they count attention */
    double samples_per_s;                /* predicted */
    bool fits, experts;                  /* predicted to; in its model */
    enum dl_domain domain;               /* of its model */
    double peak_bytes;                   /* predicted, of the fullest stage */
    double reserved_bytes;               /* the same with what fragmentation adds */
    double measured_reserved_bytes;      /* 0: not published */
    enum dl_row_end ran;
    const char *cell; /* runs of one model and batch on as many devices, which one would choose among; NULL: alone */
    /* Intervals of the predicted, and of it by constants alone; high_s is 0 if nobody asked. */
    double low_s, high_s, constants_low_s, constants_high_s;
    int64_t microbatch; /* chosen because the row says none; 0: it does */
    bool knows_parts;   /* the next is known */
    double added_s[DL_N_PARTS];
    const char *sha256;                   /* of what was asked: see fingerprint.h; "": it was refused */
    const char *software, *system;        /* names of its files; NULL: not known */
    const struct dl_constants *constants; /* of its files; NULL: not known */
    const struct dl_logged *log;          /* what the log of the run says; NULL: it is of a table */
};

struct dl_errors {
    size_t n, n_failed;
    double mape, bias, max; /* mean of |error|, mean of error, largest |error|; NAN if n is 0 */
    const struct dl_compared *worst;
    /* Pairs of one model, measured more than 15 % apart, and those of them that are predicted in the right order. */
    size_t n_pairs, n_ordered;
    size_t n_bounded, n_within; /* rows whose prediction has an interval, and whose measured time lies in it */
    double width;               /* of these intervals, in steps predicted, on average; 0 if there are none */
};
/* Of a row that was predicted; NAN if nothing is published. */
double dl_compared_error(const struct dl_compared *row);
/* What is published of the second together with the first: its prediction becomes that of both. */
void dl_compare_pair(const struct dl_compared *first, struct dl_compared *second);
struct dl_errors dl_sum_errors(const struct dl_compared *const *rows, size_t n);

/* Constants may be fitted to one half of the rows, chosen by a hash of the id; the other half is kept out. */
bool dl_is_kept_out(const char *id);

/* Rows of one source: all that its text says before a bracket. */
struct dl_row_family {
    const char *name; /* what the ids of its rows begin with */
    const char *source;
    const struct dl_compared **rows;
    size_t n_rows;
    struct dl_constants constants; /* of the files of its rows */
};

/* Lines of tables that are no rows, counted by the reason. */
struct dl_no_rows {
    struct dl_no_row {
        const char *why;
        size_t n;
    } * items;
    size_t n, capacity;
};

struct dl_validation {
    const char *engine;
    const struct dl_compared *rows;
    size_t n_rows;
    struct dl_row_family *families; /* in the order of their first rows */
    size_t n_families;
    size_t *family_of; /* by row */
    struct dl_constants constants;
    bool has_budget; /* the parts of some row are known */
    struct dl_no_rows left_out;
};

/* Group the rows, which must outlive it; everything else lives in the arena. */
struct dl_validation dl_validation_of(const struct dl_compared *rows, size_t n_rows, const char *engine,
                                      struct dl_arena *arena);
struct dl_errors dl_validation_summary(const struct dl_validation *v);
/* Of the rows of a family that constants may be fitted to, or of those kept out. */
struct dl_errors dl_half_errors(const struct dl_row_family *f, bool kept_out);

/* The rows of a family with one trait in common that are predicted worst, and notably worse than all: at least four, at
 * most half of them. */
struct dl_row_group {
    const char *trait; /* NULL: there are none */
    size_t n;
    double mape, bias;
};
struct dl_row_group dl_worst_group(const struct dl_row_family *f);

/* Rows that have a note, each with it: what is published and what is predicted, of the step and of the share of peak.
 */
void dl_validation_notes_text(const struct dl_validation *v);
void dl_validation_text(const struct dl_validation *v);
/* Every row on a line, in the order in which they were given. */
void dl_validation_rows_text(const struct dl_validation *v);
void dl_validation_markdown(const struct dl_validation *v);
json_t *dl_validation_json(const struct dl_validation *v);

#endif
