/* checking.c - every routine against its reference, before it is timed or for its own sake. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/harness.h"
#include "kernels/profiling.h"

bool dl_profile_is_right(const struct dl_backend *backend, const struct dl_routine *r, enum dl_float f, double *worst)
{
    const struct dl_problem *const p = dl_problem_find(r->problem, r->pass);
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
        fprintf(stderr, "dlsim-profile: %s %s (%s, %s) is wrong: %s\n", r->problem, r->pass, r->way, dl_float_name(f),
                wrong);
        return false;
    }
    return true;
}

int dl_profile_check(const struct dl_profile_options *o)
{
    int n_wrong = 0;
    printf("%-16s %-16s %-10s %-5s %s\n", "kernel", "pass", "way", "", "largest error over what is allowed");
    for (size_t i = 0; i < dl_routine_count(o->backend); i++)
        for (int f = 0; f < DL_N_FLOATS; f++) {
            const struct dl_routine *const r = dl_routine_get(o->backend, i);
            double worst;
            if (!(r->precisions >> f & 1) || (o->only && strcmp(o->only, r->problem))) continue;
            const bool is_right = dl_profile_is_right(o->backend, r, (enum dl_float)f, &worst);
            printf("%-16s %-16s %-10s %-5s %.2g%s\n", r->problem, r->pass, r->way, dl_float_name((enum dl_float)f),
                   worst, is_right ? "" : " WRONG");
            n_wrong += !is_right;
        }
    return n_wrong ? 1 : 0;
}
