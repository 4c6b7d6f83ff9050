/* sweep.h - a sweep file as a list of points: every combination of the values of its axes that meets the constraints.
 *
 * The rule to remember: a point is its number. Numbers count all combinations, the last axis fastest, so that they stay
 * the same whatever constraints leave out, and every process finds the same point behind a number. */
#ifndef DL_SWEEP_SWEEP_H
#define DL_SWEEP_SWEEP_H

#include "sim/core/json.h"

/* What is varied: an option of `dlsim run` ("topo", "devices") or a path of --set ("stack.tensor.ways"). */
struct dl_sweep_column {
    const char *name; /* in constraints and in the table of results */
    const char *path;
    const char *where; /* the place in the sweep file, for errors */
};

/* One or more columns whose values change together. What `base` says is an axis of one value. */
struct dl_sweep_axis {
    size_t first_column, n_columns;
    size_t n_values;
    json_t **values; /* [value * n_columns + column], borrowed */
};

struct dl_sweep {
    struct dl_json doc;
    json_t *made; /* values of ranges */
    struct dl_sweep_column *columns;
    size_t n_columns;
    struct dl_sweep_axis *axes;
    size_t n_axes;
    const char **constraints; /* SQL expressions over the columns */
    size_t n_constraints;
    uint64_t n_combinations;
    double limit_s; /* that a point may take */
};

enum { DL_SWEEP_MOST = 10000000 }; /* combinations */

/* Read the document, which must outlive the sweep. Everything lives in the arena; close it in any case. */
enum dl_status dl_sweep_read(struct dl_json doc, struct dl_arena *arena, struct dl_sweep *out, struct dl_error *err);
void dl_sweep_close(struct dl_sweep *s);

/* The value of each column at a point, borrowed; `values` has room for n_columns. */
void dl_sweep_point(const struct dl_sweep *s, uint64_t point, const json_t **values);

/* The numbers of the points that meet the constraints, in order, for dl_free. */
enum dl_status dl_sweep_points(const struct dl_sweep *s, uint64_t **points, size_t *n, struct dl_error *err);

#endif
