/* grouped_gemm.c - experts with uneven numbers of tokens, one product after the other; layouts are those of
 * problems/grouped_gemm.c. */
#include "kernels/cpu/cpu.h"

enum { groups, tokens, outputs, inputs };

struct expert {
    int64_t from, tokens, weights; /* its first token, how many, where its weights begin */
};
static struct expert expert_at(const int64_t *d, int64_t g)
{
    const int64_t from = dl_group_begin(g, d[groups], d[tokens]), to = dl_group_begin(g + 1, d[groups], d[tokens]);
    return (struct expert){from, to - from, g * d[outputs] * d[inputs]};
}

static void forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const w = call->tensor[1];
    float *const y = call->tensor[2];
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        if (!e.tokens) continue;
        dl_cpu_gemm(&(struct dl_gemm){e.tokens,
                                      d[outputs],
                                      d[inputs],
                                      {x + e.from * d[inputs], d[inputs], false},
                                      {w + e.weights, d[inputs], true},
                                      y + e.from * d[outputs],
                                      d[outputs],
                                      1,
                                      0});
    }
}

static void input_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const dy = call->tensor[0], *const w = call->tensor[1];
    float *const dx = call->tensor[2];
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        if (!e.tokens) continue;
        dl_cpu_gemm(&(struct dl_gemm){e.tokens,
                                      d[inputs],
                                      d[outputs],
                                      {dy + e.from * d[outputs], d[outputs], false},
                                      {w + e.weights, d[inputs], false},
                                      dx + e.from * d[inputs],
                                      d[inputs],
                                      1,
                                      0});
    }
}

/* An expert without tokens has a gradient all the same: zero. */
static void weight_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const dy = call->tensor[1];
    float *const dw = call->tensor[2];
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        if (!e.tokens) memset(dw + e.weights, 0, (size_t)(d[outputs] * d[inputs]) * sizeof *dw);
        if (!e.tokens) continue;
        dl_cpu_gemm(&(struct dl_gemm){d[outputs],
                                      d[inputs],
                                      e.tokens,
                                      {dy + e.from * d[outputs], d[outputs], true},
                                      {x + e.from * d[inputs], d[inputs], false},
                                      dw + e.weights,
                                      d[inputs],
                                      1,
                                      0});
    }
}

const struct dl_routine dl_cpu_grouped_gemms[] = {
    {DL_CPU_BLAS("grouped_gemm", "forward", forward)},
    {DL_CPU_BLAS("grouped_gemm", "input_gradient", input_gradient)},
    {DL_CPU_BLAS("grouped_gemm", "weight_gradient", weight_gradient)},
    {0},
};
