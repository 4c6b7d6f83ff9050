/* kernels_cuda.c - every routine of the GPU computes what its problem says, at odd sizes; left out, and seen to be,
 * where there is no GPU. What needs none is checked everywhere: that no problem has been forgotten. */
#include <stdio.h>
#include <string.h>

#include "kernels/profiling.h"

static const struct dl_backend *cuda;

static bool is_covered(const struct dl_problem *p)
{
    for (size_t i = 0; i < dl_routine_count(cuda); i++) {
        const struct dl_routine *const r = dl_routine_get(cuda, i);
        if (strcmp(r->problem, p->name) == 0 && strcmp(r->pass, p->pass) == 0) return true;
    }
    return false;
}

static int n_gaps(void)
{
    int n = 0;
    for (size_t i = 0; i < dl_problem_count(); i++) {
        const struct dl_problem *const p = dl_problem_get(i);
        if (is_covered(p)) continue;
        printf("%s %s: the GPU has no routine for it\n", p->name, p->pass);
        n++;
    }
    for (size_t i = 0; i < dl_routine_count(cuda); i++) {
        const struct dl_routine *const r = dl_routine_get(cuda, i);
        if (dl_problem_find(r->problem, r->pass)) continue;
        printf("%s %s: there is no such problem\n", r->problem, r->pass);
        n++;
    }
    return n;
}

int main(void)
{
    const int skipped = 77; /* what ctest knows as left out */
    cuda = dl_backend_find("cuda");
    if (!cuda || n_gaps()) return 1;
    const char *const absent = cuda->open();
    if (absent) {
        printf("cuda: left out, %s\n", absent);
        return skipped;
    }
    return dl_profile_check(&(struct dl_profile_options){.backend = cuda, .precisions = ~0u});
}
