#include "sim/cost/operations.h"

#include <string.h>

/* What dl_kernel_operation says of kernels of layers, strategies and software; and what dlsim-profile times besides. No
 * step has these yet, but they tell how far the model is from kernels that are bound by memory. */
/* clang-format off */
#define MEMORY         .kind = DL_KERNEL_MEMORY
#define PLAIN(word)    {.name = word, MEMORY}
#define FUNCTION(word) {.name = word, MEMORY, .is_function = true}
#define APART(word)    {.name = word, MEMORY, .stands_apart = true}
#define PYTORCH(word)  {.name = word, MEMORY, .is_pytorchs = true}
#define ISSUED(word)   {.name = word, MEMORY, .is_pytorchs = true, .is_issued = true}
#define UPDATE(word)   {.name = word, MEMORY, .is_update = true, .stands_apart = true}
/* Kernels of a scan in Triton, divided as those of mamba_ssm, timed on an H200 (PyTorch 2.11, Triton 3.6, November 2026)
 * in the shapes of Nemotron 3 Nano, Nemotron-H 56B on 8 ranks and Mamba-2 2.7B: 16 % around these, but for states of
 * chunks of 256 tokens (25 % less) and scores that take 10 us (50 % more). That units of other GPUs take as many clocks
 * is assumed: nothing was timed there. Beside the products of the scan (validation/measured/mixers.json), by own kernels
 * divided as mamba_ssm's on the same H200, and by PyTorch's own: a row of the norm backward (13 % around it for groups
 * of 512 and 1,024 columns, 26 % less than for 2,048), an element of a copy that puts samples first, and one of a sum
 * over a single part. */
#define SCAN(word, one_s) {.name = word, MEMORY, .product_unit_s = one_s}
static const struct dl_operation operations[] = {
    {.name = "gemm", .kind = DL_KERNEL_GEMM}, {.name = "grouped_gemm", .kind = DL_KERNEL_GEMM, .among_experts = true},
    {.name = "attention", .kind = DL_KERNEL_ATTENTION}, {.name = "conv", .kind = DL_KERNEL_CONV},
    FUNCTION("layernorm"), FUNCTION("rmsnorm"), PLAIN("batchnorm"), {.name = "native_batchnorm", MEMORY, .like = "batchnorm"}, PLAIN("lrn"), FUNCTION("softmax"),
    {.name = "cross_entropy", MEMORY, .is_function = true, .is_of_loss = true, .stands_apart = true},
    {.name = "logits_to_fp32", MEMORY, .is_of_loss = true, .stands_apart = true},
    APART("embedding"), PLAIN("positions"), {.name = "position_bias", MEMORY, .like = "residual"}, PLAIN("token_types"), {.name = "rotary", MEMORY, .rotates = true},
    FUNCTION("gelu"), FUNCTION("geglu"), PLAIN("relu"), {.name = "relu6", MEMORY, .like = "relu"}, {.name = "squared_relu", MEMORY, .like = "relu"}, FUNCTION("swiglu"),
    {.name = "clamped_swiglu", MEMORY, .is_function = true, .like = "swiglu"},
    PLAIN("dropout"), PLAIN("residual"), {.name = "layer_scale", MEMORY, .like = "residual"}, {.name = "logit_cap", MEMORY, .is_of_loss = true, .like = "relu"}, {.name = "add", MEMORY, .like = "residual"}, PLAIN("add_slices"), PLAIN("concat"), PLAIN("bias"),
    PLAIN("pool"), PLAIN("volume_pool"), PLAIN("mean_pool"), PLAIN("global_pool"),
    PLAIN("short_convolution"), PLAIN("chunk_decay"), SCAN("chunk_states", 2.1e-12), PLAIN("pass_states"), SCAN("chunk_scores", 3.3e-12), SCAN("chunk_scan", 3.7e-12),
    {.name = "gated_norm", MEMORY, .is_function = true, .product_unit_s = 0.85e-6}, SCAN("samples_first", 3.2e-10), SCAN("sum_parts", 4.6e-10),
    PLAIN("top_k"), {.name = "permute", MEMORY, .copies_tokens = true}, {.name = "unpermute", MEMORY, .copies_tokens = true}, PLAIN("count_tokens"),
    ISSUED("rotary_parts"), PYTORCH("swiglu_parts"), ISSUED("rmsnorm_parts"), ISSUED("repeat"),
    PLAIN("cast"), ISSUED("widen"), ISSUED("mixed_add"), PLAIN("narrow_operands"), PLAIN("bucket"), PLAIN("gradient_sum"),
    UPDATE("sgd"), UPDATE("momentum"), UPDATE("adam"), UPDATE("lamb"),
    {.name = "foreach_adam", MEMORY, .is_pytorchs = true, .is_update = true, .stands_apart = true, .like = "adam"},
    PLAIN("quantize"), PLAIN("dequantize"), PLAIN("one_bit"), PLAIN("one_bit_decode"), PLAIN("topk"), PLAIN("unpack"),
    PLAIN("copy"), {.name = "strided_copy", MEMORY, .like = "copy"}, PLAIN("copy_to_device"), PLAIN("copy_to_host"), PLAIN("gradient_norm"), PLAIN("reduce"),
};
/* clang-format on */

size_t dl_operation_count(void) { return DL_COUNT(operations); }

const struct dl_operation *dl_operation_get(size_t index) { return &operations[index]; }

const struct dl_operation *dl_operation_named(const char *name)
{
    for (size_t i = 0; i < DL_COUNT(operations); i++)
        if (*operations[i].name == *name && strcmp(operations[i].name, name) == 0)
            return &operations[i]; /* few calls */
    return NULL;
}

const struct dl_operation *dl_operation_of(const struct dl_kernel *k)
{
    static const struct dl_operation other = {.name = "other", MEMORY};
    const char *const name = dl_kernel_operation(k);
    const struct dl_operation *const found = name ? dl_operation_named(name) : NULL;
    return found ? found : &other;
}

const char *const dl_products_timed_on = "h200";

bool dl_kernel_is_timed_by_products(const struct dl_kernel *k)
{
    return k->products_per_element > 0 && dl_operation_of(k)->product_unit_s > 0;
}

double dl_kernel_unit_s(const struct dl_kernel *k)
{
    if (k->unit_s > 0 || !(k->products_per_element > 0)) return k->unit_s;
    return k->elements * k->products_per_element * dl_operation_of(k)->product_unit_s;
}

enum dl_status dl_operation_check(const char *name, const char *where, struct dl_error *err)
{
    if (dl_operation_named(name)) return DL_OK;
    const char *names[DL_COUNT(operations)];
    for (size_t i = 0; i < DL_COUNT(operations); i++) names[i] = operations[i].name;
    char nearest[DL_HINT];
    return dl_fail(err, DL_NOT_FOUND, where, "no kernel has the name '%.60s'%s", name,
                   dl_suggestion(name, names, DL_COUNT(names), nearest));
}
