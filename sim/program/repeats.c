#include "sim/program/repeats.h"

enum { fewest_periods = 5 };

static bool is_shifted_tag(uint32_t tag, uint32_t later, uint32_t by)
{
    return tag == DL_NO_TAG ? later == DL_NO_TAG : later != DL_NO_TAG && later - tag == by;
}

static bool comes_again(const struct dl_sequenced *a, const struct dl_sequenced *b, uint32_t micros)
{
    return a->block == b->block && a->item.kind == b->item.kind && a->item.chunk == b->item.chunk &&
           a->item.with_next == b->item.with_next && b->item.micro - a->item.micro == micros &&
           is_shifted_tag(a->wants, b->wants, micros) && is_shifted_tag(a->gives, b->gives, micros) &&
           a->from == b->from && a->to == b->to;
}

/* As far as it goes in both directions from an item that comes again. */
static struct dl_repeats around(const struct dl_program *p, uint32_t item, uint32_t period, uint32_t micros)
{
    const struct dl_sequenced *const s = p->sequence;
    uint32_t first = item, last = item;
    while (first > 0 && comes_again(&s[first - 1], &s[first - 1 + period], micros)) first--;
    while (last + 1 + period < p->n_sequence && comes_again(&s[last + 1], &s[last + 1 + period], micros)) last++;
    return (struct dl_repeats){.first = first, .end = last + 1 + period, .period = period, .micros = micros};
}

static uint32_t length(const struct dl_repeats *r) { return r->end - r->first; }

static bool has_several(const struct dl_repeats *r) { return length(r) / fewest_periods >= r->period; }

/* A stretch that does not go far may be part of one with a longer period: interleaved schedules change chunks after as
 * many micro-batches as there are stages. */
bool dl_repeats_find(const struct dl_program *p, struct dl_repeats *out)
{
    const uint32_t middle = p->n_sequence / 2, longest_period = p->n_sequence / fewest_periods;
    uint64_t n_looked_at = 0;
    *out = (struct dl_repeats){0};
    for (uint32_t period = 1; period <= longest_period && n_looked_at < 4 * (uint64_t)p->n_sequence; period++) {
        const struct dl_sequenced *const a = &p->sequence[middle], *const b = a + period;
        const uint32_t micros = b->item.micro - a->item.micro;
        if (b->item.micro <= a->item.micro || !comes_again(a, b, micros)) continue;
        const struct dl_repeats found = around(p, middle, period, micros);
        n_looked_at += length(&found);
        if (has_several(&found) && length(&found) > length(out)) *out = found;
        if (length(out) > p->n_sequence / 2) break;
    }
    return out->period > 0;
}

bool dl_repeats_find_shifted(const struct dl_program *p, uint32_t micros, struct dl_repeats *out)
{
    const uint32_t middle = p->n_sequence / 2;
    for (uint32_t later = middle + 1; later < p->n_sequence; later++) {
        if (!comes_again(&p->sequence[middle], &p->sequence[later], micros)) continue;
        *out = around(p, middle, later - middle, micros);
        return has_several(out);
    }
    return false;
}

void dl_repeats_note(struct dl_program *programs, uint32_t n_stages)
{
    bool repeats = true;
    for (uint32_t i = 0; i < n_stages; i++) {
        struct dl_program *const p = &programs[i];
        repeats = repeats && (i ? dl_repeats_find_shifted(p, programs[0].repeats.micros, &p->repeats)
                                : dl_repeats_find(p, &p->repeats));
        if (!repeats) p->repeats = (struct dl_repeats){0};
    }
}
