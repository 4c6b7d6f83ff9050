/* listing.c - dlsim-profile --list: what kernels there are, and the ways that this build has for each. */
#include <stdio.h>
#include <string.h>

#include "kernels/profiling.h"

static void print_way(const struct dl_backend *b, const struct dl_routine *r)
{
    printf("    %-4s %-15s %s;", b->name, r->way, r->doc);
    for (int f = 0; f < DL_N_FLOATS; f++)
        if (r->precisions >> f & 1) printf(" %s", dl_float_name((enum dl_float)f));
    if (r->lacks) printf("; needs %s, which this build has not", r->lacks);
    putchar('\n');
}

static void print_ways(const struct dl_backend *b, const struct dl_problem *p)
{
    for (size_t i = 0; i < dl_routine_count(b); i++) {
        const struct dl_routine *const r = dl_routine_get(b, i);
        if (strcmp(r->problem, p->name) == 0 && strcmp(r->pass, p->pass) == 0) print_way(b, r);
    }
}

static bool is_asked(const struct dl_profile_options *o, const struct dl_backend *b)
{
    return !o->backend || o->backend == b;
}

int dl_profile_list(const struct dl_profile_options *o)
{
    for (size_t i = 0; i < dl_backend_count(); i++)
        if (is_asked(o, dl_backend_get(i)))
            printf("--device %-6s %s\n", dl_backend_get(i)->name, dl_backend_get(i)->doc);
    for (size_t i = 0; i < dl_problem_count(); i++) {
        const struct dl_problem *const p = dl_problem_get(i);
        printf("%s %s: %s%s\n", p->name, p->pass, p->doc, p->timed ? "" : "; checked, not timed");
        for (size_t b = 0; b < dl_backend_count(); b++)
            if (is_asked(o, dl_backend_get(b))) print_ways(dl_backend_get(b), p);
    }
    return 0;
}
