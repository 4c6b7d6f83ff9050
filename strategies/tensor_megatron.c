/* tensor_megatron.c - products in pairs, the first cut by columns and the second by rows, so that a pair needs one sum
 * (Megatron-LM; Shoeybi et al., arXiv 1909.08053).
 *
 * Outside of pairs data is whole on every rank. With sequence parallelism it is cut there too, by tokens: the sum
 * becomes a reduce-scatter and the next pair begins with an all-gather, with the same bytes in all but for what is
 * gathered again backward. Both may be cut into chunks that go beside the pieces of the product after or before them;
 * or the software has whole ones go beside the gradient of weights. Not so those of experts: what sends tokens gathers
 * and scatters them by itself, and products know of no other rank (Megatron-Core, extensions/transformer_engine.py,
 * explicit_expert_comm; transformer/moe/token_dispatcher.py). */
#include "strategies/operators.h"

static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    const struct dl_layout inside = {.cut[DL_INNER] = DL_ALONG_TENSOR};
    const struct dl_layout made = dl_layout_result(&inside, DL_ACTIVATION);
    return (struct dl_operator_layouts){.weights = inside,
                                        .inside = inside,
                                        .outside.cut[DL_TOKEN] = o->sequence ? DL_ALONG_TENSOR : 0,
                                        .used = dl_layout_operand(&inside, DL_ACTIVATION),
                                        .made = made,
                                        .looked_up = made};
}

/* Attention is cut by heads, and half a head is nothing; nor is half a token. */
static enum dl_status check(const struct dl_operator_options *o, const struct dl_check *what, struct dl_error *err)
{
    const uint32_t *const ways = what->setting->ways;
    for (size_t l = 0; l < what->model->n_layers; l++) {
        const struct dl_layer *const layer = &what->model->layers[l];
        if (l > 0 && layer->forward == layer[-1].forward) continue; /* as the one before it */
        if (dl_check_heads(what, "ways", ways[DL_AXIS_TENSOR], layer, err)) return err->status;
        for (size_t i = 0; i < layer->n_forward; i++) {
            const struct dl_work *const work = &layer->forward[i];
            const struct dl_kernel *const k = &work->kernel;
            const bool in_pieces =
                (work->enters > 0 || work->leaves > 0) && dl_work_has_pieces(work) && !dl_kernel_is_of_experts(k);
            if (in_pieces && dl_check_parts(what, "overlap_chunks", (uint32_t)o->chunks, k->m / ways[DL_AXIS_CONTEXT],
                                            "the rows of a product", err))
                return err->status;
        }
    }
    return DL_OK;
}

/* The one collective, if any, of a tensor that enters a pair or leaves it. */
static bool has_collective(const struct dl_event *ev, bool enters, double elements, const struct dl_setting *s,
                           struct dl_event *collective)
{
    struct dl_move moves[DL_MOST_MOVES];
    if (elements == 0 || !dl_operator_moves(s, ev, enters, elements, moves)) return false;
    *collective = dl_operator_collective(s, ev, enters, moves);
    return true;
}

static bool is_in_chunks(const struct dl_operator_options *o, bool enters)
{
    return o->chunks > 1 && (enters || o->scatters);
}

/* ---- sums beside the gradient of weights ---- */

static enum dl_status hand_over(const struct dl_operator_options *o, const struct dl_event *tensor,
                                const struct dl_event *collective, struct dl_stack *below, struct dl_error *err)
{
    if (dl_kernel_is_of_experts(&tensor->kernel)) return dl_emit(below, collective, err);
    if (tensor->in_pieces && is_in_chunks(o, tensor->over != DL_OUT_OF_PAIR))
        return DL_OK; /* with its product, in pieces */
    const bool may_wait = tensor->over == DL_OUT_OF_PAIR && tensor->pass == DL_BACKWARD;
    if (!may_wait || !dl_stack_setting(below)->software->overlaps_tensor) return dl_emit(below, collective, err);
    *(struct dl_operator_state *)dl_stack_state(below) = (struct dl_operator_state){*collective, true};
    return DL_OK;
}

static void go_beside(const struct dl_event *collective, struct dl_event *product)
{
    product->op = collective->op;
    product->members = collective->members;
    product->bytes = collective->bytes;
    product->beside = collective->cause;
}

/* What is held back goes alone. */
static enum dl_status flush(struct dl_stack *below, struct dl_error *err)
{
    struct dl_operator_state *const state = dl_stack_state(below);
    if (!state->is_held) return DL_OK;
    state->is_held = false;
    return dl_emit(below, &state->sum, err);
}

/* Or beside the first product that may go on meanwhile. */
static enum dl_status let_go(struct dl_event *next, struct dl_stack *below, struct dl_error *err)
{
    struct dl_operator_state *const state = dl_stack_state(below);
    const bool beside = next->gradient == DL_GRADIENT_WEIGHT && next->kernel.kind == DL_KERNEL_GEMM && next->bytes == 0;
    if (!state->is_held || !beside) return flush(below, err);
    state->is_held = false;
    go_beside(&state->sum, next);
    return DL_OK;
}

/* ---- chunks ---- */

/* The first chunk is gathered alone, each later one beside the piece before; or the last is scattered alone, each
 * earlier one beside the piece after: chunk + (chunks - 1) max(chunk, piece) + piece. Pieces are fewer tokens. */
static enum dl_status multiply_in_pieces(double n_pieces, const struct dl_event *product, const struct dl_event *chunk,
                                         struct dl_stack *below, struct dl_error *err)
{
    const bool enters = product->enters > 0;
    struct dl_event piece = *product;
    piece.kernel.m /= n_pieces;
    const struct dl_event alone = piece;
    go_beside(chunk, &piece);
    if (dl_emit(below, enters ? chunk : &alone, err)) return err->status;
    for (double i = 1; i < n_pieces; i++)
        if (dl_emit(below, &piece, err)) return err->status;
    return dl_emit(below, enters ? &alone : chunk, err);
}

/* The gradient of weights needs what the layer was given, of which each rank has kept its tokens only (Korthikanti et
 * al., section 4.2.2): gathered beside the product before it, where the software overlaps. Pieces of a product have
 * other chunks beside them; there it is taken as hidden. */
static enum dl_status gather_again(const struct dl_operator_options *o, struct dl_event *product,
                                   struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event again;
    if (product->kernel.frozen) return DL_OK;
    if (product->pass != DL_BACKWARD || !has_collective(product, true, product->leaves, s, &again)) return DL_OK;
    if (!s->software->overlaps_tensor || s->software->waits_for_collectives) return dl_emit(below, &again, err);
    if (!is_in_chunks(o, product->enters > 0)) go_beside(&again, product);
    return DL_OK;
}

static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool enters = ev->enters > 0;
    struct dl_event mine = *ev, chunk;
    dl_operator_cut(&mine.kernel, s);
    if (let_go(&mine, below, err)) return err->status;
    if (dl_kernel_is_of_experts(&ev->kernel)) return dl_emit(below, &mine, err);
    if (gather_again(o, &mine, below, err)) return err->status;
    if (is_in_chunks(o, enters) &&
        has_collective(&mine, enters, (enters ? ev->enters : ev->leaves) / o->chunks, s, &chunk))
        return multiply_in_pieces(o->chunks, &mine, &chunk, below, err);
    return dl_emit(below, &mine, err);
}

const struct dl_operator dl_operator_megatron = {
    .name = "megatron",
    .among = DL_ALONG_TENSOR,
    .layouts = layouts,
    .check = check,
    .kernel = kernel,
    .hand_over = hand_over,
    .flush = flush,
};
