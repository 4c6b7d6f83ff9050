/* optimizers.c - what is done once a step with gradients and parameters; parameters and state are fp32. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { count };

/* g, p */
static void sgd(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++)
        t[1][i] -= (double)DL_SGD_RATE * (t[0][i] + (double)DL_WEIGHT_DECAY * t[1][i]);
}

/* g, p, velocity */
static void momentum(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++) {
        t[2][i] = (double)DL_MOMENTUM * t[2][i] + t[0][i] + (double)DL_WEIGHT_DECAY * t[1][i];
        t[1][i] -= (double)DL_SGD_RATE * t[2][i];
    }
}

/* Moves the moments on; the step of Adam without its rate. */
static double adam_step(double g, double *mean, double *square)
{
    const double beta1 = (double)DL_ADAM_BETA1, beta2 = (double)DL_ADAM_BETA2;
    *mean = beta1 * *mean + (1 - beta1) * g;
    *square = beta2 * *square + (1 - beta2) * g * g;
    return *mean / (1 - pow(beta1, DL_ADAM_STEP)) /
           (sqrt(*square / (1 - pow(beta2, DL_ADAM_STEP))) + (double)DL_ADAM_EPSILON);
}

/* g, p, mean, square; decay as in AdamW (Loshchilov and Hutter 2019, Algorithm 2) */
static void adam(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++)
        t[1][i] -= (double)DL_ADAM_RATE * (adam_step(t[0][i], &t[2][i], &t[3][i]) + (double)DL_WEIGHT_DECAY * t[1][i]);
}

/* g, p, mean, square, as one layer (You et al. 2020, Large batch optimization, Algorithm 2): the step is scaled so that
 * its norm is that of the parameters. */
static void lamb(const int64_t *d, double *const *t)
{
    double of_parameters = 0, of_step = 0;
    for (int64_t i = 0; i < d[count]; i++) {
        double mean = t[2][i], square = t[3][i];
        const double step = adam_step(t[0][i], &mean, &square) + (double)DL_WEIGHT_DECAY * t[1][i];
        of_parameters += t[1][i] * t[1][i];
        of_step += step * step;
    }
    const double trust = of_step > 0 ? sqrt(of_parameters / of_step) : 1;
    for (int64_t i = 0; i < d[count]; i++)
        t[1][i] -=
            (double)DL_ADAM_RATE * trust * (adam_step(t[0][i], &t[2][i], &t[3][i]) + (double)DL_WEIGHT_DECAY * t[1][i]);
}

/* The norm of all of the step comes before the first parameter moves: parameters and moments are read twice. */
static double lamb_traffic(const int64_t *d, enum dl_float f)
{
    enum { states = 3, moved = 3 }; /* read, read again, written */
    return (double)d[count] * (double)(dl_float_bytes(f) + states * moved * sizeof(float));
}

/* g -> the sum of squares */
static void gradient_norm(const int64_t *d, double *const *t)
{
    t[1][0] = 0;
    for (int64_t i = 0; i < d[count]; i++) t[1][0] += t[0][i] * t[0][i];
}

/* What a rank of an all-reduce does with a piece that it got: sum += piece. */
static void reduce(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++) t[1][i] += t[0][i];
}

#define GRADIENT                                                                                                       \
    {                                                                                                                  \
        .name = "g", .shape = "count"                                                                                  \
    }
#define STATE(n, f)                                                                                                    \
    {                                                                                                                  \
        .name = n, .role = DL_UPDATED, .shape = "count", .store = DL_STORE_FLOAT, .fill = f                            \
    }
static const struct dl_tensor_spec sgd_tensors[] = {GRADIENT, STATE("p", DL_FILL_UNIFORM)};
static const struct dl_tensor_spec momentum_tensors[] = {GRADIENT, STATE("p", DL_FILL_UNIFORM),
                                                         STATE("velocity", DL_FILL_UNIFORM)};
static const struct dl_tensor_spec adam_tensors[] = {GRADIENT, STATE("p", DL_FILL_UNIFORM),
                                                     STATE("mean", DL_FILL_UNIFORM), STATE("square", DL_FILL_POSITIVE)};
static const struct dl_tensor_spec norm_tensors[] = {
    GRADIENT, {.name = "squares", .role = DL_OUTPUT, .shape = "", .store = DL_STORE_FLOAT}};
static const struct dl_tensor_spec reduce_tensors[] = {{.name = "piece", .shape = "count"},
                                                       {.name = "sum", .role = DL_UPDATED, .shape = "count"}};

static const int64_t odd[][DL_MAX_DIMS] = {{1}, {7}, {65}, {1001}, {20011}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {1000},    {10000},    {65536},    {262144},   {1000000},   {2359296},   {3211264},
    {7077888}, {16777216}, {25557032}, {50000000}, {124439808}, {354823168}, {0},
};

#define OPTIMIZER(the_name, the_doc, tensor_list, the_reference)                                                       \
    .name = the_name, .pass = "forward", .doc = the_doc, .dims = {"count"}, .n_given = 1, DL_TENSORS(tensor_list),     \
    .row = DL_ROW_MEMORY, .reference = the_reference, .odd = odd, .timed = timed
const struct dl_problem dl_problem_sgd = {OPTIMIZER("sgd", "SGD with weight decay", sgd_tensors, sgd)};
const struct dl_problem dl_problem_momentum = {OPTIMIZER("momentum", "SGD with momentum", momentum_tensors, momentum)};
const struct dl_problem dl_problem_adam = {OPTIMIZER("adam", "Adam with decoupled decay", adam_tensors, adam)};
const struct dl_problem dl_problem_lamb = {OPTIMIZER("lamb", "LAMB, one layer", adam_tensors, lamb),
                                           .traffic = lamb_traffic};
const struct dl_problem dl_problem_gradient_norm = {
    OPTIMIZER("gradient_norm", "sum of the squares of gradients", norm_tensors, gradient_norm)};
const struct dl_problem dl_problem_reduce = {OPTIMIZER("reduce", "sum += piece: gamma", reduce_tensors, reduce)};
