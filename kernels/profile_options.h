/* profile_options.h - the command line of dlsim-profile. */
#ifndef DL_KERNELS_PROFILE_OPTIONS_H
#define DL_KERNELS_PROFILE_OPTIONS_H

#include "kernels/kernel.h"

struct dl_profile_options {
    bool split, checks_only, is_summary, wants_list, wants_help, wants_man;
    const char *device, *output, *into, *only, *precision;
    double time_limit_s, spread, workspace_bytes;
    size_t share, n_shares;           /* of the shapes, every n_shares-th is timed */
    int64_t conv[DL_MAX_DIMS];        /* of split: the given dimensions of the problem conv */
    const struct dl_backend *backend; /* NULL: a list of all */
    unsigned precisions;              /* bits 1 << enum dl_float */
};

/* Reads the words after the program's name and opens the backend; NULL or what is wrong. */
const char *dl_profile_options_read(int argc, char **argv, struct dl_profile_options *o);

/* Both return 0. */
int dl_profile_help(void);
int dl_profile_man(void);

#endif
