/* units.h - the steps that layers are made of, and what their files share. */
#ifndef DL_MPI_UNITS_H
#define DL_MPI_UNITS_H

#include "validation/mpi/train.h"

extern const struct dl_unit_kind dl_unit_linear, dl_unit_bias, dl_unit_relu, dl_unit_gelu, dl_unit_fork, dl_unit_join;
extern const struct dl_unit_kind dl_unit_enter, dl_unit_leave;        /* the marks of dlsim's workloads */
extern const struct dl_unit_kind dl_unit_loss, dl_unit_parallel_loss; /* of rows that are whole; of cut rows */
extern const struct dl_unit_kind dl_unit_layernorm, dl_unit_attention, dl_unit_look_up, dl_unit_positions;
extern const struct dl_unit_kind dl_unit_conv, dl_unit_max_pool, dl_unit_experts;

struct dl_attention_shape {
    size_t heads, head_size, seq; /* heads here */
    bool causal;
};

struct dl_experts_shape {
    size_t n, chosen, hidden, ffn; /* experts of all ranks, those that a token goes to, widths */
    const struct dl_unit_kind *activation;
};
void dl_add_experts(struct dl_train *t, struct dl_real_layer *layer, const struct dl_experts_shape *shape);

struct dl_image {
    size_t channels, height, width;
};
struct dl_window {
    struct dl_image in, out;
    size_t side, stride, pad;
};

struct dl_rows dl_rows_new(size_t n, size_t width);
struct dl_rows dl_rows_copy(struct dl_rows rows);
void dl_rows_free(struct dl_rows *rows);

/* The backward of units that change nothing on the way and need the gradient of their result for their parameters. */
struct dl_rows dl_keep_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy);

/* Adds a unit with a block of parameters: rows x cols of inputs x outputs. */
struct dl_unit *dl_add_parameters(struct dl_real_layer *layer, const struct dl_unit_kind *kind, size_t inputs,
                                  size_t outputs, struct dl_range rows, struct dl_range cols);
/* A linear unit, its matrix cut by one of its sides or not at all; on a grid by both. */
enum dl_unit_cut { DL_UNIT_WHOLE, DL_UNIT_BY_COLUMNS, DL_UNIT_BY_ROWS };
struct dl_unit *dl_add_linear(struct dl_train *t, struct dl_real_layer *layer, size_t inputs, size_t outputs,
                              enum dl_unit_cut cut);
/* A vector of `width` parameters outside of what tensor ranks cut, or (inside) of their own columns. */
struct dl_unit *dl_add_vector(struct dl_train *t, struct dl_real_layer *layer, const struct dl_unit_kind *kind,
                              size_t vectors, size_t width, bool inside);
void dl_add_mark(struct dl_train *t, struct dl_real_layer *layer, const struct dl_unit_kind *kind);

/* Rows of the micro-batch that this rank has where data is whole for dlsim; sequence parallelism and grids cut it. */
struct dl_range dl_rows_outside(const struct dl_train *t);
/* Columns of a tensor of that width that it has there. */
struct dl_range dl_cols_outside(const struct dl_train *t, size_t width);
/* The targets of all rows of the micro-batch at work. */
const uint32_t *dl_targets(const struct dl_train *t);
/* All rows of the input of the micro-batch at work. */
struct dl_rows dl_inputs(const struct dl_train *t);

/* strategies/tensor.c: what the marks do to rows. */
struct dl_rows dl_tensor_enter(struct dl_train *t, struct dl_rows x);
struct dl_rows dl_tensor_leave(struct dl_train *t, struct dl_rows x);

#endif
