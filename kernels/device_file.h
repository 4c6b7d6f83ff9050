/* device_file.h - measured times as a device file, schema dlsim/device/1, written whole or not at all. */
#ifndef DL_KERNELS_DEVICE_FILE_H
#define DL_KERNELS_DEVICE_FILE_H

#include <stdio.h>

#include "kernels/timing.h"

struct dl_result {
    const struct dl_routine *routine;
    const struct dl_problem *problem;
    enum dl_float precision;
    int64_t dim[DL_MAX_DIMS];
    struct dl_timing timing;
};

struct dl_profile {
    const struct dl_backend *backend;
    struct dl_device_facts facts;
    struct dl_timing launch;
    const struct dl_result *results; /* those of one routine and precision may be anywhere in the list */
    size_t n;
};

/* To ask before hours of timing; NULL: it is well. A folder or a device, as /dev/null, is never replaced. */
const char *dl_why_no_output(const char *path);
/* If it has "measured" that must be its last key. */
const char *dl_why_no_device_file(const char *path);

/* Writes all of this device file but its times; "measured" can follow. NULL, or what is wrong. */
const char *dl_device_head_copy(FILE *out, const char *path);

/* What a person still reads. How many of the results, from the first, a file of so many bytes can hold; their times
 * need not be known. */
#define DL_DEVICE_FILE_BYTES 200e3
size_t dl_device_file_fits(const struct dl_profile *p, const char *into);

/* `into` (may be NULL) is a device file whose other keys are kept. NULL: written; else what is wrong. */
const char *dl_device_file_write(const char *path, const char *into, const struct dl_profile *p);

/* The best rates that were seen; 0: none. */
double dl_best_flop_per_s(const struct dl_profile *p, enum dl_float f);
double dl_best_bytes_per_s(const struct dl_profile *p);

#endif
