#include "strategies/lower_layers.h"

#include "strategies/gradient_sums.h"
#include "strategies/layer_memory.h"
#include "strategies/layer_records.h"

struct place {
    const struct dl_layer *layer;
    size_t n_after; /* in this pass on this position */
    bool first, first_micro, last_micro;
    const struct dl_chunk *chunk; /* with first_micro */
    bool splits;                  /* weight gradients come apart */
    uint32_t block, n_blocks;     /* as in struct dl_event */
};

static enum dl_status emit_work(struct dl_stack *top, const struct dl_event *at, const struct dl_work *work,
                                struct dl_error *err)
{
    if (dl_emit_given(top, work, at->pass, at->layer, err) || dl_emit_working(top, at, work, false, err) ||
        dl_emit_kernel(top, work, at->pass, at->layer, err) || dl_emit_working(top, at, work, true, err))
        return err->status;
    return dl_emit_made(top, work, at->pass, at->layer, err) ? err->status : dl_emit_kept(top, work, at, err);
}

static enum dl_status emit_layer(const struct dl_sink *s, enum dl_pass pass, const struct place *at,
                                 struct dl_error *err)
{
    struct dl_stack *const top = s->request->job->stack;
    const struct dl_layer *const layer = at->layer;
    const bool forward = pass == DL_FORWARD;
    const struct dl_work *const work = forward ? layer->forward : layer->backward;
    const size_t n = forward ? layer->n_forward : layer->n_backward;
    struct dl_event ev = {.kind = DL_EV_LAYER,
                          .pass = pass,
                          .layer = layer,
                          .n_after = (uint32_t)at->n_after,
                          .first = at->first,
                          .first_micro = at->first_micro,
                          .chunk = at->chunk,
                          .block = at->block,
                          .n_blocks = at->n_blocks};
    const struct dl_event begins = ev;
    if (dl_emit(top, &ev, err) || dl_emit_entered(top, &begins, err)) return err->status;
    for (size_t i = 0; i < n; i++)
        if (emit_work(top, &begins, &work[i], err)) return err->status;
    if (dl_emit_left(top, &begins, err)) return err->status;
    const bool is_summed = !forward && !at->last_micro && dl_sums_gradients_apart(&s->request->job->setting);
    if (is_summed && dl_emit_gradient_sum(top, layer, err)) return err->status;
    ev.kind = DL_EV_LAYER_DONE;
    ev.last_micro = at->last_micro;
    ev.parameters_inside = layer->parameters_inside;
    ev.parameters_outside = layer->parameters_outside;
    ev.parameters_expert = layer->expert_parameters;
    if (dl_emit(top, &ev, err)) return err->status;
    return at->splits && !forward ? dl_emit_operands(top, &begins, err) : DL_OK;
}

static struct dl_layer_key key_of(const struct dl_sink *s, enum dl_pass pass, const struct place *at)
{
    const struct dl_event layer = {.kind = DL_EV_LAYER,
                                   .pass = pass,
                                   .layer = at->layer,
                                   .first = at->first,
                                   .first_micro = at->first_micro,
                                   .last_micro = at->last_micro,
                                   .block = at->block,
                                   .n_blocks = at->n_blocks};
    return dl_layer_key_of(s, &layer, at->splits);
}

static struct place forward_place(const struct dl_sink *s, const struct dl_position *p, size_t layer, bool first_micro)
{
    return (struct place){.layer = &s->out->layers[layer],
                          .n_after = p->end_layer - 1 - layer,
                          .first = layer == p->first_layer,
                          .first_micro = first_micro,
                          .chunk = first_micro ? &p->chunk : NULL,
                          .block = (uint32_t)(layer - p->first_block),
                          .n_blocks = p->n_blocks};
}

static struct place backward_place(const struct dl_sink *s, const struct dl_position *p, size_t layer, bool last_micro,
                                   bool splits)
{
    return (struct place){.layer = &s->out->layers[layer],
                          .n_after = layer - p->first_layer,
                          .first = layer + 1 == p->end_layer,
                          .last_micro = last_micro,
                          .splits = splits,
                          .block = (uint32_t)(layer - p->first_block), /* of use in blocks only */
                          .n_blocks = p->n_blocks};
}

size_t dl_position_keys(const struct dl_sink *s, const struct dl_position *p, bool splits, struct dl_layer_key *out)
{
    const int n_forwards = s->request->job->setting.first_forward_differs ? 2 : 1;
    const int n_backwards = s->request->job->setting.last_backward_differs ? 2 : 1;
    size_t n = 0;
    for (int first = 0; first < n_forwards; first++)
        for (size_t i = p->first_layer; i < p->end_layer; i++) {
            const struct place at = forward_place(s, p, i, first);
            out[n++] = key_of(s, DL_FORWARD, &at);
        }
    for (int last = 0; last < n_backwards; last++)
        for (size_t i = p->end_layer; i-- > p->first_layer;) {
            const struct place at = backward_place(s, p, i, last, splits);
            out[n++] = key_of(s, DL_BACKWARD, &at);
        }
    return n;
}

/* Or as one that is alike was. */
static enum dl_status lower_layer(struct dl_sink *s, enum dl_pass pass, const struct place *at, struct dl_error *err)
{
    const struct dl_layer_key key = key_of(s, pass, at);
    if (dl_layer_write_again(s, &key)) return DL_OK;
    dl_layer_note_begin(s);
    if (emit_layer(s, pass, at, err)) return err->status;
    s->note.is_its_own |= key_of(s, pass, at).is_own; /* something is left for the next */
    s->position.is_its_own |= !dl_layer_note_end(s, &key);
    return DL_OK;
}

enum dl_status dl_lower_forward(struct dl_sink *s, const struct dl_position *p, bool first_micro, struct dl_error *err)
{
    for (size_t i = p->first_layer; i < p->end_layer; i++) {
        const struct place at = forward_place(s, p, i, first_micro);
        if (lower_layer(s, DL_FORWARD, &at, err)) return err->status;
    }
    return DL_OK;
}

/* They are added to those that accumulate when a backward is over, and freed there or where the next one begins. */
static void free_gradient_copies(struct dl_sink *s, const struct dl_position *p, bool at_begin)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    struct dl_template *const into = s->weights ? s->weights : s->into;
    if (dl_gradient_copy_bytes(setting) == 0 || at_begin != setting->software->backward_gradients_stay) return;
    for (size_t i = p->first_layer; i < p->end_layer; i++)
        dl_memory_ops_add(&into->memory, (struct dl_memory_op){.frees = true,
                                                               .tensor = DL_TENSOR_GRADIENT_COPIES,
                                                               .layer = s->out->layers[i].index,
                                                               .at = into->length});
}

enum dl_status dl_lower_backward(struct dl_sink *s, const struct dl_position *p, bool last_micro, struct dl_error *err)
{
    free_gradient_copies(s, p, true);
    for (size_t i = p->end_layer; i-- > p->first_layer;) {
        const struct place at = backward_place(s, p, i, last_micro, s->weights != NULL);
        if (lower_layer(s, DL_BACKWARD, &at, err)) return err->status;
    }
    dl_sink_end_buckets(s);
    free_gradient_copies(s, p, false);
    return DL_OK;
}
