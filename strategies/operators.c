#include "strategies/operators.h"

const char *const dl_grids[] = {[DL_GRID_LINE] = "1d",
                                [DL_GRID_SUMMA] = "2d",
                                [DL_GRID_SUMMA_WITH_DEPTH] = "2.5d",
                                [DL_GRID_AXONN] = "3d",
                                [DL_N_GRIDS] = NULL};

/* The only list; a new operator is one file and one line here. */
static const struct dl_operator *const operators[DL_N_GRIDS] = {
    [DL_GRID_LINE] = &dl_operator_megatron,
    [DL_GRID_SUMMA] = &dl_operator_summa,
    [DL_GRID_SUMMA_WITH_DEPTH] = &dl_operator_summa,
    [DL_GRID_AXONN] = &dl_operator_axonn,
};

const struct dl_operator *dl_operator_on(enum dl_grid grid) { return operators[grid]; }

/* ---- kernels ---- */

/* What has the inner dimension is between two products; all else is outside of them, or what they are given. */
static const struct dl_layout *layout_of(const struct dl_kernel *k, const struct dl_tensor_layouts *l)
{
    if (dl_kernel_all_dimensions(k) & DL_BY_INNER) return &l->inside;
    return k->on_operands ? &l->used : &l->outside;
}

void dl_operator_cut(struct dl_kernel *k, const struct dl_setting *s)
{
    const struct dl_layout *const in = layout_of(k, &s->layouts);
    k->batch /= dl_layout_parts(in, k->by.batch, &s->ranks);
    k->m /= dl_layout_parts(in, k->by.m, &s->ranks);
    k->n /= dl_layout_parts(in, k->by.n, &s->ranks);
    k->k /= dl_layout_parts(in, k->by.k, &s->ranks);
    k->elements /= dl_layout_parts(in, k->by.elements, &s->ranks);
}

/* ---- between operators ---- */

size_t dl_operator_moves(const struct dl_setting *s, bool enters, bool from_table, double elements,
                         struct dl_move moves[DL_MOST_MOVES])
{
    const struct dl_tensor_layouts *const l = &s->layouts;
    const struct dl_layout *const left = from_table ? &l->looked_up : &l->made;
    return dl_resolve(&s->ranks, enters ? &l->outside : left, enters ? &l->used : &l->outside, elements, moves);
}

/* Where the software takes operands narrow it gathers them so. */
static double bytes_each(const struct dl_setting *s, const struct dl_event *ev, bool enters)
{
    const struct dl_operand_rule *const operands = dl_operand_rule_for(&s->software->operands, s->precision);
    const bool is_narrow = enters && operands && operands->gathered && ev->layer->logits == 0; /* these stay wide */
    return is_narrow ? dl_precision_operand_bytes(s->precision) : dl_precision_bytes(s->precision);
}

struct dl_event dl_operator_collective(const struct dl_setting *s, const struct dl_event *ev, bool enters,
                                       const struct dl_move *move)
{
    const bool divides_tokens = dl_layout_parts(&s->layouts.outside, DL_BY_TOKEN, &s->ranks) > 1;
    struct dl_event collective = *ev;
    collective.kind = DL_EV_COLLECTIVE;
    collective.cause = divides_tokens ? DL_CAUSE_SEQUENCE : DL_CAUSE_TENSOR;
    collective.op = move->op;
    collective.members.digits = move->along;
    collective.bytes = move->elements * bytes_each(s, ev, enters);
    return collective;
}

enum dl_status dl_operator_hand_over(const struct dl_operator *op, const struct dl_operator_options *o,
                                     const struct dl_event *mark, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool enters = mark->mark == DL_WORK_ENTER, from_table = !mark->joined && mark->pass != DL_BACKWARD;
    struct dl_move moves[DL_MOST_MOVES];
    const size_t n = dl_operator_moves(s, enters, from_table, mark->elements, moves);
    for (size_t i = 0; i < n; i++) {
        const struct dl_event collective = dl_operator_collective(s, mark, enters, &moves[i]);
        if (op->hand_over ? op->hand_over(o, mark, &collective, below, err) : dl_emit(below, &collective, err))
            return err->status;
    }
    return DL_OK;
}
