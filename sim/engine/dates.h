/* dates.h - what comes next, by date; of one date, what was added first. Numbers may be added, nothing can be taken out
 * but the first. In a header, as it is in the innermost loop of two files. */
#ifndef DL_ENGINE_DATES_H
#define DL_ENGINE_DATES_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/core/memory.h"

enum { dl_date_bits = 24, dl_dates_arity = 4 }; /* of numbers; of the heap */

struct dl_date {
    double date_s;
    uint64_t order; /* of adding; the number is in its low bits */
};

struct dl_dates {
    struct dl_date *heap;
    size_t n, capacity;
    uint64_t n_added;
};

static inline bool dl_date_is_before(const struct dl_date *a, const struct dl_date *b)
{
    return a->date_s < b->date_s || (a->date_s == b->date_s && a->order < b->order);
}

static inline uint32_t dl_date_number(const struct dl_date *d)
{
    return (uint32_t)(d->order & (((uint64_t)1 << dl_date_bits) - 1));
}

/* Less than the order of all that is added from now on. */
static inline uint64_t dl_dates_later(const struct dl_dates *d) { return d->n_added << dl_date_bits; }

static inline void dl_dates_add(struct dl_dates *d, double date_s, uint32_t number)
{
    assert(!isnan(date_s) && number < (uint32_t)1 << dl_date_bits);
    const struct dl_date added = {date_s, d->n_added++ << dl_date_bits | number};
    DL_GROW(d->heap, d->n, d->capacity);
    size_t i = d->n++;
    for (; i > 0 && dl_date_is_before(&added, &d->heap[(i - 1) / dl_dates_arity]); i = (i - 1) / dl_dates_arity)
        d->heap[i] = d->heap[(i - 1) / dl_dates_arity];
    d->heap[i] = added;
}

static inline size_t dl_dates_first_child(const struct dl_dates *d, size_t i)
{
    size_t best = dl_dates_arity * i + 1;
    const size_t end = best + dl_dates_arity < d->n ? best + dl_dates_arity : d->n;
    for (size_t c = best + 1; c < end; c++)
        if (dl_date_is_before(&d->heap[c], &d->heap[best])) best = c;
    return best;
}

/* The first, which there must be. */
static inline struct dl_date dl_dates_take(struct dl_dates *d)
{
    const struct dl_date first = d->heap[0], last = d->heap[--d->n];
    size_t i = 0;
    while (dl_dates_arity * i + 1 < d->n) {
        const size_t child = dl_dates_first_child(d, i);
        if (dl_date_is_before(&last, &d->heap[child])) break;
        d->heap[i] = d->heap[child];
        i = child;
    }
    d->heap[i] = last;
    return first;
}

#endif
