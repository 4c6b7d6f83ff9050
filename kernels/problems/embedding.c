/* embedding.c - look tokens up in a table of vectors; backward adds to the gradient of the table. */
#include "kernels/problems/problems.h"

enum { tokens, vocab, hidden };

static double elements(const int64_t *d) { return (double)d[tokens] * (double)d[hidden]; }
static void forward_values(const int64_t *d, double *v) { v[0] = 2 * elements(d); }
static void weight_values(const int64_t *d, double *v) { v[0] = 3 * elements(d); }
static double forward_bytes(const int64_t *d, enum dl_float f) { return 2 * elements(d) * (double)dl_float_bytes(f); }
static double weight_bytes(const int64_t *d, enum dl_float f) { return 3 * elements(d) * (double)dl_float_bytes(f); }

/* token, x -> y */
static void forward(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[tokens]; i++)
        for (int64_t c = 0; c < d[hidden]; c++) t[2][i * d[hidden] + c] = t[1][(int64_t)t[0][i] * d[hidden] + c];
}

/* token, dy -> dx, added */
static void weight_gradient(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[tokens]; i++)
        for (int64_t c = 0; c < d[hidden]; c++) t[2][(int64_t)t[0][i] * d[hidden] + c] += t[1][i * d[hidden] + c];
}

#define TOKEN                                                                                                          \
    {                                                                                                                  \
        .name = "token", .shape = "tokens", .store = DL_STORE_INT, .fill = DL_FILL_BELOW, .below = "vocab"             \
    }
static const struct dl_tensor_spec forward_tensors[] = {
    TOKEN, {.name = "x", .shape = "vocab hidden"}, {.name = "y", .role = DL_OUTPUT, .shape = "tokens hidden"}};
static const struct dl_tensor_spec weight_tensors[] = {
    TOKEN,
    {.name = "dy", .shape = "tokens hidden"},
    {.name = "dx", .role = DL_UPDATED, .shape = "vocab hidden", .fill = DL_FILL_ZERO, .slack = 4}};

static const int64_t odd[][DL_MAX_DIMS] = {{1, 1, 1}, {7, 3, 5}, {100, 5, 33}, {9, 1000, 65}, {0}};
/* Tables of a few times the tokens: enough that most are looked up once, and small enough to have many of. */
static const int64_t timed[][DL_MAX_DIMS] = {
    {16, 128, 64},       {128, 1024, 64},     {64, 512, 768},       {256, 2048, 768},
    {512, 4096, 1024},   {1024, 8192, 768},   {999, 8000, 333},     {4096, 32000, 1024},
    {8192, 50257, 1600}, {2048, 16000, 4096}, {16384, 50304, 4096}, {0},
};

#define EMBEDDING(the_pass, the_doc, tensor_list, the_values, the_bytes, the_reference)                                \
    {                                                                                                                  \
        .name = "embedding", .pass = the_pass, .doc = the_doc, .dims = {"tokens", "vocab", "hidden"}, .n_given = 3,    \
        DL_TENSORS(tensor_list), .row = DL_ROW_MEMORY, .bytes = the_bytes, .values = the_values,                       \
        .reference = the_reference, .odd = odd, .timed = timed                                                         \
    }
const struct dl_problem dl_problem_embedding =
    EMBEDDING("forward", "vectors of tokens", forward_tensors, forward_values, forward_bytes, forward);
const struct dl_problem dl_problem_embedding_weight_gradient = EMBEDDING(
    "weight_gradient", "gradient of the table, added", weight_tensors, weight_values, weight_bytes, weight_gradient);
