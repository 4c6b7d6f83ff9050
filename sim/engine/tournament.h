/* tournament.h - who comes next of at most so many, each with one date; of one date, who was added first. The rule to
 * remember: who is taken leaves its place open, and the next that is added takes it: that costs half of two changes. In
 * a header, as it is in an innermost loop. */
#ifndef DL_ENGINE_TOURNAMENT_H
#define DL_ENGINE_TOURNAMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/core/memory.h"

/* A binary tree from 1 on: at i is who comes first of its two children, 2 i and 2 i + 1; the last level are places. */
struct dl_tournament {
    uint64_t *dates;   /* their bits; of infinity: the place is free */
    uint64_t *keys;    /* order of adding * places + place: of one date, the smaller comes first */
    uint32_t n_places; /* a power of two */
    uint32_t open;     /* the place of who was taken; n_places: none */
    uint32_t *numbers; /* by place: who has it */
    uint32_t *free;    /* places that nobody has */
    uint32_t n_free;
    uint64_t order; /* of the last that was added */
};

/* Dates that are not negative are in the order of their bits. */
static inline uint64_t dl_date_bits(double date_s)
{
    uint64_t bits;
    memcpy(&bits, &date_s, sizeof bits);
    return bits;
}

static inline void dl_tournament_open(struct dl_tournament *t, uint32_t n)
{
    t->n_places = 1;
    while (t->n_places < n) t->n_places *= 2;
    t->dates = dl_alloc(2 * (size_t)t->n_places * sizeof *t->dates);
    t->keys = dl_alloc(2 * (size_t)t->n_places * sizeof *t->keys);
    t->numbers = dl_alloc(t->n_places * sizeof *t->numbers);
    t->free = dl_alloc(t->n_places * sizeof *t->free);
    for (uint32_t i = 0; i < 2 * t->n_places; i++) t->dates[i] = dl_date_bits(INFINITY);
    for (uint32_t i = 0; i < t->n_places; i++) t->free[i] = i;
    t->n_free = t->open = t->n_places;
}

static inline void dl_tournament_close(struct dl_tournament *t)
{
    dl_free(t->dates);
    dl_free(t->keys);
    dl_free(t->numbers);
    dl_free(t->free);
}

/* Infinity: there is nobody. */
static inline double dl_tournament_date_s(const struct dl_tournament *t)
{
    double date_s;
    memcpy(&date_s, &t->dates[1], sizeof date_s);
    return date_s;
}

/* Where the first was, all matches up to the last are played again. Who wins one cannot be foreseen: without branches.
 */
static inline void dl_tournament_replace(struct dl_tournament *t, uint32_t place, double date_s, uint64_t key)
{
    uint64_t *const dates = t->dates, *const keys = t->keys, date = dl_date_bits(date_s);
    size_t i = (size_t)t->n_places + place;
    dates[i] = date;
    keys[i] = key;
    while (i > 1) {
        const uint64_t other = dates[i ^ 1], other_key = keys[i ^ 1];
        const bool is_before = (other < date) | ((other == date) & (other_key < key));
        date = is_before ? other : date;
        key = is_before ? other_key : key;
        i /= 2;
        dates[i] = date;
        keys[i] = key;
    }
}

/* At a free place, matches are won up to the first that is lost. Of one date, who was there before wins. */
static inline void dl_tournament_enter(struct dl_tournament *t, uint32_t place, double date_s, uint64_t key)
{
    const uint64_t date = dl_date_bits(date_s);
    for (size_t i = (size_t)t->n_places + place; i > 0 && date < t->dates[i]; i /= 2) {
        t->dates[i] = date;
        t->keys[i] = key;
    }
}

/* The first, who leaves; there must be one. */
static inline uint32_t dl_tournament_take(struct dl_tournament *t)
{
    t->open = (uint32_t)t->keys[1] & (t->n_places - 1);
    return t->numbers[t->open];
}

/* Somebody who is not there, at a date that is not negative. */
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
