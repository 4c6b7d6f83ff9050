/* problems.c - the only list of what kernels compute, and what follows from how a problem is described. */
#include "kernels/problems/problems.h"

#include <assert.h>
#include <string.h>

#include "kernels/harness.h"
#include "kernels/numbers.h"

static const struct dl_problem *const problems[] = {
    /* products */
    &dl_problem_gemm,
    &dl_problem_gemm_input_gradient,
    &dl_problem_gemm_weight_gradient,
    &dl_problem_gemm_transposed,
    &dl_problem_gemm_gelu,
    &dl_problem_gemm_gelu_input_gradient,
    &dl_problem_grouped_gemm,
    &dl_problem_grouped_gemm_input_gradient,
    &dl_problem_grouped_gemm_weight_gradient,
    &dl_problem_attention,
    &dl_problem_attention_backward,
    &dl_problem_conv,
    &dl_problem_conv_input_gradient,
    &dl_problem_conv_weight_gradient,
    /* normalisation */
    &dl_problem_layernorm,
    &dl_problem_layernorm_input_gradient,
    &dl_problem_layernorm_weight_gradient,
    &dl_problem_rmsnorm,
    &dl_problem_rmsnorm_input_gradient,
    &dl_problem_rmsnorm_weight_gradient,
    &dl_problem_batchnorm,
    &dl_problem_batchnorm_backward,
    &dl_problem_softmax,
    &dl_problem_softmax_input_gradient,
    /* the ends of a model */
    &dl_problem_cross_entropy,
    &dl_problem_cross_entropy_input_gradient,
    &dl_problem_embedding,
    &dl_problem_embedding_weight_gradient,
    /* element by element */
    &dl_problem_gelu,
    &dl_problem_gelu_input_gradient,
    &dl_problem_relu,
    &dl_problem_relu_input_gradient,
    &dl_problem_swiglu,
    &dl_problem_swiglu_input_gradient,
    &dl_problem_dropout,
    &dl_problem_dropout_input_gradient,
    &dl_problem_residual,
    &dl_problem_residual_input_gradient,
    &dl_problem_bias_weight_gradient,
    &dl_problem_copy,
    &dl_problem_copy_to_device,
    &dl_problem_copy_to_host,
    &dl_problem_pool,
    &dl_problem_pool_input_gradient,
    &dl_problem_global_pool,
    &dl_problem_global_pool_input_gradient,
    /* gradients and parameters */
    &dl_problem_sgd,
    &dl_problem_momentum,
    &dl_problem_adam,
    &dl_problem_lamb,
    &dl_problem_gradient_norm,
    &dl_problem_reduce,
    &dl_problem_quantize,
    &dl_problem_dequantize,
    &dl_problem_one_bit,
    &dl_problem_one_bit_decode,
    &dl_problem_topk,
};

size_t dl_problem_count(void) { return sizeof problems / sizeof *problems; }
const struct dl_problem *dl_problem_get(size_t index) { return problems[index]; }

const struct dl_problem *dl_problem_find(const char *name, const char *pass)
{
    for (size_t i = 0; i < dl_problem_count(); i++)
        if (strcmp(problems[i]->name, name) == 0 && strcmp(problems[i]->pass, pass) == 0) return problems[i];
    return NULL;
}

void dl_problem_complete(const struct dl_problem *p, const int64_t *given, int64_t *dim)
{
    memcpy(dim, given, p->n_given * sizeof *dim);
    if (p->complete) p->complete(dim);
}

static int64_t dim_named(const struct dl_problem *p, const int64_t *dim, const char *name, size_t length)
{
    for (size_t d = 0; d < DL_MAX_DIMS && p->dims[d]; d++)
        if (strlen(p->dims[d]) == length && strncmp(p->dims[d], name, length) == 0) return dim[d];
    assert(!"a tensor's shape names a dimension that the problem does not have");
    return 0;
}

size_t dl_tensor_count(const struct dl_problem *p, size_t tensor, const int64_t *dim)
{
    int64_t n = 1;
    for (const char *at = p->tensors[tensor].shape; *at; at += *at == ' ') {
        const size_t length = strcspn(at, " ");
        n *= dim_named(p, dim, at, length);
        at += length;
    }
    assert(n >= 0);
    return (size_t)n;
}

double dl_problem_bytes(const struct dl_problem *p, const int64_t *dim, enum dl_float f)
{
    if (p->bytes) return p->bytes(dim, f);
    double bytes = 0;
    for (size_t i = 0; i < p->n_tensors; i++) {
        const double times = p->tensors[i].role == DL_UPDATED ? 2 : 1;
        bytes += times * (double)dl_tensor_count(p, i, dim) * (double)dl_store_bytes(p->tensors[i].store, f);
    }
    return bytes;
}

double dl_problem_traffic(const struct dl_problem *p, const int64_t *dim, enum dl_float f)
{
    return p->traffic ? p->traffic(dim, f) : dl_problem_bytes(p, dim, f);
}

double dl_problem_flop(const struct dl_problem *p, const int64_t *dim) { return p->flop ? p->flop(dim) : 0; }

size_t dl_problem_columns(const struct dl_problem *p, const char *const **names)
{
    static const struct {
        const char *names[DL_MAX_COLUMNS];
        size_t n;
    } columns[] = {
        [DL_ROW_PRODUCT] = {{"batch", "m", "n", "k"}, 4},
        [DL_ROW_CONV] = {{"batch", "m", "n", "k", "window", "stride"}, 6},
        [DL_ROW_ATTENTION] = {{"batch", "m", "n", "k", "causal", "kv_share"}, 6},
        [DL_ROW_MEMORY] = {{"elements"}, 1},
    };
    *names = columns[p->row].names;
    return columns[p->row].n;
}

void dl_problem_values(const struct dl_problem *p, const int64_t *dim, enum dl_float f, double *values)
{
    if (p->values)
        p->values(dim, values);
    else
        values[0] = dl_problem_bytes(p, dim, f) / (double)dl_float_bytes(f);
}
