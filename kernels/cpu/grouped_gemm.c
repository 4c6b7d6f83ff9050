/* grouped_gemm.c - experts with uneven numbers of tokens, one product after the other; layouts are those of
 * problems/grouped_gemm.c. */
#include "kernels/cpu/cpu.h"

enum { groups, tokens, outputs, inputs };

/* What expert g multiplies in a pass. */
typedef struct dl_gemm product_of_expert(const struct dl_call *call, int64_t g);

static struct dl_gemm forward_of(const struct dl_call *call, int64_t g)
{
    const int64_t *const d = call->dim;
    const struct dl_expert e = dl_expert_at(d, g);
    return (struct dl_gemm){.m = e.tokens,
                            .n = d[outputs],
                            .k = d[inputs],
                            .a = {(const float *)call->tensor[0] + e.from * d[inputs], d[inputs], false},
                            .b = {(const float *)call->tensor[1] + e.weights, d[inputs], true},
                            .c = (float *)call->tensor[2] + e.from * d[outputs],
                            .c_step = d[outputs],
                            .scale = 1};
}

static struct dl_gemm input_gradient_of(const struct dl_call *call, int64_t g)
{
    const int64_t *const d = call->dim;
    const struct dl_expert e = dl_expert_at(d, g);
    return (struct dl_gemm){.m = e.tokens,
                            .n = d[inputs],
                            .k = d[outputs],
                            .a = {(const float *)call->tensor[0] + e.from * d[outputs], d[outputs], false},
                            .b = {(const float *)call->tensor[1] + e.weights, d[inputs], false},
                            .c = (float *)call->tensor[2] + e.from * d[inputs],
                            .c_step = d[inputs],
                            .scale = 1};
}

static struct dl_gemm weight_gradient_of(const struct dl_call *call, int64_t g)
{
    const int64_t *const d = call->dim;
    const struct dl_expert e = dl_expert_at(d, g);
    return (struct dl_gemm){.m = d[outputs],
                            .n = d[inputs],
                            .k = e.tokens,
                            .a = {(const float *)call->tensor[1] + e.from * d[outputs], d[outputs], true},
                            .b = {(const float *)call->tensor[0] + e.from * d[inputs], d[inputs], false},
                            .c = (float *)call->tensor[2] + e.weights,
                            .c_step = d[inputs],
                            .scale = 1};
}

/* An expert without tokens has nothing to multiply, but its weights have a gradient all the same: zero. */
static void one_by_one(const struct dl_call *call, product_of_expert *product_of)
{
    for (int64_t g = 0; g < call->dim[groups]; g++) {
        const struct dl_gemm p = product_of(call, g);
        if (p.m && p.k)
            dl_cpu_gemm(&p);
        else
            memset(p.c, 0, (size_t)(p.m * p.n) * sizeof *p.c);
    }
}

static void forward(const struct dl_call *call) { one_by_one(call, forward_of); }
static void input_gradient(const struct dl_call *call) { one_by_one(call, input_gradient_of); }
static void weight_gradient(const struct dl_call *call) { one_by_one(call, weight_gradient_of); }

const struct dl_routine dl_cpu_grouped_gemms[] = {
    {DL_CPU_BLAS("grouped_gemm", "forward", forward)},
    {DL_CPU_BLAS("grouped_gemm", "input_gradient", input_gradient)},
    {DL_CPU_BLAS("grouped_gemm", "weight_gradient", weight_gradient)},
    {0},
};
