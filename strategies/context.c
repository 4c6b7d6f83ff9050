/* context.c - ranks that share a sequence: each has a part of its tokens, and attention brings them together.
 *
 * How is the operator's matter: ring, allgather or alltoall (see operators.h). */
#include "strategies/attention.h"
#include "strategies/strategies.h"

struct options {
    int64_t ways, kind; /* kind: enum dl_attending */
    bool zigzag;
};
static const struct options defaults = {.ways = 1, .kind = DL_ATTENDING_RING};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "ranks that share a sequence"},
    {"kind", DL_CHOICE, offsetof(struct options, kind), 0, 0, true, dl_attendings,
     "how attention sees all tokens; ring if absent"},
    {"zigzag", DL_BOOL, offsetof(struct options, zigzag), 0, 0, true, NULL,
     "each rank has a part from the front of the sequence and one from its end; false if absent"},
};

static const struct dl_operator *operator_of(const struct options *o)
{
    return dl_operator_of(DL_OF_ATTENTION, o->kind);
}

static struct dl_operator_options for_operator(const struct options *o)
{
    return (struct dl_operator_options){.zigzag = o->zigzag};
}

static const struct dl_brought axes[] = {{.axis = DL_AXIS_CONTEXT, .ways = offsetof(struct options, ways)}};

/* ---- what cannot be ---- */

/* A query meets fewer keys than there are tokens. */
static bool is_in_windows(const struct dl_kernel *k) { return k->kind == DL_KERNEL_ATTENTION && k->n < k->m; }

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    const struct dl_kernel *const attention = dl_check_find_attention(what);
    const struct dl_software *const software = what->setting->software; /* NULL where a file is imported */
    const bool lacks_groups = software && software->code.unfused_groups && dl_is_wide(what->setting);
    if (o->ways == 1) return DL_OK;
    for (size_t i = 0; i < what->model->n_layers; i++)
        if (what->model->layers[i].state_groups > 0)
            return dl_fail(err, DL_IMPOSSIBLE, what->where,
                           "%s has layers of a state space, of which dlsim cannot divide the sequence",
                           what->model->name);
    if (what->model->has_encoder)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "%s has an encoder and a decoder, of whose sequences dlsim divides neither", what->model->name);
    if (!attention)
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "%s has no attention, so no sequence to share",
                       what->model->name);
    if (attention->kind != DL_KERNEL_ATTENTION)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "needs fused attention, which software %s does not have%s; %s would do",
                       software ? software->name : "none", lacks_groups ? " in this precision for grouped queries" : "",
                       lacks_groups ? "bf16" : "one with \"attention\": \"flash\"");
    if (o->ways > 1 && dl_model_find(what->model, is_in_windows))
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "%s attends in windows, of which dlsim cannot divide the sequence", what->model->name);
    const struct dl_operator_options told = for_operator(o);
    return operator_of(o)->check(&told, what, err);
}

/* ---- events ---- */

/* All but attention works on fewer tokens. */
static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (o->ways == 1) return dl_emit(below, ev, err);
    const struct dl_operator_options told = for_operator(o);
    if (ev->kind == DL_EV_COMPUTE && ev->kernel.kind == DL_KERNEL_ATTENTION)
        return dl_attend(operator_of(o), &told, ev, below, err);
    struct dl_event mine = *ev;
    if (ev->kind == DL_EV_COMPUTE) dl_kernel_cut(&mine.kernel, NULL, &dl_by_tokens, &dl_stack_setting(below)->ranks);
    mine.elements /= (double)o->ways;
    mine.enters /= (double)o->ways;
    mine.leaves /= (double)o->ways;
    mine.inside_bytes /= (double)o->ways;
    mine.outside_bytes /= (double)o->ways;
    return dl_emit(below, &mine, err);
}

const struct dl_strategy dl_strategy_context = {
    .name = "context",
    .doc = "sequences divided over `ways` ranks, which exchange keys and values",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .axes = axes,
    .n_axes = DL_COUNT(axes),
    .check = check,
    .rewrite = rewrite,
    .place = dl_any_place,
};
