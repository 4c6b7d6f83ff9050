#define _GNU_SOURCE /* isatty, clock_gettime */
#include "sim/report/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "sim/report/units.h"

static bool is_shown;

static void show(double now_s, uint64_t n_events)
{
    static time_t last;
    struct timespec t;
    char events[DL_QUANTITY], seconds[DL_QUANTITY];
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (t.tv_sec == last) return; /* once a second is often enough */
    last = t.tv_sec;
    is_shown = true;
    fprintf(stderr, "\rdlsim: simulated %s, %s events ", dl_format_seconds(now_s, seconds),
            dl_format_count((double)n_events, events));
    fflush(stderr);
}

dl_progress_fn dl_progress(void) { return isatty(STDERR_FILENO) ? show : NULL; }

void dl_progress_end(void)
{
    if (is_shown) fputs("\r\033[K", stderr);
    is_shown = false;
}
