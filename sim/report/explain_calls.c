/* explain_calls.c - collectives and messages of a step, by the closed forms of what was chosen for them. */
#include "sim/report/explain_step.h"
#include "sim/report/units.h"
#include "strategies/in_step.h"

/* n: of all stages. Returns the mean over them. */
static double tell_formula(struct dl_told_step *t, enum dl_cause cause, const struct dl_choice *choice, double n,
                           const char *subject)
{
    struct dl_formula_sums sums;
    dl_explain_formula(t->e,
                       &(struct dl_formula_of){.estimator = t->of->estimator,
                                               .choice = choice,
                                               .system_doc = t->of->system_doc,
                                               .transport_doc = t->of->transport_doc,
                                               .times = n / t->n_stages,
                                               .times_words = dl_told_count(t, n),
                                               .part = dl_cause_name(cause),
                                               .subject = subject},
                       &sums, t->err);
    return sums.start_s + sums.latency_s + sums.moving_s + sums.reduction_s;
}

static const char *subject_of(const struct dl_told_step *t, const char *name, const struct dl_choice *choice)
{
    const struct dl_collective *const c = &choice->collective;
    char bytes[DL_QUANTITY];
    return dl_arena_format(t->e->arena, "%s of %s over %u by %s", name, dl_format_bytes(c->bytes, bytes), c->group->n,
                           c->algorithm->name);
}

/* As the sink prices them: a message from every rank to the next is a step of a ring's all-gather. */
void dl_tell_in_step(struct dl_told_step *t, const struct dl_work_line *line)
{
    const struct dl_comm *const what = line->collective;
    const struct dl_group *const group =
        dl_in_step_groups(t->setting, what->members.digits, t->r->topology, t->of->device_of_rank, t->e->arena);
    const bool shifts = what->op == DL_SENDRECV;
    const struct dl_wish wish = {.op = shifts ? DL_ALLGATHER : what->op,
                                 .algorithm = shifts ? "ring" : "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = shifts ? what->bytes * group->n : what->bytes,
                                 .back_fraction = what->back_fraction,
                                 .payload = what->payload};
    struct dl_choice choice;
    if (group->n < 2 || dl_choose(t->of->estimator, &wish, t->e->arena, &choice, t->err)) return;
    const char *const subject = subject_of(t, shifts ? "messages to the next rank" : dl_op_name(what->op), &choice);
    const double formula_s =
        tell_formula(t, line->what.cause, &choice, line->n / (shifts ? group->n - 1.0 : 1), subject);
    dl_tell_difference(t, line->what.cause, line->seconds / t->n_stages - formula_s,
                       dl_arena_format(t->e->arena, "%s: %s", subject,
                                       line->seconds / t->n_stages >= formula_s ? "groups side by side share links"
                                       : line->is_beside ? "only what it takes longer than the kernels beside it counts"
                                                         : "its rounds overlap"));
}

/* Under way while the device works. */
static void tell_copy(struct dl_told_step *t, double n, const struct dl_comm *call)
{
    char amount[DL_QUANTITY], rate[DL_QUANTITY];
    dl_explain_term(t->e, dl_cause_name(call->cause), n / t->n_stages * call->alone_s,
                    dl_arena_format(t->e->arena, "%s for a micro-batch, %s: %s at %s/s", dl_path_copy_name(call->path),
                                    dl_path_names[call->path], dl_format_bytes(call->bytes, amount),
                                    dl_format_bytes(call->bytes / call->alone_s, rate)),
                    dl_arena_format(t->e->arena, "%s * %s", dl_told_count(t, n), number(t, call->alone_s)));
}

void dl_tell_call(struct dl_told_step *t, const struct dl_work_line *line)
{
    const struct dl_comm *const call = &t->r->lowered->calls[line->what.call];
    const struct dl_choice *const choice = &t->of->choices[line->what.call];
    if (call->op == DL_COPY && call->channel == DL_CHANNEL_AHEAD) tell_copy(t, line->n, call);
    if (!choice->collective.algorithm || choice->collective.group->n < 2) return;
    tell_formula(t, call->cause, choice, line->n, subject_of(t, dl_op_name(call->op), choice));
}

/* ---- messages between stages ---- */

void dl_tell_sends(struct dl_told_step *t)
{
    const double n_members = dl_ranks_count(&t->setting->ranks, dl_in_lockstep(t->setting));
    if (t->n_stages == 1) return;
    uint32_t *const pair = dl_arena_alloc(t->e->arena, 2 * sizeof *pair);
    struct dl_group *const group = dl_arena_alloc(t->e->arena, sizeof *group);
    struct dl_choice choice;
    for (uint32_t stage = 0; stage < 2; stage++)
        pair[stage] = t->of->device_of_rank[dl_ranks_offset(&t->setting->ranks, DL_ALONG_PIPELINE, stage)];
    dl_group_init(group, t->r->topology, pair, 2, t->e->arena);
    const struct dl_wish wish = {.op = DL_SENDRECV,
                                 .algorithm = "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = t->r->lowered->programs[0].send_bytes / n_members};
    if (dl_choose(t->of->estimator, &wish, t->e->arena, &choice, t->err)) return;
    tell_formula(t, DL_CAUSE_PIPELINE, &choice, dl_work_count_sends(&t->r->lowered->schedule),
                 "messages to the next stage");
}
