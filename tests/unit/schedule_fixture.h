/* schedule_fixture.h - schedules of every kind and many sizes, for tests of them. */
#ifndef DL_TESTS_SCHEDULE_FIXTURE_H
#define DL_TESTS_SCHEDULE_FIXTURE_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "strategies/schedule.h"
#include "tests/unit/suite.h"

static const double tolerance = 1e-9;
enum { most_stages = 8, most_micros = 24, most_chunks = 4 };

typedef void check_one(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r,
                       const struct dl_schedule *s);

/* F = B = W, or a whole backward of twice the forward. */
static inline struct dl_schedule_request equal_times(const struct dl_schedule_kind *kind, uint32_t p, uint32_t m,
                                                     uint32_t v)
{
    return (struct dl_schedule_request){.stages = p,
                                        .micros = m,
                                        .chunks = v,
                                        .forward_s = 1,
                                        .backward_s = kind->splits_backward ? 1 : 2,
                                        .weight_s = kind->splits_backward ? 1 : 0};
}

static inline struct dl_schedule_request any_times(const struct dl_schedule_kind *kind, uint32_t p, uint32_t m,
                                                   uint32_t v)
{
    gsl_rng *const random = dl_random_new(1, "schedules", ((uint64_t)p * most_micros + m) * most_chunks + v);
    struct dl_schedule_request r = equal_times(kind, p, m, v);
    r.forward_s = 0.5 + gsl_rng_uniform(random);
    r.backward_s = 0.5 + gsl_rng_uniform(random);
    r.weight_s = kind->splits_backward ? 0.1 + gsl_rng_uniform(random) : 0;
    r.transfer_s = 0.3 * gsl_rng_uniform(random);
    gsl_rng_free(random);
    return r;
}

static inline double ideal_s(const struct dl_schedule *s, const struct dl_schedule_request *r)
{
    return (double)s->micros * s->chunks / s->n_paths * (r->forward_s + r->backward_s + r->weight_s);
}

/* Make the schedule and call `check`; false if it was refused, which must name a key and the nearest valid value. */
static inline bool made(const struct dl_schedule_kind *kind, const struct dl_schedule_request *r, check_one *check)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_schedule s;
    const bool ok = dl_schedule_make(kind->name, r, arena, &s, &err) == DL_OK;
    if (ok) {
        check(kind, r, &s);
    } else {
        ck_assert_int_eq(err.status, DL_IMPOSSIBLE);
        ck_assert_ptr_nonnull(strstr(err.text, "nearest: "));
        ck_assert(strncmp(err.text, "global_batch: ", 14) == 0 || strncmp(err.text, "pipeline/", 9) == 0);
    }
    dl_arena_free(arena);
    return ok;
}

/* With equal and other times, and with groups of all sizes where the kind has them. Returns how many can be. */
static inline uint32_t of_one_size(const struct dl_schedule_kind *kind, uint32_t p, uint32_t m, uint32_t v,
                                   check_one *check)
{
    struct dl_schedule_request equal = equal_times(kind, p, m, v), any = any_times(kind, p, m, v);
    uint32_t n_made = 0;
    for (uint32_t group = 0; group <= (kind->has_groups ? m + 1 : 0); group++) {
        equal.group = any.group = group;
        n_made += made(kind, &equal, check);
        n_made += made(kind, &any, check);
    }
    return n_made;
}

static inline void over_all_sizes(int index, check_one *check)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)index);
    uint32_t n_made = 0;
    for (uint32_t p = 1; p <= most_stages; p++)
        for (uint32_t m = 1; m <= most_micros; m += m < 16 ? 1 : 4)
            for (uint32_t v = kind->min_chunks; v <= most_chunks && v <= kind->max_chunks; v++)
                n_made += of_one_size(kind, p, m, v, check);
    ck_assert_uint_gt(n_made, 2 * most_stages);
}

static const struct dl_schedule_kind *kind_named(const char *name)
{
    for (size_t i = 0; i < dl_schedule_count(); i++)
        if (strcmp(dl_schedule_get(i)->name, name) == 0) return dl_schedule_get(i);
    ck_abort_msg("no schedule %s", name);
    return NULL;
}

#endif
