/* grouped_gemm.cu - experts with uneven numbers of tokens, one product of cuBLAS after the other, as PyTorch's modules
 * call it. Layouts are those of problems/grouped_gemm.c. */
#include "kernels/cuda/gemm.h"

enum { groups, tokens, outputs, inputs };

struct expert {
    int64_t from, tokens, weights; /* its first token, how many, where its weights begin */
};
static struct expert expert_at(const int64_t *d, int64_t g)
{
    const int64_t from = dl_group_begin(g, d[groups], d[tokens]), to = dl_group_begin(g + 1, d[groups], d[tokens]);
    return {from, to - from, g * d[outputs] * d[inputs]};
}

static void grouped_forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        const struct dl_product p = {.precision = f,
                                     .batch = 1,
                                     .m = e.tokens,
                                     .n = d[outputs],
                                     .k = d[inputs],
                                     .a = {dl_at(call->tensor[0], e.from * d[inputs], f), d[inputs], 0, false},
                                     .b = {dl_at(call->tensor[1], e.weights, f), d[inputs], 0, true},
                                     .c = {dl_at(call->tensor[2], e.from * d[outputs], f), d[outputs], 0, false},
                                     .scale = 1};
        if (e.tokens) dl_cuda_product(&p);
    }
}

static void grouped_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        const struct dl_product p = {.precision = f,
                                     .batch = 1,
                                     .m = e.tokens,
                                     .n = d[inputs],
                                     .k = d[outputs],
                                     .a = {dl_at(call->tensor[0], e.from * d[outputs], f), d[outputs], 0, false},
                                     .b = {dl_at(call->tensor[1], e.weights, f), d[inputs], 0, false},
                                     .c = {dl_at(call->tensor[2], e.from * d[inputs], f), d[inputs], 0, false},
                                     .scale = 1};
        if (e.tokens) dl_cuda_product(&p);
    }
}

/* An expert without tokens has a gradient all the same: zero. */
static void grouped_weight(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        void *const out = dl_at(call->tensor[2], e.weights, f);
        const struct dl_product p = {.precision = f,
                                     .batch = 1,
                                     .m = d[outputs],
                                     .n = d[inputs],
                                     .k = e.tokens,
                                     .a = {dl_at(call->tensor[1], e.from * d[outputs], f), d[outputs], 0, true},
                                     .b = {dl_at(call->tensor[0], e.from * d[inputs], f), d[inputs], 0, false},
                                     .c = {out, d[inputs], 0, false},
                                     .scale = 1};
        if (e.tokens)
            dl_cuda_product(&p);
        else
            DL_CUDA(cudaMemsetAsync(out, 0, (size_t)(d[outputs] * d[inputs]) * dl_float_bytes(f), dl_cuda.stream));
    }
}

const struct dl_routine dl_cuda_grouped_gemms[] = {
    {DL_CUBLAS("grouped_gemm", "forward", grouped_forward)},
    {DL_CUBLAS("grouped_gemm", "input_gradient", grouped_input)},
    {DL_CUBLAS("grouped_gemm", "weight_gradient", grouped_weight)},
    {},
};
