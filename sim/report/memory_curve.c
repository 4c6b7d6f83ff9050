#include "sim/report/memory_curve.h"

#include <math.h>

struct run_time {
    double from_s, to_s; /* NAN: it has no slice of its own, as the second of a pair */
};

struct drawing {
    const struct dl_timeline *timeline;
    double from_s, to_s;
    struct dl_memory_curve *curves;
    struct run_time **items; /* by stage and item; behind its items, that of the update */
};

static uint32_t n_stages(const struct drawing *d) { return dl_timeline_stages(d->timeline); }

static const struct dl_program *program_of(const struct drawing *d, uint32_t stage)
{
    return &d->timeline->request.step.programs[stage];
}

/* Of the sequence; NULL: the update, behind all items. */
static size_t index_of(const struct drawing *d, uint32_t stage, const struct dl_sequenced *item)
{
    return item ? (size_t)(item - program_of(d, stage)->sequence) : program_of(d, stage)->n_sequence;
}

/* Slices of a stage come in the order of time; one of another item before it begins a new run of an item. */
static void find_times(struct drawing *d)
{
    const struct dl_timeline *const t = d->timeline;
    const struct dl_slice *last = NULL;
    for (uint32_t stage = 0; stage < n_stages(d); stage++) {
        const uint32_t n = program_of(d, stage)->n_sequence + 1;
        d->items[stage] = dl_alloc(n * sizeof **d->items);
        for (uint32_t i = 0; i < n; i++) d->items[stage][i] = (struct run_time){NAN, NAN};
    }
    for (size_t i = 0; i < t->n_slices; i++) {
        const struct dl_slice *const s = &t->slices[i];
        if (s->replica != 0 || s->kind != DL_SLICE_WORK) continue;
        struct run_time *const at = &d->items[s->stage][s->number];
        if (!last || last->stage != s->stage || last->number != s->number) at->from_s = s->from_s;
        at->to_s = s->to_s;
        last = s;
    }
}

static void add(struct drawing *d, uint32_t stage, double to_s, const struct dl_memory_use *use)
{
    struct dl_memory_curve *const c = &d->curves[stage];
    const double from_s = c->n ? c->spans[c->n - 1].to_s : d->from_s;
    DL_GROW(c->spans, c->n, c->capacity);
    c->spans[c->n++] = (struct dl_memory_span){from_s, fmin(fmax(to_s, from_s), d->to_s), *use};
}

/* The span of what was left before is stretched up to where an item begins. What there is at first, the update leaves.
 */
static void see(void *user, uint32_t stage, const struct dl_sequenced *item, const struct dl_memory_use *fullest,
                const struct dl_memory_use *left)
{
    struct drawing *const d = user;
    struct dl_memory_curve *const c = &d->curves[stage];
    const struct run_time at = d->items[stage][index_of(d, stage, item)];
    const bool is_known = !isnan(at.from_s);
    if (!c->n) add(d, stage, d->from_s, left);
    if (is_known) c->spans[c->n - 1].to_s = fmin(fmax(at.from_s, c->spans[c->n - 1].from_s), d->to_s);
    add(d, stage, is_known ? at.to_s : d->from_s, fullest);
    add(d, stage, item ? d->from_s : d->to_s, left);
    if (!item) c->spans[0].use = *left;
}

struct dl_memory_curve *dl_memory_curves(const struct dl_timeline *t, double from_s, double to_s)
{
    struct drawing d = {.timeline = t, .from_s = from_s, .to_s = to_s};
    struct dl_memory_use *const use = dl_alloc(n_stages(&d) * sizeof *use);
    d.curves = dl_alloc(n_stages(&d) * sizeof *d.curves);
    d.items = dl_alloc(n_stages(&d) * sizeof *d.items);
    find_times(&d);
    dl_memory_watch_programs(t->request.step.programs, n_stages(&d), t->request.software, use,
                             &(struct dl_memory_watch){&d, see});
    for (uint32_t stage = 0; stage < n_stages(&d); stage++) dl_free(d.items[stage]);
    dl_free(d.items);
    dl_free(use);
    return d.curves;
}

void dl_memory_curves_free(struct dl_memory_curve *curves, uint32_t n_stages)
{
    for (uint32_t stage = 0; stage < n_stages; stage++) dl_free(curves[stage].spans);
    dl_free(curves);
}
