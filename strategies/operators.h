/* operators.h - distributed operators: how ranks execute a kernel together.
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
    bool sequence;    /* products */
    double chunks;    /* products: of a collective, each beside a piece of its product */
    bool scatters;    /* products: those of sums and reduce-scatters, too, not of gathers alone */
    bool zigzag;      /* attention: each rank has tokens from the front and from the end */
    bool overlap;     /* experts: tokens travel while another micro-batch is at work */
    double imbalance; /* experts, of the layer at work: tokens of the busiest rank over the mean */
    bool even;        /* experts: all get as many tokens, so that nobody counts them */
    dl_digits over;   /* experts: ranks in lockstep that have whole ones each, and tokens of their own */
};

struct dl_operator {
    const char *name;
    dl_digits among;                                                            /* the ranks that execute it */
    struct dl_operator_layouts (*layouts)(const struct dl_operator_options *o); /* REQUIRED */
    /* OPTIONAL: refuse a model whose dimensions do not divide. */
    enum dl_status (*check)(const struct dl_operator_options *o, const struct dl_check *what, struct dl_error *err);
    /* REQUIRED: a kernel of the whole layer, as it is executed on a rank. */
    enum dl_status (*kernel)(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err);
    /* OPTIONAL: the collective of a tensor that is handed over; NULL: it is waited for at once. */
    enum dl_status (*hand_over)(const struct dl_operator_options *o, const struct dl_event *tensor,
                                const struct dl_event *collective, struct dl_stack *below, struct dl_error *err);
    /* Attention: what it takes is kept for the backward as it is used; else as it is outside, and brought again. */
    bool keeps_used;
    /* OPTIONAL, products: before any other event that is no kernel. */
    enum dl_status (*flush)(struct dl_stack *below, struct dl_error *err);
    /* OPTIONAL, products: what more it allocates and frees, after an ALLOC or FREE of the whole layer, and before a
     * layer begins or is done. */
    enum dl_status (*memory)(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
    enum dl_status (*layer)(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err);
};
extern const struct dl_operator dl_operator_megatron, dl_operator_summa, dl_operator_axonn, dl_operator_ring,
    dl_operator_gathered_keys, dl_operator_ulysses, dl_operator_to_experts, dl_operator_to_nodes;

/* What they are for: matrices that tensor ranks share, attention to a sequence that context ranks share, tokens that
 * go to the ranks of their experts. In a strategy file one key chooses among those of a family. */
enum dl_operators_of { DL_OF_PRODUCTS, DL_OF_ATTENTION, DL_OF_EXPERTS, DL_N_OPERATOR_FAMILIES };
struct dl_operator_family {
    const char *strategy, *key;
    const char *const *choices; /* then NULL */
    const struct dl_operator *const *operators;
    size_t n;
};
extern const struct dl_operator_family dl_operator_families[DL_N_OPERATOR_FAMILIES];
const struct dl_operator *dl_operator_of(enum dl_operators_of what, int64_t choice);

enum dl_grid { DL_GRID_LINE, DL_GRID_SUMMA, DL_GRID_SUMMA_WITH_DEPTH, DL_GRID_AXONN, DL_N_GRIDS };
enum dl_attending { DL_ATTENDING_RING, DL_ATTENDING_GATHERED, DL_ATTENDING_BY_HEADS, DL_N_ATTENDINGS };
extern const char *const dl_grids[], *const dl_attendings[]; /* as strategy files have them; then NULL */

/* What an operator of products remembers from event to event. */
struct dl_operator_state {
    struct dl_event sum; /* of a backward, not emitted yet: it may go beside the product after it */
    bool is_held;
};

/* Divide a kernel whose operands need not be exchanged: as the tensor ranks do, or from one layout to another. NULL: it
 * is whole. */
void dl_operator_cut(struct dl_kernel *k, const struct dl_setting *s);
void dl_kernel_cut(struct dl_kernel *k, const struct dl_layout *has, const struct dl_layout *needs,
                   const struct dl_ranks *ranks);

/* The moves that hand over a tensor of so many elements, of the kernel of `ev`: into a pair of products (`enters`), or
 * out of one. Experts that a tensor rank has whole are no pair. */
size_t dl_operator_moves(const struct dl_setting *s, const struct dl_event *ev, bool enters, double elements,
                         struct dl_move moves[DL_MOST_MOVES]);
/* A move as the event that it is; of `layer`, in the pass of `ev`. */
struct dl_event dl_operator_collective(const struct dl_setting *s, const struct dl_event *ev, bool enters,
                                       const struct dl_move *move);
/* Those of keys and values, and of their gradients, where ranks in a line have fewer heads of these than they are. */
enum dl_status dl_operator_share_keys(const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err);
/* Sums over rows that are divided as activations inside are; all that have parts of a row get its sum. */
enum dl_status dl_operator_sum_rows(const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err);
/* What an adapter of low rank made, or the gradient of that, goes to where it is needed. */
enum dl_status dl_operator_adapt(const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err);
/* All moves of a tensor that is handed over. */
enum dl_status dl_operator_hand_over(const struct dl_operator *op, const struct dl_operator_options *o,
                                     const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err);

#endif
