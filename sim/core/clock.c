#define _GNU_SOURCE /* clock_gettime */
#include "sim/core/clock.h"

#include <time.h>

double dl_clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
