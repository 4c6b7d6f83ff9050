/* recompute.c - keep less of the forward, compute it again before the backward.
 *
 * full: each block keeps its input and repeats its forward, or a group of blocks one input (Megatron's "uniform"), or
 * only some blocks do so (its "block"), or each keeps some of its results, too (recompute_kept.c). selective: only
 * parts of blocks are repeated, by default the attention between the projections, which is where most of the memory is
 * and little of the work (Korthikanti et al., MLSys 2023); others are those of Megatron-Core's recompute_modules. */
#include "strategies/recompute.h"

#include <math.h>
#include <stdio.h>

#include "strategies/layer_memory.h"
#include "strategies/saved.h"
#include "strategies/strategies.h"

static const char *const modes[] = {"none", "selective", "full", NULL}; /* in the order of enum dl_recompute */

static const char *const kept_names[] = {"input", "alternate_gemms", NULL}; /* as enum dl_recompute_keeps */

enum { most_blocks = 1000000 };
static const struct dl_recomputation defaults = {.mode = DL_RECOMPUTE_NOTHING, .every = 1};
static const struct dl_field fields[] = {
    {"mode", DL_CHOICE, offsetof(struct dl_recomputation, mode), 0, 0, false, modes, "what is recomputed"},
    {"layers", DL_INT, offsetof(struct dl_recomputation, layers), 1, most_blocks, true, NULL,
     "with full: recompute only this many first blocks of each part of the model; all if absent"},
    {"every", DL_INT, offsetof(struct dl_recomputation, every), 1, most_blocks, true, NULL,
     "with full: this many blocks keep one input together; 1 if absent"},
    {"keeps", DL_CHOICE, offsetof(struct dl_recomputation, keeps), 0, 0, true, kept_names,
     "with full: what a block keeps: its input, or also the results of attention, of every other GEMM and of sums over "
     "tensor ranks (torchtitan's selective checkpoints by op); input if absent"},
    {"kept_results", DL_LIST, offsetof(struct dl_recomputation, results), 0, 0, true, NULL,
     "with full: what products make and blocks keep beside that, as policies of jax.checkpoint name it: qkv, context "
     "(of "
     "attention), projection, fc1 (of blocks without experts); none if absent"},
    {"kept_before_bias", DL_BOOL, offsetof(struct dl_recomputation, before_bias), 0, 0, true, NULL,
     "with kept_results: as products make them, before biases are added (policies of jax.checkpoint that keep dots); "
     "false if absent"},
    {"modules", DL_LIST, offsetof(struct dl_recomputation, modules), 0, 0, true, NULL,
     "with selective: which parts of blocks, as Megatron-Core names them: core_attn, layernorm (norms that are no part "
     "of the product after them), mla_up_proj, mlp (of blocks without experts), moe_act, shared_experts, moe; "
     "core_attn "
     "if absent"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct dl_recomputation *const o = options;
    static const char *const of_full[] = {"layers", "every", "keeps", "kept_results"};
    for (size_t i = 0; o->mode != DL_RECOMPUTE_BLOCKS && i < DL_COUNT(of_full); i++)
        if (json_object_get(entry.value, of_full[i]))
            return dl_fail(err, DL_KEY, entry.where, "'%s' means nothing unless 'mode' is \"full\"", of_full[i]);
    if ((o->keeps != DL_KEEPS_INPUT || o->results.value) && o->every > 1)
        return dl_fail(err, DL_KEY, entry.where, "'%s' is of every block: 'every' must be 1, got %lld",
                       o->results.value ? "kept_results" : "keeps", (long long)o->every);
    if (o->before_bias && !o->results.value)
        return dl_fail(err, DL_KEY, entry.where, "'kept_before_bias' means nothing without 'kept_results'");
    if (o->mode != DL_RECOMPUTE_SELECTIVE && o->modules.value)
        return dl_fail(err, DL_KEY, entry.where, "'modules' means nothing unless 'mode' is \"selective\"");
    setting->recompute = (enum dl_recompute)o->mode;
    setting->keeps_alternate_gemms = o->keeps == DL_KEEPS_RESULTS;
    setting->kept_before_bias = o->before_bias;
    if (dl_recompute_results_read(o->results, &setting->kept_results, err)) return err->status;
    return dl_recompute_modules_read(o->modules, &setting->recompute_modules, err);
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_recomputation *const o = options;
    return o->mode == DL_RECOMPUTE_SELECTIVE ? dl_recompute_modules_check(o, what, err)
                                             : dl_recompute_results_check(what, err);
}

const char *dl_recompute_name(enum dl_recompute recompute) { return modes[recompute]; }

const char *dl_recompute_keeps_name(const struct dl_setting *s)
{
    return kept_names[s->keeps_alternate_gemms ? DL_KEEPS_RESULTS : DL_KEEPS_INPUT];
}

/* More than any part has would mean nothing. */
static enum dl_status check_blocks(const void *options, const struct dl_check *what, uint32_t n_blocks,
                                   struct dl_error *err)
{
    const struct dl_recomputation *const o = options;
    const bool too_many = o->layers > n_blocks, too_long = o->every > 1 && o->every > n_blocks;
    if (!too_many && !too_long) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, too_many ? "layers" : "every"),
                   "must be at most the blocks of a part of the model, %u, got %lld", n_blocks,
                   (long long)(too_many ? o->layers : o->every));
}

enum dl_recompute dl_recompute_of(const struct dl_recomputation *how, uint32_t block)
{
    if (!how || (how->layers && block >= how->layers)) return DL_RECOMPUTE_NOTHING;
    return (enum dl_recompute)how->mode;
}

size_t dl_recompute_count(const struct dl_setting *s, const struct dl_layer *layer)
{
    return s->software->recomputes_needed ? layer->n_needed : layer->n_forward;
}

/* If not, it is computed again from that of an earlier block of its group. */
static bool keeps_input(const struct dl_recomputation *o, uint32_t block) { return block % o->every == 0; }

/* Blocks of its group before it. */
static uint32_t count_before(const struct dl_event *ev) { return (uint32_t)(ev->block % ev->recomputed->every); }

/* What a product was given is gathered again for those beside it, but not in pieces with it. */
static enum dl_status gather_again(const struct dl_work *product, const struct dl_layer *layer, struct dl_stack *below,
                                   struct dl_error *err)
{
    struct dl_work gather = *product;
    gather.kernel.kind = DL_KERNEL_MEMORY;
    return dl_emit_given(below, &gather, DL_RECOMPUTE, layer, err);
}

/* The first so many kernels of its forward but those whose results are kept. */
static enum dl_status repeat_rest(const struct dl_event *ev, size_t n, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    for (size_t i = 0; i < n; i++) {
        const struct dl_work *const work = &ev->layer->forward[i];
        const bool is_kept = dl_recompute_keeps(ev->recomputed, s, ev->layer, i);
        if (is_kept ? gather_again(work, ev->layer, below, err)
                    : dl_emit_work(below, work, DL_RECOMPUTE, ev->layer, err))
            return err->status;
    }
    return DL_OK;
}

/* The first so many, all or those of modules. */
static enum dl_status repeat(const struct dl_layer *layer, size_t n, bool all, struct dl_stack *below,
                             struct dl_error *err)
{
    const dl_module_set modules = dl_stack_setting(below)->recompute_modules;
    for (size_t i = 0; i < n; i++) {
        const struct dl_work *const work = &layer->forward[i];
        if (!all && !(modules >> work->kernel.module & 1)) continue;
        if (dl_emit_work(below, work, DL_RECOMPUTE, layer, err)) return err->status;
    }
    return DL_OK;
}

/* The blocks of a group before its last one, which is the first to go backward; they need their parameters too. */
static enum dl_status repeat_group(const struct dl_event *last, struct dl_stack *below, struct dl_error *err)
{
    const uint32_t n_before = count_before(last);
    for (const struct dl_layer *layer = last->layer - n_before; layer < last->layer; layer++) {
        const struct dl_event begins = {.kind = DL_EV_LAYER,
                                        .pass = DL_RECOMPUTE,
                                        .layer = layer,
                                        .n_after = (uint32_t)(last->layer - layer) - 1,
                                        .first = layer == last->layer - n_before,
                                        .recomputed = last->recomputed};
        if (dl_emit(below, &begins, err) || repeat(layer, layer->n_forward, true, below, err)) return err->status;
    }
    return DL_OK;
}

static bool ends_group(const struct dl_event *ev)
{
    const uint32_t next = ev->block + 1;
    return next == ev->n_blocks || next == ev->recomputed->layers || keeps_input(ev->recomputed, next);
}

static enum dl_recompute again_of(const struct dl_event *ev)
{
    return ev->layer->is_block ? dl_recompute_of(ev->recomputed, ev->block) : DL_RECOMPUTE_NOTHING;
}

/* ---- memory ---- */

/* What the forward saves all the same. */
static struct dl_event kept(const struct dl_setting *s, const struct dl_event *saved)
{
    struct dl_event input = *saved;
    const bool keeps = saved->tensor != DL_TENSOR_SCORES && keeps_input(saved->recomputed, saved->block);
    const struct dl_saves results =
        keeps ? dl_recompute_kept(saved->recomputed, s, saved->layer) : (struct dl_saves){0};
    input.outside_bytes = keeps ? dl_saves_of(s, saved->layer).input_bytes + results.outside_bytes : 0;
    input.inside_bytes = results.inside_bytes;
    input.bytes = 0;
    return input;
}

/* All but what modules give up. */
static enum dl_status save_rest(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_saves given_up = dl_saves_of_modules(s, ev->layer, s->recompute_modules);
    if (ev->tensor == DL_TENSOR_SCORES) return given_up.scores_bytes > 0 ? DL_OK : dl_emit(below, ev, err);
    const double times = dl_kept_times(s, ev->layer);
    const double scores = ev->tensor == DL_TENSOR_SLICED ? given_up.scores_bytes : 0;
    struct dl_event rest = *ev;
    rest.inside_bytes -= times * (given_up.inside_bytes + scores);
    rest.outside_bytes -= times * given_up.outside_bytes;
    return dl_emit(below, &rest, err);
}

static bool is_saved(enum dl_tensor_kind tensor)
{
    return tensor == DL_TENSOR_SAVED || tensor == DL_TENSOR_SCORES || tensor == DL_TENSOR_SLICED;
}

static enum dl_status save(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const enum dl_recompute again = again_of(ev);
    if (again == DL_RECOMPUTE_SELECTIVE) return save_rest(ev, below, err);
    if (again != DL_RECOMPUTE_BLOCKS) return dl_emit(below, ev, err);
    const struct dl_event input = kept(s, ev);
    return input.outside_bytes > 0 ? dl_emit(below, &input, err) : DL_OK;
}

/* Some that are kept are what others are made of, not what the backward wants itself. */
static void give_up_kept(const struct dl_setting *s, const struct dl_event *at, struct dl_event *again)
{
    const struct dl_saves kept = dl_recompute_kept(at->recomputed, s, at->layer);
    again->inside_bytes = fmax(again->inside_bytes - kept.inside_bytes, 0);
    again->outside_bytes = fmax(again->outside_bytes - kept.outside_bytes, 0);
}

static enum dl_status alloc_again(const struct dl_event *at, bool whole, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_saves again =
        whole ? dl_saves_of(s, at->layer) : dl_saves_of_modules(s, at->layer, s->recompute_modules);
    struct dl_event ev = *at;
    ev.kind = DL_EV_ALLOC;
    ev.tensor = DL_TENSOR_RECOMPUTED;
    ev.inside_bytes = again.scores_bytes + again.inside_bytes;
    ev.outside_bytes = again.outside_bytes;
    if (whole && keeps_input(at->recomputed, at->block)) ev.outside_bytes -= again.input_bytes;
    if (whole) give_up_kept(s, at, &ev);
    ev.bytes = again.whole_bytes;
    return dl_emit(below, &ev, err);
}

/* Those of a group are all there before the last of its blocks goes backward. */
static enum dl_status alloc_group(const struct dl_event *last, bool whole, struct dl_stack *below, struct dl_error *err)
{
    const uint32_t n_before = whole ? count_before(last) : 0;
    for (uint32_t i = 0; i <= n_before; i++) {
        struct dl_event at = *last;
        at.layer -= i;
        at.block -= i;
        if (alloc_again(&at, whole, below, err)) return err->status;
    }
    return DL_OK;
}

static enum dl_status rewrite_layer(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const enum dl_recompute again = again_of(ev);
    const bool whole = again == DL_RECOMPUTE_BLOCKS;
    if (ev->pass != DL_BACKWARD || again == DL_RECOMPUTE_NOTHING) return dl_emit(below, ev, err);
    if (ev->kind == DL_EV_LAYER_DONE)
        return dl_emit_free(below, DL_TENSOR_RECOMPUTED, ev, err) ? err->status : dl_emit(below, ev, err);
    if (whole && !ends_group(ev)) return dl_emit(below, ev, err);
    if (alloc_group(ev, whole, below, err) || (whole && repeat_group(ev, below, err)) || dl_emit(below, ev, err))
        return err->status;
    const size_t n = whole ? dl_recompute_count(dl_stack_setting(below), ev->layer) : ev->layer->n_forward;
    return whole ? repeat_rest(ev, n, below, err) : repeat(ev->layer, n, false, below, err);
}

/* Whether the block keeps what it makes. */
static bool is_kept(const struct dl_event *product, const struct dl_setting *s)
{
    switch (again_of(product)) {
    case DL_RECOMPUTE_NOTHING: return product->kernel.result == DL_RESULT_FC1;
    case DL_RECOMPUTE_SELECTIVE: return !(s->recompute_modules >> product->kernel.module & 1);
    case DL_RECOMPUTE_BLOCKS: break;
    }
    return s->kept_results >> product->kernel.result & 1;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const bool is_layer = ev->kind == DL_EV_LAYER || ev->kind == DL_EV_LAYER_DONE;
    const bool is_alloc = ev->kind == DL_EV_ALLOC;
    if (ev->is_for_kept) {
        struct dl_event product = *ev;
        product.recomputed = options;
        return is_kept(&product, dl_stack_setting(below)) ? dl_emit(below, ev, err) : DL_OK;
    }
    if (!is_layer && !is_alloc && ev->kind != DL_EV_FREE) return dl_emit(below, ev, err);
    struct dl_event told = *ev;
    told.recomputed = options;
    if (is_layer) return rewrite_layer(&told, below, err);
    if (is_alloc && is_saved(ev->tensor)) return save(&told, below, err);
    return dl_emit(below, &told, err);
}

static const char *name_modules(const struct dl_recomputation *o, char *out, size_t room)
{
    dl_module_set modules = 0;
    dl_recompute_modules_read(o->modules, &modules, &(struct dl_error){0});
    dl_recompute_modules_print(modules, out, room);
    return out;
}

static const char *name_results(const struct dl_recomputation *o, char *out, size_t room)
{
    uint32_t results = 0;
    dl_recompute_results_read(o->results, &results, &(struct dl_error){0});
    dl_recompute_results_print(results, out, room);
    return out;
}

static void tell(const void *options, void (*say)(void *user, const char *words), void *user)
{
    const struct dl_recomputation *const o = options;
    char names[80], parts[100] = "", layers[40] = "", kept[120] = "", groups[40] = "", words[400];
    if (o->modules.value) snprintf(parts, sizeof parts, " of %s", name_modules(o, names, sizeof names));
    if (o->layers) snprintf(layers, sizeof layers, " of %lld blocks", (long long)o->layers);
    if (o->results.value)
        snprintf(kept, sizeof kept, " but for %s%s", name_results(o, names, sizeof names),
                 o->before_bias ? " before biases" : "");
    if (o->every > 1) snprintf(groups, sizeof groups, " in groups of %lld", (long long)o->every);
    snprintf(words, sizeof words, "%s recomputation%s%s%s%s%s", modes[o->mode], parts, layers, kept,
             o->keeps == DL_KEEPS_INPUT ? "" : " but for every other GEMM", groups);
    if (o->mode != DL_RECOMPUTE_NOTHING) say(user, words);
}

/* Of a group all blocks are done again before the last of them. */
static uint32_t place(const void *options, const void *state, const struct dl_event *layer, const struct dl_setting *s)
{
    const struct dl_recomputation *const o = options;
    (void)state, (void)s;
    if (o->every > 1) return DL_OWN_PLACE;
    return (uint32_t)(layer->layer->is_block ? dl_recompute_of(o, layer->block) : DL_RECOMPUTE_NOTHING);
}

static const char *repeat_more(json_t *entry, const struct dl_setting *s, uint32_t step, struct dl_arena *arena)
{
    const uint32_t mode = step + 1;
    if (mode <= (uint32_t)s->recompute) return NULL;
    json_object_set_new(entry, "mode", json_string(modes[mode]));
    json_object_del(entry, "modules");
    return dl_arena_format(arena, "recompute %s", modes[mode]);
}

static const struct dl_relief relief = {.rank = 1, .n_steps = 2, .change = repeat_more};

const struct dl_strategy dl_strategy_recompute = {
    .name = "recompute",
    .doc = "activations that are recomputed before the backward instead of kept",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct dl_recomputation),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .check_blocks = check_blocks,
    .rewrite = rewrite,
    .place = place,
    .tell = tell,
    .relief = &relief,
};
