#include "sim/report/explain_run.h"

#include <math.h>

#include "sim/report/explain_step.h"
#include "sim/report/units.h"

const char *dl_told_count(const struct dl_told_step *t, double n)
{
    return t->n_stages == 1 ? number(t, n)
                            : dl_arena_format(t->e->arena, "%s / %s", number(t, n), number(t, t->n_stages));
}

void dl_tell_difference(const struct dl_told_step *t, enum dl_cause cause, double seconds, const char *words)
{
    const double rounding = 1e-12;
    if (fabs(seconds) > rounding * t->r->result.step_s)
        dl_explain_term(t->e, dl_cause_name(cause), seconds, words, NULL);
}

/* ---- the host ---- */

static void tell_waits(struct dl_told_step *t)
{
    for (size_t i = 0; i < t->lines.n_waits; i++) {
        const struct dl_work_wait *const w = &t->lines.waits[i];
        char launches[DL_QUANTITY];
        dl_explain_term(t->e, dl_cause_name(DL_CAUSE_HOST), w->n / t->n_stages * w->seconds,
                        dl_arena_format(t->e->arena, "%s: the device is ahead of launches that take the host %s",
                                        dl_work_kind_name(w->kind), dl_format_seconds(w->host_s, launches)),
                        dl_arena_format(t->e->arena, "%s * %s", dl_told_count(t, w->n), number(t, w->seconds)));
        dl_explain_cite(t->e, below(t, t->of->software_doc, "host_s_per_launch"));
        dl_explain_cite(t->e, below(t, below(t, below(t, t->of->system_doc, "node"), "host"), "slowdown"));
    }
}

/* ---- the bubble ---- */

/* Its share of the ideal time, as p - 1 over how often a stage goes through a chunk where it is that. */
static const char *share_expression(const struct dl_told_step *t, double share, double passes)
{
    const double close = 1e-9;
    if (fabs(share - (t->n_stages - 1) / passes) > close * share) return number(t, share);
    return dl_arena_format(t->e->arena, "(%s - 1) / %s", number(t, t->n_stages), number(t, passes));
}

/* Of schedules that have a closed form, that. */
static void tell_bubble(struct dl_told_step *t)
{
    const struct dl_schedule *const s = &t->r->lowered->schedule;
    const double own_s = t->r->schedule_bubble_s, *const item_s = t->r->result.item_s, close = 1e-9;
    const struct dl_schedule_request mean = dl_schedule_with_items(s, item_s);
    if (t->n_stages == 1 || own_s <= 0) return;
    const double share = dl_schedule_named(t->setting->schedule)->bubble(&mean);
    const double passes = (double)s->micros * s->n_positions / s->stages;
    const double closed_s = share * passes * (mean.forward_s + mean.backward_s + mean.weight_s);
    const bool is_closed = share >= 0 && fabs(closed_s - own_s) <= close * closed_s;
    const char *const expression =
        dl_arena_format(t->e->arena, "%s * %s * (%s + %s + %s)", share_expression(t, share, passes), number(t, passes),
                        number(t, mean.forward_s), number(t, mean.backward_s), number(t, mean.weight_s));
    dl_explain_term(t->e, dl_cause_name(DL_CAUSE_BUBBLE), is_closed ? closed_s : own_s,
                    dl_arena_format(t->e->arena, "of the schedule %s itself, %s", t->setting->schedule,
                                    is_closed ? "its share of all mean forwards, backwards and weight gradients"
                                              : "by the longest path through mean items"),
                    is_closed ? expression : NULL);
}

/* ---- what the simulation makes of it ---- */

static const char *work_words(const struct dl_told_step *t)
{
    if (t->of->slows_ranks) return "a scenario, or the variability of the machine, slows ranks down";
    return "the step is seen from the end of the one before to its own: stages have begun it earlier, and go on with "
           "the "
           "next";
}

static const char *words_of(const struct dl_told_step *t, enum dl_cause cause, double seconds)
{
    switch (cause) {
    case DL_CAUSE_COMPUTE:
    case DL_CAUSE_RECOMPUTE:
    case DL_CAUSE_OPTIMIZER:
    case DL_CAUSE_OFFLOAD: return work_words(t);
    case DL_CAUSE_TENSOR:
    case DL_CAUSE_SEQUENCE:
    case DL_CAUSE_CONTEXT:
    case DL_CAUSE_EXPERT:
        return seconds < 0 ? "simulated beside kernels, it costs only what is left of it when they end"
                           : "it shares links with others, or ranks wait for those that such a collective delays";
    case DL_CAUSE_PIPELINE:
        return seconds < 0 ? "messages go on while ranks work on other micro-batches"
                           : "ranks wait for messages that share links, and for ranks that such messages delay";
    case DL_CAUSE_DATA:
        return seconds < 0 ? "collectives go on beside the backward pass; rounds and lanes overlap"
                           : "groups share links, and ranks wait for the last of their replicas";
    case DL_CAUSE_INPUT:
        return seconds < 0 ? "samples come while the device works on the micro-batch before"
                           : "ranks wait for those whose samples come late";
    case DL_CAUSE_HOST:
        return seconds < 0 ? "the host runs ahead from item to item"
                           : "the host waits for the device, then launches late";
    case DL_CAUSE_INTERFERENCE: return "kernels beside collectives and messages have less of the device";
    case DL_CAUSE_STRAGGLER: return "ranks wait for those that the scenario has made late";
    case DL_CAUSE_BUBBLE: return "stages are unequal, and ranks wait for those with more to do";
    default: return "";
    }
}

static bool is_of(const struct dl_told_step *t, const struct dl_work_line *line, enum dl_cause cause)
{
    if (line->what.kind == DL_START) return t->r->lowered->calls[line->what.call].cause == cause;
    return line->what.cause == cause;
}

static void tell_line(struct dl_told_step *t, const struct dl_work_line *line)
{
    if (line->what.kind == DL_START)
        dl_tell_call(t, line);
    else if (line->collective)
        dl_tell_in_step(t, line);
    else
        dl_tell_kernel(t, line);
}

/* What is simulated has no terms of its own. */
static void tell_rest(struct dl_told_step *t, enum dl_cause cause, double rest_s)
{
    const size_t before = t->e->n_terms;
    dl_tell_difference(t, cause, rest_s, words_of(t, cause, rest_s));
    if (cause != DL_CAUSE_INTERFERENCE || t->e->n_terms == before) return;
    dl_cite_taken(t);
    if (t->n_stages > 1) dl_explain_cite_below(t->e, below(t, t->of->device_doc, "taken_by_sends"));
}

static void tell_cause(struct dl_told_step *t, enum dl_cause cause)
{
    const double exposed_s = t->r->result.exposed_s[cause];
    const size_t before = t->e->n_terms;
    for (size_t i = 0; i < t->lines.n && !t->err->status; i++)
        if (is_of(t, &t->lines.items[i], cause)) tell_line(t, &t->lines.items[i]);
    if (cause == DL_CAUSE_PIPELINE) dl_tell_sends(t);
    if (cause == DL_CAUSE_HOST) tell_waits(t);
    if (cause == DL_CAUSE_BUBBLE) tell_bubble(t);
    const double rest_s = exposed_s - dl_explained_s(t->e, dl_cause_name(cause));
    tell_rest(t, cause, rest_s);
    if (t->e->n_terms > before) dl_explain_sum(t->e, DL_SUM_LAST, exposed_s, dl_cause_name(cause));
}

enum dl_status dl_explain_run(struct dl_explanation *e, const struct dl_explained_run *of, struct dl_error *err)
{
    struct dl_told_step t = {.e = e, .of = of, .r = of->report, .setting = &of->report->job->setting, .err = err};
    const struct dl_json docs[] = {of->system_doc, of->device_doc, of->transport_doc, of->software_doc};
    t.n_stages = t.r->lowered->schedule.stages;
    for (size_t i = 0; i < DL_COUNT(docs); i++) dl_explain_read(e, docs[i]);
    dl_work_lines_collect(t.r, &t.lines);
    for (int cause = 0; cause < DL_N_CAUSES && !err->status; cause++) tell_cause(&t, (enum dl_cause)cause);
    dl_explain_sum(e, DL_SUM_ALL, t.r->result.step_s, "the step");
    dl_free(t.lines.items);
    dl_free(t.lines.waits);
    return err->status;
}
