/* tensor_grid.h - tensor ranks as a grid of x columns, y rows and depth z: how one GEMM is executed there.
 *
 * A GEMM is C = A B with A of m x k and B of k x n; the backward has dA = dC B^T and dB = A^T dC, whose kernels have
 * the dimensions of their results. A look-up is a GEMM whose A are the numbers of the tokens, too few to count.
 * Collectives of a row are priced without contention, except with the other rows in lockstep that use the same links
 * (see sink.h). */
#ifndef DL_STRATEGIES_TENSOR_GRID_H
#define DL_STRATEGIES_TENSOR_GRID_H

#include "strategies/operators.h"

enum dl_product_of { DL_PRODUCT_FORWARD, DL_PRODUCT_INPUT, DL_PRODUCT_WEIGHT };
enum dl_product_of dl_product_of(const struct dl_event *ev);

/* A collective along a dimension of the grid; nothing where that is one rank wide. */
enum dl_status dl_grid_send(const struct dl_event *ev, enum dl_op op, dl_digits along, double elements,
                            struct dl_stack *below, struct dl_error *err);

/* Refuse a model with a product, other than those of heads, that is refused, or with heads that x does not divide. */
typedef enum dl_status (*dl_grid_check_fn)(const struct dl_check *what, const struct dl_kernel *k,
                                           struct dl_error *err);
enum dl_status dl_grid_check(const struct dl_check *what, dl_grid_check_fn check, struct dl_error *err);
/* Refuse a product that ranks do not divide. */
enum dl_status dl_grid_not_cut(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err);

/* A kernel of the whole layer: look-ups and products as an operator executes them, all else divided. */
struct dl_grid_kernels {
    enum dl_status (*look_up)(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
    enum dl_status (*product)(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
};
enum dl_status dl_grid_kernel(const struct dl_grid_kernels *kernels, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err);

#endif
