#include "strategies/sequence.h"

enum { nowhere = 0xffffffffu };

static uint32_t tag_of(const struct dl_schedule *s, const struct dl_item *item, uint32_t chunk)
{
    return ((uint32_t)item->kind * s->chunks + chunk) * s->micros + item->micro;
}

/* Where its input comes from, or its result goes to: an index into stage_of; nowhere: it was done here before, or is
 * the input or result of the model itself. */
static uint32_t neighbour(const struct dl_schedule *s, uint32_t stage, const struct dl_item *item, bool source)
{
    const uint32_t position = s->position_of[stage * s->chunks + item->chunk];
    const bool above = (item->kind == DL_ITEM_F) != source; /* activations go up, gradients come down */
    if (item->kind == DL_ITEM_W || position == (above ? s->n_positions - 1 : 0)) return nowhere;
    return item->micro % s->n_paths * s->n_positions + (above ? position + 1 : position - 1);
}

static struct dl_sequenced write_item(const struct dl_schedule *s, uint32_t stage, const struct dl_item *item)
{
    const uint32_t source = neighbour(s, stage, item, true), target = neighbour(s, stage, item, false);
    struct dl_sequenced out = {.item = *item, .wants = DL_NO_TAG, .gives = DL_NO_TAG};
    if (source != nowhere) {
        out.wants = tag_of(s, item, item->chunk);
        out.from = s->stage_of[source];
    }
    if (target != nowhere) {
        out.gives = tag_of(s, item, s->chunk_of[target]);
        out.to = s->stage_of[target];
    }
    return out;
}

static void write_sequence(const struct dl_schedule *s, const struct dl_setting *setting, struct dl_program *p)
{
    const uint32_t n_items = s->n_items[p->stage], n_kinds_sent = 2; /* forwards and backwards */
    bool *const completing = dl_alloc((n_items + 1) * sizeof *completing);
    if (setting->last_backward_differs)
        dl_schedule_completing(s, p->stage, dl_accumulated(setting) == DL_ACCUMULATES_CHUNK, completing);
    dl_free(p->sequence);
    p->sequence = dl_alloc((n_items + 1) * sizeof *p->sequence);
    p->n_sequence = n_items;
    p->n_tags = n_kinds_sent * s->chunks * s->micros;
    for (uint32_t i = 0; i < n_items; i++) {
        const struct dl_item *const item = &s->items[p->stage][i];
        p->sequence[i] = write_item(s, p->stage, item);
        p->sequence[i].block =
            &p->items[item->chunk * DL_N_TEMPLATES + (completing[i] ? DL_TEMPLATE_LAST : (int)item->kind)];
    }
    dl_free(completing);
}

enum dl_status dl_write_sequences(struct dl_lowered *l, const struct dl_setting *setting, struct dl_error *err)
{
    if (dl_check_items(&l->schedule, err)) return err->status;
    for (uint32_t stage = 0; stage < l->schedule.stages; stage++)
        write_sequence(&l->schedule, setting, &l->programs[stage]);
    return DL_OK;
}
