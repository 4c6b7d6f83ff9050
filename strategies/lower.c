#include "strategies/lower.h"

#include <math.h>
#include <string.h>

#include "sim/program/segments.h"
#include "strategies/kept_schedules.h"
#include "strategies/layer_memory.h"
#include "strategies/layer_records.h"
#include "strategies/lower_layers.h"
#include "strategies/position_records.h"
#include "strategies/sent_parts.h"
#include "strategies/stage_memory.h"
#include "strategies/stages.h"
#include "strategies/zero_modules.h"
#include "strategies/step_clock.h"

/* ---- a position ---- */

/* What of the last micro-batch completes a gradient: its backward, or its weight gradients where they are apart. */
static enum dl_status lower_last(struct dl_sink *s, struct dl_position *p, bool splits, struct dl_error *err)
{
    struct dl_template rest = {0};
    s->counted = NULL; /* it is like those before it */
    s->into = splits ? &rest : &p->items[DL_TEMPLATE_LAST];
    s->weights = splits ? &p->items[DL_TEMPLATE_LAST] : NULL;
    if (!dl_gather_sent(s, p, DL_BACKWARD, err)) dl_lower_backward(s, p, true, err);
    dl_template_release(&rest);
    return err->status;
}

/* Where launches block, the host is at the end of an item with the device. */
static void end_item(struct dl_sink *s, struct dl_template *item)
{
    s->into = item;
    if (s->blocks_launches && item->n_instructions > 0) dl_sink_drain(s);
    dl_template_sum(item, s->out->calls);
}

static enum dl_status lower_forward(struct dl_sink *s, struct dl_position *p, bool first_micro, struct dl_error *err)
{
    s->weights = NULL;
    s->into = &p->items[first_micro ? DL_TEMPLATE_FIRST : DL_ITEM_F];
    if (dl_emit(s->request->job->stack, &(struct dl_event){.kind = DL_EV_BATCH}, err) ||
        dl_gather_sent(s, p, DL_FORWARD, err))
        return err->status;
    return dl_lower_forward(s, p, first_micro, err);
}

static enum dl_status lower_first(struct dl_sink *s, struct dl_position *p, struct dl_error *err)
{
    s->counted = NULL; /* it is like those after it */
    return lower_forward(s, p, true, err);
}

static enum dl_status lower_position(struct dl_sink *s, struct dl_position *p, bool splits, struct dl_error *err)
{
    if (lower_forward(s, p, false, err)) return err->status;
    s->into = &p->items[DL_ITEM_B];
    s->weights = splits ? &p->items[DL_ITEM_W] : NULL;
    if (dl_gather_sent(s, p, DL_BACKWARD, err) || dl_lower_backward(s, p, false, err)) return err->status;
    if (s->request->job->setting.last_backward_differs && lower_last(s, p, splits, err)) return err->status;
    if (s->request->job->setting.first_forward_differs && lower_first(s, p, err)) return err->status;
    s->weights = NULL;
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++) end_item(s, &p->items[kind]);
    return DL_OK;
}

static void release_position(struct dl_position *p)
{
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++) dl_template_release(&p->items[kind]);
}

static void add_parameters(const struct dl_layer *layers, const struct dl_position *p, struct dl_event *sum)
{
    for (size_t i = p->first_layer; i < p->end_layer; i++) {
        sum->parameters_inside += layers[i].parameters_inside;
        sum->n_tensors += layers[i].n_tensors;
        sum->n_expert_tensors += dl_layer_expert_tensors(&layers[i]);
        dl_modules_count_vectors(&layers[i], &sum->n_vectors, &sum->vector_parameters);
        sum->parameters_outside += layers[i].parameters_outside;
        sum->parameters_expert += layers[i].expert_parameters;
    }
}

static const struct dl_chunk *first_chunk(const struct dl_lowered *l, uint32_t stage)
{
    return l->schedule.n_paths > 1 ? NULL : &l->positions[l->schedule.position_of[stage * l->schedule.chunks]].chunk;
}

static enum dl_status lower_end_of_step(struct dl_sink *s, struct dl_program *program,
                                        const struct dl_event *parameters, struct dl_error *err)
{
    struct dl_stack *const top = s->request->job->stack;
    struct dl_event ev = *parameters;
    struct dl_shared shared;
    if (dl_stage_shares(s->request->model, &s->out->schedule, program->stage, parameters, &shared)) ev.shared = &shared;
    ev.kind = DL_EV_GRADIENT;
    ev.pass = DL_GRADIENT;
    s->into = &program->end;
    if (dl_emit(top, &ev, err)) return err->status;
    ev.kind = DL_EV_UPDATE;
    ev.pass = DL_OPTIMIZER;
    ev.chunk = first_chunk(s->out, program->stage);
    if (dl_emit_updating(top, &ev, false, err) || dl_emit(top, &ev, err) || dl_emit_updating(top, &ev, true, err) ||
        dl_stage_free_gradients(s, program->stage, err))
        return err->status;
    if (s->request->job->setting.software->drains_at_end) dl_sink_drain(s);
    dl_template_sum(&program->end, s->out->calls);
    return DL_OK;
}

/* ---- who gets what ---- */

/* Seconds of each layer as the only one of a position. */
static const double *price_layers(struct dl_sink *s, bool splits, struct dl_error *err)
{
    const struct dl_model *const m = s->request->model;
    double *const seconds = dl_arena_alloc(s->arena, m->n_layers * sizeof *seconds);
    for (size_t i = 0; i < m->n_layers && !err->status; i++) {
        struct dl_position alone = {
            .first_layer = i, .end_layer = i + 1, .first_block = i, .n_blocks = m->layers[i].is_block};
        lower_position(s, &alone, splits, err);
        for (int kind = 0; kind <= DL_ITEM_W; kind++) seconds[i] += alone.items[kind].total.seconds;
        release_position(&alone);
    }
    dl_sink_forget_calls(s);
    dl_layer_records_forget(s);
    return seconds;
}

static enum dl_status deal(struct dl_sink *s, struct dl_error *err)
{
    struct dl_lowered *const out = s->out;
    const struct dl_setting *const setting = &s->request->job->setting;
    const bool by_cost = setting->split == DL_SPLIT_BY_COST && !setting->blocks_at.n;
    const struct dl_deal request = {.model = s->request->model,
                                    .setting = setting,
                                    .n_positions = out->n_positions,
                                    .layer_s = by_cost ? price_layers(s, out->schedule.splits_backward, err) : NULL,
                                    .arena = s->arena};
    return err->status ? err->status : dl_deal_layers(&request, out->positions, err);
}

static enum dl_status check_blocks(const struct dl_sink *s, struct dl_error *err)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->out->n_positions; i++)
        if (s->out->positions[i].n_blocks > most) most = s->out->positions[i].n_blocks;
    return dl_job_check_blocks(s->request->job, s->request->model, most, s->arena, err);
}

static void mean_costs(const struct dl_lowered *l, struct dl_schedule_request *request)
{
    for (uint32_t i = 0; i < l->n_positions; i++) {
        request->forward_s += l->positions[i].items[DL_ITEM_F].total.seconds / l->n_positions;
        request->backward_s += l->positions[i].items[DL_ITEM_B].total.seconds / l->n_positions;
        request->weight_s += l->positions[i].items[DL_ITEM_W].total.seconds / l->n_positions;
    }
}

static enum dl_status assemble(struct dl_sink *s, struct dl_lowered *out, struct dl_error *err)
{
    const struct dl_lower_request *const r = s->request;
    const struct dl_setting *const setting = &r->job->setting;
    const uint32_t n_stages = dl_n_stages(setting);
    out->programs = dl_alloc(n_stages * sizeof *out->programs);
    for (uint32_t stage = 0; stage < n_stages; stage++) {
        struct dl_program *const p = &out->programs[stage];
        struct dl_event parameters = {0};
        *p = (struct dl_program){.stage = stage, .n_chunks = setting->chunks, .send_bytes = dl_sent_bytes(s)};
        dl_program_make_items(p);
        for (uint32_t chunk = 0; chunk < setting->chunks; chunk++) {
            struct dl_position *const at = &out->positions[out->schedule.position_of[stage * setting->chunks + chunk]];
            for (uint32_t k = 0; k < DL_N_TEMPLATES; k++) p->items[chunk * DL_N_TEMPLATES + k] = &at->items[k];
            add_parameters(out->layers, at, &parameters);
        }
        if (dl_stage_hold(s, p, err) || lower_end_of_step(s, p, &parameters, err)) return err->status;
    }
    return DL_OK;
}

/* A position and the next. */
static bool same_stage(const struct dl_schedule *s, uint32_t position)
{
    return s->stage_of[position] == s->stage_of[position + 1];
}

/* The first stage waits for no input. It gains nothing where others wait for gathers before it can begin a step. */
static enum dl_gather_at first_gather_at(const struct dl_sink *s, uint32_t stage)
{
    const bool begins_alone = stage == 0 && !s->request->job->setting.software->step_barrier;
    return s->out->schedule.stages == 1 || begins_alone ? DL_GATHER_AT_FORWARD : DL_GATHER_AT_UPDATE;
}

static void find_chunks(const struct dl_sink *sink)
{
    struct dl_lowered *const out = sink->out;
    const struct dl_schedule *const s = &out->schedule;
    for (uint32_t i = 0; i < out->n_positions; i++) {
        struct dl_position *const p = &out->positions[i];
        p->chunk = (struct dl_chunk){.layers = &out->layers[p->first_layer],
                                     .n_layers = p->end_layer - p->first_layer,
                                     .gather_at = DL_GATHER_AT_UPDATE};
    }
    for (uint32_t i = 0; s->n_paths == 1 && i < s->stages * s->chunks; i++) {
        struct dl_chunk *const chunk = &out->positions[s->position_of[i]].chunk;
        struct dl_chunk *const previous = i % s->chunks ? &out->positions[s->position_of[i - 1]].chunk : NULL;
        if (!previous)
            chunk->gather_at = first_gather_at(sink, i / s->chunks);
        else if (previous->n_layers > 0)
            chunk->gather_at = DL_GATHER_AT_PREVIOUS_CHUNK;
        if (previous) previous->next = chunk;
    }
}

/* As one that is alike was, if there is one. */
static enum dl_status lower_or_share(struct dl_sink *s, struct dl_position *p, bool splits, struct dl_error *err)
{
    const struct dl_position_keys *const keys = dl_position_note_begin(s, p, splits);
    if (dl_position_write_again(s, keys, p)) return DL_OK;
    if (!lower_position(s, p, splits, err)) dl_position_note_end(s, keys, p);
    return err->status;
}

static void lower_positions(struct dl_sink *s, struct dl_step_draw *draw, struct dl_error *err)
{
    struct dl_lowered *const out = s->out;
    find_chunks(s);
    for (uint32_t i = 0; i < out->n_positions && !err->status; i++) {
        out->positions[i].is_sent_input = i > 0 && !same_stage(&out->schedule, i - 1);
        out->positions[i].is_sent_gradient = i + 1 < out->n_positions && !same_stage(&out->schedule, i);
        s->counted = draw->micro;
        lower_or_share(s, &out->positions[i], out->schedule.splits_backward, err);
        for (int kind = 0; kind <= DL_ITEM_W; kind++)
            for (int ground = 0; ground < DL_N_GROUNDS; ground++)
                out->by_ground[ground] += out->positions[i].items[kind].total.by_ground[ground];
    }
}

/* What the kernels draw is added up. */
static enum dl_status lower_all(struct dl_sink *s, struct dl_step_draw *draw, struct dl_error *err)
{
    const struct dl_lower_request *const request = s->request;
    const struct dl_setting *const setting = &request->job->setting;
    struct dl_lowered *const out = s->out;
    if (dl_job_check(request->job, request->model, s->arena, err) || dl_sink_init_host(s, err)) return err->status;
    dl_sink_init_groups(s);
    struct dl_schedule_request wish = dl_setting_schedule(setting);
    /* First only for its positions; once these are priced the order may depend on what they cost. */
    if (dl_kept_schedule_take(request->schedules, setting, s->arena, out, err)) return err->status;
    out->n_positions = out->schedule.n_positions;
    out->positions = dl_alloc(out->n_positions * sizeof *out->positions);
    out->layers = dl_dealt_layers(request->model, &out->schedule, s->arena);
    dl_layer_records_init(s);
    if (!deal(s, err)) check_blocks(s, err);
    lower_positions(s, draw, err);
    mean_costs(out, &wish);
    s->counted = draw->end;
    if (!err->status && out->schedule.uses_times)
        dl_schedule_make(setting->schedule, &wish, s->arena, &out->schedule, err);
    if (!err->status && !assemble(s, out, err)) dl_kept_sequences_take(out, setting, err);
    for (int bound = 0; bound < DL_N_BOUNDS; bound++)
        out->draw[bound] = dl_step_draw_sum(draw, (enum dl_bound)bound, setting);
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        out->model_flop[count] = request->model->model_flop_per_sample[count] * setting->global_batch;
    return err->status;
}

/* With devices at that clock. */
static enum dl_status lower_at(const struct dl_lower_request *request, double clock, struct dl_arena *arena,
                               struct dl_lowered *out, struct dl_step_draw *draw, struct dl_error *err)
{
    struct dl_stack *const stack = request->job->stack;
    struct dl_sink s = {.request = request, .arena = arena, .out = out, .clock = clock};
    s.blocks_launches = dl_stack_blocks_launches(stack, &s.launch_wait_s);
    dl_stack_begin(stack, &(struct dl_stack_use){request->model->n_layers, arena, dl_sink_take, &s});
    *out = (struct dl_lowered){.clock = dl_device_throttles(request->device) ? clock : 0};
    lower_all(&s, draw, err);
    dl_stack_end(stack); /* what its sink is called with ends here */
    dl_sink_release(&s);
    return err->status;
}

enum dl_status dl_lower(const struct dl_lower_request *request, struct dl_arena *arena, struct dl_lowered *out,
                        struct dl_error *err)
{
    struct dl_step_draw draw = {0}, slower = {0};
    if (lower_at(request, 1, arena, out, &draw, err) || !dl_device_throttles(request->device)) return err->status;
    const struct dl_setting *const setting = &request->job->setting;
    const double clock = dl_step_clock(request->device->power, setting, out, &draw);
    if (clock == 1) return DL_OK;
    dl_lowered_release(out, dl_n_stages(setting));
    return lower_at(request, clock, arena, out, &slower, err);
}

struct dl_step dl_lowered_step(const struct dl_lowered *l, const struct dl_setting *setting)
{
    const struct dl_software *const software = setting->software;
    const bool drains = dl_drains_at_sends(setting);
    return (struct dl_step){.ranks = &setting->ranks,
                            .in_lockstep = dl_in_lockstep(setting),
                            .replicas = dl_along_replicas(setting),
                            .stages = DL_ALONG_PIPELINE,
                            .n_servers = setting->servers,
                            .programs = l->programs,
                            .calls = l->calls,
                            .n_calls = l->n_calls,
                            .plan = l->plan,
                            .sends = dl_sends_of(setting),
                            .send_host_s = software->send_host_s,
                            .send_messages = software->send_messages + dl_sends_shapes(setting),
                            .drains_at_sends = drains,
                            .drains_at_receives = drains || software->drains_at_receives,
                            .has_barrier = software->step_barrier};
}

void dl_lowered_release(struct dl_lowered *l, uint32_t n_stages)
{
    for (uint32_t i = 0; l->programs && i < n_stages; i++) dl_program_release(&l->programs[i]);
    /* A position may be in several programs, so its templates are released here. */
    for (uint32_t i = 0; i < l->n_positions; i++) release_position(&l->positions[i]);
    dl_kept_schedule_give_back(l->kept);
    dl_free(l->programs);
    dl_free(l->calls);
    dl_free(l->positions);
    *l = (struct dl_lowered){0};
}
