/* embedding.cu - look-ups, a block to a token; their gradients without atomic sums: tokens that are the same are linked
 * to a list, and the block of the list's head adds all of it. */
#include "kernels/cuda/packs.h"

enum { tokens, vocab, hidden };
enum { threads = 128 };

/* N is a pack, or 1 where vectors are not aligned. */
template <class T, int N> __global__ void look_up(const int32_t *token, const T *table, T *y, int64_t size)
{
    const int64_t from = token[blockIdx.x] * size, to = blockIdx.x * size;
    for (int64_t c = threadIdx.x * N; c < size; c += threads * N)
        *(dl_pack<T, N> *)(y + to + c) = *(const dl_pack<T, N> *)(table + from + c);
}

template <class T> static void forward_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    auto *const kernel = d[hidden] % dl_length<T> ? look_up<T, 1> : look_up<T, dl_length<T>>;
    kernel<<<(unsigned)d[tokens], threads, 0, dl_cuda.stream>>>(
        (const int32_t *)call->tensor[0], (const T *)call->tensor[1], (T *)call->tensor[2], d[hidden]);
    DL_LAUNCHED(look_up);
}
DL_BY_PRECISION(forward)

/* head[v]: the last token that is v; next[i]: the one before token i; -1: none. */
struct lists {
    int32_t *head, *next;
};

__global__ void link(const int32_t *token, lists l, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x;
    if (i < n) l.next[i] = atomicExch(&l.head[token[i]], (int32_t)i);
}

template <class T, int N> __global__ void add_lists(const int32_t *token, lists l, const T *dy, T *dx, int64_t size)
{
    const int32_t first = blockIdx.x;
    if (l.head[token[first]] != first) return;
    for (int64_t c = threadIdx.x * N; c < size; c += threads * N) {
        auto *const out = (dl_pack<T, N> *)(dx + token[first] * size + c);
        dl_pack<T, N> v = *out;
        float sum[N];
        for (int j = 0; j < N; j++) sum[j] = dl_float_of(v.v[j]);
        for (int32_t i = first; i >= 0; i = l.next[i]) {
            const auto added = *(const dl_pack<T, N> *)(dy + i * size + c);
            for (int j = 0; j < N; j++) sum[j] += dl_float_of(added.v[j]);
        }
        for (int j = 0; j < N; j++) v.v[j] = dl_as<T>(sum[j]);
        *out = v;
    }
}

template <class T> static void weight_gradient_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const int32_t *const token = (const int32_t *)call->tensor[0];
    const lists l = {(int32_t *)call->workspace, (int32_t *)call->workspace + d[vocab]};
    const int none = 0xff; /* of every byte */
    DL_CUDA(cudaMemsetAsync(l.head, none, (size_t)d[vocab] * sizeof *l.head, dl_cuda.stream));
    link<<<(unsigned)dl_ceil_div(d[tokens], dl_block), dl_block, 0, dl_cuda.stream>>>(token, l, d[tokens]);
    DL_LAUNCHED(link);
    auto *const kernel = d[hidden] % dl_length<T> ? add_lists<T, 1> : add_lists<T, dl_length<T>>;
    kernel<<<(unsigned)d[tokens], threads, 0, dl_cuda.stream>>>(token, l, (const T *)call->tensor[1],
                                                                (T *)call->tensor[2], d[hidden]);
    DL_LAUNCHED(add_lists);
}
DL_BY_PRECISION(weight_gradient)

static size_t lists_bytes(const int64_t *d, enum dl_float) { return (size_t)(d[vocab] + d[tokens]) * sizeof(int32_t); }

const struct dl_routine dl_cuda_embeddings[] = {
    {DL_KERNEL("embedding", "forward", forward)},
    {DL_KERNEL("embedding", "weight_gradient", weight_gradient), .workspace_bytes = lists_bytes},
    {},
};
