/* operations.h - all that kernels do, and what devices should know of it.
 *
 * A new operation is one line of the table, a new property one more member. */
#ifndef DL_COST_OPERATIONS_H
#define DL_COST_OPERATIONS_H

#include "workloads/workload.h"

struct dl_operation {
    const char *name; /* as dl_kernel_operation has it, and tables of measured times */
    enum dl_kernel_kind kind;
    bool among_experts; /* a GEMM with rows for each expert */
    bool is_function;   /* goes through memory once and computes with what it reads: norms, softmax, activations */
    bool is_update;     /* an optimizer's step */
    bool rotates;       /* queries and keys */
    bool copies_tokens; /* for experts, or adds up what comes from them */
    bool is_pytorchs;   /* done by kernels that only PyTorch has, so that their times are those of any software's */
    bool is_issued;     /* bound by its instructions: 0.65 of the H200's memory rate or less, where others have 0.75 */
    bool is_of_loss;    /* from logits to the loss, and the gradient of the former */
    bool stands_apart;  /* compilers join it to no kernel before or after it */
    double product_unit_s; /* of a multiply-add, row or element inside it on one unit (SM) at 1.98 GHz; 0: nothing */
    const char *like;      /* OPTIONAL: whose times serve where it has none of its own */
};
size_t dl_operation_count(void);
const struct dl_operation *dl_operation_get(size_t index);

/* That of a kernel; one without properties if the table has none. */
const struct dl_operation *dl_operation_of(const struct dl_kernel *k);

/* Time of its instructions, if one unit of a GPU did them all: as software says, or by the products inside it; 0: not
 * known. */
double dl_kernel_unit_s(const struct dl_kernel *k);

/* Whether that time comes from the products inside it; and the device that these were timed on: on others it is
 * assumed. */
bool dl_kernel_is_timed_by_products(const struct dl_kernel *k);
extern const char *const dl_products_timed_on;

/* By its name; NULL: there is none. */
const struct dl_operation *dl_operation_named(const char *name);

/* Refuses the name of an operation that there is not; `where` is the place of the name. */
enum dl_status dl_operation_check(const char *name, const char *where, struct dl_error *err);

#endif
