/* inputs.c - the strategy, software and workload files, read by dlsim's own readers. */
#include <string.h>

#include "sim/session/inputs.h"
#include "strategies/stages.h"
#include "validation/mpi/train.h"

static enum dl_status read_strategy(struct dl_train *t, struct dl_error *err)
{
    const struct dl_train_options *const o = t->options;
    const struct dl_want strategy = {DL_STRATEGIES, "strategy", {.name = o->strategy}, "strategy", NULL};
    if (dl_load_document(&strategy, &o->set, t->arena, &t->strategy_doc, err) ||
        dl_job_read(t->strategy_doc, (uint32_t)o->devices, t->arena, &t->job, err))
        return err->status;
    const struct dl_want software = {DL_SOFTWARE, "software",
                                     dl_given_or((struct dl_input){0}, t->strategy_doc, t->job.software), "software",
                                     dl_place_of_name(NULL, t->strategy_doc, "software", t->arena)};
    if (dl_load_document(&software, &o->set, t->arena, &t->software_doc, err) ||
        dl_software_read(t->software_doc, t->arena, &t->software, err))
        return err->status;
    t->s = &t->job.setting;
    return DL_OK;
}

static enum dl_status read_workload(struct dl_train *t, struct dl_error *err)
{
    const struct dl_train_options *const o = t->options;
    const struct dl_want want = {DL_WORKLOADS, "workload",
                                 dl_given_or((struct dl_input){.name = o->workload}, t->strategy_doc, t->job.workload),
                                 "workload", dl_place_of_name(o->workload, t->strategy_doc, "workload", t->arena)};
    if (dl_load_document(&want, &o->set, t->arena, &t->workload_doc, err) ||
        dl_workload_read(t->workload_doc, t->s->microbatch, dl_job_model_code(&t->job, t->software.code), t->arena,
                         &t->model, err))
        return err->status;
    dl_job_suit(&t->job, &t->software, &t->model);
    return dl_job_check(&t->job, &t->model, t->arena, err);
}

/* The order of work. Where it depends on times all passes are taken to be equally long. */
static enum dl_status make_schedule(struct dl_train *t, struct dl_error *err)
{
    struct dl_schedule_request wish = dl_setting_schedule(t->s);
    wish.forward_s = wish.backward_s = wish.weight_s = 1;
    if (dl_schedule_make(t->s->schedule, &wish, t->arena, &t->schedule, err)) return err->status;
    if (t->s->split == DL_SPLIT_BY_COST && !t->s->blocks_at.n)
        return dl_fail(err, DL_IMPOSSIBLE, t->s->pipeline_where,
                       "the split by_cost needs a device; give layers_per_stage");
    t->positions = dl_arena_alloc(t->arena, t->schedule.n_positions * sizeof *t->positions);
    memset(t->positions, 0, t->schedule.n_positions * sizeof *t->positions);
    const struct dl_deal deal = {
        .model = &t->model, .setting = t->s, .n_positions = t->schedule.n_positions, .arena = t->arena};
    return dl_deal_layers(&deal, t->positions, err);
}

static enum dl_status find_strategies(struct dl_train *t, struct dl_error *err)
{
    for (const struct dl_stack *level = t->job.stack; level->strategy; level++) {
        const struct dl_real_strategy *const real = dl_find_real_strategy(level->strategy->name);
        if (!real || t->n_strategies == DL_COUNT(t->strategies))
            return dl_fail(err, DL_IMPOSSIBLE, level->where, "%s is not trained, only simulated",
                           level->strategy->name);
        t->strategies[t->n_strategies] = real;
        t->levels[t->n_strategies++] = level;
    }
    return DL_OK;
}

/* The numbers are fp32 whatever the products would be in: bytes on the wire must be those that are simulated. */
static enum dl_status check_precision(struct dl_train *t, struct dl_error *err)
{
    if (t->s->precision == DL_FP32) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(t->strategy_doc, "precision", t->arena).where,
                   "must be fp32, got %s", dl_precision_name(t->s->precision));
}

enum dl_status dl_train_read(struct dl_train *t, struct dl_error *err)
{
    if (read_strategy(t, err) || read_workload(t, err) || make_schedule(t, err) || check_precision(t, err) ||
        dl_optimizer_check(t, err))
        return err->status;
    t->kind = dl_find_model(json_string_value(json_object_get(t->workload_doc.value, "kind")));
    return t->kind ? find_strategies(t, err)
                   : dl_fail(err, DL_IMPOSSIBLE, t->workload_doc.where, "such a model is not trained, only simulated");
}

const struct dl_position *dl_position_of(const struct dl_train *t, uint32_t chunk)
{
    return &t->positions[t->schedule.position_of[t->at[DL_AXIS_PIPELINE] * t->s->chunks + chunk]];
}

double dl_option_number(const struct dl_stack *level, const char *key)
{
    const struct dl_strategy *const s = level->strategy;
    size_t i = 0;
    while (strcmp(s->fields[i].key, key) != 0) i++; /* it has that key, or this is our mistake */
    const char *const at = (const char *)level->options + s->fields[i].offset;
    switch (s->fields[i].type) {
    case DL_INT:
    case DL_CHOICE: return (double)*(const int64_t *)at;
    case DL_BOOL: return *(const bool *)at;
    default: return *(const double *)at;
    }
}
