/* graphs.c - launches that are recorded once and replayed (CUDA graphs): the host does nothing for each of them.
 *
 * What is recorded must not depend on data. How many tokens an expert gets does, so that the work of experts is left
 * out, unless the software never has to know: then the whole step is one graph. */
#include "strategies/strategies.h"

struct options {
    int64_t scope; /* enum scope */
};
static const struct options defaults = {0};
enum scope { outside_experts, step };
static const char *const scopes[] = {"outside_experts", "step", NULL};
static const struct dl_field fields[] = {
    {"scope", DL_CHOICE, offsetof(struct options, scope), 0, 0, false, scopes,
     "what is replayed: one graph for each layer without the work of experts, or the whole step"},
};

/* Where layers are replayed, what the step does after them is launched. */
static bool is_in_layer_graph(const struct dl_event *ev, const struct dl_setting *s)
{
    const bool of_layer = ev->pass == DL_FORWARD || ev->pass == DL_BACKWARD || ev->pass == DL_RECOMPUTE;
    switch (ev->kind) {
    case DL_EV_LAYER: return true;
    case DL_EV_COMPUTE: return of_layer && !dl_kernel_is_of_experts(&ev->kernel);
    case DL_EV_COLLECTIVE: return of_layer && ev->members.digits != dl_along_experts(s);
    default: return false;
    }
}

static bool is_memory(const struct dl_event *ev) { return ev->kind == DL_EV_ALLOC || ev->kind == DL_EV_FREE; }

/* The graph of a step has those of its layers in it. */
static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const bool is_replayed =
        o->scope == step ? ev->kind != DL_EV_LAYER && !is_memory(ev) : is_in_layer_graph(ev, dl_stack_setting(below));
    if (!is_replayed) return dl_emit(below, ev, err);
    struct dl_event replayed = *ev;
    replayed.is_replayed = true;
    return dl_emit(below, &replayed, err);
}

const struct dl_strategy dl_strategy_graphs = {
    .name = "graphs",
    .doc = "kernel launches recorded once and replayed",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .replays_launches = true,
    .rewrite = rewrite,
    .place = dl_any_place,
};
