/* harness.h - a routine with one shape: its memory, its inputs, and whether it computes what it should.
 *
 * A trial owns one set of tensors. Calls of dl_trial_run are issued one after the other; dl_trial_check issues one on
 * fresh inputs and compares. */
#ifndef DL_KERNELS_HARNESS_H
#define DL_KERNELS_HARNESS_H

#include "kernels/kernel.h"

struct dl_trial {
    const struct dl_backend *backend;
    const struct dl_problem *problem;
    const struct dl_routine *routine;
    enum dl_float precision;
    uint64_t seed;
    int64_t dim[DL_MAX_DIMS];
    void *tensor[DL_MAX_TENSORS];
    void *workspace, *plan;
};

/* What is to be tried; `given` holds the first n_given dimensions. */
struct dl_trial_spec {
    const struct dl_backend *backend;
    const struct dl_routine *routine;
    const int64_t *given;
    enum dl_float precision;
    uint64_t seed;
};

/* All dimensions of a problem from those that are given. */
void dl_problem_complete(const struct dl_problem *p, const int64_t *given, int64_t *dim);
size_t dl_tensor_count(const struct dl_problem *p, size_t tensor, const int64_t *dim); /* of numbers */
double dl_problem_bytes(const struct dl_problem *p, const int64_t *dim, enum dl_float f);
double dl_problem_traffic(const struct dl_problem *p, const int64_t *dim, enum dl_float f);
double dl_problem_flop(const struct dl_problem *p, const int64_t *dim);
/* The names of a row's columns, and their values; returns how many there are. */
size_t dl_problem_columns(const struct dl_problem *p, const char *const **names);
void dl_problem_values(const struct dl_problem *p, const int64_t *dim, enum dl_float f, double *values);

bool dl_routine_can(const struct dl_routine *r, const int64_t *dim, enum dl_float f);

/* Inputs are filled, outputs and workspace poisoned. The problem of the routine must be there. */
struct dl_trial *dl_trial_new(const struct dl_trial_spec *spec);
/* Another one with the same contents, of one that has not run: numbers are worked out once. */
struct dl_trial *dl_trial_twin(const struct dl_trial *of);
void dl_trial_free(struct dl_trial *trial);

void dl_trial_run(const struct dl_trial *trial);

/* Memory that the trial holds, tensors and workspace. */
double dl_trial_bytes(const struct dl_trial *trial);

/* One call on fresh tensors: NULL if it is right, else what is wrong, until the next call of this function. Right means
 * that inputs and the bytes behind every tensor and the workspace are as before, and for every number of an output
 *
 *     |y - reference| <= tolerance x slack x max(|reference| + root mean square of the tensor's reference, magnitude)
 *                        + half of the least number that the result can hold
 *
 * where the magnitude is that of what was added up, if the problem says it: a term that was rounded on its way into a
 * sum leaves its share of its own magnitude, whatever the sum comes to. `worst` (may be NULL) gets the largest
 * quotient of the two sides: 1 is just right. Whole numbers must be equal. */
const char *dl_trial_check(struct dl_trial *trial, double *worst);

/* No memory is no error that anyone could handle here. */
void *dl_memory(size_t bytes);

#endif
