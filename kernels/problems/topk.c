/* topk.c - the k values of largest magnitude with their places, in any order; of equal ones any. */
#include "kernels/problems/problems.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/harness.h"

enum { count, k };

/* Marks what was chosen; the least magnitude among it goes to *least. */
static const char *mark(const int64_t *d, const double *x, double *const *after, bool *chosen, double *least)
{
    *least = INFINITY;
    for (int64_t i = 0; i < d[k]; i++) {
        const double index = after[2][i];
        if (!(index >= 0 && index < (double)d[count])) return "index: is out of range";
        const int64_t at = (int64_t)index;
        if (chosen[at]) return "index: comes twice";
        if (after[1][i] != x[at]) return "value: is not that of its index";
        chosen[at] = true;
        *least = fmin(*least, fabs(x[at]));
    }
    return NULL;
}

/* x -> value, index */
static const char *verify(const int64_t *d, double *const *before, double *const *after)
{
    double least;
    bool *const chosen = dl_memory((size_t)d[count] * sizeof *chosen);
    const char *wrong = mark(d, before[0], after, chosen, &least);
    for (int64_t i = 0; i < d[count] && !wrong; i++)
        if (!chosen[i] && fabs(before[0][i]) > least) wrong = "value: a larger one was left out";
    free(chosen);
    return wrong;
}

static double bytes(const int64_t *d, enum dl_float f)
{
    const double pair = (double)dl_float_bytes(f) + sizeof(int32_t);
    return (double)d[count] * (double)dl_float_bytes(f) + (double)d[k] * pair;
}

static const struct dl_tensor_spec tensors[] = {
    {.name = "x", .shape = "count"},
    {.name = "value", .role = DL_OUTPUT, .shape = "k"},
    {.name = "index", .role = DL_OUTPUT, .shape = "k", .store = DL_STORE_INT},
};
static const int64_t odd[][DL_MAX_DIMS] = {{1, 1},     {7, 3},       {64, 64},      {1001, 1},
                                           {5000, 50}, {70001, 701}, {300000, 300}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {{10000, 100},      {65536, 655},        {1000000, 1000},
                                             {1000001, 10000},  {4194304, 41943},    {16777216, 167772},
                                             {33554432, 33554}, {268435456, 268435}, {0}};

const struct dl_problem dl_problem_topk = {.name = "topk",
                                           .pass = "forward",
                                           .doc = "the k largest magnitudes and their places",
                                           .dims = {"count", "k"},
                                           .n_given = 2,
                                           DL_TENSORS(tensors),
                                           .row = DL_ROW_MEMORY,
                                           .bytes = bytes,
                                           .verify = verify,
                                           .odd = odd,
                                           .timed = timed};
