#define _GNU_SOURCE /* isatty, clock_gettime, dprintf */
#include "sim/report/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "sim/report/units.h"

/* Written to the descriptor: stderr shows what terminals obey as text (visible.h). */
static bool is_shown;

/* Once a second is often enough. */
static bool is_time(void)
{
    static time_t last;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    if (t.tv_sec == last) return false;
    last = t.tv_sec;
    is_shown = true;
    return true;
}

void dl_progress_begin(void)
{
    if (!isatty(STDERR_FILENO)) return;
    dprintf(STDERR_FILENO, "\rdlsim: preparing ");
    is_shown = true;
}

static void show(double now_s, uint64_t n_events)
{
    char events[DL_QUANTITY], seconds[DL_QUANTITY];
    if (!is_time()) return;
    dprintf(STDERR_FILENO, "\r\033[Kdlsim: simulated %s, %s events ", dl_format_seconds(now_s, seconds),
            dl_format_count((double)n_events, events));
}

dl_progress_fn dl_progress(void) { return isatty(STDERR_FILENO) ? show : NULL; }

void dl_progress_jobs(size_t n_done, size_t n_jobs, const char *what)
{
    if (!isatty(STDERR_FILENO) || !is_time()) return;
    dprintf(STDERR_FILENO, "\r\033[Kdlsim: %zu of %zu %s ", n_done, n_jobs, what);
}

void dl_progress_rate(size_t n_done, size_t n_before, size_t n_jobs, double seconds, const char *what)
{
    static double said_s;
    const double log_every_s = 30, n = (double)(n_done - n_before);
    const bool watched = isatty(STDERR_FILENO);
    char left[DL_QUANTITY];
    if (n <= 0 || seconds <= 0 || (watched ? !is_time() : seconds - said_s < log_every_s)) return;
    said_s = seconds;
    dprintf(STDERR_FILENO, "%sdlsim: %zu of %zu %s, %.3g a second, %s left%s", watched ? "\r\033[K" : "", n_done,
            n_jobs, what, n / seconds, dl_format_seconds((double)(n_jobs - n_done) * seconds / n, left),
            watched ? " " : "\n");
}

void dl_progress_end(void)
{
    if (is_shown) dprintf(STDERR_FILENO, "\r\033[K");
    is_shown = false;
}
