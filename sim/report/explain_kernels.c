/* explain_kernels.c - a kernel as flop over the peak, or bytes over the memory bandwidth, and the share that it
 * reaches. */
#include <math.h>

#include "sim/report/explain_step.h"
#include "sim/report/units.h"

/* What a kernel needs at least of the peak or of the memory, and the share of it that it reaches; or it is as short as
 * a kernel can be. */
struct bound {
    double share; /* 0: nothing is known but its time */
    bool is_by_flop, is_launch;
};

static struct bound bound_of(const struct dl_told_step *t, const struct dl_instruction *i)
{
    const struct dl_device *const d = t->r->device;
    const double flop_s = i->flop / d->peak_flop_per_s[t->setting->precision];
    const double memory_s = i->bytes / d->memory_bytes_per_s;
    return (struct bound){fmax(flop_s, memory_s) / i->device_s, flop_s >= memory_s, i->device_s == d->launch_s};
}

static const char *kernel_expression(const struct dl_told_step *t, const struct dl_work_line *line,
                                     const struct bound *b)
{
    const struct dl_device *const d = t->r->device;
    const struct dl_instruction *const i = &line->what;
    const char *const n = dl_told_count(t, line->n);
    if (b->share <= 0 || b->is_launch) return dl_arena_format(t->e->arena, "%s * %s", n, number(t, i->device_s));
    return dl_arena_format(t->e->arena, "%s * %s / (%s * %s)", n, number(t, b->is_by_flop ? i->flop : i->bytes),
                           number(t, b->is_by_flop ? d->peak_flop_per_s[t->setting->precision] : d->memory_bytes_per_s),
                           number(t, b->share));
}

static const char *kernel_words(const struct dl_told_step *t, const struct dl_work_line *line, const struct bound *b)
{
    const struct dl_instruction *const i = &line->what;
    char amount[DL_QUANTITY];
    const char *const kind = dl_work_kind_name(line->kind);
    if (b->is_launch) return dl_arena_format(t->e->arena, "%s, %s: the least time between two kernels", i->name, kind);
    if (i->cause == DL_CAUSE_INTERFERENCE)
        return dl_arena_format(t->e->arena, "%s, %s: takes part of the device from the kernel beside it", i->name,
                               kind);
    if (b->share <= 0) return dl_arena_format(t->e->arena, "%s, %s", i->name, kind);
    return dl_arena_format(t->e->arena, "%s, %s: %s at %.3g %% of the %s, %s", i->name, kind,
                           b->is_by_flop ? dl_format_flop(i->flop, amount) : dl_format_bytes(i->bytes, amount),
                           100 * b->share, b->is_by_flop ? "peak" : "memory bandwidth", dl_ground_name(i->ground));
}

void dl_cite_taken(const struct dl_told_step *t)
{
    dl_explain_cite_below(t->e, below(t, t->of->device_doc, "taken_by_exchanges"));
    dl_explain_cite(t->e, below(t, t->of->software_doc, "collective_units_fraction"));
}

/* What is none: copies to the host and its updates, and what collectives take from kernels beside them. */
static void cite_other(const struct dl_told_step *t, enum dl_cause cause)
{
    if (cause == DL_CAUSE_OFFLOAD) dl_explain_cite_below(t->e, below(t, below(t, t->of->system_doc, "node"), "host"));
    if (cause == DL_CAUSE_INTERFERENCE) dl_cite_taken(t);
}

/* The figures of the device's model are told once. */
static void cite_kernel(struct dl_told_step *t, const struct dl_instruction *i, const struct bound *b)
{
    const struct dl_json doc = t->of->device_doc;
    const char *const precision = dl_precision_name(t->setting->precision);
    if (b->is_launch) dl_explain_cite(t->e, below(t, doc, "launch_s"));
    if (b->share <= 0) cite_other(t, i->cause);
    if (b->share <= 0 || b->is_launch) return;
    dl_explain_cite(t->e, b->is_by_flop ? below(t, below(t, doc, "peak_flop_per_s"), precision)
                                        : below(t, doc, "memory_bytes_per_s"));
    if (i->ground != DL_GROUND_MODELLED || t->has_cited_model) return;
    dl_explain_cite_below(t->e, below(t, doc, "figures"));
    t->has_cited_model = true;
}

void dl_tell_kernel(struct dl_told_step *t, const struct dl_work_line *line)
{
    const struct bound b = bound_of(t, &line->what);
    dl_explain_term(t->e, dl_cause_name(line->what.cause), line->n / t->n_stages * line->what.device_s,
                    kernel_words(t, line, &b), kernel_expression(t, line, &b));
    cite_kernel(t, &line->what, &b);
}
