/* profiling.h - what dlsim-profile does; each returns the exit code of the program. */
#ifndef DL_KERNELS_PROFILING_H
#define DL_KERNELS_PROFILING_H

#include "kernels/device_file.h"
#include "kernels/profile_options.h"

int dl_profile_run(const struct dl_profile_options *o);
int dl_profile_check(const struct dl_profile_options *o);
int dl_profile_split(const struct dl_profile_options *o);
int dl_profile_summary(const struct dl_profile_options *o);
int dl_profile_list(const struct dl_profile_options *o);

/* Whether the routine has this precision, and it is asked for. */
bool dl_profile_wants(const struct dl_profile_options *o, const struct dl_routine *r, enum dl_float f);
/* And is part of a device file, or of what --only asks for. */
bool dl_profile_lists(const struct dl_profile_options *o, const struct dl_routine *r, enum dl_float f);
/* Whether a shape can be done, and is not too large to be worth it on this backend. */
bool dl_profile_is_worth(const struct dl_profile_options *o, const struct dl_result *p);
/* Whether this shape of this routine is in the list: lists of shapes overlap. */
bool dl_profile_has(const struct dl_profile *profile, const struct dl_result *p);

/* What is to be timed, in order: the profile's results, whose times are then filled in. */
struct dl_agenda {
    const struct dl_profile_options *o;
    struct dl_profile *profile;
    struct dl_result *points; /* the caller's to free */
    size_t n_basic;           /* the first, which are timed whatever the limit and the share */
};
/* Needs the options and a profile with its backend and facts. NULL, or what is wrong with the precisions. */
const char *dl_agenda_fill(struct dl_agenda *a);

/* Asks the device for its facts; how its shapes are to be timed, each for so long at most. */
struct dl_timing_plan dl_profile_plan(const struct dl_profile_options *o, struct dl_device_facts *facts, double most_s);

/* Prints what is wrong with a routine, if anything; whether it is right at all odd shapes. `worst` gets the largest
 * error over what is allowed; NaN: it can do none of them. */
bool dl_profile_is_right(const struct dl_backend *backend, const struct dl_routine *r, enum dl_float f, double *worst);

#endif
