/* sweep_results.h - what is in a database of a sweep, for people and for other programs. */
#ifndef DL_APP_SWEEP_RESULTS_H
#define DL_APP_SWEEP_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/app/options.h"

struct dl_sweep_view {
    uint64_t best;          /* rows; 0: ten */
    const char *by, *where; /* a column, an SQL expression; NULL: step_s, all rows */
    bool csv, jsonl;        /* how to export */
    const char *output;     /* the file of an export; NULL: standard output */
    struct dl_texts parts;  /* what is merged */
    const char *svg, *html; /* the files of a heat map and of a page; NULL: none */
};

/* How many points ended how, and the fastest. */
enum dl_status dl_sweep_summarize(const char *path, struct dl_error *err);
enum dl_status dl_sweep_show(const char *path, const struct dl_sweep_view *view, struct dl_error *err);
enum dl_status dl_sweep_export(const char *path, const struct dl_sweep_view *view, struct dl_error *err);

/* ---- what the pictures share with the tables ---- */

struct sqlite3;
struct sqlite3_stmt;
struct dl_results {
    const char *path;
    struct sqlite3 *db;
    struct dl_error *err;
};

/* Takes over the text; NULL with an error where it is wrong. */
struct sqlite3_stmt *dl_results_ask(struct dl_results *r, char *sql);

/* Inputs that have more than one value, in the order of the sweep file. */
enum { DL_MOST_VARYING = 64 };
struct dl_varying {
    char *names[DL_MOST_VARYING];
    size_t n;
};

/* Of these figures the largest is the best, of all others the smallest. */
bool dl_larger_is_better(const char *column);

/* A page of all rows that view->where leaves. */
enum dl_status dl_sweep_page(struct dl_results *r, const struct dl_sweep_view *view, const struct dl_varying *varying);

enum dl_status dl_sweep_heat(struct dl_results *r, const struct dl_sweep_view *view, const struct dl_varying *varying);

#endif
