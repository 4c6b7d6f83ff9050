/* agenda.c - what a call of dlsim-profile times, and in which order. */
#include <stdio.h>
#include <string.h>

#include "kernels/profiling.h"

bool dl_profile_wants(const struct dl_profile_options *o, const struct dl_routine *r, enum dl_float f)
{
    return !r->lacks && (r->precisions >> f & o->precisions >> f & 1);
}

bool dl_profile_lists(const struct dl_profile_options *o, const struct dl_routine *r, enum dl_float f)
{
    const bool is_for_files = !r->is_own && !dl_problem_find(r->problem, r->pass)->is_no_workloads;
    return dl_profile_wants(o, r, f) && (o->only ? strcmp(o->only, r->problem) == 0 : is_for_files);
}

bool dl_profile_is_worth(const struct dl_profile_options *o, const struct dl_result *p)
{
    return dl_problem_flop(p->problem, p->dim) <= o->backend->most_flop &&
           dl_problem_bytes(p->problem, p->dim, p->precision) <= o->backend->most_bytes &&
           dl_routine_can(p->routine, p->dim, p->precision);
}

bool dl_profile_has(const struct dl_profile *profile, const struct dl_result *p)
{
    for (const struct dl_result *other = profile->results; other < profile->results + profile->n; other++)
        if (other->routine == p->routine && other->precision == p->precision &&
            memcmp(other->dim, p->dim, sizeof p->dim) == 0)
            return true;
    return false;
}

/* The n-th shape of each routine before the next of any: what a time limit leaves out is spread over all. */
static void plan_round(struct dl_agenda *a, size_t shape, bool *is_last)
{
    const struct dl_backend *const b = a->profile->backend;
    for (size_t i = 0; i < dl_routine_count(b); i++)
        for (int f = 0; f < DL_N_FLOATS; f++) {
            const struct dl_routine *const r = dl_routine_get(b, i);
            struct dl_result point = {.routine = r, .problem = dl_problem_find(r->problem, r->pass)};
            if (!dl_profile_lists(a->o, r, (enum dl_float)f) || !point.problem->timed) continue;
            size_t n_shapes = 0;
            while (point.problem->timed[n_shapes][0]) n_shapes++;
            if (shape >= n_shapes) continue;
            *is_last = false;
            point.precision = (enum dl_float)f;
            dl_problem_complete(point.problem, point.problem->timed[shape], point.dim);
            if (dl_profile_is_worth(a->o, &point) && !dl_profile_has(a->profile, &point))
                a->points[a->profile->n++] = point;
        }
}

static void plan_all(struct dl_agenda *a)
{
    enum { most_points = 100000 };
    bool is_last = false;
    a->points = dl_memory(most_points * sizeof *a->points);
    a->profile->results = a->points;
    for (size_t shape = 0; !is_last && a->profile->n < most_points / 2; shape++) {
        is_last = true;
        plan_round(a, shape, &is_last);
    }
}

/* To the front of what is left: the first point of this problem with so many flop and bytes. False: there is none. */
static bool bring_forward(struct dl_agenda *a, size_t to, const char *name, double least_flop, double least_bytes)
{
    for (size_t i = to; i < a->profile->n; i++) {
        const struct dl_result p = a->points[i];
        if (strcmp(p.problem->name, name) || dl_problem_flop(p.problem, p.dim) < least_flop ||
            dl_problem_bytes(p.problem, p.dim, p.precision) < least_bytes)
            continue;
        memmove(&a->points[to + 1], &a->points[to], (i - to) * sizeof p);
        a->points[to] = p;
        return true;
    }
    return false;
}

/* Without these two there are no rates to put into the file. */
static const char *bring_basics_forward(struct dl_agenda *a)
{
    const double large_product_flop = 2e9;
    a->n_basic += bring_forward(a, a->n_basic, "copy", 0, a->profile->facts.last_cache_bytes);
    a->n_basic += bring_forward(a, a->n_basic, "gemm", large_product_flop, 0);
    if (a->n_basic == 2 || a->o->into) return NULL;
    return "must have a large copy and a large product, as fp32 has: a file needs their rates, or --into those of "
           "another";
}

/* The last shapes of the lists fill gaps between the others, and are the first to go. */
static void keep_what_fits(struct dl_agenda *a)
{
    const size_t n = dl_device_file_fits(a->profile, a->o->into);
    if (n < a->profile->n)
        fprintf(stderr, "dlsim-profile: %zu of %zu shapes are left out, for a file of %g KB; --precisions takes less\n",
                a->profile->n - n, a->profile->n, DL_DEVICE_FILE_BYTES / 1e3);
    a->profile->n = n;
}

/* Others time the rest at the same time, as ranks of one machine compute at the same time. */
static void keep_share(struct dl_agenda *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->profile->n; i++)
        if (i < a->n_basic || i % a->o->n_shares == a->o->share) a->points[n++] = a->points[i];
    a->profile->n = n;
}

const char *dl_agenda_fill(struct dl_agenda *a)
{
    plan_all(a);
    const char *const wrong = a->o->only ? NULL : bring_basics_forward(a);
    if (!a->o->only && !wrong) keep_what_fits(a);
    keep_share(a);
    return wrong;
}
