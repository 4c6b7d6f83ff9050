/* tensor.c - the matrices of a layer divided over ranks.
 *
 * 1d: cut by columns, then by rows (Megatron-LM), so that a pair of them needs one sum. Between the cut parts data is
 * whole on every rank. With sequence parallelism it is cut there too, by tokens: the sum becomes a reduce-scatter and
 * the next pair begins with an all-gather, with the same bytes in all but for what is gathered again backward. Both may
 * be cut into chunks that go beside the pieces of the product after or before them; or the software has whole ones go
 * beside the gradient of weights.
 * 2d and 2.5d: by panels, see tensor_summa.c. 3d: see tensor_axonn.c. */
#include <math.h>

#include "strategies/strategies.h"
#include "strategies/tensor_grid.h"

enum grid { LINE, SUMMA, SUMMA_WITH_DEPTH, AXONN };
static const char *const grids[] = {"1d", "2d", "2.5d", "3d", NULL};

struct options {
    int64_t ways, grid, x, y, z, overlap_chunks;
    bool sequence;
};
#define MOST_WAYS 65536
static const struct options defaults = {.ways = 1, .grid = LINE, .overlap_chunks = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, MOST_WAYS, false, NULL, "ranks that share a layer"},
    {"sequence", DL_BOOL, offsetof(struct options, sequence), 0, 0, true, NULL,
     "of 1d: sequence parallelism, tokens are divided where activations would be replicated; false if absent"},
    {"overlap_chunks", DL_INT, offsetof(struct options, overlap_chunks), 1, 1024, true, NULL,
     "of 1d: parts of a collective, each overlapped with a part of its GEMM; 1 if absent"},
    {"grid", DL_CHOICE, offsetof(struct options, grid), 0, 0, true, grids,
     "1d as in Megatron-LM, 2d SUMMA, 2.5d with copies, 3d as in AxoNN; 1d if absent"},
    {"x", DL_INT, offsetof(struct options, x), 1, MOST_WAYS, true, NULL,
     "columns of the grid; what y and z leave if absent"},
    {"y", DL_INT, offsetof(struct options, y), 1, MOST_WAYS, true, NULL,
     "rows of the grid; as many as columns if absent"},
    {"z", DL_INT, offsetof(struct options, z), 1, MOST_WAYS, true, NULL, "depth of the grid; 1 if absent"},
};

/* A sum in a backward that is not emitted yet, where it may go beside the product after it. */
struct state {
    struct dl_event sum;
    bool is_held;
};

static bool has_panels(const struct options *o) { return o->grid == SUMMA || o->grid == SUMMA_WITH_DEPTH; }

/* ---- what the others are told ---- */

/* A number that does not come out is refused by check. */
static void shape_grid(const struct options *o, uint32_t grid[DL_GRID_DIMENSIONS])
{
    const int64_t z = o->z ? o->z : 1, area = o->ways / z;
    const int64_t side = (int64_t)round(sqrt((double)area));
    const int64_t x = o->x ? o->x : o->y ? area / o->y : side, y = o->y ? o->y : o->x ? area / o->x : side;
    grid[0] = (uint32_t)(x ? x : 1);
    grid[1] = (uint32_t)(y ? y : 1);
    grid[2] = (uint32_t)z;
}

static struct dl_tensor_parts divide(const struct options *o, const uint32_t grid[DL_GRID_DIMENSIONS])
{
    const uint32_t ways = (uint32_t)o->ways, x = grid[0], y = grid[1], z = grid[2];
    if (has_panels(o))
        return (struct dl_tensor_parts){
            .weights = x * y, .others = x * y, .inside = ways, .outside = ways, .heads = x, .columns_outside = x};
    if (o->grid == AXONN)
        return (struct dl_tensor_parts){
            .weights = ways, .others = y, .inside = x * z, .outside = y * z, .heads = x, .columns_outside = y};
    return (struct dl_tensor_parts){.weights = ways,
                                    .others = 1,
                                    .inside = ways,
                                    .outside = o->sequence ? ways : 1,
                                    .heads = ways,
                                    .columns_outside = 1};
}

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->ways[DL_AXIS_TENSOR] = (uint32_t)o->ways;
    if (o->grid == LINE)
        setting->grid[0] = (uint32_t)o->ways;
    else
        shape_grid(o, setting->grid);
    setting->parts = divide(o, setting->grid);
    return DL_OK;
}

/* ---- what cannot be ---- */

static enum dl_status refuse_key(const struct options *o, const struct dl_check *what, const char *key,
                                 const char *needs, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, key), "is for grid %s, not %s; leave it out", needs,
                   grids[o->grid]);
}

static enum dl_status check_keys(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    if (o->grid != LINE && o->sequence) return refuse_key(o, what, "sequence", "1d", err);
    if (o->grid != LINE && o->overlap_chunks > 1) return refuse_key(o, what, "overlap_chunks", "1d", err);
    if (o->grid == LINE && o->x) return refuse_key(o, what, "x", "2d, 2.5d and 3d", err);
    if (o->grid == LINE && o->y) return refuse_key(o, what, "y", "2d, 2.5d and 3d", err);
    if (o->grid < SUMMA_WITH_DEPTH && o->z) return refuse_key(o, what, "z", "2.5d and 3d", err);
    return DL_OK;
}

static enum dl_status check_grid(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    const uint32_t *const grid = what->setting->grid;
    const uint64_t ranks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (ranks != (uint64_t)o->ways)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "ways"),
                       "must be x y z of the grid, %u x %u x %u = %ju, got %ju; or give x and y", grid[0], grid[1],
                       grid[2], (uintmax_t)ranks, (uintmax_t)o->ways);
    return has_panels(o) ? dl_summa_check(what, err) : dl_axonn_check(what, err);
}

/* Attention is cut by heads, and half a head is nothing; nor is half a token. */
static enum dl_status check_line(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    for (size_t l = 0; l < what->model->n_layers; l++) {
        const struct dl_layer *const layer = &what->model->layers[l];
        if (dl_check_heads(what, "ways", (uint32_t)o->ways, layer, err)) return err->status;
        for (size_t i = 0; i < layer->n_forward; i++) {
            const struct dl_work *const work = &layer->forward[i];
            const struct dl_kernel *const k = &work->kernel;
            const bool in_pieces = (work->enters > 0 || work->leaves > 0) && !k->among_experts;
            if (in_pieces && dl_check_parts(what, "overlap_chunks", (uint32_t)o->overlap_chunks,
                                            k->m / what->setting->ways[DL_AXIS_CONTEXT], "the rows of a product", err))
                return err->status;
        }
    }
    return DL_OK;
}

static bool is_cut(const struct dl_kernel *k)
{
    return k->kind != DL_KERNEL_MEMORY && k->cut != DL_CUT_NOTHING && k->cut != DL_CUT_OUTSIDE;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (o->ways > 1 && !dl_check_find(what, is_cut))
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "%s has nothing that tensor ranks could divide; data would divide its samples",
                       what->model->name);
    if (check_keys(o, what, err)) return err->status;
    return o->grid == LINE ? check_line(o, what, err) : check_grid(o, what, err);
}

/* ---- kernels ---- */

/* Tokens are m, and what is summed over in the gradient of weights. */
static void cut_outside(struct dl_kernel *k, const struct dl_tensor_parts *parts, enum dl_gradient gradient)
{
    if (k->kind == DL_KERNEL_MEMORY) {
        k->elements /= parts->outside;
        k->n /= parts->columns_outside;
    } else {
        *(gradient == DL_GRADIENT_WEIGHT ? &k->k : &k->m) /= parts->outside;
    }
}

/* Rows of a head, or of its scores, are as wide as ever: a rank has fewer of them. */
static void cut_inside(struct dl_kernel *k, const struct dl_tensor_parts *parts)
{
    k->elements /= parts->inside;
    k->batch /= parts->inside;
    if (k->across_heads) k->n /= parts->heads;
}

static void cut(struct dl_kernel *k, const struct dl_tensor_parts *parts, enum dl_gradient gradient)
{
    switch (k->cut) {
    case DL_CUT_NOTHING: break;
    case DL_CUT_M: k->m /= parts->weights; break;
    case DL_CUT_N: k->n /= parts->weights; break;
    case DL_CUT_K: k->k /= parts->weights; break;
    case DL_CUT_BATCH: k->batch /= parts->inside; break;
    case DL_CUT_INSIDE: cut_inside(k, parts); break;
    case DL_CUT_OUTSIDE: cut_outside(k, parts, gradient); break;
    }
}

/* ---- 1d ---- */

/* Whole -> cut needs a sum on the way back only, cut -> whole on the way there only; marks follow the data's direction,
 * so that this is the same forward and backward. Sequence parallelism gathers at one and scatters at the other. */
static struct dl_event collective_at(const struct options *o, const struct dl_event *ev, bool enters, double elements,
                                     const struct dl_setting *s)
{
    const struct dl_operand_rule *const operands = dl_operand_rule_for(&s->software->operands, s->precision);
    const bool is_narrow = enters && operands && operands->gathered && ev->layer->logits == 0; /* these stay wide */
    struct dl_event collective = *ev;
    collective.kind = DL_EV_COLLECTIVE;
    collective.members.digits = DL_ALONG_TENSOR;
    collective.bytes =
        elements * (is_narrow ? dl_precision_operand_bytes(s->precision) : dl_precision_bytes(s->precision));
    collective.op = !o->sequence ? DL_ALLREDUCE : enters ? DL_ALLGATHER : DL_REDUCESCATTER;
    collective.cause = o->sequence ? DL_CAUSE_SEQUENCE : DL_CAUSE_TENSOR;
    return collective;
}

static enum dl_status communicate(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                  struct dl_error *err)
{
    const bool enters = ev->mark == DL_WORK_ENTER;
    if (enters && !o->sequence) return DL_OK;
    if (ev->joined && o->overlap_chunks > 1) return DL_OK; /* with its product, in pieces */
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event collective = collective_at(o, ev, enters, ev->elements, s);
    if (enters || ev->pass != DL_BACKWARD || !s->software->overlaps_tensor) return dl_emit(below, &collective, err);
    struct state *const state = dl_stack_state(below);
    state->sum = collective;
    state->is_held = true;
    return DL_OK;
}

static void go_beside(const struct dl_event *collective, struct dl_event *product)
{
    product->op = collective->op;
    product->members = collective->members;
    product->bytes = collective->bytes;
    product->beside = collective->cause;
}

/* Beside the first product that may go on meanwhile, or alone before whatever else comes. */
static enum dl_status let_go(struct dl_event *next, struct dl_stack *below, struct dl_error *err)
{
    struct state *const state = dl_stack_state(below);
    if (!state->is_held) return DL_OK;
    state->is_held = false;
    const bool beside = next->kind == DL_EV_COMPUTE && next->gradient == DL_GRADIENT_WEIGHT &&
                        next->kernel.kind == DL_KERNEL_GEMM && next->bytes == 0;
    if (!beside) return dl_emit(below, &state->sum, err);
    go_beside(&state->sum, next);
    return DL_OK;
}

/* The first chunk is gathered alone, each later one beside the piece before; or the last is scattered alone, each
 * earlier one beside the piece after: chunk + (chunks - 1) max(chunk, piece) + piece. Pieces are fewer tokens. */
static enum dl_status multiply_in_pieces(const struct options *o, const struct dl_event *product,
                                         struct dl_stack *below, struct dl_error *err)
{
    const bool enters = product->enters > 0;
    const double elements = enters ? product->enters : product->leaves;
    const struct dl_event chunk =
        collective_at(o, product, enters, elements / (double)o->overlap_chunks, dl_stack_setting(below));
    struct dl_event piece = *product;
    piece.kernel.m /= (double)o->overlap_chunks;
    const struct dl_event alone = piece;
    go_beside(&chunk, &piece);
    if (dl_emit(below, enters ? &chunk : &alone, err)) return err->status;
    for (int64_t i = 1; i < o->overlap_chunks; i++)
        if (dl_emit(below, &piece, err)) return err->status;
    return dl_emit(below, enters ? &alone : &chunk, err);
}

/* The gradient of weights needs what the layer was given, of which each rank has kept its tokens only (Korthikanti et
 * al., section 4.2.2): gathered beside the product before it, where the software overlaps. Pieces of a product have
 * other chunks beside them; there it is taken as hidden. */
static enum dl_status gather_again(const struct options *o, struct dl_event *product, struct dl_stack *below,
                                   struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event again = collective_at(o, product, true, product->leaves, s);
    if (!s->software->overlaps_tensor) return dl_emit(below, &again, err);
    if (o->overlap_chunks == 1) go_beside(&again, product);
    return DL_OK;
}

static enum dl_status compute(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    struct dl_event mine = *ev;
    cut(&mine.kernel, &dl_stack_setting(below)->parts, ev->gradient);
    if (let_go(&mine, below, err)) return err->status;
    const bool has_collective = ev->leaves > 0 || (ev->enters > 0 && o->sequence);
    if (ev->pass == DL_BACKWARD && ev->leaves > 0 && o->sequence && gather_again(o, &mine, below, err))
        return err->status;
    if (has_collective && o->overlap_chunks > 1) return multiply_in_pieces(o, &mine, below, err);
    return dl_emit(below, &mine, err);
}

/* ---- grids ---- */

static enum dl_status compute_on_grid(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                      struct dl_error *err)
{
    if (ev->kernel.table > 0)
        return has_panels(o) ? dl_summa_look_up(ev, below, err) : dl_axonn_look_up(ev, below, err);
    if (ev->kernel.kind == DL_KERNEL_GEMM && ev->kernel.cut != DL_CUT_BATCH)
        return has_panels(o) ? dl_summa_product(ev, below, err) : dl_axonn_product(ev, below, err);
    struct dl_event mine = *ev;
    cut(&mine.kernel, &dl_stack_setting(below)->parts, ev->gradient);
    return dl_emit(below, &mine, err);
}

/* Products have said all at their kernels, but a look-up ends at its mark. */
static enum dl_status pass_mark_on_grid(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                        struct dl_error *err)
{
    const bool looked_up = ev->mark == DL_WORK_LEAVE && !ev->joined && ev->pass != DL_BACKWARD;
    return looked_up && o->grid == AXONN ? dl_axonn_looked_up(ev, below, err) : DL_OK;
}

/* ---- parameters and memory ---- */

static struct dl_event divided(const struct dl_event *ev, const struct dl_tensor_parts *parts)
{
    struct dl_event mine = *ev;
    mine.parameters_inside /= parts->weights;
    mine.parameters_outside /= parts->others;
    mine.parameters_expert /= parts->weights;
    mine.inside_bytes /= parts->inside;
    mine.outside_bytes /= parts->outside;
    return mine;
}

static enum dl_status divide_memory(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                    struct dl_error *err)
{
    const struct dl_event mine = divided(ev, &dl_stack_setting(below)->parts);
    if (dl_emit(below, &mine, err) || o->grid != AXONN) return err->status;
    return dl_axonn_memory(ev, below, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const struct dl_tensor_parts *const parts = &dl_stack_setting(below)->parts;
    if (o->ways == 1) return dl_emit(below, ev, err);
    if (ev->kind == DL_EV_ALLOC || ev->kind == DL_EV_FREE) return divide_memory(o, ev, below, err);
    if (ev->kind != DL_EV_COMPUTE && let_go(&(struct dl_event){.kind = ev->kind}, below, err)) return err->status;
    if (ev->kind == DL_EV_MARK && (ev->mark == DL_WORK_ENTER || ev->mark == DL_WORK_LEAVE))
        return o->grid == LINE ? communicate(o, ev, below, err) : pass_mark_on_grid(o, ev, below, err);
    if (ev->kind == DL_EV_COMPUTE)
        return o->grid == LINE ? compute(o, ev, below, err) : compute_on_grid(o, ev, below, err);
    if (o->grid == AXONN && (ev->kind == DL_EV_LAYER || ev->kind == DL_EV_LAYER_DONE) && dl_axonn_layer(ev, below, err))
        return err->status;
    const struct dl_event mine = divided(ev, parts);
    return dl_emit(below, &mine, err);
}

static const struct dl_relief relief = {.rank = 4, .n_steps = 3, .axis = DL_AXIS_TENSOR};

const struct dl_strategy dl_strategy_tensor = {
    .name = "tensor",
    .doc = "the matrices of layers divided over `ways` ranks, in one, two or three dimensions",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .state_size = sizeof(struct state),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .relief = &relief,
};
