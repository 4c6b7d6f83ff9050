/* operations.c - the kernels that a device file may have times of: a table with another name would never be looked at.
 */
#include <string.h>

#include "sim/cost/measured.h"

/* What dl_kernel_operation says of kernels of layers, strategies and software; and what dlsim-profile times besides. No
 * step has these yet, but they tell how far the model is from kernels that are bound by memory. */
/* clang-format off */
static const char *const operations[] = {
    "gemm", "grouped_gemm", "attention", "conv",
    "layernorm", "rmsnorm", "batchnorm", "lrn", "softmax", "cross_entropy", "logits_to_fp32",
    "embedding", "positions", "token_types", "rotary",
    "gelu", "geglu", "relu", "swiglu", "dropout", "residual", "add", "add_slices", "concat", "bias", "pool",
    "mean_pool", "global_pool",
    "top_k", "permute", "unpermute", "count_tokens",
    "cast", "quantise", "bucket", "sgd", "momentum", "adam", "lamb",
    "quantize", "dequantize", "one_bit", "one_bit_decode", "topk", "unpack",
    "copy", "copy_to_device", "copy_to_host", "gradient_norm", "reduce",
};
/* clang-format on */

enum dl_status dl_operation_check(const char *name, const char *where, struct dl_error *err)
{
    for (size_t i = 0; i < DL_COUNT(operations); i++)
        if (strcmp(operations[i], name) == 0) return DL_OK;
    const char *const nearest = dl_nearest(name, operations, DL_COUNT(operations));
    return dl_fail(err, DL_NOT_FOUND, where, "no kernel has the name '%.60s'%s%s%s", name,
                   nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}
