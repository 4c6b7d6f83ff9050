/* tournament.h - who comes next of a fixed number, each with one date; of one date, who was set first. The rule to
 * remember: a date can be changed at any time, and infinity is none. In a header, as it is in an innermost loop. */
#ifndef DL_ENGINE_TOURNAMENT_H
#define DL_ENGINE_TOURNAMENT_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/core/memory.h"

struct dl_entrant {
    double date_s;
    uint64_t order; /* of setting */
};

struct dl_tournament {
    struct dl_entrant *entrants;
    uint32_t *winners; /* of a binary tree, from 1 on: of its two children, 2 i and 2 i + 1; the last level are all */
    uint32_t n_places; /* of the last level */
    uint64_t n_set;
};

static inline void dl_tournament_open(struct dl_tournament *t, uint32_t n)
{
    t->n_places = 1;
    while (t->n_places < n) t->n_places *= 2;
    t->entrants = dl_alloc(t->n_places * sizeof *t->entrants);
    t->winners = dl_alloc(2 * (size_t)t->n_places * sizeof *t->winners);
    for (uint32_t i = 0; i < t->n_places; i++) {
        t->entrants[i].date_s = INFINITY;
        t->winners[t->n_places + i] = i;
    }
    for (uint32_t i = t->n_places - 1; i > 0; i--) t->winners[i] = t->winners[2 * i];
}

static inline void dl_tournament_close(struct dl_tournament *t)
{
    dl_free(t->entrants);
    dl_free(t->winners);
}

static inline uint32_t dl_tournament_first(const struct dl_tournament *t) { return t->winners[1]; }

static inline bool dl_tournament_is_before(const struct dl_entrant *a, const struct dl_entrant *b)
{
    return a->date_s < b->date_s || (a->date_s == b->date_s && a->order < b->order);
}

static inline void dl_tournament_set(struct dl_tournament *t, uint32_t number, double date_s)
{
    assert(!isnan(date_s));
    const struct dl_entrant *const entrants = t->entrants;
    uint32_t *const winners = t->winners;
    struct dl_entrant best = t->entrants[number] = (struct dl_entrant){date_s, t->n_set++};
    uint32_t i = t->n_places + number;
    for (; i > 1 && dl_tournament_is_before(&best, &entrants[winners[i ^ 1]]); i /= 2) winners[i / 2] = number;
    if (i == 1 || winners[i / 2] == winners[i ^ 1])
        return; /* it had lost there before, so that nothing changes above */
    uint32_t winner = winners[i / 2] = winners[i ^ 1];
    best = entrants[winner];
    for (i /= 2; i > 1; i /= 2) {
        const uint32_t other = winners[i ^ 1];
        if (dl_tournament_is_before(&entrants[other], &best)) best = entrants[winner = other];
        winners[i / 2] = winner;
    }
}

#endif
