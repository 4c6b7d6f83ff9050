/* measured_points.h - what measured_read.c makes of a device's tables and measured.c looks up. */
#ifndef DL_COST_MEASURED_POINTS_H
#define DL_COST_MEASURED_POINTS_H

#include "sim/cost/measured.h"

/* What a row may say, besides its time. */
enum dl_column {
    DL_BATCH,
    DL_M,
    DL_N,
    DL_K,
    DL_ELEMENTS,
    DL_CAUSAL,
    DL_KV_SHARE,
    DL_ACCUMULATES,
    DL_WINDOW,
    DL_STRIDE,
    DL_DROPS,
    DL_N_COLUMNS
};

enum {
    dl_n_coordinates = 4,
    dl_n_grains = 3,
    dl_n_passes = DL_PASS_WEIGHT_GRADIENT + 1,
    dl_n_alignments = DL_UNALIGNED + 1
};

/* What the row says. */
struct dl_timed {
    double seconds;
    double column[DL_N_COLUMNS];
    unsigned known; /* bits of the columns that the table has */
};

/* What is looked at for every price: small, as there are thousands. */
struct dl_point {
    double at[dl_n_coordinates]; /* dl_point_at */
    double grain[dl_n_grains];   /* how rows begin: logarithms of powers of two */
    double log_ratio;            /* of the measured time to the model's */
    double noise;                /* its variance from run to run, as a part of that among all points */
    struct {
        unsigned char pass, alignment, is_causal, drops, is_grouped;
    } kind;
};

/* How kernels that were timed speak of others; see measured_interpolation.c. Distances are in natural logarithms of
 * sizes: a kernel twice as long is ln 2 away. */
struct dl_interpolation {
    double reach, least_noise, spread_left;
    double other_pass_distance, other_kind_distance, other_alignment_distance, grain_distance, grain_bytes;
    double other_pass_weight, other_alignment_weight, known_within_factor;
    int64_t neighbours;
};
enum dl_status dl_interpolation_read(struct dl_json from, struct dl_arena *arena, const struct dl_interpolation **out,
                                     struct dl_error *err);

/* As far as a point tells something of its neighbours. */
double dl_known_distance(const struct dl_interpolation *by);

/* All that was timed of one kind of kernel in one precision. */
struct dl_measured_points {
    const struct dl_interpolation *by;
    struct dl_point *points;
    struct dl_timed *timed; /* the same in full */
    size_t n;
    bool has[dl_n_alignments]; /* points of this alignment */
    bool has_windows;          /* points whose windows are known */
    double mean_log_ratio[dl_n_alignments][dl_n_passes];
};

/* Times of a memory-bound kernel over its bytes, both as logarithms, the first strictly growing. */
struct dl_curve {
    const char *operation;
    int64_t pass;
    enum dl_precision precision;
    double *log_bytes, *log_seconds;
    double *log_ratio; /* of the time to the model's */
    size_t n;
    struct dl_measured_points rows; /* by bytes and the width of rows, n; none if the table does not tell it */
};

/* Tables where they are written: in a device file, or in a file of their own. */
struct dl_found_tables {
    struct dl_json *items;
    size_t n, capacity;
    json_t *held; /* a list of them */
};
/* Those that are asked for; to be released in any case. */
enum dl_status dl_tables_find(const struct dl_tables *asked, struct dl_arena *arena, struct dl_found_tables *found,
                              struct dl_error *err);
void dl_tables_release(struct dl_found_tables *found);

/* The tables of such a file, schema dlsim/kernels/1: at least one, and all of one kind. */
enum dl_status dl_kernels_read(struct dl_json doc, struct dl_arena *arena, struct dl_json *tables,
                               struct dl_error *err);

/* Kinds before DL_KERNEL_MEMORY; and convolutions that are regrouped or without a product, which say nothing of others:
 * libraries compute them by other kernels. */
enum { dl_regrouped = DL_KERNEL_MEMORY, dl_without_product, dl_n_products };
int dl_points_index(const struct dl_kernel *k, enum dl_precision precision);

struct dl_measured {
    const char *libraries; /* each once */
    const struct dl_interpolation *by;
    struct dl_measured_points points[dl_n_products][DL_N_PRECISIONS];
    struct dl_curve *curves;
    size_t n_curves;
};

/* The "pass" of a table. */
enum { DL_TABLE_FORWARD, DL_TABLE_INPUT_GRADIENT, DL_TABLE_WEIGHT_GRADIENT, DL_TABLE_BACKWARD, DL_TABLE_ANY };

/* Where a product is among those of its kind, and what kind of kernel computes it; no time yet. */
struct dl_point dl_point_at(const struct dl_measured_points *of, const struct dl_kernel *k,
                            enum dl_precision precision);

/* Square of the distance between two places. */
double dl_points_apart2(const struct dl_measured_points *of, const struct dl_point *a, const struct dl_point *b);

/* Once all points are there, with the squares of their times' relative spreads as noise. */
void dl_points_finish(struct dl_measured_points *of);

/* What points near by say of a place; d2: their squared distances from it, the nearest first. */
enum { dl_most_neighbours = 64 };
struct dl_neighbours {
    size_t n, which[dl_most_neighbours];
    double d2[dl_most_neighbours];
};
double dl_points_log_ratio(const struct dl_measured_points *of, const struct dl_point *place,
                           const struct dl_neighbours *near);

/* What the points say of a kernel. */
struct dl_advice {
    double timed_s; /* 0: not timed; the mean of those that were, as layers that differ may have one shape */
    double log_ratio;
    double nearest2; /* squared distance to the nearest point in sizes, however its rows begin */
};
struct dl_advice dl_points_ask(const struct dl_measured_points *of, const struct dl_kernel *k,
                               enum dl_precision precision);

/* The price of a kernel that is bound by memory. */
struct dl_price dl_curve_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                               const struct dl_price *modelled);

#endif
