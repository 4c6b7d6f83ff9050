/* grouped_gemm.cu - experts with uneven numbers of tokens by cuBLAS: one product after the other, as PyTorch's modules
 * call it, and all of them in one call. Layouts are those of problems/grouped_gemm.c. */
#include <vector>

#include "kernels/cuda/gemm.h"

enum { groups, tokens, outputs, inputs };

/* What expert g multiplies in a pass. */
using product_of_expert = struct dl_product (*)(const struct dl_call *call, int64_t g);

static struct dl_product forward(const struct dl_call *call, int64_t g)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    const struct dl_expert e = dl_expert_at(d, g);
    const struct dl_product p = {.precision = f,
                                 .batch = 1,
                                 .m = e.tokens,
                                 .n = d[outputs],
                                 .k = d[inputs],
                                 .a = {dl_at(call->tensor[0], e.from * d[inputs], f), d[inputs], 0, false},
                                 .b = {dl_at(call->tensor[1], e.weights, f), d[inputs], 0, true},
                                 .c = {dl_at(call->tensor[2], e.from * d[outputs], f), d[outputs], 0, false},
                                 .scale = 1};
    return p;
}

static struct dl_product input_gradient(const struct dl_call *call, int64_t g)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    const struct dl_expert e = dl_expert_at(d, g);
    const struct dl_product p = {.precision = f,
                                 .batch = 1,
                                 .m = e.tokens,
                                 .n = d[inputs],
                                 .k = d[outputs],
                                 .a = {dl_at(call->tensor[0], e.from * d[outputs], f), d[outputs], 0, false},
                                 .b = {dl_at(call->tensor[1], e.weights, f), d[inputs], 0, false},
                                 .c = {dl_at(call->tensor[2], e.from * d[inputs], f), d[inputs], 0, false},
                                 .scale = 1};
    return p;
}

static struct dl_product weight_gradient(const struct dl_call *call, int64_t g)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    const struct dl_expert e = dl_expert_at(d, g);
    const struct dl_product p = {.precision = f,
                                 .batch = 1,
                                 .m = d[outputs],
                                 .n = d[inputs],
                                 .k = e.tokens,
                                 .a = {dl_at(call->tensor[1], e.from * d[outputs], f), d[outputs], 0, true},
                                 .b = {dl_at(call->tensor[0], e.from * d[inputs], f), d[inputs], 0, false},
                                 .c = {dl_at(call->tensor[2], e.weights, f), d[inputs], 0, false},
                                 .scale = 1};
    return p;
}

/* An expert without tokens has nothing to multiply, but its weights have a gradient all the same: zero. */
static bool has_tokens(const struct dl_product &p) { return p.m && p.k; }
static void clear(const struct dl_product &p)
{
    DL_CUDA(cudaMemsetAsync(p.c.data, 0, (size_t)(p.m * p.n) * dl_float_bytes(p.precision), dl_cuda.stream));
}

template <product_of_expert P> static void one_by_one(const struct dl_call *call)
{
    for (int64_t g = 0; g < call->dim[groups]; g++) {
        const struct dl_product p = P(call, g);
        if (has_tokens(p))
            dl_cuda_product(&p);
        else
            clear(p);
    }
}

/* Products of different sizes for one call, each a group of its own. Sizes are on the host, addresses of matrices in
 * the workspace. Left and right are those of cuBLAS, as in dl_cuda_product. */
struct together {
    std::vector<cublasOperation_t> left_as, right_as;
    std::vector<int> m, n, k, left_step, right_step, c_step, size;
    std::vector<float> scale, keep;
    std::vector<void *> left, right, c;
    std::vector<struct dl_product> empty;
};

static void add(struct together *t, const struct dl_product &p)
{
    t->left_as.push_back(dl_operation(p.b));
    t->right_as.push_back(dl_operation(p.a));
    t->m.push_back((int)p.n);
    t->n.push_back((int)p.m);
    t->k.push_back((int)p.k);
    t->left_step.push_back((int)p.b.step);
    t->right_step.push_back((int)p.a.step);
    t->c_step.push_back((int)p.c.step);
    t->size.push_back(1);
    t->scale.push_back(p.scale);
    t->keep.push_back(p.keep);
    t->left.push_back(p.b.data);
    t->right.push_back(p.a.data);
    t->c.push_back(p.c.data);
}

enum { n_matrices = 3 };
static size_t addresses_bytes(const int64_t *d, enum dl_float)
{
    return (size_t)(n_matrices * d[groups]) * sizeof(void *);
}
static void **addresses(const struct dl_call *call, int matrix)
{
    return (void **)call->workspace + matrix * call->dim[groups];
}

template <product_of_expert P> static void *open_together(const struct dl_call *call)
{
    struct together *const t = new together();
    for (int64_t g = 0; g < call->dim[groups]; g++) {
        const struct dl_product p = P(call, g);
        if (has_tokens(p))
            add(t, p);
        else
            t->empty.push_back(p);
    }
    const std::vector<void *> *const matrices[n_matrices] = {&t->left, &t->right, &t->c};
    for (int i = 0; i < n_matrices; i++)
        DL_CUDA(cudaMemcpyAsync(addresses(call, i), matrices[i]->data(), matrices[i]->size() * sizeof(void *),
                                cudaMemcpyDefault, dl_cuda.stream));
    DL_CUDA(cudaStreamSynchronize(dl_cuda.stream));
    return t;
}

static void close_together(void *plan) { delete (struct together *)plan; }

#define IS_KNOWN (CUDART_VERSION >= 12050)
static constexpr const char *lacks = IS_KNOWN ? NULL : "CUDA 12.5";

static void all_together(const struct dl_call *call)
{
    const struct together *const t = (const struct together *)call->plan;
    for (const struct dl_product &p : t->empty) clear(p);
#if IS_KNOWN
    const cudaDataType_t type = dl_cuda_type(call->precision);
    DL_BLAS(cublasGemmGroupedBatchedEx(dl_cuda.blas, t->left_as.data(), t->right_as.data(), t->m.data(), t->n.data(),
                                       t->k.data(), t->scale.data(), addresses(call, 0), type, t->left_step.data(),
                                       addresses(call, 1), type, t->right_step.data(), t->keep.data(),
                                       addresses(call, 2), type, t->c_step.data(), (int)t->size.size(), t->size.data(),
                                       dl_compute_type(call->precision)));
#endif
}

/* The rule of cuBLAS where tensor cores multiply: what the bytes of k are a multiple of, 16 or 4, addresses must be. */
static bool is_aligned(const struct dl_product &p)
{
    const int64_t row_bytes = p.k * (int64_t)dl_float_bytes(p.precision);
    const uintptr_t step = row_bytes % 16 == 0 ? 16 : row_bytes % 4 == 0 ? 4 : 1;
    return (uintptr_t)p.a.data % step == 0 && (uintptr_t)p.b.data % step == 0 && (uintptr_t)p.c.data % step == 0;
}

/* Tensors begin at multiples of 256 bytes: where a matrix is in its tensor tells. */
template <product_of_expert P> static bool can_together(const int64_t *d, enum dl_float f)
{
    void *const begin[n_matrices] = {};
    const struct dl_call call = {d, f, begin, NULL, NULL};
    bool can = true;
    for (int64_t g = 0; g < d[groups] && f != DL_FLOAT_FP32; g++) {
        const struct dl_product p = P(&call, g);
        can &= !has_tokens(p) || is_aligned(p);
    }
    return can;
}

/* Beside what is in device files. */
#define TOGETHER(the_pass, product)                                                                                    \
    {                                                                                                                  \
        .problem = "grouped_gemm", .pass = the_pass, .way = "cublas_grouped",                                          \
        .doc = "cuBLAS, all experts in one call", .precisions = DL_PRODUCT, .is_own = true, .lacks = lacks,            \
        .run = all_together, .workspace_bytes = addresses_bytes, .open = open_together<product>,                       \
        .close = close_together, .can = can_together<product>                                                          \
    }
const struct dl_routine dl_cuda_grouped_gemms[] = {
    {DL_CUBLAS("grouped_gemm", "forward", one_by_one<forward>)},
    {DL_CUBLAS("grouped_gemm", "input_gradient", one_by_one<input_gradient>)},
    {DL_CUBLAS("grouped_gemm", "weight_gradient", one_by_one<weight_gradient>)},
    TOGETHER("forward", forward),
    TOGETHER("input_gradient", input_gradient),
    TOGETHER("weight_gradient", weight_gradient),
    {},
};
