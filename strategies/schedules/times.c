#include "strategies/schedules/times.h"

#include <math.h>

void dl_item_times_init(struct dl_item_times *t, const struct dl_schedule *s, const struct dl_schedule_request *request)
{
    enum { n_kinds = DL_ITEM_W + 1 };
    const size_t n = (size_t)n_kinds * s->stages * s->chunks * s->micros;
    *t = (struct dl_item_times){.s = s, .request = request, .ends_s = dl_alloc(n * sizeof *t->ends_s)};
    for (size_t i = 0; i < n; i++) t->ends_s[i] = NAN;
}

void dl_item_times_release(struct dl_item_times *t)
{
    dl_free(t->ends_s);
    t->ends_s = NULL;
}

double *dl_item_end_s(const struct dl_item_times *t, uint32_t stage, struct dl_item item)
{
    const struct dl_schedule *const s = t->s;
    return &t->ends_s[(((size_t)item.kind * s->stages + stage) * s->chunks + item.chunk) * s->micros + item.micro];
}

/* Index into stage_of and chunk_of. */
static size_t place(const struct dl_schedule *s, struct dl_item item, uint32_t position)
{
    return item.micro % s->n_paths * (size_t)s->n_positions + position;
}

/* When what the same pass made of the micro-batch at another position is here. */
static double arrival_s(const struct dl_item_times *t, uint32_t stage, struct dl_item item, uint32_t position)
{
    const size_t from = place(t->s, item, position);
    item.chunk = t->s->chunk_of[from];
    const double transfer_s = t->s->stage_of[from] == stage ? 0 : t->request->transfer_s;
    return *dl_item_end_s(t, t->s->stage_of[from], item) + transfer_s;
}

double dl_item_ready_s(const struct dl_item_times *t, uint32_t stage, struct dl_item item)
{
    const uint32_t position = t->s->position_of[stage * t->s->chunks + item.chunk];
    if (item.kind == DL_ITEM_F) return position ? arrival_s(t, stage, item, position - 1) : 0;
    if (item.kind == DL_ITEM_B && position + 1 < t->s->n_positions) return arrival_s(t, stage, item, position + 1);
    item.kind = item.kind == DL_ITEM_B ? DL_ITEM_F : DL_ITEM_B; /* the loss after its forward, weights after inputs */
    return *dl_item_end_s(t, stage, item);
}

uint32_t dl_item_next_stage(const struct dl_schedule *s, uint32_t stage, struct dl_item item)
{
    const uint32_t position = s->position_of[stage * s->chunks + item.chunk];
    if (item.kind == DL_ITEM_F && position + 1 < s->n_positions) return s->stage_of[place(s, item, position + 1)];
    if (item.kind == DL_ITEM_B && position > 0) return s->stage_of[place(s, item, position - 1)];
    return UINT32_MAX;
}

double dl_item_seconds(const struct dl_schedule_request *request, enum dl_item_kind kind)
{
    const double seconds[] = {
        [DL_ITEM_F] = request->forward_s, [DL_ITEM_B] = request->backward_s, [DL_ITEM_W] = request->weight_s};
    return seconds[kind];
}
