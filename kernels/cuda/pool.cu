/* pool.cu - the largest of each window, and the mean of each plane. */
#include "kernels/cuda/packs.h"

enum { planes, height, width, window, stride, pad, rows, columns };
enum { across = 32, down = dl_block / across };

struct pooling {
    int height, width, window, stride, pad, rows, columns, band;
    /* Of a window: its first row or column, from which `pad` lie outside. */
    __device__ int begin(int output) const { return output * stride - pad; }
};

static struct pooling pooling_of(const int64_t *d)
{
    return {(int)d[height], (int)d[width], (int)d[window],  (int)d[stride],
            (int)d[pad],    (int)d[rows],  (int)d[columns], 0};
}

/* The place of the first largest number of a window in x, whose first row is `top`; W: the window if it is known when
 * this is compiled, else 0. */
template <int W, class T>
__device__ __forceinline__ int largest(const pooling &g, const T *x, int top, int row, int column)
{
    const int size = W ? W : g.window, first_row = g.begin(row), first_column = g.begin(column);
    int best = -1;
    float most = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
#pragma unroll
        for (int j = 0; j < size; j++) {
            const int r = first_row + i, c = first_column + j;
            if (r < 0 || r >= g.height || c < 0 || c >= g.width) continue;
            const int at = (r - top) * g.width + c;
            const float v = dl_float_of(x[at]);
            if (best >= 0 && !(v > most)) continue;
            best = at, most = v;
        }
    return best;
}

template <class T, int W> __global__ void __launch_bounds__(dl_block) forward_planes(pooling g, const T *x, T *y)
{
    const T *const in = x + (int64_t)blockIdx.x * g.height * g.width;
    T *const out = y + (int64_t)blockIdx.x * g.rows * g.columns;
    for (int r = threadIdx.y; r < g.rows; r += down)
        for (int c = threadIdx.x; c < g.columns; c += across) out[r * g.columns + c] = in[largest<W>(g, in, 0, r, c)];
}

template <class T> static void forward_as(const struct dl_call *call)
{
    const struct pooling g = pooling_of(call->dim);
    auto *const kernel = g.window == 2   ? forward_planes<T, 2>
                         : g.window == 3 ? forward_planes<T, 3>
                                         : forward_planes<T, 0>;
    kernel<<<(unsigned)call->dim[planes], dim3(across, down), 0, dl_cuda.stream>>>(g, (const T *)call->tensor[0],
                                                                                   (T *)call->tensor[1]);
    DL_LAUNCHED(forward_planes);
}
DL_BY_PRECISION(forward)

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
};

/* A block gives the gradients of a band of rows of a plane: it finds the largest of all windows that touch the band and
 * adds what they pass on in shared memory. */
template <class T, int W>
__global__ void __launch_bounds__(dl_block) backward_bands(pooling g, const T *x, const T *dy, T *dx)
{
    const int from = blockIdx.y * g.band, to = min(from + g.band, g.height),
              thread = threadIdx.y * across + threadIdx.x;
    const int first = max(0, (from + g.pad - g.window + g.stride) / g.stride);
    const int last = min(g.rows - 1, (to - 1 + g.pad) / g.stride);
    const int top = max(0, g.begin(first)), bottom = min(g.height, g.begin(last) + g.window);
    const span<T> seen(g, top, bottom), band(g, from, to);
    auto *const values = (dl_pack<T, dl_length<T>> *)shared;
    auto *const sums = (dl_pack<float, dl_length<T>> *)(values + seen.packs);
    for (int p = thread; p < seen.packs; p += dl_block) values[p] = dl_read<dl_length<T>>(x + seen.start, p, seen.end);
    for (int p = thread; p < band.packs; p += dl_block) sums[p] = {};
    __syncthreads();
    const T *const rows_seen = (const T *)values + seen.head;
    float *const band_sums = (float *)sums + band.head - (from - top) * g.width;
    for (int r = first + threadIdx.y; r <= last; r += down)
        for (int c = threadIdx.x; c < g.columns; c += across) {
            const int at = largest<W>(g, rows_seen, top, r, c), row = top + at / g.width;
            if (row < from || row >= to) continue;
            atomicAdd(&band_sums[at], dl_float_of(dy[((int64_t)blockIdx.x * g.rows + r) * g.columns + c]));
        }
    __syncthreads();
    for (int p = thread; p < band.packs; p += dl_block) {
        dl_pack<T, dl_length<T>> v;
        for (int j = 0; j < dl_length<T>; j++) v.v[j] = dl_as<T>(sums[p].v[j]);
        dl_write(dx + band.start, p, band.head, band.end, v);
    }
}

/* Of a band and the rows around it that its windows see; one pack more at each end. */
static size_t band_bytes(const int64_t *d, int64_t band, size_t number)
{
    const int64_t n_seen = (band + 2 * d[window]) * d[width], n = band * d[width], ends = 2 * dl_pack_bytes;
    return (size_t)(n_seen + ends) * number + (size_t)(n + ends) * sizeof(float);
}

static int band_of(const int64_t *d, size_t number)
{
    const size_t most = 24 << 10; /* so that eight blocks share a multiprocessor */
    int64_t band = 1;
    while (band < d[height] && band_bytes(d, band + 1, number) <= most) band++;
    return (int)band;
}

template <class T> static void backward_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    struct pooling g = pooling_of(d);
    g.band = band_of(d, sizeof(T));
    const size_t bytes = band_bytes(d, g.band, sizeof(T));
    auto *const kernel = g.window == 2   ? backward_bands<T, 2>
                         : g.window == 3 ? backward_bands<T, 3>
                                         : backward_bands<T, 0>;
    const dim3 blocks((unsigned)d[planes], (unsigned)dl_ceil_div(d[height], g.band));
    DL_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, dim3(across, down), bytes, dl_cuda.stream>>>(g, (const T *)call->tensor[0],
                                                                  (const T *)call->tensor[1], (T *)call->tensor[2]);
    DL_LAUNCHED(backward_bands);
}
DL_BY_PRECISION(backward)

/* One row and what its windows see must fit into what every GPU since Ampere gives a block. */
static bool can_backward(const int64_t *d, enum dl_float f) { return band_bytes(d, 1, dl_float_bytes(f)) <= 96 << 10; }

/* The mean of a plane: its packs go to a group of a warp's threads, as many as it has packs if they are few. */
enum { n_planes, pixels };

template <class T> __global__ void __launch_bounds__(dl_block) means(const T *x, T *y, int64_t n, int size, int group)
{
    const int64_t plane = ((int64_t)blockIdx.x * dl_block + threadIdx.x) / group, begin = plane * size;
    const int head = (int)(begin % dl_length<T>);
    float sum = 0;
    if (plane < n)
        for (int p = threadIdx.x % group; p * dl_length<T> < head + size; p += group) {
            const auto v = dl_read<dl_length<T>>(x, begin / dl_length<T> + p, n * size);
            for (int j = 0; j < dl_length<T>; j++)
                sum += (unsigned)(p * dl_length<T> + j - head) < (unsigned)size ? dl_float_of(v.v[j]) : 0;
        }
    for (int step = group / 2; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (plane < n && threadIdx.x % group == 0) y[plane] = dl_as<T>(sum / (float)size);
}

template <class T> static void global_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    int group = 1;
    while (group < dl_warp && group < d[pixels] / dl_length<T> + 1) group *= 2;
    means<<<(unsigned)dl_ceil_div(d[n_planes] * group, dl_block), dl_block, 0, dl_cuda.stream>>>(
        (const T *)call->tensor[0], (T *)call->tensor[1], d[n_planes], (int)d[pixels], group);
    DL_LAUNCHED(means);
}
DL_BY_PRECISION(global)

template <class T> static void global_input_as(const struct dl_call *call)
{
    const int64_t total = call->dim[n_planes] * call->dim[pixels];
    const uint32_t size = (uint32_t)call->dim[pixels];
    const T *const dy = (const T *)call->tensor[0];
    T *const dx = (T *)call->tensor[1];
    const float part = 1 / (float)size;
    dl_each<dl_length<T>>(total, [=] __device__(int64_t i) {
        dl_pack<T, dl_length<T>> v = {};
        uint32_t plane = (uint32_t)(i * dl_length<T>) / size, pixel = (uint32_t)(i * dl_length<T>) % size;
        for (int j = 0; j < dl_length<T>; j++) {
            if (i * dl_length<T> + j < total) v.v[j] = dl_as<T>(dl_float_of(dy[plane]) * part);
            if (++pixel == size) pixel = 0, plane++;
        }
        dl_write(dx, i, total, v);
    });
}
DL_BY_PRECISION(global_input)

/* Divisions are those of 32 bits. */
static bool can_global_input(const int64_t *d, enum dl_float) { return d[n_planes] * d[pixels] <= UINT32_MAX; }

const struct dl_routine dl_cuda_pools[] = {
    {DL_KERNEL("pool", "forward", forward)},
    {DL_KERNEL("pool", "input_gradient", backward), .can = can_backward},
    {DL_KERNEL("global_pool", "forward", global)},
    {DL_KERNEL("global_pool", "input_gradient", global_input), .can = can_global_input},
    {},
};
