/* convolution.cu - convolutions by cuDNN: with the algorithm that it recommends, and forward with each algorithm that
 * it has, for the division of mini-batches (split.h). */
#include "kernels/cuda/cuda.h"

#ifndef DLSIM_CUDNN

const char *dl_cuda_convolution_version(void) { return NULL; }
#define ABSENT(the_pass)                                                                                               \
    {                                                                                                                  \
        .problem = "conv", .pass = the_pass, .way = "cudnn", .doc = "cuDNN", .precisions = DL_PRODUCT,                 \
        .lacks = "cuDNN"                                                                                               \
    }
const struct dl_routine dl_cuda_convolutions[] = {
    ABSENT("forward"), ABSENT("input_gradient"), ABSENT("weight_gradient"), {}};

#else

#include <cudnn.h>

#include <stdio.h>
#include <string.h>

enum { samples, channels, height, width, filters, window, stride, pad, groups, rows, columns, group_channels, n_dims };

#define DL_DNN(call) check((call), DL_HERE(call))
static void check(cudnnStatus_t status, dl_place place)
{
    if (status != CUDNN_STATUS_SUCCESS) dl_cuda_stop(cudnnGetErrorString(status), place);
}

static cudnnHandle_t dnn(void)
{
    static cudnnHandle_t handle;
    if (handle) return handle;
    DL_DNN(cudnnCreate(&handle));
    DL_DNN(cudnnSetStream(handle, dl_cuda.stream));
    return handle;
}

const char *dl_cuda_convolution_version(void)
{
    static char text[32];
    const size_t version = cudnnGetVersion(), major = 10000, minor = 100; /* 91900 is 9.19.0 */
    snprintf(text, sizeof text, "cuDNN %zu.%zu.%zu", version / major, version % major / minor, version % minor);
    return text;
}

enum pass { FORWARD, INPUT, WEIGHT };

struct plan {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
    int algorithm; /* of the pass; none: -1 */
    size_t bytes;
};

static cudnnDataType_t type_of(enum dl_float f)
{
    return f == DL_FLOAT_BF16 ? CUDNN_DATA_BFLOAT16 : f == DL_FLOAT_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/* fp32 must not be rounded to TF32 on the way. */
static cudnnMathType_t math_of(enum dl_float f)
{
    return f == DL_FLOAT_FP32 ? CUDNN_FMA_MATH : f == DL_FLOAT_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

static void describe(struct plan *p, const int64_t *d, enum dl_float f)
{
    const cudnnTensorFormat_t order = CUDNN_TENSOR_NCHW;
    const int dilation = 1, side = (int)d[window], by = (int)d[stride], edge = (int)d[pad];
    DL_DNN(cudnnCreateTensorDescriptor(&p->x));
    DL_DNN(cudnnCreateTensorDescriptor(&p->y));
    DL_DNN(cudnnCreateFilterDescriptor(&p->w));
    DL_DNN(cudnnCreateConvolutionDescriptor(&p->convolution));
    DL_DNN(cudnnSetTensor4dDescriptor(p->x, order, type_of(f), (int)d[samples], (int)d[channels], (int)d[height],
                                      (int)d[width]));
    DL_DNN(cudnnSetTensor4dDescriptor(p->y, order, type_of(f), (int)d[samples], (int)d[filters], (int)d[rows],
                                      (int)d[columns]));
    DL_DNN(cudnnSetFilter4dDescriptor(p->w, type_of(f), order, (int)d[filters], (int)d[group_channels], side, side));
    DL_DNN(cudnnSetConvolution2dDescriptor(p->convolution, edge, edge, by, by, dilation, dilation,
                                           CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    DL_DNN(cudnnSetConvolutionGroupCount(p->convolution, (int)d[groups]));
    DL_DNN(cudnnSetConvolutionMathType(p->convolution, math_of(f)));
}

static void forget(const struct plan *p)
{
    DL_DNN(cudnnDestroyConvolutionDescriptor(p->convolution));
    DL_DNN(cudnnDestroyFilterDescriptor(p->w));
    DL_DNN(cudnnDestroyTensorDescriptor(p->y));
    DL_DNN(cudnnDestroyTensorDescriptor(p->x));
}

/* Whether the algorithm can do it, and the workspace it needs then. */
static bool needs(const struct plan *p, enum pass pass, int algorithm, size_t *bytes)
{
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    if (pass == FORWARD)
        status = cudnnGetConvolutionForwardWorkspaceSize(dnn(), p->x, p->w, p->convolution, p->y,
                                                         (cudnnConvolutionFwdAlgo_t)algorithm, bytes);
    if (pass == INPUT)
        status = cudnnGetConvolutionBackwardDataWorkspaceSize(dnn(), p->w, p->y, p->convolution, p->x,
                                                              (cudnnConvolutionBwdDataAlgo_t)algorithm, bytes);
    if (pass == WEIGHT)
        status = cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn(), p->x, p->y, p->convolution, p->w,
                                                                (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes);
    return status == CUDNN_STATUS_SUCCESS;
}

/* The first of those recommended that keeps to the arithmetic asked for and to the limit of workspace. */
enum { most_recommended = 16 };
template <class R> static void take_best(struct plan *p, enum pass pass, enum dl_float f, const R *results, int n)
{
    const size_t most_bytes = (size_t)2 << 30;
    for (int i = 0; i < n && p->algorithm < 0; i++) {
        const bool is_exact = results[i].mathType == CUDNN_FMA_MATH || results[i].mathType == CUDNN_DEFAULT_MATH;
        if (results[i].status != CUDNN_STATUS_SUCCESS || (f == DL_FLOAT_FP32 && !is_exact)) continue;
        if (f != DL_FLOAT_FP32) DL_DNN(cudnnSetConvolutionMathType(p->convolution, results[i].mathType));
        if (needs(p, pass, results[i].algo, &p->bytes) && p->bytes <= most_bytes) p->algorithm = results[i].algo;
    }
}

static void recommend(struct plan *p, enum pass pass, enum dl_float f)
{
    cudnnConvolutionFwdAlgoPerf_t forward[most_recommended];
    cudnnConvolutionBwdDataAlgoPerf_t input[most_recommended];
    cudnnConvolutionBwdFilterAlgoPerf_t weight[most_recommended];
    int n = 0;
    if (pass == FORWARD) {
        DL_DNN(cudnnGetConvolutionForwardAlgorithm_v7(dnn(), p->x, p->w, p->convolution, p->y, most_recommended, &n,
                                                      forward));
        take_best(p, pass, f, forward, n);
    } else if (pass == INPUT) {
        DL_DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn(), p->w, p->y, p->convolution, p->x, most_recommended,
                                                           &n, input));
        take_best(p, pass, f, input, n);
    } else {
        DL_DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn(), p->x, p->y, p->convolution, p->w, most_recommended,
                                                             &n, weight));
        take_best(p, pass, f, weight, n);
    }
}

/* A plan with the algorithm that is wanted, or, for -1, that is recommended. The caller's to forget. */
static struct plan plan_of(const int64_t *d, enum dl_float f, enum pass pass, int wanted)
{
    struct plan p = {.algorithm = -1};
    describe(&p, d, f);
    if (wanted < 0)
        recommend(&p, pass, f);
    else if (needs(&p, pass, wanted, &p.bytes))
        p.algorithm = wanted;
    return p;
}

/* The algorithm and its workspace; asked for the same shape again and again, and slow to find. */
struct choice {
    int64_t dim[n_dims];
    enum dl_float precision;
    int algorithm;
    size_t bytes;
};

template <enum pass P, int WANTED> static const struct choice *choose(const int64_t *d, enum dl_float f)
{
    static struct choice last;
    if (last.precision == f && memcmp(last.dim, d, sizeof last.dim) == 0) return &last;
    const struct plan p = plan_of(d, f, P, WANTED);
    memcpy(last.dim, d, sizeof last.dim);
    last.precision = f, last.algorithm = p.algorithm, last.bytes = p.bytes;
    forget(&p);
    return &last;
}

template <enum pass P, int WANTED> static size_t bytes_of(const int64_t *d, enum dl_float f)
{
    return choose<P, WANTED>(d, f)->bytes;
}

template <enum pass P, int WANTED> static bool can(const int64_t *d, enum dl_float f)
{
    return choose<P, WANTED>(d, f)->algorithm >= 0;
}

template <enum pass P, int WANTED> static void *open(const struct dl_call *call)
{
    struct plan *const p = new struct plan;
    *p = plan_of(call->dim, call->precision, P, WANTED);
    return p;
}

static void close(void *of)
{
    struct plan *const p = (struct plan *)of;
    forget(p);
    delete p;
}

static const float one = 1, zero = 0;

/* x, w -> y */
static void forward(const struct dl_call *call)
{
    const struct plan *const p = (const struct plan *)call->plan;
    DL_DNN(cudnnConvolutionForward(dnn(), &one, p->x, call->tensor[0], p->w, call->tensor[1], p->convolution,
                                   (cudnnConvolutionFwdAlgo_t)p->algorithm, call->workspace, p->bytes, &zero, p->y,
                                   call->tensor[2]));
}

/* dy, w -> dx */
static void input_gradient(const struct dl_call *call)
{
    const struct plan *const p = (const struct plan *)call->plan;
    DL_DNN(cudnnConvolutionBackwardData(dnn(), &one, p->w, call->tensor[1], p->y, call->tensor[0], p->convolution,
                                        (cudnnConvolutionBwdDataAlgo_t)p->algorithm, call->workspace, p->bytes, &zero,
                                        p->x, call->tensor[2]));
}

/* x, dy -> dw */
static void weight_gradient(const struct dl_call *call)
{
    const struct plan *const p = (const struct plan *)call->plan;
    DL_DNN(cudnnConvolutionBackwardFilter(dnn(), &one, p->x, call->tensor[0], p->y, call->tensor[1], p->convolution,
                                          (cudnnConvolutionBwdFilterAlgo_t)p->algorithm, call->workspace, p->bytes,
                                          &zero, p->w, call->tensor[2]));
}

#define RECOMMENDED(the_pass, the_run, the_enum)                                                                       \
    {                                                                                                                  \
        .problem = "conv", .pass = the_pass, .way = "cudnn", .doc = "cuDNN, with the algorithm that it recommends",    \
        .precisions = DL_PRODUCT, .run = the_run, .workspace_bytes = bytes_of<the_enum, -1>,                           \
        .open = open<the_enum, -1>, .close = close, .can = can<the_enum, -1>                                           \
    }
#define ONE(the_way, algorithm)                                                                                        \
    {                                                                                                                  \
        .problem = "conv", .pass = "forward", .way = the_way, .doc = "cuDNN, always with this algorithm",              \
        .precisions = 1u << DL_FLOAT_FP32, .is_own = true, .run = forward,                                             \
        .workspace_bytes = bytes_of<FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_##algorithm>,                                  \
        .open = open<FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_##algorithm>, .close = close,                                 \
        .can = can<FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_##algorithm>                                                    \
    }
const struct dl_routine dl_cuda_convolutions[] = {
    RECOMMENDED("forward", forward, FORWARD),
    RECOMMENDED("input_gradient", input_gradient, INPUT),
    RECOMMENDED("weight_gradient", weight_gradient, WEIGHT),
    ONE("cudnn_implicit", IMPLICIT_GEMM),
    ONE("cudnn_precomp", IMPLICIT_PRECOMP_GEMM),
    ONE("cudnn_gemm", GEMM),
    ONE("cudnn_fft", FFT),
    ONE("cudnn_fft_tiled", FFT_TILING),
    ONE("cudnn_winograd", WINOGRAD),
    ONE("cudnn_nonfused", WINOGRAD_NONFUSED),
    {},
};

#endif
