/* known_families.h - entries of discrepancy files for tests: written down, or drawn with known effects. */
#ifndef TESTS_KNOWN_FAMILIES_H
#define TESTS_KNOWN_FAMILIES_H

#include <check.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "sim/report/discrepancy.h"

struct known {
    struct dl_setup of;
    double bias, spread;
};

static inline json_t *entry_json(const struct known *k, int rows)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:s, s:i, s:f, s:f}", "family", k->of.family, "software", k->of.software,
                     "system", k->of.system, "experts", k->of.experts, "domain", dl_domains[k->of.domain], "rows", rows,
                     "bias", k->bias, "spread", k->spread);
}

/* Takes the entries. */
static inline struct dl_discrepancy read_entries_as(json_t *entries, struct dl_setup setup, struct dl_arena *arena)
{
    const struct dl_json doc = {
        .value = json_pack("{s:s, s:s, s:o}", "schema", "dlsim/discrepancy/1", "source", "a test", "measured", entries),
        .where = "test.json",
        .file = "test.json"};
    struct dl_error err = {0};
    struct dl_discrepancy found;
    ck_assert_msg(!dl_discrepancy_read(doc, &setup, arena, &found, &err), "%s", err.text);
    ck_assert(!strcmp(found.of.software, setup.software) && !strcmp(found.of.system, setup.system));
    json_decref(doc.value);
    return found;
}

enum { most_drawn_rows = 12 };

struct drawing {
    gsl_rng *random;
    double middle, of_family, of_row; /* spreads */
};

/* The error of a first row of one more family; the mean and the spread of all its rows. */
static inline double draw_family(const struct drawing *d, struct known *out, int *n_rows)
{
    const double effect = d->middle + gsl_ran_gaussian(d->random, d->of_family);
    const int n = *n_rows = 1 + (int)gsl_rng_uniform_int(d->random, most_drawn_rows);
    double errors[most_drawn_rows], squares = 0;
    out->bias = 0;
    for (int i = 0; i < n; i++) out->bias += (errors[i] = effect + gsl_ran_gaussian(d->random, d->of_row)) / n;
    for (int i = 0; i < n; i++) squares += (errors[i] - out->bias) * (errors[i] - out->bias);
    out->spread = sqrt(squares / n);
    return errors[0];
}

/* To the entries, under names that begin so. */
static inline void add_drawn(json_t *entries, const struct drawing *d, struct known like, int n_families,
                             const char *name, struct dl_arena *arena)
{
    for (int i = 0; i < n_families; i++) {
        int n;
        like.of.family = dl_arena_format(arena, "%s%d", name, i);
        draw_family(d, &like, &n);
        json_array_append_new(entries, entry_json(&like, n));
    }
}

static inline bool holds(const struct dl_discrepancy *d, double error)
{
    const struct dl_open open = dl_discrepancy_open(d);
    return open.low <= error && error <= open.high;
}

#endif
