/* kernel.h - real layer kernels: what is computed, and the ways to compute it on a backend.
 *
 * A problem says what a kernel computes: named dimensions, tensors, a reference in double precision. A routine is one
 * way to do that on one backend (OpenBLAS on a core, cuBLAS on a GPU, a kernel of our own). Everything else is the same
 * for all and lives once, in harness.c: tensors are allocated in the backend's memory, inputs filled from a seed and
 * rounded to the precision, outputs and workspace poisoned, the routine called, its outputs compared with the
 * reference on the rounded inputs. timing.c times; device_file.c writes what came out of what had been found right.
 *
 * To add a way to compute something: one struct dl_routine in a table of its backend (cpu/, cuda/). To add something to
 * compute: one const struct dl_problem in problems/ and one line in problems.c; the tests then run over it. Nothing
 * here needs more than C, OpenBLAS and, for the GPU, CUDA.
 *
 * The rule to remember: run() only issues work on the backend's stream, with what `call` points to. It allocates
 * nothing, waits for nothing, may be called any number of times, and reads no output tensor. */
#ifndef DL_KERNELS_KERNEL_H
#define DL_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DL_MAX_DIMS = 16, DL_MAX_TENSORS = 12, DL_MAX_COLUMNS = 6 };

/* What numbers are kept in; sums are made in fp32 whatever it is. TF32 is fp32 in memory. */
enum dl_float { DL_FLOAT_FP32, DL_FLOAT_TF32, DL_FLOAT_BF16, DL_FLOAT_FP16, DL_FLOAT_FP8, DL_N_FLOATS };
const char *dl_float_name(enum dl_float f);
size_t dl_float_bytes(enum dl_float f);
double dl_float_tolerance(enum dl_float f); /* see dl_trial_check */
double dl_float_least(enum dl_float f);     /* above zero */

enum dl_role { DL_INPUT, DL_OUTPUT, DL_UPDATED /* read and written in place: the optimizer's state */ };

enum dl_store {
    DL_STORE_DATA,  /* in the precision of the call */
    DL_STORE_FLOAT, /* fp32 in every precision: master weights, statistics, losses */
    DL_STORE_INT,   /* int32_t: tokens, indices */
    DL_STORE_BYTE,  /* uint8_t: masks, packed codes */
};

enum dl_fill {
    DL_FILL_UNIFORM,  /* in [-1, 1) */
    DL_FILL_POSITIVE, /* in [0.5, 1.5): gains, variances */
    DL_FILL_BELOW,    /* whole numbers in [0, the dimension that `below` names) */
    DL_FILL_CODE,     /* whole numbers in [0, 256) */
    DL_FILL_MASK,     /* 0 or 1, by dl_kept() of the index */
    DL_FILL_ZERO,
};

struct dl_tensor_spec {
    const char *name;
    enum dl_role role;
    const char *shape; /* dimensions, outermost first: "batch m k"; "" is one number. Row-major, no padding */
    enum dl_store store;
    enum dl_fill fill;
    const char *below;
    double slack;    /* the tolerance times this; 0: once */
    bool is_on_host; /* in memory of the host, from or to which is copied */
};

/* The columns that a problem has in a device file: the fields of struct dl_kernel as workloads emit them. */
enum dl_row {
    DL_ROW_PRODUCT,   /* batch m n k, of the product itself: in a gradient of weights k is the tokens */
    DL_ROW_CONV,      /* batch m n k window stride */
    DL_ROW_ATTENTION, /* batch m n k causal kv_share */
    DL_ROW_MEMORY,    /* elements, read and written, as workloads count them */
};

struct dl_problem {
    const char *name; /* of the kernel, as device files call it: "gemm", "layernorm" */
    const char *pass; /* "forward", "input_gradient", "weight_gradient", "backward" (all gradients in one) */
    const char *doc;
    const char *dims[DL_MAX_DIMS]; /* names; the first n_given are told, the others `complete` works out */
    size_t n_given;
    const struct dl_tensor_spec *tensors;
    size_t n_tensors;
    enum dl_row row;
    bool is_no_workloads; /* no workload has it: it is timed where it is asked for, and is in no device file */
    /* OPTIONAL: fill in the dimensions that follow from the given ones. */
    void (*complete)(int64_t *dim);
    /* OPTIONAL: work out the inputs that follow from others (what forward left for backward), for a check. When only
     * the time counts they are filled like the others. */
    void (*derive)(const int64_t *dim, double *const *tensor);
    /* OPTIONAL: multiplications and additions; NULL: it is bound by memory, and 0. */
    double (*flop)(const int64_t *dim);
    /* OPTIONAL: bytes that must be moved at least; NULL: every tensor once, the updated ones twice. */
    double (*bytes)(const int64_t *dim, enum dl_float f);
    /* OPTIONAL: bytes that are moved where all of an input must be seen before the first result, and it is too large to
     * be kept on the chip: it is read twice. NULL: as `bytes`. A summary holds these against the machine's rate. */
    double (*traffic)(const int64_t *dim, enum dl_float f);
    /* The values of the row's columns. OPTIONAL for MEMORY: NULL: the bytes over those of an element. */
    void (*values)(const int64_t *dim, double *values);
    /* One of the two is REQUIRED. `tensor` holds every tensor as doubles: inputs as the routine saw them, updated ones
     * as they were before. The reference writes its outputs and updates there. */
    void (*reference)(const int64_t *dim, double *const *tensor);
    /* OPTIONAL: where a sum can be far smaller than what is added: the sum of the magnitudes, for every number of such
     * an output. All begin as zero, and count where they are above what the result itself allows. */
    void (*magnitudes)(const int64_t *dim, double *const *tensor, double *const *magnitude);
    /* For what has more than one right answer (top-k with ties, stochastic rounding): `before` and `after` the call;
     * NULL: right, else what is wrong. */
    const char *(*verify)(const int64_t *dim, double *const *before, double *const *after);
    /* Small and odd shapes that the tests check, n_given numbers each; the end is a row of zeros. */
    const int64_t (*odd)[DL_MAX_DIMS];
    /* Shapes that are timed, likewise. */
    const int64_t (*timed)[DL_MAX_DIMS];
};
size_t dl_problem_count(void);
const struct dl_problem *dl_problem_get(size_t index);
const struct dl_problem *dl_problem_find(const char *name, const char *pass); /* NULL: there is none */

/* One call: what run() may touch. */
struct dl_call {
    const int64_t *dim; /* all of the problem's, in its order */
    enum dl_float precision;
    void *const *tensor; /* in the backend's memory, in the order of the problem */
    void *workspace;
    void *plan; /* what the routine's open() returned */
};

struct dl_routine {
    const char *problem, *pass; /* by name */
    const char *way;            /* "openblas", "cublas", "tiled": its name among the ways to do it */
    const char *doc;
    unsigned precisions; /* bits 1 << enum dl_float */
    bool is_own;         /* beside what is called in earnest, for lessons: never in device files */
    const char *lacks;   /* OPTIONAL: what this build would need for it: "CUDA 12.5"; it is named and never run */
    /* REQUIRED */
    void (*run)(const struct dl_call *call);
    /* OPTIONAL: bytes of scratch memory; NULL: none. */
    size_t (*workspace_bytes)(const int64_t *dim, enum dl_float f);
    /* OPTIONAL: descriptors and plans, made before the first run and destroyed after the last. `workspace` is set. */
    void *(*open)(const struct dl_call *call);
    void (*close)(void *plan);
    /* OPTIONAL: false: this shape cannot be done this way (alignment, memory) and is left out. */
    bool (*can)(const int64_t *dim, enum dl_float f);
};

/* What a device file says of the device besides the times. */
struct dl_device_facts {
    char name[128], versions[256];                   /* "Neoverse-V1"; "OpenBLAS 0.3.21, gcc 12.2, Linux 6.1" */
    double memory_bytes, last_cache_bytes, clock_hz; /* 0: not known */
};

/* Memory, a stream and a clock. Calls that fail stop the program with a line that says what failed. */
struct dl_backend {
    const char *name, *doc;
    const struct dl_routine *const *tables; /* of routines; each ends with one without a name, the list with NULL */
    double most_flop, most_bytes;           /* of a shape that is worth timing here; larger ones are left out */
    const char *(*open)(void);              /* NULL: ready; else why there is no such device here */
    void (*describe)(struct dl_device_facts *facts);
    const char *(*library)(const struct dl_routine *r); /* that it calls: "OpenBLAS 0.3.21"; of our own: "dlsim" */
    void *(*alloc)(size_t bytes);
    void (*free)(void *memory);
    void *(*alloc_host)(size_t bytes); /* OPTIONAL: for tensors on the host; NULL: the host is the device */
    void (*free_host)(void *memory);   /* OPTIONAL, with alloc_host */
    void (*upload)(void *to, const void *from, size_t bytes); /* from the host, or from its own memory */
    void (*download)(void *to_host, const void *from, size_t bytes);
    void (*repeat)(void *memory, size_t period_bytes, size_t bytes); /* fills it with what its first bytes hold */
    /* Between start and stop calls are issued; stop waits for all of them and gives the seconds since start. */
    void (*start)(void);
    double (*stop)(void);
    void (*launch_nothing)(void); /* the smallest thing that can be issued: its time is the launch overhead */
};
extern const struct dl_backend dl_backend_cpu;
extern const struct dl_backend dl_backend_cuda; /* only where built with CUDA */
size_t dl_backend_count(void);
const struct dl_backend *dl_backend_get(size_t index);
const struct dl_backend *dl_backend_find(const char *name); /* NULL: there is none */
size_t dl_routine_count(const struct dl_backend *b);
const struct dl_routine *dl_routine_get(const struct dl_backend *b, size_t index);

/* Random bits by position, the same on every backend: masks of dropout, stochastic rounding. Two rounds of a
 * multiplicative hash with the constants of MurmurHash3's finalizer (Appleby, public domain). */
#ifdef __CUDACC__
#define DL_ANYWHERE static __host__ __device__ __forceinline__
#else
#define DL_ANYWHERE static inline
#endif
#define DL_BITS_STEP 0x9e3779b9u
DL_ANYWHERE uint32_t dl_bits_begin(uint64_t index) { return (uint32_t)index * DL_BITS_STEP + (uint32_t)(index >> 32); }
DL_ANYWHERE uint32_t dl_bits_from(uint32_t begin)
{
    const uint32_t x = (begin ^ begin >> 16) * 0x85ebca6bu, y = (x ^ x >> 13) * 0xc2b2ae35u;
    return y ^ y >> 16;
}
DL_ANYWHERE uint32_t dl_bits(uint64_t index) { return dl_bits_from(dl_bits_begin(index)); }
/* 16 bits of those that positions 2 i and 2 i + 1 share. */
DL_ANYWHERE uint32_t dl_half_bits(uint64_t index) { return dl_bits(index / 2) >> (index % 2 ? 16 : 0) & 0xffff; }
/* In [0, 1), of 24 bits, so that it is exact in fp32. */
DL_ANYWHERE float dl_chance(uint64_t index) { return (float)(dl_bits(index) >> 8) * (1.0f / 16777216.0f); }
/* In [0, 1), of 16 bits. */
DL_ANYWHERE float dl_coarse_chance(uint64_t index) { return (float)dl_half_bits(index) * (1.0f / 65536.0f); }
/* Whether dropout keeps this element, and by what it is multiplied then. */
#define DL_DROPOUT 0.1f
DL_ANYWHERE uint8_t dl_kept(uint64_t index) { return dl_chance(index) >= DL_DROPOUT; }
#define DL_DROPOUT_SCALE (1.0f / (1.0f - DL_DROPOUT))

/* Tokens of expert g begin here, where `groups` of them share so many: uneven, expert g has about g + 1 shares. */
DL_ANYWHERE int64_t dl_group_begin(int64_t g, int64_t groups, int64_t tokens)
{
    return tokens * (g * (g + 1)) / (groups * (groups + 1));
}
/* Expert g of grouped_gemm's groups, tokens, outputs, inputs: its first token, how many, where its weights begin. */
struct dl_expert {
    int64_t from, tokens, weights;
};
DL_ANYWHERE struct dl_expert dl_expert_at(const int64_t *dim, int64_t g)
{
    const int64_t from = dl_group_begin(g, dim[0], dim[1]), to = dl_group_begin(g + 1, dim[0], dim[1]);
    const struct dl_expert e = {from, to - from, g * dim[2] * dim[3]};
    return e;
}

/* Shared by the reference and all ways: what they must agree on. */
#define DL_NORM_EPSILON 1e-5f
#define DL_GELU_A 0.044715f     /* GELU as GPT-2 has it: Hendrycks and Gimpel 2016, section 2, with tanh */
#define DL_GELU_B 0.7978845608f /* sqrt(2 / pi) */
#define DL_ADAM_RATE 1e-3f      /* Kingma and Ba 2015, Algorithm 1 */
#define DL_ADAM_BETA1 0.9f
#define DL_ADAM_BETA2 0.999f
#define DL_ADAM_EPSILON 1e-8f
#define DL_ADAM_STEP 10 /* the step whose bias correction is applied */
#define DL_SGD_RATE 1e-2f
#define DL_MOMENTUM 0.9f
#define DL_WEIGHT_DECAY 0.01f

#ifdef __cplusplus
}
#endif

#endif
