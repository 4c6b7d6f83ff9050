#include "strategies/stage_memory.h"

#include "strategies/layer_memory.h"
#include "strategies/layer_records.h"

/* The memory of the layers of a stage. */
struct visit {
    enum dl_pass pass;
    enum dl_status (*emit)(struct dl_stack *top, const struct dl_event *at, struct dl_error *err);
    struct dl_memory_ops *into;
    size_t place; /* of all of it */
};

/* Or as that of one that is alike was. */
static enum dl_status visit_layer(struct dl_sink *s, const struct visit *v, const struct dl_event *at,
                                  struct dl_error *err)
{
    const struct dl_layer_key key = dl_layer_key_of(s, at, false);
    const size_t from = v->into->n;
    if (dl_layer_hold_again(s, &key, v->into, v->place)) return DL_OK;
    if (!v->emit(s->request->job->stack, at, err)) dl_layer_note_held(s, &key, v->into, from, v->place);
    return err->status;
}

static enum dl_status visit_layers(struct dl_sink *s, uint32_t stage, const struct visit *v, struct dl_error *err)
{
    const uint32_t n_chunks = s->request->job->setting.chunks;
    for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
        const struct dl_position *const p = &s->out->positions[s->out->schedule.position_of[stage * n_chunks + chunk]];
        for (size_t i = p->first_layer; i < p->end_layer; i++) {
            const struct dl_event at = {.kind = DL_EV_LAYER,
                                        .pass = v->pass,
                                        .layer = &s->out->layers[i],
                                        .first = i == p->first_layer,
                                        .n_after = (uint32_t)(p->end_layer - 1 - i),
                                        .block = (uint32_t)(i - p->first_block),
                                        .n_blocks = p->n_blocks};
            if (visit_layer(s, v, &at, err)) return err->status;
        }
    }
    return DL_OK;
}

/* One input that has come early and one output that is not gone yet. */
static void hold_messages(const struct dl_setting *s, struct dl_program *p)
{
    const double in_lockstep = dl_ranks_count(&s->ranks, dl_in_lockstep(s));
    const double bytes = 2 * p->send_bytes / in_lockstep;
    if (bytes > 0) dl_memory_ops_add(&p->begin, (struct dl_memory_op){.tensor = DL_TENSOR_MESSAGES, .bytes = bytes});
}

static bool has_experts(const struct dl_sink *s, uint32_t stage)
{
    const uint32_t n_chunks = s->request->job->setting.chunks;
    for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
        const struct dl_position *const p = &s->out->positions[s->out->schedule.position_of[stage * n_chunks + chunk]];
        for (size_t i = p->first_layer; i < p->end_layer; i++)
            if (s->out->layers[i].expert_parameters > 0) return true;
    }
    return false;
}

static void hold_libraries(const struct dl_sink *s, struct dl_program *p)
{
    const struct dl_software *const software = s->request->job->setting.software;
    const bool has_groups = software->group_workspaces > 0 && has_experts(s, p->stage);
    const double n = software->gemm_workspaces + (has_groups ? software->group_workspaces : 0);
    const double bytes = n * s->request->device->gemm_workspace_bytes + software->own_workspace_bytes;
    if (bytes > 0) dl_memory_ops_add(&p->begin, (struct dl_memory_op){.tensor = DL_TENSOR_LIBRARIES, .bytes = bytes});
}

enum dl_status dl_stage_hold(struct dl_sink *s, struct dl_program *program, struct dl_error *err)
{
    s->begin = &program->begin;
    hold_messages(&s->request->job->setting, program);
    hold_libraries(s, program);
    const struct visit all = {.pass = DL_HOLD, .emit = dl_emit_held, .into = &program->begin};
    return visit_layers(s, program->stage, &all, err);
}

static enum dl_status free_gradients(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    return dl_emit_free(top, DL_TENSOR_GRADIENTS, at, err);
}

enum dl_status dl_stage_free_gradients(struct dl_sink *s, uint32_t stage, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    if (setting->software->gradients_persist || setting->streams_weights) return DL_OK;
    const struct visit all = {
        .pass = DL_OPTIMIZER, .emit = free_gradients, .into = &s->into->memory, .place = s->into->length};
    return visit_layers(s, stage, &all, err);
}
