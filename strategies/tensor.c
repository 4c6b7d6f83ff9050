/* tensor.c - the matrices of a layer divided over ranks.
 *
 * How is the operator's matter, by the shape of the ranks: 1d as in Megatron-LM, 2d and 2.5d by panels, 3d as in AxoNN
 * (see operators.h). */
#include <math.h>

#include "strategies/operators.h"
#include "strategies/strategies.h"

struct options {
    int64_t ways, grid, x, y, z, overlap_chunks;
    bool sequence, overlap_scatters;
};
#define MOST_WAYS 65536
static const struct options defaults = {.ways = 1, .grid = DL_GRID_LINE, .overlap_chunks = 1, .overlap_scatters = true};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, MOST_WAYS, false, NULL, "ranks that share a layer"},
    {"sequence", DL_BOOL, offsetof(struct options, sequence), 0, 0, true, NULL,
     "of 1d: sequence parallelism, tokens are divided where activations would be replicated; false if absent"},
    {"overlap_chunks", DL_INT, offsetof(struct options, overlap_chunks), 1, 1024, true, NULL,
     "of 1d: parts of a collective, each overlapped with a part of its GEMM; 1 if absent"},
    {"overlap_scatters", DL_BOOL, offsetof(struct options, overlap_scatters), 0, 0, true, NULL,
     "of 1d: chunks of sums and reduce-scatters, too, overlap, not of all-gathers alone; true if absent"},
    {"grid", DL_CHOICE, offsetof(struct options, grid), 0, 0, true, dl_grids,
     "1d as in Megatron-LM, 2d SUMMA, 2.5d with copies, 3d as in AxoNN; 1d if absent"},
    {"x", DL_INT, offsetof(struct options, x), 1, MOST_WAYS, true, NULL,
     "columns of the grid; what y and z leave if absent"},
    {"y", DL_INT, offsetof(struct options, y), 1, MOST_WAYS, true, NULL,
     "rows of the grid; as many as columns if absent"},
    {"z", DL_INT, offsetof(struct options, z), 1, MOST_WAYS, true, NULL, "depth of the grid; 1 if absent"},
};

static const struct dl_operator *operator_of(const struct options *o)
{
    return dl_operator_of(DL_OF_PRODUCTS, o->grid);
}

static struct dl_operator_options for_operator(const struct options *o)
{
    return (struct dl_operator_options){
        .sequence = o->sequence, .chunks = (double)o->overlap_chunks, .scatters = o->overlap_scatters};
}

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

static const struct dl_brought axes[] = {{.axis = DL_AXIS_TENSOR, .ways = offsetof(struct options, ways)}};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    if (o->grid == DL_GRID_LINE)
        setting->grid[0] = (uint32_t)o->ways;
    else
        shape_grid(o, setting->grid);
    const struct dl_operator_options told = for_operator(o);
    setting->is_line = o->grid == DL_GRID_LINE;
    setting->layouts = operator_of(o)->layouts(&told);
    return DL_OK;
}

/* ---- what cannot be ---- */

static enum dl_status refuse_key(const struct options *o, const struct dl_check *what, const char *key,
                                 const char *needs, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, key), "is for grid %s, not %s; leave it out", needs,
                   dl_grids[o->grid]);
}

static enum dl_status check_keys(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    if (o->grid != DL_GRID_LINE && o->sequence) return refuse_key(o, what, "sequence", "1d", err);
    if (o->grid != DL_GRID_LINE && o->overlap_chunks > 1) return refuse_key(o, what, "overlap_chunks", "1d", err);
    if (o->overlap_chunks == 1 && !o->overlap_scatters)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "overlap_scatters"),
                       "is for overlap_chunks of 2 and more; leave it out");
    if (o->grid == DL_GRID_LINE && !o->sequence && !o->overlap_scatters)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "overlap_scatters"),
                       "needs sequence: without it there are sums alone, and none would overlap; leave it out");
    if (o->grid == DL_GRID_LINE && o->x) return refuse_key(o, what, "x", "2d, 2.5d and 3d", err);
    if (o->grid == DL_GRID_LINE && o->y) return refuse_key(o, what, "y", "2d, 2.5d and 3d", err);
    if (o->grid < DL_GRID_SUMMA_WITH_DEPTH && o->z) return refuse_key(o, what, "z", "2.5d and 3d", err);
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
    return DL_OK;
}

static bool is_cut(const struct dl_kernel *k)
{
    return k->kind != DL_KERNEL_MEMORY && dl_kernel_all_dimensions(k) & DL_BY_INNER;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (o->ways > 1 && !dl_model_find(what->model, is_cut))
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "%s has nothing that tensor ranks could divide; data would divide its samples",
                       what->model->name);
    if (check_keys(o, what, err)) return err->status;
    if (o->grid != DL_GRID_LINE && check_grid(o, what, err)) return err->status;
    const struct dl_operator_options told = for_operator(o);
    return operator_of(o)->check(&told, what, err);
}

/* ---- events ---- */

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

static enum dl_status divide_memory(const struct dl_operator *op, const struct dl_event *ev, struct dl_stack *below,
                                    struct dl_error *err)
{
    const struct dl_event mine = divided(ev, &dl_stack_setting(below)->parts);
    if (dl_emit(below, &mine, err) || !op->memory) return err->status;
    return op->memory(ev, below, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const struct dl_operator *const op = operator_of(o);
    const struct dl_operator_options told = for_operator(o);
    if (o->ways == 1) return dl_emit(below, ev, err);
    if (ev->kind == DL_EV_ALLOC || ev->kind == DL_EV_FREE) return divide_memory(op, ev, below, err);
    if (ev->kind == DL_EV_COMPUTE) return op->kernel(&told, ev, below, err);
    if (op->flush && op->flush(below, err)) return err->status;
    if (ev->kind == DL_EV_HAND_OVER && (ev->over == DL_INTO_PAIR || ev->over == DL_OUT_OF_PAIR))
        return dl_operator_hand_over(op, &told, ev, below, err);
    if (ev->kind == DL_EV_HAND_OVER && ev->over == DL_FOR_KEY_HEADS) return dl_operator_share_keys(ev, below, err);
    if (ev->kind == DL_EV_HAND_OVER && ev->over == DL_ROW_SUMS) return dl_operator_sum_rows(ev, below, err);
    if (ev->kind == DL_EV_HAND_OVER && (ev->over == DL_GIVEN_ADAPTER || ev->over == DL_MADE_BY_ADAPTER))
        return dl_operator_adapt(ev, below, err);
    const bool is_border = ev->kind == DL_EV_LAYER || ev->kind == DL_EV_LAYER_DONE;
    if (is_border && op->layer && op->layer(ev, below, err)) return err->status;
    const struct dl_event mine = divided(ev, &dl_stack_setting(below)->parts);
    return dl_emit(below, &mine, err);
}

static uint32_t place(const void *options, const void *state, const struct dl_event *layer, const struct dl_setting *s)
{
    (void)options, (void)layer, (void)s;
    return ((const struct dl_operator_state *)state)->is_held ? DL_OWN_PLACE : 0;
}

static const struct dl_relief relief = {.rank = 4, .n_steps = 3, .axis = DL_AXIS_TENSOR};

const struct dl_strategy dl_strategy_tensor = {
    .name = "tensor",
    .doc = "the matrices of layers divided over `ways` ranks, in one, two or three dimensions",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .state_size = sizeof(struct dl_operator_state),
    .defaults = &defaults,
    .axes = axes,
    .n_axes = DL_COUNT(axes),
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .place = place,
    .relief = &relief,
};
