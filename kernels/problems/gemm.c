/* gemm.c - matrix products as linear layers need them, weights kept as outputs x inputs, and a batch of them.
 *
 *     forward          Y = X W^T + bias      m tokens, n outputs, k inputs
 *     input_gradient   dX = dY W             m tokens, n inputs, k outputs
 *     weight_gradient  dW^T = X^T dY         m inputs, n outputs, k tokens; stored as dW is, n x m
 *     transposed       C = A^T B^T           which no layer needs */
#include "kernels/problems/problems.h"

enum { batch, m, n, k, bias };

static double flop(const int64_t *d) { return 2.0 * (double)d[batch] * (double)d[m] * (double)d[n] * (double)d[k]; }

static void values(const int64_t *d, double *v)
{
    for (int i = 0; i < 4; i++) v[i] = (double)d[i];
}

/* c[i, j] of one of the batch, where steps tell how far apart its rows and columns are. */
struct view {
    const double *data;
    int64_t row, column;
};

static double product(struct view a, struct view b, int64_t i, int64_t j, int64_t length)
{
    double sum = 0;
    for (int64_t l = 0; l < length; l++) sum += a.data[i * a.row + l * a.column] * b.data[l * b.row + j * b.column];
    return sum;
}

static void forward(const int64_t *d, double *const *t)
{
    for (int64_t b = 0; b < d[batch]; b++)
        for (int64_t i = 0; i < d[m]; i++)
            for (int64_t j = 0; j < d[n]; j++)
                t[3][(b * d[m] + i) * d[n] + j] = product((struct view){t[0] + b * d[m] * d[k], d[k], 1},
                                                          (struct view){t[1] + b * d[n] * d[k], 1, d[k]}, i, j, d[k]) +
                                                  (d[bias] ? t[2][b * d[n] + j] : 0);
}

static void input_gradient(const int64_t *d, double *const *t)
{
    for (int64_t b = 0; b < d[batch]; b++)
        for (int64_t i = 0; i < d[m]; i++)
            for (int64_t j = 0; j < d[n]; j++)
                t[2][(b * d[m] + i) * d[n] + j] = product((struct view){t[0] + b * d[m] * d[k], d[k], 1},
                                                          (struct view){t[1] + b * d[k] * d[n], d[n], 1}, i, j, d[k]);
}

static void weight_gradient(const int64_t *d, double *const *t)
{
    for (int64_t b = 0; b < d[batch]; b++)
        for (int64_t i = 0; i < d[m]; i++)
            for (int64_t j = 0; j < d[n]; j++)
                t[2][(b * d[n] + j) * d[m] + i] = product((struct view){t[0] + b * d[k] * d[m], 1, d[m]},
                                                          (struct view){t[1] + b * d[k] * d[n], d[n], 1}, i, j, d[k]);
}

static void transposed(const int64_t *d, double *const *t)
{
    for (int64_t b = 0; b < d[batch]; b++)
        for (int64_t i = 0; i < d[m]; i++)
            for (int64_t j = 0; j < d[n]; j++)
                t[2][(b * d[m] + i) * d[n] + j] = product((struct view){t[0] + b * d[k] * d[m], 1, d[m]},
                                                          (struct view){t[1] + b * d[n] * d[k], 1, d[k]}, i, j, d[k]);
}

static const struct dl_tensor_spec forward_tensors[] = {
    {.name = "x", .shape = "batch m k"},
    {.name = "w", .shape = "batch n k"},
    {.name = "bias", .shape = "bias batch n"},
    {.name = "y", .role = DL_OUTPUT, .shape = "batch m n"},
};
static const struct dl_tensor_spec input_tensors[] = {
    {.name = "dy", .shape = "batch m k"},
    {.name = "w", .shape = "batch k n"},
    {.name = "dx", .role = DL_OUTPUT, .shape = "batch m n"},
};
static const struct dl_tensor_spec weight_tensors[] = {
    {.name = "x", .shape = "batch k m"},
    {.name = "dy", .shape = "batch k n"},
    {.name = "dw", .role = DL_OUTPUT, .shape = "batch n m"},
};
static const struct dl_tensor_spec transposed_tensors[] = {
    {.name = "a", .shape = "batch k m"},
    {.name = "b", .shape = "batch n k"},
    {.name = "c", .role = DL_OUTPUT, .shape = "batch m n"},
};

static const int64_t odd[][DL_MAX_DIMS] = {
    {1, 1, 1, 1, 1},
    {1, 7, 5, 3, 1},
    {1, 1, 129, 65, 1},
    {1, 130, 1, 17, 0},
    {3, 33, 31, 2, 1},
    {5, 64, 64, 64, 0},
    {0},
};

/* A grid for interpolation. Then products of MLPs, small transformers and small CNNs, of attention without fusion, of
 * GPT and Llama layers for devices that can; and sizes that fit no tile. */
#define DEPTHS(rows, columns)                                                                                          \
    {1, rows, columns, 64}, {1, rows, columns, 256}, {1, rows, columns, 1024}, { 1, rows, columns, 4096 }
#define COLUMNS(rows) DEPTHS(rows, 64), DEPTHS(rows, 256), DEPTHS(rows, 1024), DEPTHS(rows, 4096)
#define TRIPLE(tokens, outputs, inputs)                                                                                \
    {1, tokens, outputs, inputs}, {1, tokens, inputs, outputs}, { 1, inputs, outputs, tokens }
static const int64_t timed[][DL_MAX_DIMS] = {
    COLUMNS(16),
    COLUMNS(64),
    COLUMNS(256),
    COLUMNS(1024),
    COLUMNS(4096),
    TRIPLE(32, 4096, 784), /* mlp-mnist */
    TRIPLE(32, 10, 4096),
    TRIPLE(128, 4096, 784),
    TRIPLE(128, 4096, 4096),
    TRIPLE(128, 10, 4096),
    TRIPLE(512, 4096, 4096),
    TRIPLE(64, 84, 120), /* lenet-5 */
    TRIPLE(64, 10, 84),
    TRIPLE(32, 1000, 2048), /* resnet-50, and the end of alexnet and vgg */
    TRIPLE(32, 1000, 4096),
    TRIPLE(32, 4096, 9216),
    TRIPLE(32, 4096, 25088),
    TRIPLE(1024, 2304, 768), /* gpt2-125m, one sample */
    TRIPLE(1024, 768, 768),
    TRIPLE(1024, 3072, 768),
    TRIPLE(1024, 50257, 768),
    TRIPLE(1024, 3072, 1024), /* gpt2-355m, bert-large */
    TRIPLE(512, 4096, 1024),
    TRIPLE(2048, 4608, 1536),
    TRIPLE(8192, 4800, 1600), /* gpt2-1.5b, eight samples */
    TRIPLE(8192, 6400, 1600),
    TRIPLE(4096, 12288, 4096), /* llama2-7b, gpt3-6.7b */
    TRIPLE(4096, 22016, 4096),
    TRIPLE(2048, 16384, 4096),
    TRIPLE(2048, 4608, 12288), /* a rank of gpt-175b in eight */
    TRIPLE(2048, 6144, 12288),
    TRIPLE(2048, 9600, 25600), /* a rank of gpt-1t in eight */
    TRIPLE(8192, 8192, 8192),
    TRIPLE(16384, 4096, 4096),
    {12, 1024, 1024, 64}, /* scores and context */
    {12, 1024, 64, 1024},
    {16, 512, 512, 64},
    {16, 512, 64, 512},
    {96, 1024, 1024, 64},
    {96, 1024, 64, 1024},
    {32, 2048, 2048, 128},
    {32, 2048, 128, 2048},
    {64, 128, 128, 64},
    {64, 128, 64, 128},
    {8, 256, 1024, 256},
    {1, 1, 4096, 1024}, /* odd sizes */
    {1, 3, 1000, 512},
    {1, 17, 333, 777},
    {1, 100, 100, 100},
    {1, 127, 511, 1025},
    {1, 300, 1500, 700},
    {1, 513, 513, 513},
    {1, 777, 1333, 999},
    {1, 1000, 1000, 1000},
    {1, 1537, 641, 2049},
    {1, 2000, 3000, 500},
    /* drawn evenly over the logarithms of m, n and k */
    /* clang-format off */
    {1, 64, 24, 496}, {1, 248, 88, 8}, {1, 120, 1440, 16}, {1, 432, 2984, 320}, {1, 3544, 8, 1744}, {1, 24, 328, 464},
    {1, 592, 128, 64}, {1, 151, 60, 1185}, {1, 43, 315, 234}, {1, 800, 56, 3632}, {1, 120, 944, 24}, {1, 8, 552, 984},
    {1, 1928, 64, 648}, {1, 325, 154, 1560}, {1, 172, 540, 14}, {1, 96, 552, 8}, {1, 16, 148, 271},
    {1, 1376, 1800, 48}, {1, 80, 2032, 3168}, {1, 344, 48, 8}, {1, 91, 300, 3087}, {1, 216, 408, 576},
    {1, 105, 109, 18}, {1, 400, 24, 40}, {1, 89, 21, 1647}, {1, 160, 176, 16}, {1, 72, 48, 1456}, {1, 8, 3048, 232},
    {1, 261, 12, 238}, {1, 1792, 656, 48}, {1, 27, 1035, 244}, {1, 72, 38, 1314}, {1, 32, 216, 80}, {1, 3120, 88, 32},
    {1, 32, 34, 424}, {1, 1565, 177, 505}, {1, 16, 529, 2377}, {1, 908, 176, 29}, {1, 72, 1232, 3448},
    {1, 104, 2968, 776}, {1, 21, 25, 2308}, {1, 24, 1439, 3637}, {1, 80, 264, 16}, {1, 3437, 495, 236},
    {1, 128, 1888, 1432}, {1, 47, 123, 22}, {1, 83, 156, 332}, {1, 120, 2488, 200}, {1, 224, 8, 136},
    {1, 8, 1216, 24}, {1, 776, 280, 64}, {1, 280, 1112, 16}, {1, 40, 48, 1032}, {1, 288, 960, 2416},
    {1, 396, 208, 216}, {1, 151, 246, 176}, {1, 15, 558, 1113}, {1, 24, 736, 528}, {1, 2021, 3368, 37},
    {1, 109, 186, 3853}, {1, 24, 128, 216}, {1, 32, 64, 760}, {1, 272, 136, 8}, {1, 424, 216, 15},
    {1, 1136, 3448, 16}, {1, 8, 1080, 48}, {1, 120, 2400, 1368}, {1, 24, 2516, 307}, {1, 15, 2824, 452},
    {1, 16, 1721, 15}, {1, 152, 76, 277}, {1, 48, 16, 232}, {1, 64, 56, 960}, {1, 200, 24, 80}, {1, 40, 8, 816},
    {1, 24, 168, 2760}, {1, 1374, 133, 195}, {1, 105, 209, 623}, {1, 78, 1490, 699}, {1, 8, 856, 40},
    {1, 16, 1573, 1876}, {1, 48, 40, 56}, {1, 25, 145, 48}, {1, 3473, 267, 43}, {1, 168, 200, 32}, {1, 337, 240, 910},
    {1, 736, 1976, 96}, {1, 3736, 24, 776}, {1, 13, 1517, 2135}, {1, 816, 1320, 16}, {1, 206, 1514, 1261},
    {1, 333, 2146, 605}, {1, 19, 1522, 286}, {1, 424, 592, 184}, {1, 1208, 896, 200}, {1, 520, 8, 832},
    {1, 8, 48, 800}, {1, 848, 3536, 192}, {1, 177, 608, 1005}, {1, 472, 16, 24}, {1, 864, 56, 296}, {1, 14, 50, 567},
    {1, 576, 56, 216}, {1, 160, 16, 2152}, {1, 3584, 2784, 8}, {1, 1376, 3376, 144}, {1, 32, 2944, 32},
    {1, 16, 232, 3080}, {1, 1385, 212, 2070}, {1, 40, 2208, 184}, {1, 8, 184, 144}, {1, 23, 78, 66},
    {1, 8, 904, 1552}, {1, 88, 104, 4064}, {1, 80, 128, 48}, {1, 18, 1511, 55}, {1, 40, 48, 208}, {1, 94, 3145, 2038},
    {1, 752, 8, 808}, {1, 920, 480, 48},
    /* clang-format on */
    {0},
};

#define GEMM(tensor_list, the_pass, the_doc, the_reference)                                                            \
    .pass = the_pass, .doc = the_doc, .dims = {"batch", "m", "n", "k", "bias"}, .n_given = 5, DL_TENSORS(tensor_list), \
    .row = DL_ROW_PRODUCT, .flop = flop, .values = values, .reference = the_reference, .odd = odd
const struct dl_problem dl_problem_gemm = {
    .name = "gemm", GEMM(forward_tensors, "forward", "a linear layer", forward), .timed = timed};
const struct dl_problem dl_problem_gemm_input_gradient = {
    .name = "gemm", GEMM(input_tensors, "input_gradient", "gradient of its input", input_gradient), .timed = timed};
const struct dl_problem dl_problem_gemm_weight_gradient = {
    .name = "gemm",
    GEMM(weight_tensors, "weight_gradient", "gradient of its weights", weight_gradient),
    .timed = timed};
const struct dl_problem dl_problem_gemm_transposed = {
    .name = "gemm_transposed", GEMM(transposed_tensors, "forward", "both operands transposed", transposed)};
