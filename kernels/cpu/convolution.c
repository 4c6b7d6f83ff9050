/* convolution.c - convolutions as products: the windows of a sample become the columns of a matrix (im2col). */
#include "kernels/cpu/cpu.h"

enum { samples, channels, height, width, filters, window, stride, pad, groups, rows, columns, group_channels };

static int64_t pixels(const int64_t *d) { return d[rows] * d[columns]; }
static int64_t depth(const int64_t *d) { return d[group_channels] * d[window] * d[window]; }
static int64_t group_filters(const int64_t *d) { return d[filters] / d[groups]; }

/* The image is the matrix already. */
static bool is_plain(const int64_t *d) { return d[window] == 1 && d[stride] == 1 && d[pad] == 0; }

static size_t workspace_bytes(const int64_t *d, enum dl_float f)
{
    (void)f;
    return is_plain(d) ? 0 : (size_t)(depth(d) * pixels(d)) * sizeof(float);
}

/* One row of the matrix: what the tap (i, j) of the window sees at every output pixel. Its channel's plane may be read
 * into the row or have the row added. */
struct tap {
    const int64_t *d;
    int64_t i, j;
};

/* Output columns [from, to) see the image. */
static void inside(const struct tap *t, int64_t *from, int64_t *to)
{
    const int64_t *const d = t->d, offset = t->j - d[pad];
    *from = offset >= 0 ? 0 : (-offset + d[stride] - 1) / d[stride];
    *to = d[width] - offset <= 0 ? 0 : (d[width] - offset - 1) / d[stride] + 1;
    if (*to > d[columns]) *to = d[columns];
    if (*from > *to) *from = *to;
}

static void read_tap(const struct tap *t, const float *plane, float *row)
{
    const int64_t *const d = t->d;
    int64_t from, to;
    inside(t, &from, &to);
    for (int64_t r = 0; r < d[rows]; r++, row += d[columns]) {
        const int64_t y = r * d[stride] + t->i - d[pad];
        memset(row, 0, (size_t)d[columns] * sizeof *row);
        if (y < 0 || y >= d[height]) continue;
        const float *const line = plane + y * d[width] + t->j - d[pad];
        for (int64_t c = from; c < to; c++) row[c] = line[c * d[stride]];
    }
}

static void add_tap(const struct tap *t, float *plane, const float *row)
{
    const int64_t *const d = t->d;
    int64_t from, to;
    inside(t, &from, &to);
    for (int64_t r = 0; r < d[rows]; r++, row += d[columns]) {
        const int64_t y = r * d[stride] + t->i - d[pad];
        if (y < 0 || y >= d[height]) continue;
        float *const line = plane + y * d[width] + t->j - d[pad];
        for (int64_t c = from; c < to; c++) line[c * d[stride]] += row[c];
    }
}

/* The matrix of one group of a sample, depth x pixels: a copy, or the image itself. */
static const float *gather(const int64_t *d, const float *image, float *matrix)
{
    if (is_plain(d)) return image;
    float *row = matrix;
    for (int64_t c = 0; c < d[group_channels]; c++)
        for (int64_t i = 0; i < d[window]; i++)
            for (int64_t j = 0; j < d[window]; j++, row += pixels(d))
                read_tap(&(struct tap){d, i, j}, image + c * d[height] * d[width], row);
    return matrix;
}

static void scatter(const int64_t *d, const float *matrix, float *image)
{
    const float *row = matrix;
    memset(image, 0, (size_t)(d[group_channels] * d[height] * d[width]) * sizeof *image);
    for (int64_t c = 0; c < d[group_channels]; c++)
        for (int64_t i = 0; i < d[window]; i++)
            for (int64_t j = 0; j < d[window]; j++, row += pixels(d))
                add_tap(&(struct tap){d, i, j}, image + c * d[height] * d[width], row);
}

/* Where a group of a sample begins, in the input, in the output and among the filters. */
struct place {
    int64_t x, y, w;
};
static struct place place_of(const int64_t *d, int64_t sample, int64_t group)
{
    return (struct place){(sample * d[channels] + group * d[group_channels]) * d[height] * d[width],
                          (sample * d[filters] + group * group_filters(d)) * pixels(d),
                          group * group_filters(d) * depth(d)};
}

static void forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const w = call->tensor[1];
    float *const y = call->tensor[2];
    for (int64_t s = 0; s < d[samples]; s++)
        for (int64_t g = 0; g < d[groups]; g++) {
            const struct place at = place_of(d, s, g);
            const float *const matrix = gather(d, x + at.x, call->workspace);
            dl_cpu_gemm(&(struct dl_gemm){group_filters(d),
                                          pixels(d),
                                          depth(d),
                                          {w + at.w, depth(d), false},
                                          {matrix, pixels(d), false},
                                          y + at.y,
                                          pixels(d),
                                          1,
                                          0});
        }
}

static void input_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const dy = call->tensor[0], *const w = call->tensor[1];
    float *const dx = call->tensor[2];
    for (int64_t s = 0; s < d[samples]; s++)
        for (int64_t g = 0; g < d[groups]; g++) {
            const struct place at = place_of(d, s, g);
            float *const matrix = is_plain(d) ? dx + at.x : call->workspace;
            dl_cpu_gemm(&(struct dl_gemm){depth(d),
                                          pixels(d),
                                          group_filters(d),
                                          {w + at.w, depth(d), true},
                                          {dy + at.y, pixels(d), false},
                                          matrix,
                                          pixels(d),
                                          1,
                                          0});
            if (!is_plain(d)) scatter(d, matrix, dx + at.x);
        }
}

static void weight_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const dy = call->tensor[1];
    float *const dw = call->tensor[2];
    for (int64_t s = 0; s < d[samples]; s++)
        for (int64_t g = 0; g < d[groups]; g++) {
            const struct place at = place_of(d, s, g);
            const float *const matrix = gather(d, x + at.x, call->workspace);
            dl_cpu_gemm(&(struct dl_gemm){group_filters(d),
                                          depth(d),
                                          pixels(d),
                                          {dy + at.y, pixels(d), false},
                                          {matrix, pixels(d), true},
                                          dw + at.w,
                                          depth(d),
                                          1,
                                          s > 0 ? 1 : 0});
        }
}

/* All samples at once: one large product, faster for small images, for workspace that grows with the samples. */
static size_t batched_bytes(const int64_t *d, enum dl_float f)
{
    (void)f;
    return (size_t)((depth(d) + group_filters(d)) * d[samples] * pixels(d)) * sizeof(float);
}

static void gather_all(const int64_t *d, const float *x, int64_t group, float *matrix)
{
    const int64_t step = d[samples] * pixels(d);
    for (int64_t row = 0; row < depth(d); row++)
        for (int64_t s = 0; s < d[samples]; s++) {
            const int64_t at = row % (d[window] * d[window]), channel = row / (d[window] * d[window]);
            const float *const image = x + place_of(d, s, group).x + channel * d[height] * d[width];
            read_tap(&(struct tap){d, at / d[window], at % d[window]}, image, matrix + row * step + s * pixels(d));
        }
}

static void batched(const struct dl_call *call)
{
    const int64_t *const d = call->dim, step = d[samples] * pixels(d);
    float *const y = call->tensor[2], *const matrix = call->workspace, *const result = matrix + depth(d) * step;
    for (int64_t g = 0; g < d[groups]; g++) {
        gather_all(d, call->tensor[0], g, matrix);
        const float *const w = (const float *)call->tensor[1] + place_of(d, 0, g).w;
        dl_cpu_gemm(&(struct dl_gemm){
            group_filters(d), step, depth(d), {w, depth(d), false}, {matrix, step, false}, result, step, 1, 0});
        for (int64_t s = 0; s < d[samples]; s++)
            for (int64_t f = 0; f < group_filters(d); f++)
                memcpy(y + place_of(d, s, g).y + f * pixels(d), result + f * step + s * pixels(d),
                       (size_t)pixels(d) * sizeof *y);
    }
}

const struct dl_routine dl_cpu_convolutions[] = {
    {DL_CPU_BLAS("conv", "forward", forward), .workspace_bytes = workspace_bytes},
    {DL_CPU_BLAS("conv", "input_gradient", input_gradient), .workspace_bytes = workspace_bytes},
    {DL_CPU_BLAS("conv", "weight_gradient", weight_gradient), .workspace_bytes = workspace_bytes},
    {.problem = "conv",
     .pass = "forward",
     .way = "batched",
     .doc = "one product for all samples",
     .precisions = 1u << DL_FLOAT_FP32,
     .is_own = true,
     .run = batched,
     .workspace_bytes = batched_bytes},
    {0},
};
