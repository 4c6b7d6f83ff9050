/* pool.cu - the largest of each window, and what it passes back. A block takes a band of rows of a plane, which it
 * reads into shared memory first. The pooling that most of the work is in has its own way, in halving.h. */
#include "kernels/cuda/halving.h"

enum { planes, height, width, window, stride, pad, rows, columns };

struct pooling {
    int height, width, window, stride, pad, rows, columns;
    int band; /* rows of a block: of the output in forward, of the input in backward */
    /* Of a window: its first row or column, from which `pad` lie outside. */
    __device__ int begin(int output) const { return output * stride - pad; }
};

static struct pooling pooling_of(const int64_t *d)
{
    return {(int)d[height], (int)d[width], (int)d[window],  (int)d[stride],
            (int)d[pad],    (int)d[rows],  (int)d[columns], 0};
}

extern __shared__ uint4 shared[];

/* Rows [from, to) of a plane as packs of the whole tensor: `start` is where the first begins, `head` numbers before. */
template <class T> struct span {
    int64_t start;
    int head, end, packs;
    __device__ span(const pooling &g, int from, int to)
    {
        const int64_t begin = ((int64_t)blockIdx.x * g.height + from) * g.width;
        head = (int)(begin % dl_length<T>), start = begin - head;
        end = head + (to - from) * g.width;
        packs = to > from ? (end + dl_length<T> - 1) / dl_length<T> : 0; /* between windows there may be none */
    }
    /* Into shared memory; returns where the first row begins there. */
    __device__ const T *fetch(const T *x, dl_pack<T, dl_length<T>> *to) const
    {
        if (packs) dl_fetch(to, x + start, end);
        return (const T *)to + head;
    }
};

/* Row or column i of a window, moved into the plane: there it meets one that is in the window as well. */
__device__ __forceinline__ int inside(int i, int size) { return min(max(i, 0), size - 1); }

/* W: the window if it is known when this is compiled, else 0. */
template <class T, int W> __global__ void __launch_bounds__(dl_block) forward_bands(pooling g, const T *x, T *y)
{
    const int size = W ? W : g.window, from = blockIdx.y * g.band, n = min(g.band, g.rows - from);
    const int top = inside(g.begin(from), g.height), bottom = inside(g.begin(from + n - 1) + size - 1, g.height) + 1;
    const T *const seen = span<T>(g, top, bottom).fetch(x, (dl_pack<T, dl_length<T>> *)shared);
    T *const out = y + ((int64_t)blockIdx.x * g.rows + from) * g.columns;
    __syncthreads();
    dl_walk at(threadIdx.x, dl_block, g.columns);
    for (int i = threadIdx.x; i < n * g.columns; i += dl_block, at.go_on()) {
        const int row = g.begin(from + at.row), column = g.begin(at.slot);
        float most = -INFINITY;
#pragma unroll
        for (int r = 0; r < size; r++) {
            const T *const line = seen + (inside(row + r, g.height) - top) * g.width;
#pragma unroll
            for (int c = 0; c < size; c++) most = fmaxf(most, dl_float_of(line[inside(column + c, g.width)]));
        }
        out[i] = dl_as<T>(most);
    }
}

/* Of a band of outputs: the rows that its windows see; one pack more at each end. */
static size_t forward_bytes(const int64_t *d, int64_t band, size_t number)
{
    const int64_t n_seen = ((band - 1) * d[stride] + d[window]) * d[width], ends = 2 * dl_pack_bytes;
    return (size_t)(n_seen + ends) * number;
}

/* Of a band and the rows around it that its windows see, and its sums. */
static size_t backward_bytes(const int64_t *d, int64_t band, size_t number)
{
    const int64_t n_seen = (band + 2 * d[window]) * d[width], n = band * d[width], ends = 2 * dl_pack_bytes;
    return (size_t)(n_seen + ends) * number + (size_t)(n + ends) * sizeof(float);
}

/* As many rows of so many as let eight blocks share a multiprocessor, evenly. */
static int band_of(const int64_t *d, int64_t n, size_t number, size_t (*bytes)(const int64_t *, int64_t, size_t))
{
    const size_t most = 24 << 10;
    int64_t band = 1;
    while (band < n && bytes(d, band + 1, number) <= most) band++;
    return (int)dl_ceil_div(n, dl_ceil_div(n, band));
}

/* Launches the kernel that is made for the window, if there is one. */
#define LAUNCH(kernel, rows_of_all, bytes_of, ...)                                                                     \
    do {                                                                                                               \
        const int64_t *const d = call->dim;                                                                            \
        struct pooling g = pooling_of(d);                                                                              \
        g.band = band_of(d, rows_of_all, sizeof(T), bytes_of);                                                         \
        const size_t bytes = bytes_of(d, g.band, sizeof(T));                                                           \
        auto *const chosen = g.window == 2 ? kernel<T, 2> : g.window == 3 ? kernel<T, 3> : kernel<T, 0>;               \
        const dim3 blocks((unsigned)d[planes], (unsigned)dl_ceil_div(rows_of_all, g.band));                            \
        DL_CUDA(cudaFuncSetAttribute(chosen, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));                \
        chosen<<<blocks, dl_block, bytes, dl_cuda.stream>>>(g, __VA_ARGS__);                                           \
        DL_LAUNCHED(kernel);                                                                                           \
    } while (0)

template <class T> static void forward_as(const struct dl_call *call)
{
    if (dl_halving::can(call->dim, dl_length<T>)) {
        const dl_halving h(call->dim, dl_length<T>, dl_halving_rows);
        dl_halve<<<h.blocks(dl_block), dl_block, 0, dl_cuda.stream>>>(h, (const T *)call->tensor[0],
                                                                      (T *)call->tensor[1]);
        DL_LAUNCHED(dl_halve);
        return;
    }
    LAUNCH(forward_bands, call->dim[rows], forward_bytes, (const T *)call->tensor[0], (T *)call->tensor[1]);
}
DL_BY_PRECISION(forward)

/* The place of the first largest number of a window in what is seen, whose first row is `top`. */
template <int W, class T>
__device__ __forceinline__ int largest(const pooling &g, const T *seen, int top, int row, int column)
{
    const int size = W ? W : g.window;
    int best = 0;
    float most = -INFINITY;
#pragma unroll
    for (int r = 0; r < size; r++) {
        const int line = (inside(g.begin(row) + r, g.height) - top) * g.width;
#pragma unroll
        for (int c = 0; c < size; c++) {
            const int at = line + inside(g.begin(column) + c, g.width);
            const float v = dl_float_of(seen[at]);
            if (v > most) best = at, most = v; /* what comes again is not larger */
        }
    }
    return best;
}

/* Adds what the windows of a band pass on to their largest numbers. Windows that are `apart` share no number: each
 * class of those is done at a time, and needs no atomic sums. `sums` begins with row `from`, `seen` with row `top`. */
struct band {
    int from, to, top, first, last; /* rows of the band; the first row that is seen; the windows that touch it */
};
template <class T, int W>
__device__ void pass_back(const pooling &g, const band &b, const T *seen, const T *dy, float *sums)
{
    const int size = W ? W : g.window, apart = (size + g.stride - 1) / g.stride, wide = g.columns / apart + 1;
    const dl_walk start(threadIdx.x, dl_block, wide);
    for (int kind = 0; kind < apart * apart; kind++) {
        const int down = b.first + kind / apart, right = kind % apart;
        dl_walk at = start;
        for (; down + at.row * apart <= b.last; at.go_on()) {
            const int r = down + at.row * apart, c = right + at.slot * apart;
            if (c >= g.columns) continue;
            const int to = largest<W>(g, seen, b.top, r, c) - (b.from - b.top) * g.width;
            if (to >= 0 && to < (b.to - b.from) * g.width) sums[to] += dl_float_of(dy[r * g.columns + c]);
        }
        __syncthreads();
    }
}

template <class T, int W>
__global__ void __launch_bounds__(dl_block) backward_bands(pooling g, const T *x, const T *dy, T *dx)
{
    band b = {};
    b.from = blockIdx.y * g.band, b.to = min(b.from + g.band, g.height);
    b.first = max(0, (b.from + g.pad - g.window + g.stride) / g.stride);
    b.last = min(g.rows - 1, (b.to - 1 + g.pad) / g.stride);
    b.top = max(0, g.begin(b.first));
    const span<T> seen(g, b.top, min(g.height, g.begin(b.last) + g.window)), mine(g, b.from, b.to);
    auto *const values = (dl_pack<T, dl_length<T>> *)shared;
    auto *const sums = (dl_pack<float, dl_length<T>> *)(values + seen.packs);
    const T *const rows_seen = seen.fetch(x, values);
    for (int p = threadIdx.x; p < mine.packs; p += dl_block) sums[p] = {};
    __syncthreads();
    pass_back<T, W>(g, b, rows_seen, dy + (int64_t)blockIdx.x * g.rows * g.columns, (float *)sums + mine.head);
    for (int p = threadIdx.x; p < mine.packs; p += dl_block)
        dl_write(dx + mine.start, p, mine.head, mine.end, dl_rounded<T>(sums[p]));
}

template <class T> static void backward_as(const struct dl_call *call)
{
    if (dl_halving::can(call->dim, dl_length<T>)) {
        const dl_halving h(call->dim, dl_length<T>, dl_halving_back_rows);
        dl_halve_back<<<h.blocks(dl_halving_threads), dl_block, 0, dl_cuda.stream>>>(
            h, (const T *)call->tensor[0], (const T *)call->tensor[1], (T *)call->tensor[2]);
        DL_LAUNCHED(dl_halve_back);
        return;
    }
    LAUNCH(backward_bands, call->dim[height], backward_bytes, (const T *)call->tensor[0], (const T *)call->tensor[1],
           (T *)call->tensor[2]);
}
DL_BY_PRECISION(backward)

/* One row and what its windows see must fit into what every GPU since Ampere gives a block. */
enum { most_shared_bytes = 96 << 10 };
static bool can_forward(const int64_t *d, enum dl_float f)
{
    return forward_bytes(d, 1, dl_float_bytes(f)) <= most_shared_bytes;
}
static bool can_backward(const int64_t *d, enum dl_float f)
{
    return backward_bytes(d, 1, dl_float_bytes(f)) <= most_shared_bytes;
}

const struct dl_routine dl_cuda_pools[] = {
    {DL_KERNEL("pool", "forward", forward), .can = can_forward},
    {DL_KERNEL("pool", "input_gradient", backward), .can = can_backward},
    {},
};
