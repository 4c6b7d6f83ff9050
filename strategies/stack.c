#include "strategies/stack.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum dl_status dl_emit(struct dl_stack *below, const struct dl_event *ev, struct dl_error *err)
{
    while (below->strategy && !below->strategy->rewrite) below++;
    if (!below->strategy) return below->sink(below->user, ev, err);
    return below->strategy->rewrite(below->options, ev, below + 1, err);
}

const struct dl_setting *dl_stack_setting(const struct dl_stack *below) { return below->setting; }

void *dl_stack_state(struct dl_stack *below) { return below[-1].state; }

double *dl_stack_note(struct dl_stack *below, const struct dl_layer *layer) { return &below[-1].notes[layer->index]; }

void dl_stack_begin(struct dl_stack *top, const struct dl_stack_use *use)
{
    const size_t notes_bytes = use->n_layers * sizeof *top->notes;
    struct dl_stack *level = top;
    for (; level->strategy; level++) {
        if (level->state) memset(level->state, 0, level->strategy->state_size);
        if (!level->strategy->notes_layers) continue;
        level->notes = dl_arena_alloc(use->arena, notes_bytes);
        memset(level->notes, 0, notes_bytes);
    }
    level->sink = use->sink;
    level->user = use->user;
}

void dl_stack_end(struct dl_stack *top)
{
    struct dl_stack *level = top;
    for (; level->strategy; level++) level->notes = NULL;
    level->sink = NULL;
    level->user = NULL;
}

static struct dl_event event_of(const struct dl_work *work, enum dl_pass pass, const struct dl_layer *layer)
{
    return (struct dl_event){.kind = DL_EV_COMPUTE,
                             .pass = pass,
                             .cause = pass == DL_RECOMPUTE ? DL_CAUSE_RECOMPUTE : DL_CAUSE_COMPUTE,
                             .layer = layer,
                             .kernel = work->kernel,
                             .in_pieces = dl_work_has_pieces(work)};
}

static enum dl_status hand_over(struct dl_stack *below, struct dl_event *ev, enum dl_hand_over over, double elements,
                                struct dl_error *err)
{
    ev->kind = DL_EV_HAND_OVER;
    ev->over = over;
    ev->elements = elements;
    return elements > 0 ? dl_emit(below, ev, err) : DL_OK;
}

enum dl_status dl_emit_given(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                             const struct dl_layer *layer, struct dl_error *err)
{
    if (work->to_experts == 0 && work->from_experts == 0 && work->enters == 0) return DL_OK;
    struct dl_event ev = event_of(work, pass, layer);
    if (hand_over(below, &ev, DL_TO_EXPERTS, work->to_experts, err) ||
        hand_over(below, &ev, DL_FROM_EXPERTS, work->from_experts, err))
        return err->status;
    return hand_over(below, &ev, DL_INTO_PAIR, work->enters, err);
}

enum dl_status dl_emit_kernel(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                              const struct dl_layer *layer, struct dl_error *err)
{
    struct dl_event ev = event_of(work, pass, layer);
    ev.gradient = work->gradient;
    if (ev.in_pieces) {
        ev.enters = work->enters;
        ev.leaves = work->leaves;
    }
    return dl_emit(below, &ev, err);
}

enum dl_status dl_emit_made(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err)
{
    if (work->leaves == 0) return DL_OK;
    struct dl_event ev = event_of(work, pass, layer);
    return hand_over(below, &ev, DL_OUT_OF_PAIR, work->leaves, err);
}

enum dl_status dl_emit_work(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err)
{
    if (dl_emit_given(below, work, pass, layer, err) || dl_emit_kernel(below, work, pass, layer, err))
        return err->status;
    return dl_emit_made(below, work, pass, layer, err);
}

enum dl_status dl_emit_pass(struct dl_stack *below, const char *name, double bytes, enum dl_pass pass,
                            struct dl_error *err)
{
    const double elements = bytes / dl_precision_bytes(below->setting->precision);
    const struct dl_event ev = {.kind = DL_EV_COMPUTE,
                                .pass = pass,
                                .cause = DL_CAUSE_DATA,
                                .kernel = {.kind = DL_KERNEL_MEMORY, .name = name, .elements = elements}};
    return dl_emit(below, &ev, err);
}

uint32_t dl_any_place(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting)
{
    (void)options, (void)state, (void)layer, (void)setting;
    return 0;
}

bool dl_stack_place(const struct dl_stack *top, const struct dl_event *layer, uint64_t *out)
{
    *out = 0;
    for (const struct dl_stack *level = top; level->strategy; level++) {
        const struct dl_strategy *const s = level->strategy;
        if (!s->rewrite) continue;
        const uint32_t place = s->place ? s->place(level->options, level->state, layer, level->setting) : DL_OWN_PLACE;
        if (place == DL_OWN_PLACE) return false;
        *out = *out * DL_MOST_PLACES + place;
    }
    return true;
}

const char *dl_stack_on_host(const struct dl_stack *top)
{
    while (top->strategy && !top->strategy->needs_host) top++;
    return top->strategy ? top->where : NULL;
}

bool dl_stack_blocks_launches(const struct dl_stack *top, double *wait_s)
{
    while (top->strategy && !top->strategy->launch_wait_s) top++;
    *wait_s = top->strategy ? top->strategy->launch_wait_s(top->options) : 0;
    return top->strategy;
}

bool dl_stack_replays_launches(const struct dl_stack *top)
{
    while (top->strategy && !top->strategy->replays_launches) top++;
    return top->strategy;
}

/* ---- the strategy file ---- */

struct options {
    const char *workload, *software;
    int64_t devices, global_batch, microbatch, precision, optimizer, recompute;
    struct dl_json order, stack;
};

static const char *const optimizers[] = {"sgd", "momentum", "adam", "lamb", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};
enum { usual = -1, momentum = 1, adam = 2, most_devices = 2147483647, most_micros = 1000000 /* of one replica */ };

static const struct options defaults = {.microbatch = 1, .precision = DL_BF16, .optimizer = usual, .software = "ideal"};
static const struct dl_field fields[] = {
    {"workload", DL_TEXT, offsetof(struct options, workload), 0, 0, false, NULL, "the model, a name or a file"},
    {"software", DL_TEXT, offsetof(struct options, software), 0, 0, true, NULL, "the framework; ideal if absent"},
    {"devices", DL_INT, offsetof(struct options, devices), 1, most_devices, true, NULL,
     "number of devices; the product of the ways if absent"},
    {"global_batch", DL_INT, offsetof(struct options, global_batch), 1, 1e12, false, NULL, "samples of a step"},
    {"microbatch", DL_INT, offsetof(struct options, microbatch), 1, 1e9, true, NULL,
     "samples of a micro-batch; 1 if absent"},
    {"precision", DL_CHOICE, offsetof(struct options, precision), 0, 0, true, dl_precision_names,
     "of GEMMs; bf16 if absent"},
    {"optimizer", DL_CHOICE, offsetof(struct options, optimizer), 0, 0, true, optimizers,
     "what updates parameters; adam for language models and momentum for others if absent"},
    {"recompute", DL_CHOICE, offsetof(struct options, recompute), 0, 0, true, recomputes,
     "what is recomputed before the backward; none if absent"},
    {"order", DL_LIST, offsetof(struct options, order), 0, 0, true, NULL,
     "axes, innermost first; tensor, context, data, pipeline if absent"},
    {"stack", DL_LIST, offsetof(struct options, stack), 0, 0, false, NULL,
     "strategies, each with a name and its options"},
};

/* Per parameter: fp32 master copy and moments kept; all of them, the gradient and the copy in the working precision
 * read or written in a step. Those that divide by roots of second moments make these first. */
static const struct {
    double state_bytes, moved_bytes;
    bool takes_roots;
} optimizer_costs[] = {{4, 14, false}, {8, 22, false}, {12, 30, true}, {12, 34, true}};

static void use_optimizer(struct dl_setting *s, int64_t which)
{
    s->optimizer = optimizers[which];
    s->optimizer_state_bytes = optimizer_costs[which].state_bytes;
    s->optimizer_moved_bytes = optimizer_costs[which].moved_bytes;
    s->optimizer_takes_roots = optimizer_costs[which].takes_roots;
}

void dl_job_suit(struct dl_job *job, const struct dl_software *software, const struct dl_model *model)
{
    struct dl_setting *const s = &job->setting;
    const bool is_language_model = model->tokens_per_sample > 0;
    s->software = software;
    if (software->gathers_stage_2 && s->zero_stage == 2 && dl_n_stages(s) == 1) {
        s->zero_stage = 3;
        s->exchanges_beside_work = true;
    }
    s->last_backward_differs |= /* it alone scatters gradients */
        dl_accumulated(s) == DL_ACCUMULATES_CHUNK || (s->zero_stage == 3 && !dl_keeps_shards(s));
    if (!s->optimizer) use_optimizer(s, is_language_model ? adam : momentum);
    s->is_pure = software->pure == DL_PURE_ALL || (software->pure == DL_PURE_LANGUAGE_MODELS && is_language_model);
}

void dl_job_suit_machine(struct dl_job *job, const struct dl_device *device, const struct dl_topology *topology)
{
    job->setting.streams_weights = device->model->streams_weights;
    job->setting.sums_on_the_way = device->model->streams_weights && topology->network.reduces;
}

const struct dl_field *dl_job_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

/* ---- the stack ---- */

static const struct dl_strategy *find_strategy(struct dl_json entry, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json name = dl_json_member(entry, "name", arena);
    const char *known[64];
    if (!json_is_object(entry.value)) {
        dl_fail(err, DL_TYPE, entry.where, "must be an object with the name of a strategy, {\"name\": \"data\"}");
        return NULL;
    }
    if (!json_is_string(name.value)) {
        dl_fail(err, DL_KEY, name.where, "must be the name of a strategy");
        return NULL;
    }
    for (size_t i = 0; i < dl_strategy_count(); i++) {
        known[i] = dl_strategy_get(i)->name;
        if (strcmp(known[i], json_string_value(name.value)) == 0) return dl_strategy_get(i);
    }
    char hint[DL_HINT];
    dl_fail(err, DL_NOT_FOUND, name.where, "no strategy '%.60s'%s", json_string_value(name.value),
            dl_hint(json_string_value(name.value), known, dl_strategy_count(), hint));
    return NULL;
}

static void bring_axes(const struct dl_strategy *strategy, const char *options, struct dl_setting *s)
{
    for (size_t i = 0; i < strategy->n_axes; i++) {
        const struct dl_brought *const axis = &strategy->axes[i];
        int64_t ways;
        memcpy(&ways, options + axis->ways, sizeof ways);
        assert(!axis->name || s->n_brought < DL_MOST_BROUGHT);
        s->ways[axis->name ? DL_N_AXES + s->n_brought : axis->axis] = (uint32_t)ways;
        if (axis->name) s->brought[s->n_brought++] = axis;
    }
}

static enum dl_status read_entry(struct dl_json entry, const struct dl_strategy *s, struct dl_setting *setting,
                                 struct dl_stack *level, struct dl_arena *arena, struct dl_error *err)
{
    void *const options = dl_arena_alloc(arena, s->options_size);
    void *const state = dl_arena_alloc(arena, s->state_size);
    if (s->options_size > 0) memcpy(options, s->defaults, s->options_size);
    memset(state, 0, s->state_size);
    struct dl_json rest = {.value = json_copy(entry.value), .where = entry.where};
    json_object_del(rest.value, "name");
    dl_read(rest, s->fields, s->n_fields, options, arena, err);
    json_decref(rest.value);
    if (err->status) return err->status;
    bring_axes(s, options, setting);
    if (s->claim && s->claim(options, entry, setting, err)) return err->status;
    *level =
        (struct dl_stack){.strategy = s, .options = options, .state = state, .where = entry.where, .setting = setting};
    return DL_OK;
}

/* The level of each strategy is its place in the table. */
static enum dl_status push(struct dl_json entry, struct dl_setting *setting, struct dl_stack *levels,
                           struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_strategy *const s = find_strategy(entry, arena, err);
    size_t level = 0;
    while (s && dl_strategy_get(level) != s) level++;
    if (s && levels[level].strategy)
        return dl_fail(err, DL_KEY, entry.where, "%s is in the stack already; say it once", s->name);
    return s ? read_entry(entry, s, setting, &levels[level], arena, err) : err->status;
}

static enum dl_status read_stack(struct dl_json list, struct dl_setting *setting, struct dl_stack *levels,
                                 struct dl_arena *arena, struct dl_error *err)
{
    const size_t told = err->n_told;
    for (size_t i = 0; i < json_array_size(list.value); i++)
        if (push(dl_json_element(list, i, arena), setting, levels, arena, err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

/* "recompute": "full" is short for the entry of that strategy. */
static enum dl_status push_recompute(struct dl_json doc, const struct options *o, struct dl_setting *setting,
                                     struct dl_stack *levels, struct dl_arena *arena, struct dl_error *err)
{
    if (!o->recompute) return DL_OK;
    const struct dl_json entry = {.value =
                                      json_pack("{s:s, s:s}", "name", "recompute", "mode", recomputes[o->recompute]),
                                  .where = dl_json_member(doc, "recompute", arena).where};
    push(entry, setting, levels, arena, err);
    json_decref(entry.value);
    return err->status;
}

/* Leave out the levels of strategies that the file does not name. */
static struct dl_stack *close_gaps(struct dl_stack *levels, const struct dl_setting *setting)
{
    size_t n = 0;
    for (size_t i = 0; i < dl_strategy_count(); i++)
        if (levels[i].strategy) levels[n++] = levels[i];
    levels[n] = (struct dl_stack){.setting = setting};
    return levels;
}

/* ---- what must fit together ---- */

/* Where an axis of one way comes does not matter. */
static enum dl_status append_single_axes(struct dl_json list, const bool *seen, size_t n, struct dl_setting *setting,
                                         struct dl_error *err)
{
    for (uint32_t axis = 0; axis < dl_n_axes(setting); axis++) {
        if (seen[axis]) continue;
        if (setting->ways[axis] > 1)
            return dl_fail(err, DL_RANGE, list.where, "must name %s too, which has %u ways",
                           dl_axis_name(setting, axis), setting->ways[axis]);
        setting->order[n++] = (enum dl_axis)axis;
    }
    return DL_OK;
}

/* Those with ways but data, and those that are named always; in the order by default. */
static const char *list_axes(const struct dl_setting *s, dl_digits always, const char *between, struct dl_arena *arena)
{
    const char *text = "";
    for (uint32_t i = 0; i < dl_n_axes(s); i++) {
        const enum dl_axis axis = dl_axis_by_default(s, i);
        if (always >> axis & 1 || (s->ways[axis] > 1 && axis != DL_AXIS_DATA))
            text = dl_arena_format(arena, "%s%s%s", text, *text ? between : "", dl_axis_name(s, axis));
    }
    return text;
}

static enum dl_status read_order(struct dl_json list, struct dl_setting *setting, struct dl_arena *arena,
                                 struct dl_error *err)
{
    bool seen[DL_MOST_AXES] = {false};
    const uint32_t n_axes = dl_n_axes(setting);
    for (uint32_t i = 0; i < n_axes; i++) setting->order[i] = dl_axis_by_default(setting, i);
    if (!list.value) return DL_OK;
    const size_t n = json_array_size(list.value);
    for (size_t i = 0; i < n; i++) {
        const struct dl_json item = dl_json_element(list, i, arena);
        uint32_t axis = 0;
        while (axis < n_axes &&
               !(json_is_string(item.value) && strcmp(json_string_value(item.value), dl_axis_name(setting, axis)) == 0))
            axis++;
        if (axis == n_axes || seen[axis])
            return dl_fail(err, DL_RANGE, item.where, "must be one of %s, each once",
                           list_axes(setting, ~(dl_digits)0, ", ", arena));
        seen[axis] = true;
        setting->order[i] = (enum dl_axis)axis;
    }
    return append_single_axes(list, seen, n, setting, err);
}

/* Of all axes but data; beyond all that can be, no longer exact. */
static uint64_t count_ranks_of_replica(const struct dl_setting *s)
{
    uint64_t n = 1;
    for (uint32_t axis = 0; axis < dl_n_axes(s); axis++)
        if (axis != DL_AXIS_DATA && n < (uint64_t)1 << 47) n *= s->ways[axis];
    return n;
}

static enum dl_status count_devices(struct dl_json doc, const struct options *o, uint32_t asked, struct dl_job *job,
                                    struct dl_arena *arena, struct dl_error *err)
{
    struct dl_setting *const s = &job->setting;
    const uint64_t others = count_ranks_of_replica(s);
    const char *const axes = list_axes(s, 1u << DL_AXIS_TENSOR | 1u << DL_AXIS_PIPELINE, " x ", arena);
    if (others > most_devices)
        return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(doc, "stack", arena).where,
                       "%s ways = %ju devices; at most %d can be", axes, (uintmax_t)others, most_devices);
    job->n_devices = asked ? asked : o->devices ? (uint32_t)o->devices : (uint32_t)others;
    s->ways[DL_AXIS_DATA] = (uint32_t)(job->n_devices / others);
    if (job->n_devices % others == 0) return DL_OK;
    const uint64_t below = job->n_devices / others * others;
    return dl_fail(err, DL_IMPOSSIBLE, asked ? "--devices" : dl_json_member(doc, "devices", arena).where,
                   "must be a multiple of %s ways = %ju, got %u; %ju or %ju would do", axes, (uintmax_t)others,
                   job->n_devices, (uintmax_t)(below ? below : others),
                   (uintmax_t)(below ? below + others : 2 * others));
}

/* What is told counts tensor ranks that have experts of their own; numbers that do not come out are refused by check.
 */
static void count_expert_ways(struct dl_setting *s)
{
    const uint32_t tensor = s->experts_over_tensor ? s->ways[DL_AXIS_TENSOR] : 1;
    s->expert_ways = s->expert_ways > tensor ? s->expert_ways / tensor : 1;
}

/* At most one strategy does. */
static void split_replicas(const struct dl_stack *levels, struct dl_setting *s)
{
    for (size_t i = 0; i < dl_strategy_count() && !s->n_peers; i++)
        if (levels[i].strategy && levels[i].strategy->split_replicas)
            s->n_peers =
                levels[i].strategy->split_replicas(levels[i].options, dl_n_replicas(s) / s->expert_ways, s->peers);
}

/* Replicas that nobody keeps equal would train models of their own. */
static enum dl_status check_replicas(struct dl_json doc, const struct dl_stack *levels, const struct dl_job *job,
                                     struct dl_arena *arena, struct dl_error *err)
{
    const uint32_t replicas = dl_copies(&job->setting, false);
    bool summed = replicas <= 1; /* 0: more expert ways than replicas, which expert refuses */
    for (size_t i = 0; i < dl_strategy_count(); i++)
        if (levels[i].strategy) summed |= levels[i].strategy->sums_gradients;
    if (summed) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(doc, "stack", arena).where,
                   "%u devices hold the model %u times, which needs {\"name\": \"data\"}; without it %u would do",
                   job->n_devices, replicas, job->n_devices / replicas);
}

static enum dl_status count_micros(struct dl_json doc, struct dl_setting *s, struct dl_arena *arena,
                                   struct dl_error *err)
{
    const double unit = dl_n_replicas(s) * s->microbatch, n = s->global_batch / unit;
    s->batch_where = dl_json_member(doc, "global_batch", arena).where;
    if (n > most_micros)
        return dl_fail(err, DL_IMPOSSIBLE, s->batch_where, "gives %.0f micro-batches of %.0f; at most %d can be",
                       floor(n), s->microbatch, most_micros);
    s->micros = (uint32_t)n;
    if (n == s->micros && n >= 1) return DL_OK;
    const double below = floor(n) * unit;
    return dl_fail(err, DL_IMPOSSIBLE, s->batch_where,
                   "must be a multiple of data ways x microbatch = %.0f, got %.0f; %.0f or %.0f would do", unit,
                   s->global_batch, below > 0 ? below : unit, below > 0 ? below + unit : 2 * unit);
}

struct dl_schedule_request dl_setting_schedule(const struct dl_setting *s)
{
    return (struct dl_schedule_request){.stages = dl_n_stages(s),
                                        .micros = s->micros,
                                        .chunks = s->chunks,
                                        .pipeline_where = s->pipeline_where,
                                        .batch_where = s->batch_where};
}

static enum dl_status check_schedule(const struct dl_setting *s, struct dl_error *err)
{
    const struct dl_schedule_request request = dl_setting_schedule(s);
    return dl_schedule_check(s->schedule, &request, err);
}

enum dl_status dl_job_read(struct dl_json doc, uint32_t n_devices, struct dl_arena *arena, struct dl_job *out,
                           struct dl_error *err)
{
    struct options o = defaults;
    struct dl_stack *const levels = dl_arena_alloc(arena, (dl_strategy_count() + 1) * sizeof *levels);
    memset(levels, 0, (dl_strategy_count() + 1) * sizeof *levels);
    *out = (struct dl_job){.setting = {.ways = {1, 1, 1, 1, 1, 1, 1, 1},
                                       .grid = {1, 1, 1},
                                       .expert_ways = 1,
                                       .chunks = 1,
                                       .sums_when = DL_WHEN_AS_SOFTWARE,
                                       .schedule = dl_schedule_usual()->name}};
    struct dl_setting *const s = &out->setting;
    const size_t told = err->n_told;
    if (dl_read_document(doc, "strategy", fields, DL_COUNT(fields), &o, arena, err) && !dl_go_on(err))
        return err->status;
    s->global_batch = (double)o.global_batch;
    s->microbatch = (double)o.microbatch;
    s->precision = (enum dl_precision)o.precision;
    if (o.optimizer != usual) use_optimizer(s, o.optimizer);
    if ((read_stack(o.stack, s, levels, arena, err) && !dl_go_on(err)) ||
        (push_recompute(doc, &o, s, levels, arena, err) && !dl_go_on(err)) || dl_stop_if_told(err, told) ||
        count_devices(doc, &o, n_devices, out, arena, err) || read_order(o.order, s, arena, err))
        return err->status;
    count_expert_ways(s);
    split_replicas(levels, s);
    dl_setting_number_ranks(s);
    if (check_replicas(doc, levels, out, arena, err) || count_micros(doc, s, arena, err) || check_schedule(s, err))
        return err->status;
    out->workload = o.workload;
    out->software = o.software;
    out->stack = close_gaps(levels, s);
    return DL_OK;
}

/* ---- what must fit the model ---- */

const char *dl_check_place(const struct dl_check *check, const char *key)
{
    return dl_json_member((struct dl_json){.where = check->where}, key, check->arena).where;
}

enum dl_status dl_check_parts(const struct dl_check *check, const char *key, uint32_t parts, double whole,
                              const char *what, struct dl_error *err)
{
    if (fmod(whole, parts) == 0) return DL_OK;
    const double most = fmin(whole, UINT32_MAX);
    double below = fmin(parts, most), above = parts;
    while (below > 1 && fmod(whole, below) != 0) below--;
    while (above < most && fmod(whole, above) != 0) above++;
    const char *const where = dl_check_place(check, key);
    if (above > most)
        return dl_fail(err, DL_IMPOSSIBLE, where, "must divide %s, %.0f, got %u; %.0f would do", what, whole, parts,
                       below);
    return dl_fail(err, DL_IMPOSSIBLE, where, "must divide %s, %.0f, got %u; %.0f or %.0f would do", what, whole, parts,
                   below, above);
}

enum dl_status dl_check_ways(const struct dl_check *check, uint32_t ways, double whole, const char *what,
                             struct dl_error *err)
{
    return dl_check_parts(check, "ways", ways, whole, what, err);
}

enum dl_status dl_check_heads(const struct dl_check *check, const char *key, uint32_t parts,
                              const struct dl_layer *layer, struct dl_error *err)
{
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (k->attention_core && k->by.batch & DL_BY_INNER &&
            dl_check_parts(check, key, parts, k->batch / check->model->samples, "the heads", err))
            return err->status;
    }
    if (layer->key_heads == 0) return DL_OK;
    return dl_check_parts(check, key, parts, layer->key_heads, "the heads of keys and values", err);
}

const struct dl_kernel *dl_check_find(const struct dl_check *check, bool (*is_it)(const struct dl_kernel *))
{
    const struct dl_model *const m = check->model;
    for (size_t i = 0; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_forward; j++) {
            const struct dl_work *const work = &m->layers[i].forward[j];
            if (is_it(&work->kernel)) return &work->kernel;
        }
    return NULL;
}

static bool is_attention(const struct dl_kernel *k) { return k->attention_core; }

const struct dl_kernel *dl_check_find_attention(const struct dl_check *check)
{
    return dl_check_find(check, is_attention);
}

static struct dl_check check_of(const struct dl_job *job, const struct dl_stack *level, const struct dl_model *model,
                                struct dl_arena *arena)
{
    return (struct dl_check){
        .where = level->where, .setting = &job->setting, .model = model, .stack = job->stack, .arena = arena};
}

enum dl_status dl_job_check(const struct dl_job *job, const struct dl_model *model, struct dl_arena *arena,
                            struct dl_error *err)
{
    const size_t told = err->n_told;
    for (const struct dl_stack *level = job->stack; level->strategy; level++) {
        const struct dl_check what = check_of(job, level, model, arena);
        if (level->strategy->check && level->strategy->check(level->options, &what, err) && !dl_go_on(err)) break;
    }
    return dl_stop_if_told(err, told);
}

enum dl_status dl_job_check_blocks(const struct dl_job *job, const struct dl_model *model, uint32_t n_blocks,
                                   struct dl_arena *arena, struct dl_error *err)
{
    for (const struct dl_stack *level = job->stack; level->strategy; level++) {
        const struct dl_check what = check_of(job, level, model, arena);
        if (level->strategy->check_blocks && level->strategy->check_blocks(level->options, &what, n_blocks, err)) break;
    }
    return err->status;
}
