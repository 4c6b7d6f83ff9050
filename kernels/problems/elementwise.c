/* elementwise.c - what is done to each element: activations, dropout, residuals, copies. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { count };

/* Elements as workloads count them; a mask of one byte is half of an activation. */
#define MASK 0.5
#define VALUES(name, moved)                                                                                            \
    static void name(const int64_t *d, double *v) { v[0] = (moved) * (double)d[count]; }
VALUES(two, 2)
VALUES(three, 3)
VALUES(three_and_two, 5) /* a gate beside the input: three in forward, five in backward */
VALUES(two_and_mask, 2 + MASK)
VALUES(three_and_mask, 3 + MASK)

/* The slope of tanh's argument u = B (x + A x^3) is B (1 + 3 A x^2). */
double dl_gelu(double x) { return 0.5 * x * (1 + tanh((double)DL_GELU_B * (x + (double)DL_GELU_A * x * x * x))); }

double dl_gelu_slope(double x)
{
    const double h = tanh((double)DL_GELU_B * (x + (double)DL_GELU_A * x * x * x));
    return 0.5 * (1 + h) + 0.5 * x * (1 - h * h) * (double)DL_GELU_B * (1 + 3 * (double)DL_GELU_A * x * x);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

#define EACH(name, statement)                                                                                          \
    static void name(const int64_t *d, double *const *t)                                                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < d[count]; i++) statement;                                                              \
    }
EACH(gelu_forward, t[1][i] = dl_gelu(t[0][i]))
EACH(gelu_input, t[2][i] = t[1][i] * dl_gelu_slope(t[0][i]))
EACH(relu_forward, t[1][i] = fmax(t[0][i], 0))
EACH(relu_input, t[2][i] = t[0][i] > 0 ? t[1][i] : 0) /* needs the sign of the result, which is that of the input */
EACH(residual_input, t[2][i] = t[0][i] + t[1][i])
EACH(copy_forward, t[1][i] = t[0][i])

/* x, gate -> y = x silu(gate) (Shazeer 2020, GLU variants improve transformer, equation 6) */
EACH(swiglu_forward, t[2][i] = t[0][i] * t[1][i] * sigmoid(t[1][i]))
static void swiglu_input(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++) {
        const double gate = t[1][i], s = sigmoid(gate);
        t[3][i] = t[2][i] * gate * s;
        t[4][i] = t[2][i] * t[0][i] * s * (1 + gate * (1 - s));
    }
}

static void dropout_forward(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++) {
        t[2][i] = dl_kept((uint64_t)i);
        t[1][i] = t[2][i] * t[0][i] * (double)DL_DROPOUT_SCALE;
    }
}
EACH(dropout_input, t[2][i] = t[0][i] * t[1][i] * (double)DL_DROPOUT_SCALE)

/* x, branch -> y = x + dropout(branch), mask */
static void residual_forward(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++) {
        t[3][i] = dl_kept((uint64_t)i);
        t[2][i] = t[0][i] + t[3][i] * t[1][i] * (double)DL_DROPOUT_SCALE;
    }
}

#define IN(n)                                                                                                          \
    {                                                                                                                  \
        .name = n, .shape = "count"                                                                                    \
    }
#define OUT(n)                                                                                                         \
    {                                                                                                                  \
        .name = n, .role = DL_OUTPUT, .shape = "count"                                                                 \
    }
#define MASK_OF(r)                                                                                                     \
    {                                                                                                                  \
        .name = "mask", .role = r, .shape = "count", .store = DL_STORE_BYTE, .fill = DL_FILL_MASK                      \
    }
static const struct dl_tensor_spec one_to_one[] = {IN("x"), OUT("y")};
static const struct dl_tensor_spec slope[] = {IN("x"), IN("dy"), OUT("dx")};
static const struct dl_tensor_spec sum[] = {IN("dy1"), IN("dy2"), OUT("dx")};
static const struct dl_tensor_spec gated[] = {IN("x"), IN("gate"), OUT("y")};
static const struct dl_tensor_spec gated_input[] = {IN("x"), IN("gate"), IN("dy"), OUT("dx"), OUT("dgate")};
static const struct dl_tensor_spec dropping[] = {IN("x"), OUT("y"), MASK_OF(DL_OUTPUT)};
static const struct dl_tensor_spec dropping_input[] = {MASK_OF(DL_INPUT), IN("dy"), OUT("dx")};
static const struct dl_tensor_spec adding[] = {IN("x"), IN("branch"), OUT("y"), MASK_OF(DL_OUTPUT)};

#define ON_HOST(n, r)                                                                                                  \
    {                                                                                                                  \
        .name = n, .role = r, .shape = "count", .is_on_host = true                                                     \
    }
static const struct dl_tensor_spec to_device[] = {ON_HOST("x", DL_INPUT), OUT("y")};
static const struct dl_tensor_spec to_host[] = {IN("x"), ON_HOST("y", DL_OUTPUT)};

/* What goes over the link. */
static double link_bytes(const int64_t *d, enum dl_float f) { return (double)d[count] * (double)dl_float_bytes(f); }

static const int64_t odd[][DL_MAX_DIMS] = {{1}, {7}, {64}, {1001}, {4099}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {1000},    {4096},    {16384},   {65536},    {131072},   {262144},   {500000},    {786432},    {1572864},
    {3145728}, {4194304}, {6291456}, {12582912}, {26214400}, {52428800}, {100000000}, {268435456}, {0},
};

#define ELEMENTS(the_name, the_pass, the_doc, tensor_list, the_values, the_reference)                                  \
    {                                                                                                                  \
        .name = the_name, .pass = the_pass, .doc = the_doc, .dims = {"count"}, .n_given = 1, DL_TENSORS(tensor_list),  \
        .row = DL_ROW_MEMORY, .values = the_values, .reference = the_reference, .odd = odd, .timed = timed             \
    }
const struct dl_problem dl_problem_gelu = ELEMENTS("gelu", "forward", "GELU with tanh", one_to_one, two, gelu_forward);
const struct dl_problem dl_problem_gelu_input_gradient =
    ELEMENTS("gelu", "input_gradient", "gradient of its input", slope, three, gelu_input);
const struct dl_problem dl_problem_relu = ELEMENTS("relu", "forward", "max(x, 0)", one_to_one, two, relu_forward);
const struct dl_problem dl_problem_relu_input_gradient =
    ELEMENTS("relu", "input_gradient", "gradient of its input", slope, three, relu_input);
const struct dl_problem dl_problem_swiglu =
    ELEMENTS("swiglu", "forward", "x times silu(gate)", gated, three, swiglu_forward);
const struct dl_problem dl_problem_swiglu_input_gradient =
    ELEMENTS("swiglu", "input_gradient", "gradients of both inputs", gated_input, three_and_two, swiglu_input);
const struct dl_problem dl_problem_dropout =
    ELEMENTS("dropout", "forward", "dropout, which keeps its mask", dropping, two_and_mask, dropout_forward);
const struct dl_problem dl_problem_dropout_input_gradient =
    ELEMENTS("dropout", "input_gradient", "gradient of its input", dropping_input, two_and_mask, dropout_input);
const struct dl_problem dl_problem_residual =
    ELEMENTS("residual", "forward", "x plus dropout of a branch", adding, three_and_mask, residual_forward);
const struct dl_problem dl_problem_residual_input_gradient =
    ELEMENTS("residual", "input_gradient", "gradients of the two ways, added", sum, three, residual_input);
const struct dl_problem dl_problem_copy = ELEMENTS("copy", "forward", "a copy", one_to_one, two, copy_forward);

#define HOST_COPY(the_name, the_doc, tensor_list)                                                                      \
    {                                                                                                                  \
        .name = the_name, .pass = "forward", .doc = the_doc, .dims = {"count"}, .n_given = 1, DL_TENSORS(tensor_list), \
        .row = DL_ROW_MEMORY, .bytes = link_bytes, .reference = copy_forward, .odd = odd, .timed = timed               \
    }
const struct dl_problem dl_problem_copy_to_device = HOST_COPY("copy_to_device", "from pinned memory", to_device);
const struct dl_problem dl_problem_copy_to_host = HOST_COPY("copy_to_host", "to pinned memory", to_host);
