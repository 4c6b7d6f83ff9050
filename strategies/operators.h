/* operators.h - distributed operators: how ranks that share matrices execute a kernel together.
 *
 * Each says in which layouts it takes and leaves tensors, and emits its kernels with the collectives that belong to
 * them; between operators the resolver brings a tensor from one layout to the next. To add one: its struct in a file of
 * its own, and one line in the table of operators.c. */
#ifndef DL_STRATEGIES_OPERATORS_H
#define DL_STRATEGIES_OPERATORS_H

#include "strategies/resolver.h"
#include "strategies/strategy.h"

/* As the strategy file has them. */
struct dl_operator_options {
    bool sequence;
    double chunks; /* of a collective, each beside a piece of its product */
};

struct dl_operator {
    const char *name;
    struct dl_tensor_layouts (*layouts)(const struct dl_operator_options *o); /* REQUIRED */
    /* REQUIRED: refuse a model whose dimensions do not divide. */
    enum dl_status (*check)(const struct dl_operator_options *o, const struct dl_check *what, struct dl_error *err);
    /* REQUIRED: a kernel of the whole layer, as it is executed on a rank. */
    enum dl_status (*kernel)(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err);
    /* OPTIONAL: the collective of a tensor that is handed over at a mark; NULL: it is waited for at once. */
    enum dl_status (*hand_over)(const struct dl_operator_options *o, const struct dl_event *mark,
                                const struct dl_event *collective, struct dl_stack *below, struct dl_error *err);
    /* OPTIONAL: before any other event that is no kernel. */
    enum dl_status (*flush)(struct dl_stack *below, struct dl_error *err);
    /* OPTIONAL: what more it allocates and frees, after an ALLOC or FREE of the whole layer, and before a layer begins
     * or is done. */
    enum dl_status (*memory)(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
    enum dl_status (*layer)(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
};
extern const struct dl_operator dl_operator_megatron, dl_operator_summa, dl_operator_axonn;

/* By the `grid` of tensor parallelism: 1d, 2d, 2.5d, 3d. */
enum dl_grid { DL_GRID_LINE, DL_GRID_SUMMA, DL_GRID_SUMMA_WITH_DEPTH, DL_GRID_AXONN, DL_N_GRIDS };
extern const char *const dl_grids[]; /* their names; then NULL */
const struct dl_operator *dl_operator_on(enum dl_grid grid);

/* What an operator remembers from event to event. */
struct dl_operator_state {
    struct dl_event sum; /* of a backward, not emitted yet: it may go beside the product after it */
    bool is_held;
};

/* Divide a kernel whose operands need not be exchanged. */
void dl_operator_cut(struct dl_kernel *k, const struct dl_setting *s);

/* The moves that hand over a tensor of so many elements: into a pair of products (`enters`), or out of one. */
size_t dl_operator_moves(const struct dl_setting *s, bool enters, bool from_table, double elements,
                         struct dl_move moves[DL_MOST_MOVES]);
/* A move as the event that it is; of `layer`, in the pass of `ev`. */
struct dl_event dl_operator_collective(const struct dl_setting *s, const struct dl_event *ev, bool enters,
                                       const struct dl_move *move);
/* All moves at a mark. */
enum dl_status dl_operator_hand_over(const struct dl_operator *op, const struct dl_operator_options *o,
                                     const struct dl_event *mark, struct dl_stack *below, struct dl_error *err);

#endif
