#include "sim/report/explain_run.h"

#include <math.h>
#include <string.h>

#include "sim/report/explain_work.h"
#include "sim/report/units.h"
#include "strategies/in_step.h"

struct told {
    struct dl_explanation *e;
    const struct dl_explained_run *of;
    const struct dl_run_report *r;
    const struct dl_setting *setting;
    struct dl_work_lines lines;
    double n_stages;
    bool has_cited_model;
    struct dl_error *err;
};

static const char *number(const struct told *t, double x) { return dl_explain_number(t->e, x); }

static struct dl_json below(const struct told *t, struct dl_json object, const char *key)
{
    return dl_json_member(object, key, t->e->arena);
}

/* "96", or "6144 / 64": the mean over stages. */
static const char *mean_count(const struct told *t, double n)
{
    return t->n_stages == 1 ? number(t, n)
                            : dl_arena_format(t->e->arena, "%s / %s", number(t, n), number(t, t->n_stages));
}

static const char *part_of(enum dl_cause cause) { return dl_cause_name(cause); }

/* What is more than rounding. */
static void tell_difference(const struct told *t, enum dl_cause cause, double seconds, const char *words)
{
    const double rounding = 1e-13;
    if (fabs(seconds) > rounding * t->r->result.step_s) dl_explain_term(t->e, part_of(cause), seconds, words, NULL);
}

/* ---- kernels ---- */

/* What a kernel needs at least of the peak or of the memory, and the share of it that it reaches; or it is as short as
 * a kernel can be. */
struct bound {
    double share; /* 0: nothing is known but its time */
    bool is_by_flop, is_launch;
};

static struct bound bound_of(const struct told *t, const struct dl_instruction *i)
{
    const struct dl_device *const d = t->r->device;
    const double flop_s = i->flop / d->peak_flop_per_s[t->setting->precision];
    const double memory_s = i->bytes / d->memory_bytes_per_s;
    return (struct bound){fmax(flop_s, memory_s) / i->device_s, flop_s >= memory_s, i->device_s == d->launch_s};
}

static const char *kernel_expression(const struct told *t, const struct dl_work_line *line, const struct bound *b)
{
    const struct dl_device *const d = t->r->device;
    const struct dl_instruction *const i = &line->what;
    const char *const n = mean_count(t, line->n);
    if (b->share <= 0 || b->is_launch) return dl_arena_format(t->e->arena, "%s * %s", n, number(t, i->device_s));
    return dl_arena_format(t->e->arena, "%s * %s / (%s * %s)", n, number(t, b->is_by_flop ? i->flop : i->bytes),
                           number(t, b->is_by_flop ? d->peak_flop_per_s[t->setting->precision] : d->memory_bytes_per_s),
                           number(t, b->share));
}

static const char *kernel_words(const struct told *t, const struct dl_work_line *line, const struct bound *b)
{
    const struct dl_instruction *const i = &line->what;
    char amount[DL_QUANTITY];
    const char *const kind = dl_work_kind_name(line->kind);
    if (b->is_launch) return dl_arena_format(t->e->arena, "%s, %s: the least time between two kernels", i->name, kind);
    if (b->share <= 0) return dl_arena_format(t->e->arena, "%s, %s", i->name, kind);
    return dl_arena_format(t->e->arena, "%s, %s: %s at %.3g %% of the %s, %s", i->name, kind,
                           b->is_by_flop ? dl_format_flop(i->flop, amount) : dl_format_bytes(i->bytes, amount),
                           100 * b->share, b->is_by_flop ? "peak" : "memory bandwidth", dl_ground_name(i->ground));
}

/* The figures of the device's model are told once. */
static void cite_kernel(struct told *t, const struct dl_instruction *i, const struct bound *b)
{
    const struct dl_json doc = t->of->device_doc;
    const char *const precision = dl_precision_name(t->setting->precision);
    if (b->is_launch) dl_explain_cite(t->e, below(t, doc, "launch_s"));
    if (b->share <= 0 || b->is_launch) return;
    dl_explain_cite(t->e, b->is_by_flop ? below(t, below(t, doc, "peak_flop_per_s"), precision)
                                        : below(t, doc, "memory_bytes_per_s"));
    if (i->ground != DL_GROUND_MODELLED || t->has_cited_model) return;
    dl_explain_cite_below(t->e, below(t, doc, "figures"));
    t->has_cited_model = true;
}

static void tell_kernel(struct told *t, const struct dl_work_line *line)
{
    const struct bound b = bound_of(t, &line->what);
    dl_explain_term(t->e, part_of(line->what.cause), line->n / t->n_stages * line->what.device_s,
                    kernel_words(t, line, &b), kernel_expression(t, line, &b));
    cite_kernel(t, &line->what, &b);
}

/* ---- collectives ---- */

/* n: of all stages. Returns the mean over them. */
static double tell_formula(struct told *t, enum dl_cause cause, const struct dl_choice *choice, double n,
                           const char *subject)
{
    struct dl_formula_sums sums;
    dl_explain_formula(t->e,
                       &(struct dl_formula_of){.estimator = t->of->estimator,
                                               .choice = choice,
                                               .system_doc = t->of->system_doc,
                                               .transport_doc = t->of->transport_doc,
                                               .times = n / t->n_stages,
                                               .times_words = mean_count(t, n),
                                               .part = part_of(cause),
                                               .subject = subject},
                       &sums, t->err);
    return sums.start_s + sums.latency_s + sums.moving_s + sums.reduction_s;
}

static const char *subject_of(const struct told *t, const char *name, const struct dl_choice *choice)
{
    const struct dl_collective *const c = &choice->collective;
    char bytes[DL_QUANTITY];
    return dl_arena_format(t->e->arena, "%s of %s over %u by %s", name, dl_format_bytes(c->bytes, bytes), c->group->n,
                           c->algorithm->name);
}

/* As the sink prices them: a message from every rank to the next is a step of a ring's all-gather. */
static void tell_in_step(struct told *t, const struct dl_work_line *line)
{
    const struct dl_in_step *const what = line->what.collective;
    const struct dl_seats seats = {t->setting, t->of->device_of_rank, t->r->topology};
    const struct dl_group *const group = dl_in_step_groups(&seats, what->axis, 0, 0, t->e->arena);
    const bool shifts = what->op == DL_SENDRECV;
    const struct dl_wish wish = {.op = shifts ? DL_ALLGATHER : what->op,
                                 .algorithm = shifts ? "ring" : "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = shifts ? what->bytes * group->n : what->bytes,
                                 .payload = what->payload};
    struct dl_choice choice;
    if (group->n < 2 || dl_choose(t->of->estimator, &wish, t->e->arena, &choice, t->err)) return;
    const char *const subject = subject_of(t, shifts ? "messages to the next rank" : dl_op_name(what->op), &choice);
    const double formula_s =
        tell_formula(t, line->what.cause, &choice, line->n / (shifts ? group->n - 1.0 : 1), subject);
    tell_difference(t, line->what.cause, line->seconds / t->n_stages - formula_s,
                    dl_arena_format(t->e->arena, "%s: %s", subject,
                                    line->seconds / t->n_stages < formula_s
                                        ? "overlaps with the kernels beside it, or its rounds with each other"
                                        : "groups side by side share links"));
}

static void tell_call(struct told *t, const struct dl_work_line *line)
{
    const struct dl_call *const call = &t->r->lowered->calls[line->what.call];
    const struct dl_choice *const choice = &t->of->choices[line->what.call];
    if (!choice->collective.algorithm || choice->collective.group->n < 2) return;
    tell_formula(t, call->cause, choice, line->n, subject_of(t, dl_exchange_name(call->op), choice));
}

/* ---- messages between stages ---- */

static void tell_sends(struct told *t)
{
    const uint32_t first[DL_N_AXES] = {0}, second[DL_N_AXES] = {[DL_AXIS_PIPELINE] = 1};
    const double n_members = (double)t->setting->ways[DL_AXIS_TENSOR] * t->setting->ways[DL_AXIS_CONTEXT];
    if (t->n_stages == 1) return;
    uint32_t *const pair = dl_arena_alloc(t->e->arena, 2 * sizeof *pair);
    struct dl_group *const group = dl_arena_alloc(t->e->arena, sizeof *group);
    struct dl_choice choice;
    pair[0] = t->of->device_of_rank[dl_rank_at(t->setting, first)];
    pair[1] = t->of->device_of_rank[dl_rank_at(t->setting, second)];
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

/* ---- the host ---- */

static void tell_waits(struct told *t)
{
    for (size_t i = 0; i < t->lines.n_waits; i++) {
        const struct dl_work_wait *const w = &t->lines.waits[i];
        char launches[DL_QUANTITY];
        dl_explain_term(t->e, part_of(DL_CAUSE_HOST), w->n / t->n_stages * w->seconds,
                        dl_arena_format(t->e->arena, "%s: the device is ahead of launches that take the host %s",
                                        dl_work_kind_name(w->kind), dl_format_seconds(w->host_s, launches)),
                        dl_arena_format(t->e->arena, "%s * %s", mean_count(t, w->n), number(t, w->seconds)));
        dl_explain_cite(t->e, below(t, t->of->software_doc, "host_s_per_launch"));
    }
}

/* ---- the bubble ---- */

static const struct dl_schedule_kind *schedule_kind(const char *name)
{
    size_t i = 0;
    while (strcmp(dl_schedule_get(i)->name, name)) i++;
    return dl_schedule_get(i);
}

/* (p - 1) / m of the ideal time, for schedules that have such a form. */
static void tell_bubble(struct told *t)
{
    const struct dl_training_result *const result = &t->r->result;
    const struct dl_schedule *const s = &t->r->lowered->schedule;
    const double *const item_s = result->item_s, close = 1e-9;
    const double items_s = item_s[DL_ITEM_F] + item_s[DL_ITEM_B] + item_s[DL_ITEM_W];
    const struct dl_schedule_request mean = {.stages = s->stages,
                                             .micros = s->micros,
                                             .chunks = s->chunks,
                                             .forward_s = item_s[DL_ITEM_F],
                                             .backward_s = item_s[DL_ITEM_B],
                                             .weight_s = item_s[DL_ITEM_W]};
    const double share = schedule_kind(t->setting->schedule)->bubble(&mean);
    const double passes = (double)s->micros * s->n_positions / s->stages, closed_s = share * passes * items_s;
    const bool is_closed = share >= 0 && fabs(closed_s - result->schedule_bubble_s) <= close * closed_s;
    const bool is_simple = fabs(share - (t->n_stages - 1) / passes) <= close * share;
    if (t->n_stages == 1 || result->schedule_bubble_s <= 0) return;
    const char *const form =
        is_simple ? dl_arena_format(t->e->arena, "(%s - 1) / %s", number(t, t->n_stages), number(t, passes))
                  : number(t, share);
    const char *const items = dl_arena_format(t->e->arena, "(%s + %s + %s)", number(t, item_s[DL_ITEM_F]),
                                              number(t, item_s[DL_ITEM_B]), number(t, item_s[DL_ITEM_W]));
    if (is_closed)
        dl_explain_term(t->e, part_of(DL_CAUSE_BUBBLE), closed_s,
                        dl_arena_format(t->e->arena,
                                        "the schedule %s's own: its share of %s times a mean forward, backward and "
                                        "weight gradient",
                                        t->setting->schedule, number(t, passes)),
                        dl_arena_format(t->e->arena, "%s * %s * %s", form, number(t, passes), items));
    else
        dl_explain_term(t->e, part_of(DL_CAUSE_BUBBLE), result->schedule_bubble_s,
                        dl_arena_format(t->e->arena, "the schedule %s's own, by the longest path through its items",
                                        t->setting->schedule),
                        NULL);
}

/* ---- what the simulation makes of it ---- */

static const char *work_words(const struct told *t)
{
    if (t->of->has_scenario) return "the scenario slows ranks down";
    return "the step is seen from the end of the one before to its own: stages have begun it earlier, and go on with "
           "the "
           "next";
}

static const char *words_of(const struct told *t, enum dl_cause cause, double seconds)
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
    case DL_CAUSE_HOST:
        return seconds < 0 ? "the host runs ahead from item to item"
                           : "the host waits for the device, then launches late";
    case DL_CAUSE_INTERFERENCE: return "kernels beside collectives and messages have less of the device";
    case DL_CAUSE_STRAGGLER: return "ranks wait for those that the scenario has made late";
    case DL_CAUSE_BUBBLE: return "stages are unequal, and ranks wait for those with more to do";
    default: return "";
    }
}

static bool is_of(const struct told *t, const struct dl_work_line *line, enum dl_cause cause)
{
    if (line->what.kind == DL_START) return t->r->lowered->calls[line->what.call].cause == cause;
    return line->what.cause == cause;
}

static void tell_line(struct told *t, const struct dl_work_line *line)
{
    if (line->what.kind == DL_START)
        tell_call(t, line);
    else if (line->what.collective)
        tell_in_step(t, line);
    else
        tell_kernel(t, line);
}

static void tell_cause(struct told *t, enum dl_cause cause)
{
    const double exposed_s = t->r->result.exposed_s[cause];
    const size_t before = t->e->n_terms;
    for (size_t i = 0; i < t->lines.n && !t->err->status; i++)
        if (is_of(t, &t->lines.items[i], cause)) tell_line(t, &t->lines.items[i]);
    if (cause == DL_CAUSE_PIPELINE) tell_sends(t);
    if (cause == DL_CAUSE_HOST) tell_waits(t);
    if (cause == DL_CAUSE_BUBBLE) tell_bubble(t);
    const double rest_s = exposed_s - dl_explained_s(t->e, part_of(cause));
    tell_difference(t, cause, rest_s, words_of(t, cause, rest_s));
    if (t->e->n_terms > before) dl_explain_sum(t->e, DL_SUM_LAST, exposed_s, part_of(cause));
}

enum dl_status dl_explain_run(struct dl_explanation *e, const struct dl_explained_run *of, struct dl_error *err)
{
    struct told t = {.e = e, .of = of, .r = of->report, .setting = &of->report->job->setting, .err = err};
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
