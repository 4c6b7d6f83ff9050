/* tournament.h - who comes next of at most so many, each with one date; of one date, who was added first. The rule to
 * remember: who is taken leaves its place open, and the next that is added takes it: that costs half of two changes. In
 * a header, as it is in an innermost loop. */
#ifndef DL_ENGINE_TOURNAMENT_H
#define DL_ENGINE_TOURNAMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/core/memory.h"

/* A binary tree from 1 on: at i is who comes first of its two children, 2 i and 2 i + 1; the last level are places. */
struct dl_tournament {
    double *dates_s;   /* infinity: its place is free */
    uint64_t *keys;    /* order of adding * places + place: of one date, the smaller comes first */
    uint32_t n_places; /* a power of two */
    uint32_t open;     /* the place of who was taken; n_places: none */
    uint32_t *numbers; /* by place: who has it */
    uint32_t *free;    /* places that nobody has */
    uint32_t n_free;
    uint64_t order; /* of the last that was added */
};

static inline void dl_tournament_open(struct dl_tournament *t, uint32_t n)
{
    t->n_places = 1;
    while (t->n_places < n) t->n_places *= 2;
    t->dates_s = dl_alloc(2 * (size_t)t->n_places * sizeof *t->dates_s);
    t->keys = dl_alloc(2 * (size_t)t->n_places * sizeof *t->keys);
    t->numbers = dl_alloc(t->n_places * sizeof *t->numbers);
    t->free = dl_alloc(t->n_places * sizeof *t->free);
    for (uint32_t i = 0; i < 2 * t->n_places; i++) t->dates_s[i] = INFINITY;
    for (uint32_t i = 0; i < t->n_places; i++) t->free[i] = i;
    t->n_free = t->open = t->n_places;
}

static inline void dl_tournament_close(struct dl_tournament *t)
{
    dl_free(t->dates_s);
    dl_free(t->keys);
    dl_free(t->numbers);
    dl_free(t->free);
}

/* Infinity: there is nobody. */
static inline double dl_tournament_date_s(const struct dl_tournament *t) { return t->dates_s[1]; }

/* Where the first was, all matches up to the last are played again. */
static inline void dl_tournament_replace(struct dl_tournament *t, uint32_t place, double date_s, uint64_t key)
{
    double *const dates_s = t->dates_s;
    uint64_t *const keys = t->keys;
    size_t i = (size_t)t->n_places + place;
    dates_s[i] = date_s;
    keys[i] = key;
    while (i > 1) {
        const double other_s = dates_s[i ^ 1];
        if (other_s <= date_s && (other_s < date_s || keys[i ^ 1] < key)) {
            date_s = other_s;
            key = keys[i ^ 1];
        }
        i /= 2;
        dates_s[i] = date_s;
        keys[i] = key;
    }
}

/* At a free place, matches are won up to the first that is lost. Of one date, who was there before wins. */
static inline void dl_tournament_enter(struct dl_tournament *t, uint32_t place, double date_s, uint64_t key)
{
    for (size_t i = (size_t)t->n_places + place; i > 0 && date_s < t->dates_s[i]; i /= 2) {
        t->dates_s[i] = date_s;
        t->keys[i] = key;
    }
}

/* The first, who leaves; there must be one. */
static inline uint32_t dl_tournament_take(struct dl_tournament *t)
{
    t->open = (uint32_t)t->keys[1] & (t->n_places - 1);
    return t->numbers[t->open];
}

/* Somebody who is not there. */
static inline void dl_tournament_add(struct dl_tournament *t, uint32_t number, double date_s)
{
    const bool replaces = t->open < t->n_places;
    const uint32_t place = replaces ? t->open : t->free[--t->n_free];
    const uint64_t key = (t->order += t->n_places) + place;
    t->numbers[place] = number;
    t->open = t->n_places;
    if (replaces)
        dl_tournament_replace(t, place, date_s, key);
    else
        dl_tournament_enter(t, place, date_s, key);
}

/* Nobody has taken the place of who was taken: must be called before the next is. */
static inline void dl_tournament_settle(struct dl_tournament *t)
{
    if (t->open == t->n_places) return;
    t->free[t->n_free++] = t->open;
    dl_tournament_replace(t, t->open, INFINITY, t->open);
    t->open = t->n_places;
}

#endif
