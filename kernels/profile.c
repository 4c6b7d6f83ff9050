/* profile.c - dlsim-profile: time this machine's kernels into a device file; or divide a mini-batch (split).
 *
 * kernels/build builds it where there is a C compiler and OpenBLAS, or nvcc and cuBLAS, and nothing else of dlsim's. */
#include "kernels/profile_options.h"
#include "kernels/profiling.h"
#include "sim/core/visible.h"

#include <stdio.h>

static int run(const struct dl_profile_options *o)
{
    if (o->wants_help) return dl_profile_help();
    if (o->wants_man) return dl_profile_man();
    if (o->wants_list) return dl_profile_list(o);
    if (o->split) return dl_profile_split(o);
    if (o->is_summary) return dl_profile_summary(o);
    if (o->checks_only) return dl_profile_check(o);
    return dl_profile_run(o);
}

int main(int argc, char **argv)
{
    struct dl_profile_options o;
    dl_show_only_text();
    const char *const wrong = dl_profile_options_read(argc, argv, &o);
    if (wrong) {
        fprintf(stderr, "dlsim-profile: %s\n", wrong);
        return 2;
    }
    const int code = run(&o);
    if (!fflush(stdout) && !ferror(stdout)) return code;
    perror("dlsim-profile: standard output");
    return 2;
}
