#include "strategies/operators.h"

const char *const dl_grids[] = {[DL_GRID_LINE] = "1d",
                                [DL_GRID_SUMMA] = "2d",
                                [DL_GRID_SUMMA_WITH_DEPTH] = "2.5d",
                                [DL_GRID_AXONN] = "3d",
                                [DL_N_GRIDS] = NULL};
const char *const dl_attendings[] = {[DL_ATTENDING_RING] = "ring",
                                     [DL_ATTENDING_GATHERED] = "allgather",
                                     [DL_ATTENDING_BY_HEADS] = "alltoall",
                                     [DL_N_ATTENDINGS] = NULL};

/* The only list; a new operator is one file and one line here. */
static const struct dl_operator *const of_products[] = {
    [DL_GRID_LINE] = &dl_operator_megatron,
    [DL_GRID_SUMMA] = &dl_operator_summa,
    [DL_GRID_SUMMA_WITH_DEPTH] = &dl_operator_summa,
    [DL_GRID_AXONN] = &dl_operator_axonn,
};
static const struct dl_operator *const of_attention[] = {
    [DL_ATTENDING_RING] = &dl_operator_ring,
    [DL_ATTENDING_GATHERED] = &dl_operator_gathered_keys,
    [DL_ATTENDING_BY_HEADS] = &dl_operator_ulysses,
};
static const struct dl_operator *const of_experts[] = {
    [DL_DISPATCH_TO_EXPERTS] = &dl_operator_to_experts,
    [DL_DISPATCH_TO_NODES] = &dl_operator_to_nodes,
};

const struct dl_operator_family dl_operator_families[DL_N_OPERATOR_FAMILIES] = {
    [DL_OF_PRODUCTS] = {"tensor", "grid", dl_grids, of_products, DL_COUNT(of_products)},
    [DL_OF_ATTENTION] = {"context", "kind", dl_attendings, of_attention, DL_COUNT(of_attention)},
    [DL_OF_EXPERTS] = {"expert", "dispatch", dl_dispatches, of_experts, DL_COUNT(of_experts)},
};

const struct dl_operator *dl_operator_of(enum dl_operators_of what, int64_t choice)
{
    return dl_operator_families[what].operators[choice];
}

/* ---- kernels ---- */

/* Ranks that have experts of their own have tokens of their own, too, and no part of a matrix, or of a sum. */
static void keep_apart(struct dl_layout *layout, dl_digits apart)
{
    layout->cut[DL_INNER] &= ~apart;
    layout->cut[DL_TOKEN] |= apart;
    layout->partial &= ~apart;
}

static struct dl_operator_layouts layouts_of(const struct dl_kernel *k, const struct dl_setting *s)
{
    struct dl_operator_layouts l = s->layouts;
    const dl_digits apart = dl_kernel_is_of_experts(k) ? s->experts_over & DL_ALONG_TENSOR : 0;
    if (!apart) return l;
    keep_apart(&l.inside, apart);
    keep_apart(&l.used, apart);
    keep_apart(&l.made, apart);
    return l;
}

/* What has the inner dimension is between two products; all else is outside of them, or what they are given. */
static const struct dl_layout *layout_of(const struct dl_kernel *k, const struct dl_operator_layouts *l)
{
    if (dl_kernel_all_dimensions(k) & DL_BY_INNER) return &l->inside;
    return k->on_operands ? &l->used : &l->outside;
}

static void cut(double *number, dl_dimensions by, const struct dl_layout *has, const struct dl_layout *needs,
                const struct dl_ranks *ranks)
{
    if (!by) return;
    const uint32_t before = has ? dl_layout_parts(has, by, ranks) : 1, after = dl_layout_parts(needs, by, ranks);
    if (before != after) *number = *number * before / after;
}

void dl_kernel_cut(struct dl_kernel *k, const struct dl_layout *has, const struct dl_layout *needs,
                   const struct dl_ranks *ranks)
{
    cut(&k->batch, k->by.batch, has, needs, ranks);
    cut(&k->m, k->by.m, has, needs, ranks);
    cut(&k->n, k->by.n, has, needs, ranks);
    cut(&k->k, k->by.k, has, needs, ranks);
    cut(&k->elements, k->by.elements, has, needs, ranks);
}

void dl_operator_cut(struct dl_kernel *k, const struct dl_setting *s)
{
    const struct dl_operator_layouts l = layouts_of(k, s);
    dl_kernel_cut(k, NULL, layout_of(k, &l), &s->ranks);
}

/* ---- between operators ---- */

size_t dl_operator_moves(const struct dl_setting *s, const struct dl_event *ev, bool enters, double elements,
                         struct dl_move moves[DL_MOST_MOVES])
{
    const struct dl_operator_layouts l = layouts_of(&ev->kernel, s);
    const bool from_table = !enters && ev->kernel.table > 0 && ev->pass != DL_BACKWARD;
    const struct dl_layout *const left = from_table ? &l.looked_up : &l.made;
    return dl_resolve(&s->ranks, enters ? &l.outside : left, enters ? &l.used : &l.outside, elements, moves);
}

/* Where the software takes operands narrow it gathers them so, but for tokens of experts: products take these narrow
 * when they have come. */
static double bytes_each(const struct dl_setting *s, const struct dl_event *ev, bool enters)
{
    const struct dl_operand_rule *const operands = dl_operands_in(s, ev->layer);
    const bool is_wide = ev->layer->logits > 0 || dl_kernel_is_of_experts(&ev->kernel);
    const bool is_narrow = enters && operands && operands->gathered && !is_wide;
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
                                     const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool enters = tensor->over == DL_INTO_PAIR;
    struct dl_move moves[DL_MOST_MOVES];
    const size_t n = dl_operator_moves(s, tensor, enters, tensor->elements, moves);
    for (size_t i = 0; i < n; i++) {
        const struct dl_event collective = dl_operator_collective(s, tensor, enters, &moves[i]);
        if (op->hand_over ? op->hand_over(o, tensor, &collective, below, err) : dl_emit(below, &collective, err))
            return err->status;
    }
    return DL_OK;
}

/* Where what an adapter made, or the gradient of that, is and where it is needed (Megatron-Bridge, peft/utils.py,
 * ParallelLinearAdapter). On a layer cut by columns A has columns, gathered; on one cut by rows partial sums. B is cut
 * by columns, so that its gradient of the low rank is summed, and what it makes for a layer cut by rows is gathered, of
 * which each rank takes its tokens, or goes there by an all-to-all. */
static bool adapted_layouts(const struct dl_event *tensor, const struct dl_setting *s, struct dl_layout *has,
                            struct dl_layout *needs)
{
    const struct dl_layout whole = {0}, columns = {.cut[DL_INNER] = DL_ALONG_TENSOR},
                           sums = {.partial = DL_ALONG_TENSOR};
    const enum dl_adapter_product product = tensor->kernel.adapter;
    const bool is_out = product == DL_ADAPTER_OUT_OF_COLUMNS || product == DL_ADAPTER_OUT_OF_ROWS;
    *needs = whole;
    if (tensor->pass == DL_BACKWARD) {
        const bool is_given = tensor->over == DL_GIVEN_ADAPTER;
        *has = is_given ? s->layouts.outside : sums;
        if (is_given && s->adapters_alltoall) *needs = columns;
        return is_given ? product == DL_ADAPTER_OUT_OF_ROWS : is_out;
    }
    *has = product == DL_ADAPTER_IN_OF_ROWS ? sums : columns;
    if (is_out && s->adapters_alltoall) *needs = s->layouts.outside;
    return product != DL_ADAPTER_OUT_OF_COLUMNS;
}

/* Tokens are whole there, whether those outside are or not. */
static enum dl_status move_inside(const struct dl_event *tensor, const struct dl_layout *has,
                                  const struct dl_layout *needs, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_move moves[DL_MOST_MOVES];
    const size_t n = dl_resolve(&s->ranks, has, needs, tensor->elements, moves);
    for (size_t i = 0; i < n; i++) {
        struct dl_event collective = dl_operator_collective(s, tensor, false, &moves[i]);
        collective.cause = DL_CAUSE_TENSOR;
        if (dl_emit(below, &collective, err)) return err->status;
    }
    return DL_OK;
}

enum dl_status dl_operator_sum_rows(const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_layout has = dl_layout_result(&dl_stack_setting(below)->layouts.inside, DL_BY_SAMPLE | DL_BY_TOKEN);
    struct dl_layout needs = has;
    needs.partial = 0;
    return move_inside(tensor, &has, &needs, below, err);
}

enum dl_status dl_operator_adapt(const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_layout has, needs;
    return adapted_layouts(tensor, s, &has, &needs) ? move_inside(tensor, &has, &needs, below, err) : DL_OK;
}

/* Copies of a head are with neighbours. Each sums what came to its copy backward. Where columns were divided over all,
 * results are gathered, and gradients scattered. */
enum dl_status dl_operator_share_keys(const struct dl_event *tensor, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const dl_digits heads = DL_ALONG_TENSOR & ~s->along_copies;
    const struct dl_layout whole = {0}, by_heads = {.cut[DL_INNER] = heads},
                           copies = {.cut[DL_INNER] = heads, .partial = s->along_copies},
                           columns = {.cut[DL_INNER] = DL_ALONG_TENSOR}, sums = {.partial = DL_ALONG_TENSOR};
    const bool gathers = s->software->code.gathers_key_heads, backward = tensor->pass == DL_BACKWARD;
    const struct dl_layout *const has = gathers ? backward ? &sums : &columns : backward ? &copies : &by_heads;
    const struct dl_layout *const needs = gathers ? backward ? &columns : &whole : &by_heads;
    return move_inside(tensor, has, needs, below, err);
}
