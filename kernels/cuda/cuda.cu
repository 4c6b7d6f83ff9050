/* cuda.cu - one GPU: its memory, one stream, and a clock that sees the device alone.
 *
 * Calls are issued while a kernel holds the stream, and it lets them go when all have been issued: what is timed is
 * the work on the device, not how fast the host issues it. Hosts are modelled apart. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dl_cuda dl_cuda;

static const struct dl_routine *const tables[] = {
    dl_cuda_gemms,
    dl_cuda_gemm_gelus,
    dl_cuda_grouped_gemms,
    dl_cuda_attentions,
    dl_cuda_tiled_attentions,
    dl_cuda_convolutions,
    dl_cuda_norms,
    dl_cuda_columns,
    dl_cuda_batchnorms,
    dl_cuda_rows,
    dl_cuda_embeddings,
    dl_cuda_elements,
    dl_cuda_pools,
    dl_cuda_global_pools,
    dl_cuda_optimizers,
    dl_cuda_compressions,
    dl_cuda_topks,
    NULL,
};

void dl_cuda_stop(const char *what, dl_place place)
{
    fprintf(stderr, "dlsim-profile: %s:%d: %s: %s\n", place.file, place.line, place.call, what);
    exit(3);
}

void dl_cuda_check(cudaError_t status, dl_place place)
{
    if (status != cudaSuccess) dl_cuda_stop(cudaGetErrorString(status), place);
}

void dl_blas_check(cublasStatus_t status, dl_place place)
{
    if (status != CUBLAS_STATUS_SUCCESS) dl_cuda_stop(cublasGetStatusString(status), place);
}

static struct {
    volatile int *let_go; /* in memory of the host, which the device sees */
    cudaEvent_t begin, end;
} timer;

/* The time-out is for what waits for the device while it issues: a queue that is full, code that is loaded late. */
__global__ void hold(const volatile int *let_go, long long most_cycles)
{
    const long long began = clock64();
    while (!*let_go && clock64() - began < most_cycles)
        ;
}

__global__ void do_nothing(void) {}

/* How far the clock of a multiprocessor gets in how many nanoseconds. */
__global__ void count_cycles(long long cycles, long long *counted)
{
    long long from_ns, to_ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from_ns));
    const long long began = clock64();
    while (clock64() - began < cycles)
        ;
    counted[0] = clock64() - began;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(to_ns));
    counted[1] = to_ns - from_ns;
}

static int attribute(cudaDeviceAttr a)
{
    int value = 0;
    DL_CUDA(cudaDeviceGetAttribute(&value, a, 0));
    return value;
}

/* Freed memory stays with the program: allocations of the next shape cost next to nothing. */
static void keep_freed_memory(void)
{
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    DL_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    DL_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static const char *open_device(void)
{
    const int hopper = 9, portable_parts_log2 = 3;
    int n = 0;
    if (dl_cuda.stream) return NULL;
    const cudaError_t status = cudaGetDeviceCount(&n);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    if (!n) return "there is no CUDA device";
    DL_CUDA(cudaSetDevice(0));
    DL_CUDA(cudaStreamCreateWithFlags(&dl_cuda.stream, cudaStreamNonBlocking));
    keep_freed_memory();
    DL_CUDA(cudaEventCreate(&timer.begin));
    DL_CUDA(cudaEventCreate(&timer.end));
    DL_CUDA(cudaHostAlloc((void **)&timer.let_go, sizeof *timer.let_go, cudaHostAllocMapped));
    DL_BLAS(cublasCreate(&dl_cuda.blas));
    DL_BLAS(cublasSetStream(dl_cuda.blas, dl_cuda.stream));
    DL_CUDA(cudaMalloc(&dl_cuda.blas_workspace, dl_blas_workspace_bytes));
    DL_BLAS(cublasSetWorkspace(dl_cuda.blas, dl_cuda.blas_workspace, dl_blas_workspace_bytes));
    dl_cuda.units = attribute(cudaDevAttrMultiProcessorCount);
    dl_cuda.parts_log2 = attribute(cudaDevAttrComputeCapabilityMajor) >= hopper ? portable_parts_log2 : 0;
    return NULL;
}

static double clock_hz(void)
{
    const long long cycles = 20000000;
    long long counted[2], *on_device;
    DL_CUDA(cudaMalloc((void **)&on_device, sizeof counted));
    count_cycles<<<1, 1, 0, dl_cuda.stream>>>(cycles, on_device);
    DL_LAUNCHED(count_cycles);
    DL_CUDA(cudaMemcpyAsync(counted, on_device, sizeof counted, cudaMemcpyDeviceToHost, dl_cuda.stream));
    DL_CUDA(cudaStreamSynchronize(dl_cuda.stream));
    DL_CUDA(cudaFree(on_device));
    return 1e9 * (double)counted[0] / (double)counted[1];
}

static const char *blas_version(void)
{
    static char text[64];
    int part[3];
    for (int i = 0; i < 3; i++) DL_BLAS(cublasGetProperty((libraryPropertyType)i, &part[i]));
    snprintf(text, sizeof text, "cuBLAS %d.%d.%d", part[0], part[1], part[2]);
    return text;
}

static const char *library(const struct dl_routine *r)
{
    if (strncmp(r->way, "cublas", strlen("cublas")) == 0) return blas_version();
    return strncmp(r->way, "cudnn", strlen("cudnn")) == 0 ? dl_cuda_convolution_version() : "dlsim";
}

static void describe(struct dl_device_facts *facts)
{
    struct cudaDeviceProp device;
    int driver, runtime;
    const int thousand = 1000, ten = 10; /* 13000 is 13.0 */
    DL_CUDA(cudaGetDeviceProperties(&device, 0));
    DL_CUDA(cudaDriverGetVersion(&driver));
    DL_CUDA(cudaRuntimeGetVersion(&runtime));
    const char *const dnn = dl_cuda_convolution_version();
    snprintf(facts->name, sizeof facts->name, "%.90s, %d multiprocessors", device.name, dl_cuda.units);
    snprintf(facts->versions, sizeof facts->versions, "%s, %s, CUDA %d.%d, driver for CUDA %d.%d", blas_version(),
             dnn ? dnn : "no cuDNN", runtime / thousand, runtime % thousand / ten, driver / thousand,
             driver % thousand / ten);
    facts->memory_bytes = (double)device.totalGlobalMem;
    facts->last_cache_bytes = (double)device.l2CacheSize;
    facts->clock_hz = clock_hz();
}

static void *alloc(size_t bytes)
{
    void *memory;
    DL_CUDA(cudaMallocAsync(&memory, bytes ? bytes : 1, dl_cuda.stream));
    return memory;
}

static void release(void *memory) { DL_CUDA(cudaFreeAsync(memory, dl_cuda.stream)); }

/* Memory of the host that the device reaches without the help of a driver: pinned. */
static void *alloc_host(size_t bytes)
{
    void *memory;
    DL_CUDA(cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocDefault));
    return memory;
}

static void release_host(void *memory) { DL_CUDA(cudaFreeHost(memory)); }

/* Tensors may be on the host as well: addresses tell. */
static void upload(void *to, const void *from_host, size_t bytes)
{
    DL_CUDA(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyDefault, dl_cuda.stream));
    DL_CUDA(cudaStreamSynchronize(dl_cuda.stream));
}

static void download(void *to_host, const void *from, size_t bytes)
{
    DL_CUDA(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDefault, dl_cuda.stream));
    DL_CUDA(cudaStreamSynchronize(dl_cuda.stream));
}

static void repeat(void *memory, size_t period_bytes, size_t bytes)
{
    char *const to = (char *)memory;
    for (size_t done = period_bytes; done < bytes; done *= 2) {
        const size_t more = bytes - done < done ? bytes - done : done;
        DL_CUDA(cudaMemcpyAsync(to + done, to, more, cudaMemcpyDefault, dl_cuda.stream));
    }
}

static void start(void)
{
    const long long most_cycles = 10000000; /* about 5 ms */
    *timer.let_go = 0;
    hold<<<1, 1, 0, dl_cuda.stream>>>(timer.let_go, most_cycles);
    DL_LAUNCHED(hold);
    DL_CUDA(cudaEventRecord(timer.begin, dl_cuda.stream));
}

static double stop(void)
{
    float ms;
    const double s_per_ms = 1e-3;
    DL_CUDA(cudaEventRecord(timer.end, dl_cuda.stream));
    *timer.let_go = 1;
    DL_CUDA(cudaEventSynchronize(timer.end));
    DL_CUDA(cudaEventElapsedTime(&ms, timer.begin, timer.end));
    return s_per_ms * (double)ms;
}

static void launch_nothing(void)
{
    do_nothing<<<1, dl_warp, 0, dl_cuda.stream>>>();
    DL_LAUNCHED(do_nothing);
}

extern "C" const struct dl_backend dl_backend_cuda = {
    .name = "cuda",
    .doc = "one NVIDIA GPU with cuBLAS, cuDNN and kernels of our own",
    .tables = tables,
    .most_flop = 1e13,
    .most_bytes = 6e9,
    .open = open_device,
    .describe = describe,
    .library = library,
    .alloc = alloc,
    .free = release,
    .alloc_host = alloc_host,
    .free_host = release_host,
    .upload = upload,
    .download = download,
    .repeat = repeat,
    .start = start,
    .stop = stop,
    .launch_nothing = launch_nothing,
};
