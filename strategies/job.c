#include "strategies/job.h"

#include <assert.h>
#include <string.h>

#include "strategies/gradient_sums.h"
#include "strategies/job_counts.h"

struct options {
    const char *workload, *software;
    int64_t devices, global_batch, microbatch, precision, wide_first_blocks, wide_last_blocks, optimizer, recompute;
    struct dl_json order, stack;
};

static const char *const optimizers[] = {"sgd", "momentum", "adam", "lamb", "adam_bf16", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};
enum { usual = -1, momentum = 1, adam = 2 };

static const struct options defaults = {.microbatch = 1, .precision = DL_BF16, .optimizer = usual, .software = "ideal"};
static const struct dl_field fields[] = {
    {"workload", DL_TEXT, offsetof(struct options, workload), 0, 0, false, NULL, "the model, a name or a file"},
    {"software", DL_TEXT, offsetof(struct options, software), 0, 0, true, NULL, "the framework; ideal if absent"},
    {"devices", DL_INT, offsetof(struct options, devices), 1, DL_MOST_DEVICES, true, NULL,
     "number of devices; the product of the ways if absent"},
    {"global_batch", DL_INT, offsetof(struct options, global_batch), 1, 1e12, false, NULL, "samples of a step"},
    {"microbatch", DL_INT, offsetof(struct options, microbatch), 1, 1e9, true, NULL,
     "samples of a micro-batch; 1 if absent"},
    {"precision", DL_CHOICE, offsetof(struct options, precision), 0, 0, true, dl_precision_names,
     "of GEMMs; bf16 if absent"},
    {"wide_first_blocks", DL_INT, offsetof(struct options, wide_first_blocks), 0, 10000, true, NULL,
     "blocks at the start of the model whose GEMMs stay in bf16 where others are in fp8, mxfp8 or nvfp4; 0 if absent"},
    {"wide_last_blocks", DL_INT, offsetof(struct options, wide_last_blocks), 0, 10000, true, NULL,
     "the same at its end, where modules that predict further tokens are not counted and stay narrow; 0 if absent"},
    {"optimizer", DL_CHOICE, offsetof(struct options, optimizer), 0, 0, true, optimizers,
     "what updates parameters (adam_bf16: Adam with both moments in bf16); adam for language models and momentum for "
     "others if absent"},
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
    const char *operation; /* that its kernel is */
    double state_bytes, moved_bytes;
    bool takes_roots, narrow_moments;
} optimizer_costs[] = {{"sgd", 4, 14, false, false},
                       {"momentum", 8, 22, false, false},
                       {"adam", 12, 30, true, false},
                       {"lamb", 12, 34, true, false},
                       {"adam", 12, 30, true, true}};

const char *dl_optimizer_operation(const char *name)
{
    size_t i = 0;
    while (strcmp(optimizers[i], name)) i++;
    return optimizer_costs[i].operation;
}

static void use_optimizer(struct dl_setting *s, int64_t which)
{
    s->optimizer = optimizers[which];
    s->optimizer_operation = optimizer_costs[which].operation;
    s->optimizer_state_bytes = optimizer_costs[which].state_bytes;
    s->optimizer_moved_bytes = optimizer_costs[which].moved_bytes;
    s->optimizer_takes_roots = optimizer_costs[which].takes_roots;
    s->narrow_moments = optimizer_costs[which].narrow_moments;
}

struct dl_model_code dl_job_model_code(const struct dl_job *job, struct dl_model_code code)
{
    code.head_ways = job->setting.is_line ? job->setting.ways[DL_AXIS_TENSOR] : 1;
    code.unfused_groups &= dl_is_wide(&job->setting);
    code.adapters = job->setting.adapters;
    code.wide_first = job->setting.wide_first_blocks;
    code.wide_last = job->setting.wide_last_blocks;
    return code;
}

void dl_job_suit(struct dl_job *job, const struct dl_software *software, const struct dl_model *model)
{
    struct dl_setting *const s = &job->setting;
    const bool is_language_model = model->tokens_per_sample > 0;
    s->software = software;
    s->key_copies = model->key_copies;
    if (s->key_copies) dl_setting_number_ranks(s);
    if (software->gathers_stage_2 && s->zero_stage == 2 && dl_n_stages(s) == 1) {
        s->zero_stage = 3;
        s->exchanges_beside_work = s->sums_beside_work = true;
    }
    if (!s->optimizer) use_optimizer(s, is_language_model ? adam : momentum);
    s->is_pure = software->pure == DL_PURE_ALL || (software->pure == DL_PURE_LANGUAGE_MODELS && is_language_model);
    s->last_backward_differs |= /* it alone scatters gradients, or adds none */
        dl_accumulated(s) == DL_ACCUMULATES_CHUNK || (s->zero_stage == 3 && !dl_keeps_shards(s)) ||
        dl_sums_gradients_apart(s);
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

/* Of the whole model where nothing is quantised: then it says nothing. */
static enum dl_status use_precision(struct dl_json doc, const struct options *o, struct dl_setting *s,
                                    struct dl_arena *arena, struct dl_error *err)
{
    s->precision = (enum dl_precision)o->precision;
    s->precision_where = dl_json_member(doc, "precision", arena).where;
    s->wide_first_blocks = (uint32_t)o->wide_first_blocks;
    s->wide_last_blocks = (uint32_t)o->wide_last_blocks;
    s->wide_first_where = dl_json_member(doc, "wide_first_blocks", arena).where;
    s->wide_last_where = dl_json_member(doc, "wide_last_blocks", arena).where;
    if (!(s->wide_first_blocks + s->wide_last_blocks) || dl_precision_is_quantised(s->precision)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, s->wide_last_blocks ? s->wide_last_where : s->wide_first_where,
                   "is for fp8, mxfp8 and nvfp4; in %s all blocks are as wide", dl_precision_name(s->precision));
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
    if (o.optimizer != usual) use_optimizer(s, o.optimizer);
    if ((use_precision(doc, &o, s, arena, err) && !dl_go_on(err)) ||
        (read_stack(o.stack, s, levels, arena, err) && !dl_go_on(err)) ||
        (push_recompute(doc, &o, s, levels, arena, err) && !dl_go_on(err)) || dl_stop_if_told(err, told) ||
        dl_job_count(
            doc, &(struct dl_job_asked){.devices = n_devices, .devices_in_file = (uint32_t)o.devices, .order = o.order},
            levels, out, arena, err))
        return err->status;
    out->workload = o.workload;
    out->software = o.software;
    out->stack = close_gaps(levels, s);
    return DL_OK;
}
