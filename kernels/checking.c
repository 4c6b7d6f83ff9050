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
    *worst = (double)NAN; /* which is less than any error */
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

static void print_line(const struct dl_routine *r, const char *precision, const char *found)
{
    printf("%-16s %-16s %-15s %-5s %s\n", r->problem, r->pass, r->way, precision, found);
}

static int check_routine(const struct dl_profile_options *o, const struct dl_routine *r)
{
    int n_wrong = 0;
    char found[64];
    if (r->lacks) {
        snprintf(found, sizeof found, "left out: needs %s", r->lacks);
        print_line(r, "", found);
        return 0;
    }
    for (int f = 0; f < DL_N_FLOATS; f++) {
        double worst;
        if (!dl_profile_wants(o, r, (enum dl_float)f)) continue;
        const bool is_right = dl_profile_is_right(o->backend, r, (enum dl_float)f, &worst);
        snprintf(found, sizeof found, "%.2g%s", worst, is_right ? "" : " WRONG");
        if (isnan(worst)) strcpy(found, "left out: it can do no odd shape");
        print_line(r, dl_float_name((enum dl_float)f), found);
        n_wrong += !is_right;
    }
    return n_wrong;
}

int dl_profile_check(const struct dl_profile_options *o)
{
    int n_wrong = 0;
    print_line(&(struct dl_routine){.problem = "kernel", .pass = "pass", .way = "way"}, "",
               "largest error over what is allowed");
    for (size_t i = 0; i < dl_routine_count(o->backend); i++) {
        const struct dl_routine *const r = dl_routine_get(o->backend, i);
        if (!o->only || strcmp(o->only, r->problem) == 0) n_wrong += check_routine(o, r);
    }
    return n_wrong ? 1 : 0;
}
