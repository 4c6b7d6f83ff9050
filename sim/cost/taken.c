#include "sim/cost/taken.h"

#include "sim/cost/operations.h"

static const struct dl_field fields[] = {
    {"product_fraction", DL_NUMBER, offsetof(struct dl_taken, fraction[DL_CLASS_PRODUCT]), 0, 0.9, false, NULL,
     "share of their rate that matrix products and convolutions lose meanwhile"},
    {"attention_fraction", DL_NUMBER, offsetof(struct dl_taken, fraction[DL_CLASS_ATTENTION]), 0, 0.9, false, NULL,
     "the same of fused attention and of scans"},
    {"memory_fraction", DL_NUMBER, offsetof(struct dl_taken, fraction[DL_CLASS_MEMORY]), 0, 0.9, false, NULL,
     "the same of kernels that move data: norms, activations, optimizers"},
};

const struct dl_field *dl_taken_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

enum dl_status dl_taken_read(struct dl_json object, struct dl_arena *arena, struct dl_taken *out, struct dl_error *err)
{
    if (!object.value || !dl_read(object, fields, DL_COUNT(fields), out, arena, err)) return DL_OK;
    return dl_go_on(err) ? DL_OK : err->status;
}

/* Scans have kinds of memory passes, but wait for the products inside them. */
enum dl_kernel_class dl_class_of_kernel(const struct dl_kernel *k)
{
    switch (k->kind) {
    case DL_KERNEL_GEMM:
    case DL_KERNEL_CONV: return DL_CLASS_PRODUCT;
    case DL_KERNEL_ATTENTION: return DL_CLASS_ATTENTION;
    case DL_KERNEL_MEMORY: break;
    }
    return dl_kernel_is_timed_by_products(k) ? DL_CLASS_ATTENTION : DL_CLASS_MEMORY;
}
