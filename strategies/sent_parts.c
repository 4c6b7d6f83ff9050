#include "strategies/sent_parts.h"

/* Of the activations between two stages. */
static double output_bytes(const struct dl_sink *s)
{
    const struct dl_layer *const last = &s->request->model->layers[s->out->positions[0].end_layer - 1];
    return last->output_elements * dl_precision_bytes(s->request->job->setting.precision);
}

double dl_sent_bytes(const struct dl_sink *s)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const double repeated = (double)setting->ways[DL_AXIS_TENSOR] / setting->parts.outside;
    if (dl_n_stages(setting) == 1) return 0;
    return output_bytes(s) * (setting->software->scatters_sends ? 1 : repeated);
}

/* The buffer is cleared before, and its content copied after, as the software says. */
static enum dl_status move(struct dl_sink *s, enum dl_pass pass, double bytes, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const double elements = setting->software->part_moves * bytes / dl_precision_bytes(setting->precision);
    const struct dl_event ev = {.kind = DL_EV_COMPUTE,
                                .pass = pass,
                                .cause = DL_CAUSE_TENSOR,
                                .kernel = {.kind = DL_KERNEL_MEMORY, .name = "copy_parts", .elements = elements}};
    return elements > 0 ? dl_emit(s->request->job->stack, &ev, err) : DL_OK;
}

static enum dl_status gather(struct dl_sink *s, enum dl_pass pass, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_event ev = {.kind = DL_EV_COLLECTIVE,
                                .pass = pass,
                                .cause = DL_CAUSE_TENSOR,
                                .gradient = DL_GRADIENT_INPUT,
                                .op = DL_ALLGATHER,
                                .members.digits = DL_ALONG_TENSOR,
                                .bytes = output_bytes(s) /
                                         dl_ranks_count(&setting->ranks, dl_in_lockstep(setting) & ~DL_ALONG_TENSOR)};
    return dl_emit(s->request->job->stack, &ev, err) ? err->status : move(s, pass, ev.bytes, err);
}

/* A stage whose outputs went away in parts may have kept no more of them than its own. */
enum dl_status dl_gather_sent(struct dl_sink *s, const struct dl_position *p, enum dl_pass pass, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const bool is_backward = pass == DL_BACKWARD;
    if (!(is_backward ? p->is_sent_gradient : p->is_sent_input) || !dl_sends_parts(setting)) return DL_OK;
    if (is_backward && setting->software->gathers_outputs && gather(s, pass, err)) return err->status;
    return gather(s, pass, err);
}
