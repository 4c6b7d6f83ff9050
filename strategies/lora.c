/* lora.c - adapters of low rank are trained, and the model is frozen (LoRA).
 *
 * The workload writes adapters down (workloads/adapters.c): frozen layers have no gradients of weights, no optimizer
 * states and nothing to sum over replicas. Tensor parallelism divides both matrices of an adapter (operators.c). */
#include <math.h>
#include <stdio.h>

#include "strategies/name_sets.h"
#include "strategies/strategies.h"

struct options {
    int64_t rank;
    struct dl_json targets;
    bool dropout, alltoall, narrow_weights;
};
static const struct options defaults = {.rank = 0};
static const struct dl_field fields[] = {
    {"rank", DL_INT, offsetof(struct options, rank), 1, 65536, false, NULL, "columns of A, and rows of B"},
    {"targets", DL_LIST, offsetof(struct options, targets), 0, 0, false, NULL,
     "linear layers of blocks that have an adapter: qkv, projection, fc1, fc2"},
    {"dropout", DL_BOOL, offsetof(struct options, dropout), 0, 0, true, NULL,
     "of what an adapter is given; false if absent"},
    {"alltoall", DL_BOOL, offsetof(struct options, alltoall), 0, 0, true, NULL,
     "with sequence parallelism, what an adapter on projection or fc2 makes goes from columns to tokens by an "
     "all-to-all (a2a_experimental of NeMo), not by an all-gather; false if absent"},
    {"narrow_weights", DL_BOOL, offsetof(struct options, narrow_weights), 0, 0, true, NULL,
     "frozen weights of blocks are held as narrow as GEMMs take them (fp8_params of NeMo); false if absent"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    uint32_t targets;
    (void)entry;
    if (dl_name_set_read(o->targets, dl_adapter_targets, DL_N_TARGETS - 1, &targets, err)) return err->status;
    if (!targets)
        return dl_fail(err, DL_RANGE, o->targets.where, "must name at least one of qkv, projection, fc1, fc2");
    setting->adapters = (struct dl_adapters){.rank = (double)o->rank, .targets = targets << 1, .dropout = o->dropout};
    setting->adapters_alltoall = o->alltoall;
    setting->narrow_weights = o->narrow_weights;
    return DL_OK;
}

/* Of the matrices with adapters. */
static double smallest_side(const struct dl_model *model)
{
    double least = INFINITY;
    for (size_t i = 0; i < model->n_layers; i++)
        for (size_t j = 0; j < model->layers[i].n_forward; j++) {
            const struct dl_kernel *const k = &model->layers[i].forward[j].kernel;
            const bool makes_low_rank = k->adapter == DL_ADAPTER_IN_OF_COLUMNS || k->adapter == DL_ADAPTER_IN_OF_ROWS;
            if (k->adapter) least = fmin(least, makes_low_rank ? k->k : k->n);
        }
    return least;
}

static enum dl_status check_tensor(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    const uint32_t ways = s->ways[DL_AXIS_TENSOR];
    if (ways > 1 && !s->is_line)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "adapters are divided over tensor ranks in a line only; must be beside grid 1d");
    if (o->rank % ways)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "rank"),
                       "must be a multiple of the tensor ways, %u, which divide it; got %lld", ways,
                       (long long)o->rank);
    if (o->alltoall && dl_layout_parts(&s->layouts.outside, DL_BY_TOKEN, &s->ranks) == 1)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "alltoall"),
                       "needs sequence parallelism, which divides tokens; leave it out");
    if (o->alltoall && !(s->adapters.targets & (1u << DL_TARGET_PROJECTION | 1u << DL_TARGET_FC2)))
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "alltoall"),
                       "is for adapters on projection or fc2; name one in targets, or leave it out");
    return DL_OK;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    const enum dl_precision precision = what->setting->precision;
    if (what->model->lacks_adapters)
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "%s can have no adapters: %s", what->model->name,
                       what->model->lacks_adapters);
    if (what->setting->streams_weights)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "the devices stream weights and send all gradients out; leave lora out");
    if (o->narrow_weights && dl_precision_operand_bytes(precision) == dl_precision_bytes(precision))
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "narrow_weights"),
                       "GEMMs take operands as wide as activations in %s; leave it out or set a narrower precision",
                       dl_precision_names[precision]);
    if (o->narrow_weights && what->setting->zero_stage == 3)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "narrow_weights"),
                       "zero's stage 3 gathers weights as wide as activations; leave it out or lower the stage");
    const double side = smallest_side(what->model);
    if ((double)o->rank > side)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "rank"),
                       "must be at most the smallest side of the matrices with adapters, %g; got %lld", side,
                       (long long)o->rank);
    return check_tensor(o, what, err);
}

static void tell(const void *options, void (*say)(void *user, const char *words), void *user)
{
    const struct options *const o = options;
    char words[80];
    snprintf(words, sizeof words, "adapters of rank %lld on frozen weights", (long long)o->rank);
    say(user, words);
}

const struct dl_strategy dl_strategy_lora = {
    .name = "lora",
    .doc = "adapters of `rank` on linear layers are trained, and all other weights are frozen",
    .builds_model = true,
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .tell = tell,
};
