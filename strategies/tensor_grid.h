/* tensor_grid.h - tensor ranks as a grid of x columns, y rows and depth z: how one GEMM is executed there.
 *
 * A GEMM is C = A B with A of m x k and B of k x n; the backward has dA = dC B^T and dB = A^T dC, whose kernels have
 * the dimensions of their results. Every function emits the GEMM's kernels with the collectives that it needs. A
 * look-up is a GEMM whose A are the numbers of the tokens, too few to count. Collectives of a row are priced without
 * contention, except with the other rows in lockstep that use the same links (see sink.h). */
#ifndef DL_STRATEGIES_TENSOR_GRID_H
#define DL_STRATEGIES_TENSOR_GRID_H

#include "strategies/strategy.h"

enum dl_product_of { DL_PRODUCT_FORWARD, DL_PRODUCT_INPUT, DL_PRODUCT_WEIGHT };
enum dl_product_of dl_product_of(const struct dl_event *ev);

/* SUMMA, with copies of B along z. */
enum dl_status dl_summa_product(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
enum dl_status dl_summa_look_up(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);

/* AxoNN: B in blocks over x and y, each cut over z. */
enum dl_status dl_axonn_product(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
enum dl_status dl_axonn_look_up(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
/* Where the parts that rows of the table gave are added. */
enum dl_status dl_axonn_looked_up(const struct dl_event *mark, struct dl_stack *below, struct dl_error *err);
/* Weights of the rest of the depth: with an ALLOC or FREE, and at the begin and end of layers. */
enum dl_status dl_axonn_memory(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
enum dl_status dl_axonn_layer(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);

/* A collective along a dimension of the grid; nothing where that is one rank wide. */
enum dl_status dl_grid_send(const struct dl_event *ev, enum dl_op op, dl_digits along, double elements,
                            struct dl_stack *below, struct dl_error *err);

/* Refuse a model whose dimensions the grid does not divide. */
enum dl_status dl_summa_check(const struct dl_check *what, struct dl_error *err);
enum dl_status dl_axonn_check(const struct dl_check *what, struct dl_error *err);

#endif
