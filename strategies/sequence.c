#include "strategies/sequence.h"

#include "sim/program/repeats.h"

enum { nowhere = 0xffffffffu, n_kinds = 3 };

/* The items of a kind through a chunk on a path have the same partners, and tags that count with the micro-batch. */
struct ends {
    uint32_t wants, from, gives, to; /* as in dl_sequenced, for micro-batch 0 */
};

static uint32_t first_tag(const struct dl_schedule *s, int kind, uint32_t chunk)
{
    return ((uint32_t)kind * s->chunks + chunk) * s->micros;
}

/* Where the input comes from, or the result goes to: an index into stage_of; nowhere: it was done here before, or is
 * the input or result of the model itself. */
static uint32_t neighbour(const struct dl_schedule *s, uint32_t position, int kind, uint32_t path, bool source)
{
    const bool above = (kind == DL_ITEM_F) != source; /* activations go up, gradients come down */
    if (kind == DL_ITEM_W || position == (above ? s->n_positions - 1 : 0)) return nowhere;
    return path * s->n_positions + (above ? position + 1 : position - 1);
}

static struct ends ends_of(const struct dl_schedule *s, uint32_t stage, uint32_t path, int kind, uint32_t chunk)
{
    const uint32_t position = s->position_of[stage * s->chunks + chunk];
    const uint32_t source = neighbour(s, position, kind, path, true),
                   target = neighbour(s, position, kind, path, false);
    struct ends out = {.wants = DL_NO_TAG, .gives = DL_NO_TAG};
    if (source != nowhere) {
        out.wants = first_tag(s, kind, chunk);
        out.from = s->stage_of[source];
    }
    if (target != nowhere) {
        out.gives = first_tag(s, kind, s->chunk_of[target]);
        out.to = s->stage_of[target];
    }
    return out;
}

static void find_ends(const struct dl_schedule *s, uint32_t stage, struct ends *out)
{
    for (uint32_t path = 0; path < s->n_paths; path++)
        for (int kind = 0; kind < n_kinds; kind++)
            for (uint32_t chunk = 0; chunk < s->chunks; chunk++) *out++ = ends_of(s, stage, path, kind, chunk);
}

/* The first forward of each chunk, where it differs, has a block of its own. */
static void mark_first_forwards(const struct dl_schedule *s, struct dl_program *p)
{
    uint32_t n_left = p->n_chunks;
    for (uint32_t i = 0; i < p->n_sequence && n_left; i++) {
        if (!dl_schedule_is_first_forward(s, p->stage, i)) continue;
        p->sequence[i].block = p->sequence[i].item.chunk * DL_N_TEMPLATES + DL_TEMPLATE_FIRST;
        n_left--;
    }
}

static void write_items(const struct dl_schedule *s, const struct ends *ends, const bool *completing,
                        struct dl_program *p)
{
    const uint32_t chunks = s->chunks, n_paths = s->n_paths;
    for (uint32_t i = 0; i < p->n_sequence; i++) {
        const struct dl_item *const item = &s->items[p->stage][i];
        const uint32_t path = n_paths > 1 ? item->micro % n_paths : 0;
        const struct ends *const e = &ends[(path * n_kinds + (uint32_t)item->kind) * chunks + item->chunk];
        const bool completes = completing && completing[i];
        p->sequence[i] = (struct dl_sequenced){.item = *item,
                                               .block = item->chunk * DL_N_TEMPLATES +
                                                        (completes ? DL_TEMPLATE_LAST : (uint32_t)item->kind),
                                               .wants = e->wants == DL_NO_TAG ? DL_NO_TAG : e->wants + item->micro,
                                               .from = e->from,
                                               .gives = e->gives == DL_NO_TAG ? DL_NO_TAG : e->gives + item->micro,
                                               .to = e->to};
    }
}

static void write_sequence(const struct dl_schedule *s, const struct dl_setting *setting, struct ends *ends,
                           struct dl_program *p)
{
    const uint32_t n_items = s->n_items[p->stage], n_kinds_sent = 2; /* forwards and backwards */
    bool *completing = NULL;
    if (setting->last_backward_differs) {
        completing = dl_alloc((n_items + 1) * sizeof *completing);
        dl_schedule_completing(s, p->stage, dl_accumulated(setting) == DL_ACCUMULATES_CHUNK, completing);
    }
    dl_program_release_sequence(p);
    p->sequence = dl_alloc((n_items + 1) * sizeof *p->sequence);
    p->n_sequence = n_items;
    p->n_tags = n_kinds_sent * s->chunks * s->micros;
    find_ends(s, p->stage, ends);
    write_items(s, ends, completing, p);
    if (setting->first_forward_differs) mark_first_forwards(s, p);
    dl_program_note_sequence(p);
    dl_free(completing);
}

enum dl_status dl_write_sequences(struct dl_lowered *l, const struct dl_setting *setting, struct dl_error *err)
{
    if (!dl_check_items(&l->schedule, err)) dl_write_checked_sequences(l, setting);
    return err->status;
}

void dl_write_checked_sequences(struct dl_lowered *l, const struct dl_setting *setting)
{
    const struct dl_schedule *const s = &l->schedule;
    struct ends *const ends = dl_alloc((size_t)s->n_paths * n_kinds * s->chunks * sizeof *ends);
    for (uint32_t stage = 0; stage < s->stages; stage++) write_sequence(s, setting, ends, &l->programs[stage]);
    dl_free(ends);
    dl_repeats_note(l->programs, s->stages);
}
