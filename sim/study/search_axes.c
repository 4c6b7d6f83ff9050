#include "sim/study/search_axes.h"

#include <string.h>

/* ---- orders, placements, offload ---- */

enum { n_ordered = DL_N_AXES, n_orders = 24 /* of four axes */ };

/* Axes, innermost first; the first order is that of strategy files that say none. */
static void list_order(int64_t value, enum dl_axis order[DL_N_AXES])
{
    enum dl_axis left[n_ordered];
    int64_t n_after = n_orders;
    for (size_t i = 0; i < n_ordered; i++) left[i] = (enum dl_axis)i;
    for (size_t i = 0; i < n_ordered; i++) {
        n_after /= (int64_t)(n_ordered - i);
        const size_t which = (size_t)(value / n_after);
        value %= n_after;
        order[i] = left[which];
        for (size_t k = which; k + 1 < n_ordered - i; k++) left[k] = left[k + 1];
    }
}

const char *const dl_space_placements[] = {"even", "packed", "spread", NULL};
enum { placed_packed = 1, n_placements = DL_COUNT(dl_space_placements) - 1 };

const char *const dl_space_offloads[] = {"optimizer", "parameters", "activations", NULL};
enum { all_offloaded = 7 };

/* ---- values ---- */

static void add_divisors(struct dl_space *s, enum dl_space_axis axis, uint64_t whole, uint64_t most)
{
    for (uint64_t i = 1; i <= whole && i <= most; i++)
        if (whole % i == 0) dl_space_add(s, axis, (int64_t)i);
}

enum { most_ways = 65536, most_chunks = 64, most_microbatch = 65536 }; /* as strategies take them */

static void of_devices(struct dl_space *s, enum dl_space_axis axis)
{
    add_divisors(s, axis, s->request.devices, most_ways);
}

static void of_tokens(struct dl_space *s, enum dl_space_axis axis)
{
    if (s->tokens)
        of_devices(s, axis);
    else
        dl_space_add(s, axis, 1);
}

static void of_experts(struct dl_space *s, enum dl_space_axis axis)
{
    const double experts = s->request.model->routing.experts;
    add_divisors(s, axis, experts > 0 ? (uint64_t)experts : 1, most_ways);
}

static void of_batch(struct dl_space *s, enum dl_space_axis axis)
{
    add_divisors(s, axis, s->request.global_batch, most_microbatch);
}

static void of_schedules(struct dl_space *s, enum dl_space_axis axis)
{
    for (size_t i = 0; i < dl_schedule_count(); i++) dl_space_add(s, axis, (int64_t)i);
}

static void of_blocks(struct dl_space *s, enum dl_space_axis axis)
{
    add_divisors(s, axis, s->blocks ? s->blocks : 1, most_chunks);
}

static void up_to(struct dl_space *s, enum dl_space_axis axis, int64_t last)
{
    for (int64_t i = 0; i <= last; i++) dl_space_add(s, axis, i);
}

static void no_or_yes(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, 1); }

static void of_orders(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, n_orders - 1); }

static void of_placements(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, n_placements - 1); }

static void of_offloads(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, all_offloaded); }

static void of_stages(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, 3); }

static void of_recomputes(struct dl_space *s, enum dl_space_axis axis)
{
    dl_space_add(s, axis, DL_RECOMPUTE_NOTHING);
    if (s->heads) dl_space_add(s, axis, DL_RECOMPUTE_SELECTIVE);
    dl_space_add(s, axis, DL_RECOMPUTE_BLOCKS);
}

/* ---- rules: each may use the values of its axis and of those before it ---- */

static const char same[] = "the same as another point";

static uint64_t ways(const struct dl_space_point *p, enum dl_space_axis axis) { return (uint64_t)p->of[axis]; }

static bool divides(uint64_t part, uint64_t whole) { return whole % part == 0; } /* nothing is divided by all */

static uint64_t in_step(const struct dl_space_point *p) { return ways(p, DL_SPACE_TENSOR) * ways(p, DL_SPACE_CONTEXT); }

static bool has(const struct dl_space *s, enum dl_feature feature)
{
    return dl_has_feature(&s->request.software->lacks, feature);
}

static const char *refuse_tensor(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t tensor = ways(p, DL_SPACE_TENSOR);
    if (!divides(tensor, s->request.devices)) return "ways do not divide the devices";
    if (tensor > 1 && !has(s, DL_FEATURE_TENSOR)) return "the software has no tensor parallelism";
    if (!divides(tensor, s->heads)) return "tensor ways do not divide the heads";
    if (!divides(tensor, s->state_groups)) return "tensor ways do not divide the groups of the state space";
    return divides(tensor, s->key_heads) || dl_space_shares_keys(s, tensor)
               ? NULL
               : "tensor ways share the heads of keys and values unevenly";
}

/* In halves, because causal masks are shared out evenly: see dl_space_document. */
static const char *refuse_context(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t context = ways(p, DL_SPACE_CONTEXT);
    if (!divides(in_step(p), s->request.devices)) return "ways do not divide the devices";
    if (context > 1 && !has(s, DL_FEATURE_CONTEXT)) return "the software has no context parallelism";
    if (context > 1 && s->state_groups) return "context ways do not divide layers of a state space";
    return context == 1 || divides(2 * context, s->tokens) ? NULL : "context ways do not divide the sequence";
}

static const char *refuse_pipeline(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t stages = ways(p, DL_SPACE_PIPELINE);
    if (!divides(in_step(p) * stages, s->request.devices)) return "ways do not divide the devices";
    if (stages > 1 && !has(s, DL_FEATURE_PIPELINE)) return "the software has no pipeline";
    return stages == 1 || stages <= s->blocks ? NULL : "more pipeline stages than blocks";
}

static const char *refuse_expert(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t experts = ways(p, DL_SPACE_EXPERT);
    if (experts > 1 && !has(s, DL_FEATURE_EXPERT)) return "the software has no expert parallelism";
    return divides(experts, p->data) ? NULL : "expert ways do not divide the data ways";
}

static const char *refuse_microbatch(const struct dl_space *s, const struct dl_space_point *p)
{
    return divides(p->data * ways(p, DL_SPACE_MICROBATCH), s->request.global_batch)
               ? NULL
               : "data ways x micro-batch do not divide the batch";
}

static const struct dl_schedule_kind *schedule_of(const struct dl_space_point *p)
{
    return dl_schedule_get((size_t)p->of[DL_SPACE_SCHEDULE]);
}

/* Without a pipeline one schedule stands for all. */
static const char *refuse_schedule(const struct dl_space *s, const struct dl_space_point *p)
{
    if (ways(p, DL_SPACE_PIPELINE) == 1) return schedule_of(p) == dl_schedule_usual() ? NULL : same;
    return dl_has_schedule(&s->request.software->lacks, ways(p, DL_SPACE_SCHEDULE))
               ? NULL
               : "the software has no such schedule";
}

/* Unequal chunks are left out, unequal stages are not: many models have no other. */
static const char *refuse_chunks(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t chunks = ways(p, DL_SPACE_CHUNKS), stages = ways(p, DL_SPACE_PIPELINE);
    const struct dl_schedule_request request = {
        .stages = (uint32_t)stages,
        .micros = (uint32_t)(s->request.global_batch / p->data / ways(p, DL_SPACE_MICROBATCH)),
        .chunks = (uint32_t)chunks};
    struct dl_error err = {0};
    if (stages == 1) return chunks == 1 ? NULL : same;
    if (chunks > 1 && !divides(stages * chunks, s->blocks)) return "stages x chunks do not divide the blocks";
    return dl_schedule_check(schedule_of(p)->name, &request, &err)
               ? "not a number of chunks or micro-batches of its schedule"
               : NULL;
}

static const char *refuse_sequence(const struct dl_space *s, const struct dl_space_point *p)
{
    if (!p->of[DL_SPACE_SEQUENCE]) return NULL;
    if (ways(p, DL_SPACE_TENSOR) == 1) return same;
    return has(s, DL_FEATURE_SEQUENCE) ? NULL : "the software has no sequence parallelism";
}

static const char *refuse_zero(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t stage = ways(p, DL_SPACE_ZERO);
    if (stage > 0 && p->data * ways(p, DL_SPACE_CONTEXT) == 1) return same;
    if (stage > 0 && !has(s, (enum dl_feature)(DL_FEATURE_ZERO_1 + stage - 1)))
        return "the software has no such ZeRO stage";
    if (ways(p, DL_SPACE_PIPELINE) == 1 || stage <= s->request.software->zero_in_pipeline) return NULL;
    return "the software has no such ZeRO stage in a pipeline";
}

static const char *refuse_recompute(const struct dl_space *s, const struct dl_space_point *p)
{
    return p->of[DL_SPACE_RECOMPUTE] != DL_RECOMPUTE_SELECTIVE || has(s, DL_FEATURE_SELECTIVE)
               ? NULL
               : "the software has no selective recomputation";
}

static uint64_t ways_of(const struct dl_space_point *p, enum dl_axis axis)
{
    static const enum dl_space_axis axis_of[DL_N_AXES] = {[DL_AXIS_TENSOR] = DL_SPACE_TENSOR,
                                                          [DL_AXIS_CONTEXT] = DL_SPACE_CONTEXT,
                                                          [DL_AXIS_PIPELINE] = DL_SPACE_PIPELINE};
    return axis == DL_AXIS_DATA ? p->data : ways(p, axis_of[axis]);
}

size_t dl_space_ordered(const struct dl_space_point *p, int64_t order, enum dl_axis axes[DL_N_AXES])
{
    enum dl_axis all[DL_N_AXES];
    size_t n = 0;
    list_order(order, all);
    for (size_t i = 0; i < n_ordered; i++)
        if (ways_of(p, all[i]) > 1) axes[n++] = all[i];
    return n;
}

/* Where an axis of one way comes does not matter. */
static const char *refuse_order(const struct dl_space *s, const struct dl_space_point *p)
{
    enum dl_axis ours[DL_N_AXES], others[DL_N_AXES];
    const size_t n = dl_space_ordered(p, p->of[DL_SPACE_ORDER], ours);
    (void)s;
    for (int64_t before = 0; before < p->of[DL_SPACE_ORDER]; before++) {
        dl_space_ordered(p, before, others);
        if (memcmp(ours, others, n * sizeof *ours) == 0) return same;
    }
    return NULL;
}

/* On whole nodes, ranks are packed and even. */
static const char *refuse_placement(const struct dl_space *s, const struct dl_space_point *p)
{
    return p->of[DL_SPACE_PLACEMENT] == placed_packed && divides(s->request.devices_per_node, s->request.devices)
               ? same
               : NULL;
}

static const char *refuse_offload(const struct dl_space *s, const struct dl_space_point *p)
{
    return !p->of[DL_SPACE_OFFLOAD] || has(s, DL_FEATURE_OFFLOAD) ? NULL : "the software has no offload";
}

/* ---- the axes ---- */

static const char *name_of_schedule(int64_t value)
{
    return value < (int64_t)dl_schedule_count() ? dl_schedule_get((size_t)value)->name : NULL;
}

static const char *name_of_recompute(int64_t value)
{
    return value <= DL_RECOMPUTE_BLOCKS ? dl_recompute_name((enum dl_recompute)value) : NULL;
}

static const char *name_of_truth(int64_t value) { return value == 0 ? "false" : value == 1 ? "true" : NULL; }

const struct dl_space_axis_kind dl_space_axes[DL_N_SPACE_AXES] = {
    [DL_SPACE_TENSOR] = {"stack.tensor.ways", of_devices, refuse_tensor, NULL},
    [DL_SPACE_CONTEXT] = {"stack.context.ways", of_tokens, refuse_context, NULL},
    [DL_SPACE_PIPELINE] = {"stack.pipeline.ways", of_devices, refuse_pipeline, NULL},
    [DL_SPACE_EXPERT] = {"stack.expert.ways", of_experts, refuse_expert, NULL},
    [DL_SPACE_MICROBATCH] = {"microbatch", of_batch, refuse_microbatch, NULL},
    [DL_SPACE_SCHEDULE] = {"stack.pipeline.schedule", of_schedules, refuse_schedule, name_of_schedule},
    [DL_SPACE_CHUNKS] = {"stack.pipeline.chunks", of_blocks, refuse_chunks, NULL},
    [DL_SPACE_SEQUENCE] = {"stack.tensor.sequence", no_or_yes, refuse_sequence, name_of_truth},
    [DL_SPACE_ZERO] = {"stack.zero.stage", of_stages, refuse_zero, NULL},
    [DL_SPACE_RECOMPUTE] = {"recompute", of_recomputes, refuse_recompute, name_of_recompute},
    [DL_SPACE_ORDER] = {"order", of_orders, refuse_order, NULL, true},
    [DL_SPACE_PLACEMENT] = {"placement", of_placements, refuse_placement, NULL, true},
    [DL_SPACE_OFFLOAD] = {"offload", of_offloads, refuse_offload, NULL, true},
};
