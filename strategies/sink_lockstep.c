/* sink_lockstep.c - collectives of ranks in lockstep: one after the other with kernels, beside one, or beside a layer.
 */
#include "strategies/sink.h"

/* All that are alike are one call. */
static uint32_t call_of(struct dl_sink *s, struct dl_priced_collective *p)
{
    struct dl_lowered *const out = s->out;
    if (p->call != DL_EVERY_CALL) return p->call;
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls] = p->what;
    return p->call = (uint32_t)out->n_calls++;
}

enum dl_status dl_sink_in_lockstep(struct dl_sink *s, const struct dl_event *ev, size_t from, struct dl_error *err)
{
    struct dl_priced_collective *const p = dl_sink_price(s, ev, err);
    if (!p) return err->status;
    struct dl_template *const into = dl_sink_place(s, ev);
    struct dl_instruction start = {
        .kind = DL_START, .name = dl_op_name(ev->op), .host_s = dl_sink_launch_s(s, ev), .call = call_of(s, p)};
    dl_sink_blocking_launch(s, into, &start);
    dl_template_insert(into, from == DL_AT_END ? into->n_instructions : from, &start);
    dl_template_add(into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = start.call});
    return DL_OK;
}

static void wait_for(struct dl_sink *s, uint32_t call)
{
    dl_template_add(s->into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = call});
}

void dl_sink_end_layer(struct dl_sink *s)
{
    if (s->n_beside_layer) wait_for(s, s->last_beside_layer);
    for (size_t i = 0; i < s->n_after_layer; i++) {
        const uint32_t call = s->after_layer[i];
        const char *const name = dl_op_name(s->out->calls[call].op);
        dl_template_add(s->into, &(struct dl_instruction){.kind = DL_START, .name = name, .call = call});
        wait_for(s, call);
    }
    s->n_beside_layer = 0;
    s->n_after_layer = 0;
}

/* Launched here. It is another micro-batch's, so that it goes on from the begin of the layer to its end. */
static enum dl_status put_beside_layer(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    struct dl_priced_collective *const p = dl_sink_price(s, ev, err);
    if (!p) return err->status;
    const struct dl_instruction start = {.kind = DL_START, .name = dl_op_name(ev->op), .call = call_of(s, p)};
    dl_template_insert(s->into, s->layer_begins + s->n_beside_layer++, &start);
    s->last_beside_layer = start.call;
    dl_template_add(
        dl_sink_place(s, ev),
        &(struct dl_instruction){.name = dl_op_name(ev->op), .cause = ev->cause, .host_s = dl_sink_launch_s(s, ev)});
    return DL_OK;
}

static enum dl_status put_after_layer(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    struct dl_priced_collective *const p = dl_sink_price(s, ev, err);
    if (!p) return err->status;
    DL_GROW(s->after_layer, s->n_after_layer, s->after_layer_capacity);
    s->after_layer[s->n_after_layer++] = call_of(s, p);
    return DL_OK;
}

enum dl_status dl_sink_beside_layer(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const double hidden = s->request->job->setting.software->dispatch_overlap_fraction *
                          dl_schedule_share_beside(&s->out->schedule); /* in the mean of all micro-batches */
    if (ev->over == DL_NOT_OVER || hidden == 1) return put_beside_layer(s, ev, err);
    struct dl_event beside = *ev, waited_for = *ev;
    beside.part = hidden, beside.bytes = hidden * ev->bytes;
    waited_for.part = 1 - hidden, waited_for.bytes = (1 - hidden) * ev->bytes;
    waited_for.async = false;
    if (hidden == 0) return dl_sink_in_lockstep(s, &waited_for, DL_AT_END, err);
    return put_beside_layer(s, &beside, err) || put_after_layer(s, &waited_for, err) ? err->status : DL_OK;
}
