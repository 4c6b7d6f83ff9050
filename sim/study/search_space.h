/* search_space.h - every way to train a model on so many devices: the product of a few axes, less what cannot be.
 *
 * The rule to remember: a point is its number. Numbers count all combinations of values, the last axis fastest. An axis
 * is one line of the table in search_space.c: its key in a strategy file, the values that it may have, and a rule that
 * refuses a value after those of the axes before it; all that would follow is then counted and never made. */
#ifndef DL_STUDY_SEARCH_SPACE_H
#define DL_STUDY_SEARCH_SPACE_H

#include "sim/report/refusals.h"
#include "strategies/job.h"

enum dl_space_axis {
    DL_SPACE_TENSOR,
    DL_SPACE_CONTEXT,
    DL_SPACE_PIPELINE,
    DL_SPACE_EXPERT,
    DL_SPACE_MICROBATCH,
    DL_SPACE_SCHEDULE, /* index of dl_schedule_get */
    DL_SPACE_CHUNKS,
    DL_SPACE_SEQUENCE,  /* 0 or 1 */
    DL_SPACE_ZERO,      /* stage; 0: none */
    DL_SPACE_RECOMPUTE, /* enum dl_recompute */
    DL_SPACE_ORDER,     /* of axes of ranks: see dl_space_ordered */
    DL_SPACE_PLACEMENT, /* index of dl_space_placements */
    DL_SPACE_OFFLOAD,   /* bits 1 << index of dl_space_offloads */
    DL_N_SPACE_AXES,
};

struct dl_space_request {
    uint64_t devices, devices_per_node, global_batch;
    unsigned also; /* bits 1 << axis, of those that are searched only if asked for */
    const struct dl_model *model;
    const struct dl_software *software;
};

enum { DL_SPACE_MOST = 5000000 }; /* points */

struct dl_space {
    struct dl_space_request request;
    uint64_t heads, key_heads, state_groups, tokens, blocks; /* what ways must divide; 0: the model has none */
    int64_t *values[DL_N_SPACE_AXES];
    size_t n_values[DL_N_SPACE_AXES];
    /* After dl_space_list: */
    uint64_t n_combinations;
    uint64_t *points; /* those that no rule refuses, in order */
    size_t n_points, capacity;
    struct dl_refusals refused;
};

struct dl_space_point {
    int64_t of[DL_N_SPACE_AXES];
    uint64_t data; /* ways: what the others leave */
};

extern const char *const dl_space_placements[], *const dl_space_offloads[]; /* their names, which end with NULL */

/* Add the axis of this name to those that are searched. */
enum dl_status dl_space_also(const char *name, unsigned *also, struct dl_error *err);

/* Whether so many tensor ranks share heads of keys and values, of which there are fewer, evenly. */
bool dl_space_shares_keys(const struct dl_space *s, uint64_t tensor_ways);

void dl_space_init(struct dl_space *s, const struct dl_space_request *request);
void dl_space_release(struct dl_space *s);

/* Whether "key=value" is of an axis, and if it is: leave this one value to it. */
bool dl_space_has_axis(const char *assignment);
enum dl_status dl_space_fix(struct dl_space *s, const char *assignment, struct dl_error *err);

enum dl_status dl_space_list(struct dl_space *s, struct dl_error *err);
struct dl_space_point dl_space_point(const struct dl_space *s, uint64_t number);

/* The axes of ranks that have more than one way, innermost first, in one of all orders; order 0 is the usual. Returns
 * how many they are. */
size_t dl_space_ordered(const struct dl_space_point *p, int64_t order, enum dl_axis axes[DL_N_AXES]);

/* Why the point cannot be, or would be the same as another; NULL: it can. */
const char *dl_space_refuse(const struct dl_space *s, const struct dl_space_point *p);

#endif
