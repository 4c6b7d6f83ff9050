/* graphs.c - launches that are recorded once and replayed (CUDA graphs): the host does nothing for each of them.
 *
 * What is recorded must not depend on data. How many tokens an expert gets does, so that the work of experts is left
 * out, unless the software never has to know: then the whole step is one graph. */
#include "strategies/strategies.h"
#include "workloads/workloads.h"

struct options {
    int64_t scope; /* enum scope */
};
static const struct options defaults = {0};
enum scope { outside_experts, step, passes };
static const char *const scopes[] = {"outside_experts", "step", "passes", NULL};
static const struct dl_field fields[] = {
    {"scope", DL_CHOICE, offsetof(struct options, scope), 0, 0, false, scopes,
     "what is replayed: one graph for each layer without the work of experts, the whole step, or forward and backward "
     "without the batch before them and the optimizer after them"},
};

/* The graph of a layer ends with its gradients, which are added to others outside of it. */
static bool is_of_autograd(const struct dl_event *ev) { return ev->n_tensors > 0; }

/* Where layers are replayed, what the step does after them is launched. */
static bool is_in_layer_graph(const struct dl_event *ev, const struct dl_setting *s)
{
    const bool of_layer = ev->pass == DL_FORWARD || ev->pass == DL_BACKWARD || ev->pass == DL_RECOMPUTE;
    switch (ev->kind) {
    case DL_EV_LAYER: return true;
    case DL_EV_COMPUTE: return of_layer && !dl_kernel_is_of_experts(&ev->kernel) && !is_of_autograd(ev);
    case DL_EV_COLLECTIVE: return of_layer && ev->members.digits != dl_along_experts(s);
    default: return false;
    }
}

static bool is_memory(const struct dl_event *ev) { return ev->kind == DL_EV_ALLOC || ev->kind == DL_EV_FREE; }

/* The graph of a step has those of its layers in it. */
static bool is_in_step_graph(const struct dl_event *ev) { return ev->kind != DL_EV_LAYER && !is_memory(ev); }

/* A loss that is scaled keeps the optimizer out: the host has to know whether a gradient overflowed. */
static bool is_around_passes(const struct dl_event *ev)
{
    return ev->kind == DL_EV_BATCH || ev->kind == DL_EV_UPDATE || ev->kind == DL_EV_HOST_UPDATE ||
           ev->pass == DL_OPTIMIZER;
}

static bool is_in_graph(enum scope scope, const struct dl_event *ev, const struct dl_setting *s)
{
    switch (scope) {
    case outside_experts: return is_in_layer_graph(ev, s);
    case passes: return is_in_step_graph(ev) && !is_around_passes(ev);
    case step: break;
    }
    return is_in_step_graph(ev);
}

static bool has_shared_experts(const struct dl_layer *layer)
{
    for (const struct dl_work *at = layer->forward; at < layer->forward + layer->n_forward; at++)
        if (at->kernel.module == DL_MODULE_SHARED_EXPERTS) return true;
    return false;
}

/* A graph takes what it is given from where it was when the graph was recorded, and it is copied there: the input, and
 * backward the gradient of each result (Transformer Engine, pytorch/graph.py). Graphs that end where tokens travel have
 * three: the tokens, the residual, and what shared experts make (Megatron-Core, transformer/transformer_layer.py). */
static double copied_into(const struct dl_event *ev)
{
    const struct dl_layer *const layer = ev->layer;
    const double input = layer->saved.input_bytes / DL_ACTIVATION_BYTES, tokens = dl_layer_tokens(layer);
    if (ev->pass != DL_BACKWARD || tokens == 0) return input;
    return input + tokens + (has_shared_experts(layer) ? input : 0);
}

static enum dl_status copy_inputs(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const double read_and_written = 2, ranks = dl_stack_setting(below)->parts.outside;
    struct dl_event copy = {.kind = DL_EV_COMPUTE, .pass = ev->pass, .cause = DL_CAUSE_COMPUTE, .layer = ev->layer};
    copy.kernel = (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                                     .name = "copy_inputs",
                                     .operation = "copy",
                                     .pass = ev->pass == DL_BACKWARD ? DL_PASS_INPUT_GRADIENT : DL_PASS_FORWARD,
                                     .elements = read_and_written * copied_into(ev) / ranks};
    return dl_emit(below, &copy, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (!is_in_graph((enum scope)o->scope, ev, dl_stack_setting(below))) return dl_emit(below, ev, err);
    struct dl_event replayed = *ev;
    replayed.is_replayed = true;
    const bool is_graph = ev->kind == DL_EV_LAYER && ev->layer->is_block; /* of a layer */
    if (is_graph && copy_inputs(ev, below, err)) return err->status;
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
