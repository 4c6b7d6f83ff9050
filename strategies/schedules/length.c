/* length.c - time of a schedule by longest path over (stage, item).
 *
 * A stage runs its items until one waits for another stage; whoever finishes what is waited for wakes it. So every item
 * is looked at only a few times, whatever the order of the stages. */
#include "strategies/schedules/times.h"

#include <math.h>

struct walk {
    const struct dl_schedule *s;
    struct dl_item_times times;
    uint32_t *next;     /* item, by stage */
    double *free_at_s;  /* by stage */
    uint32_t *to_visit; /* a stack of stages that may have something to do */
    bool *listed;       /* stages on the stack */
    uint32_t n_to_visit;
};

static void visit_later(struct walk *w, uint32_t stage)
{
    if (stage == UINT32_MAX || w->listed[stage]) return;
    w->listed[stage] = true;
    w->to_visit[w->n_to_visit++] = stage;
}

/* The items from `first` that make one step; returns the index after the last. */
static uint32_t step_end(const struct dl_schedule *s, uint32_t stage, uint32_t first)
{
    while (first + 1 < s->n_items[stage] && s->items[stage][first].with_next) first++;
    return first + 1;
}

static bool follows_its_backward(const struct dl_item *items, uint32_t i)
{
    return items[i].kind == DL_ITEM_W && items[i - 1].kind == DL_ITEM_B && items[i - 1].micro == items[i].micro &&
           items[i - 1].chunk == items[i].chunk;
}

/* When the step can start: NaN if that is not yet known. */
static double start_s(const struct walk *w, uint32_t stage, uint32_t first, uint32_t end)
{
    const struct dl_item *const items = w->s->items[stage];
    double start = w->free_at_s[stage];
    for (uint32_t i = first; i < end; i++) {
        if (i > first && follows_its_backward(items, i)) continue;
        const double ready = dl_item_ready_s(&w->times, stage, items[i]);
        if (isnan(ready)) return NAN;
        start = fmax(start, ready);
    }
    return start;
}

static double duration_s(const struct walk *w, uint32_t stage, uint32_t first, uint32_t end)
{
    const struct dl_item *const items = w->s->items[stage];
    bool forward = false, backward = false;
    double sum = 0;
    for (uint32_t i = first; i < end; i++) {
        sum += dl_item_seconds(w->times.request, items[i].kind);
        forward |= items[i].kind == DL_ITEM_F;
        backward |= items[i].kind == DL_ITEM_B;
    }
    return forward && backward && w->times.request->pair_s > 0 ? w->times.request->pair_s : sum;
}

static void run_stage(struct walk *w, uint32_t stage, double *end_s)
{
    const struct dl_schedule *const s = w->s;
    while (w->next[stage] < s->n_items[stage]) {
        const uint32_t first = w->next[stage], end = step_end(s, stage, first);
        const double start = start_s(w, stage, first, end);
        if (isnan(start)) break;
        w->free_at_s[stage] = start + duration_s(w, stage, first, end);
        w->next[stage] = end;
        for (uint32_t i = first; i < end; i++) {
            const struct dl_item item = s->items[stage][i];
            *dl_item_end_s(&w->times, stage, item) = w->free_at_s[stage];
            if (end_s) end_s[i] = w->free_at_s[stage];
            visit_later(w, dl_item_next_stage(s, stage, item));
        }
    }
}

static double run_all(struct walk *w, double **end_s)
{
    for (uint32_t stage = w->s->stages; stage-- > 0;) visit_later(w, stage);
    while (w->n_to_visit) {
        const uint32_t stage = w->to_visit[--w->n_to_visit];
        w->listed[stage] = false; /* first: it may hand work to itself */
        run_stage(w, stage, end_s ? end_s[stage] : NULL);
    }
    double last_s = 0;
    for (uint32_t stage = 0; stage < w->s->stages; stage++) {
        if (w->next[stage] < w->s->n_items[stage]) return -1;
        last_s = fmax(last_s, w->free_at_s[stage]);
    }
    return last_s;
}

double dl_schedule_length_s(const struct dl_schedule *s, const struct dl_schedule_request *request, double **end_s)
{
    struct walk w = {.s = s,
                     .next = dl_alloc(s->stages * sizeof *w.next),
                     .free_at_s = dl_alloc(s->stages * sizeof *w.free_at_s),
                     .to_visit = dl_alloc(s->stages * sizeof *w.to_visit),
                     .listed = dl_alloc(s->stages * sizeof *w.listed)};
    dl_item_times_init(&w.times, s, request);
    const double length_s = run_all(&w, end_s);
    dl_item_times_release(&w.times);
    dl_free(w.next);
    dl_free(w.free_at_s);
    dl_free(w.to_visit);
    dl_free(w.listed);
    return length_s;
}

struct dl_schedule_request dl_schedule_with_items(const struct dl_schedule *s, const double item_s[DL_ITEM_W + 1])
{
    return (struct dl_schedule_request){.stages = s->stages,
                                        .micros = s->micros,
                                        .chunks = s->chunks,
                                        .forward_s = item_s[DL_ITEM_F],
                                        .backward_s = item_s[DL_ITEM_B],
                                        .weight_s = item_s[DL_ITEM_W]};
}

/* The first item of a stage is a forward by itself. */
double dl_schedule_span_s(const struct dl_schedule *s, const struct dl_schedule_request *request)
{
    double **const end_s = dl_alloc(s->stages * sizeof *end_s), longest_s = -1;
    for (uint32_t stage = 0; stage < s->stages; stage++) end_s[stage] = dl_alloc(s->n_items[stage] * sizeof **end_s);
    if (dl_schedule_length_s(s, request, end_s) >= 0)
        for (uint32_t stage = 0; stage < s->stages; stage++)
            longest_s = fmax(longest_s, end_s[stage][s->n_items[stage] - 1] - (end_s[stage][0] - request->forward_s));
    for (uint32_t stage = 0; stage < s->stages; stage++) dl_free(end_s[stage]);
    dl_free(end_s);
    return longest_s;
}

/* Before the first backward; where some are interleaved with one layer by layer, all that are not. */
static uint32_t n_forwards_alone(const struct dl_item *items, uint32_t n_items)
{
    uint32_t n_first = 0, n_apart = 0;
    bool interleaves = false;
    while (n_first < n_items && items[n_first].kind == DL_ITEM_F && !items[n_first].with_next) n_first++;
    for (uint32_t i = 0; i < n_items; i++) {
        const bool is_forward = items[i].kind == DL_ITEM_F;
        interleaves |= is_forward && items[i].with_next;
        n_apart += is_forward && !items[i].with_next;
    }
    return interleaves ? n_apart : n_first;
}

double dl_schedule_share_beside(const struct dl_schedule *s)
{
    const double forwards = (double)s->micros * s->n_positions;
    double alone = 0;
    for (uint32_t stage = 0; stage < s->stages; stage++) alone += n_forwards_alone(s->items[stage], s->n_items[stage]);
    return 1 - alone / forwards;
}

double dl_schedule_bubble_s(const struct dl_schedule *s, const double item_s[DL_ITEM_W + 1], bool one_by_one)
{
    const struct dl_schedule_request mean = dl_schedule_with_items(s, item_s);
    const double whole_s = one_by_one ? dl_schedule_length_s(s, &mean, NULL) : dl_schedule_span_s(s, &mean);
    const double passes = (double)s->micros * s->n_positions / s->stages;
    return fmax(whole_s - passes * (mean.forward_s + mean.backward_s + mean.weight_s), 0);
}
