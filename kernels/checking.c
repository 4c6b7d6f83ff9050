/* checking.c - every routine against its reference, before it is timed or for its own sake. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/harness.h"
#include "kernels/profiling.h"

bool dl_profile_is_right(const struct dl_backend *backend, const struct dl_routine *r, enum dl_float f, double *worst)
{
    const struct dl_problem *const p = dl_problem_find(r->problem, r->pass);
    bool is_right = true;
    *worst = 0;
    for (size_t i = 0; p->odd[i][0]; i++) {
        int64_t dim[DL_MAX_DIMS];
        double error;
        dl_problem_complete(p, p->odd[i], dim);
        if (!dl_routine_can(r, dim, f)) continue;
        struct dl_trial *const trial = dl_trial_new(&(struct dl_trial_spec){backend, r, p->odd[i], f, 1});
        const char *const wrong = dl_trial_check(trial, &error);
        dl_trial_free(trial);
        *worst = fmax(*worst, error);
        if (!wrong) continue;
        is_right = false;
        fprintf(stderr, "dlsim-profile: %s %s (%s, %s) is wrong for", r->problem, r->pass, r->way, dl_float_name(f));
        for (size_t d = 0; d < p->n_given; d++) fprintf(stderr, " %lld", (long long)dim[d]);
        fprintf(stderr, ": %s\n", wrong);
    }
    return is_right;
}

static bool has_routine(const struct dl_backend *backend, const struct dl_problem *p)
{
    for (size_t i = 0; i < dl_routine_count(backend); i++) {
        const struct dl_routine *const r = dl_routine_get(backend, i);
        if (strcmp(r->problem, p->name) == 0 && strcmp(r->pass, p->pass) == 0) return true;
    }
    return false;
}

static void print_gaps(const struct dl_backend *backend)
{
    for (size_t i = 0; i < dl_problem_count(); i++)
        if (!has_routine(backend, dl_problem_get(i)))
            printf("%-16s %-16s left out: this build has no routine for it\n", dl_problem_get(i)->name,
                   dl_problem_get(i)->pass);
}

int dl_profile_check(const struct dl_profile_options *o)
{
    int n_wrong = 0;
    printf("%-16s %-16s %-10s %-5s %s\n", "kernel", "pass", "way", "", "largest error over what is allowed");
    for (size_t i = 0; i < dl_routine_count(o->backend); i++)
        for (int f = 0; f < DL_N_FLOATS; f++) {
            const struct dl_routine *const r = dl_routine_get(o->backend, i);
            double worst;
            if (!dl_profile_wants(o, r, (enum dl_float)f) || (o->only && strcmp(o->only, r->problem))) continue;
            const bool is_right = dl_profile_is_right(o->backend, r, (enum dl_float)f, &worst);
            printf("%-16s %-16s %-10s %-5s %.2g%s\n", r->problem, r->pass, r->way, dl_float_name((enum dl_float)f),
                   worst, is_right ? "" : " WRONG");
            n_wrong += !is_right;
        }
    if (!o->only) print_gaps(o->backend);
    return n_wrong ? 1 : 0;
}
