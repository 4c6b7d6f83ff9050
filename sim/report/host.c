#define _GNU_SOURCE /* clock_gettime, getrusage */
#include "sim/report/host.h"

#include <sys/resource.h>
#include <time.h>

static double begin_s;

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void dl_host_begin(void) { begin_s = clock_s(); }

struct dl_host dl_host_now(void)
{
    const double kib = 1024;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct dl_host){.wall_s = clock_s() - begin_s,
                            .user_s = (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec,
                            .peak_rss_bytes = (double)usage.ru_maxrss * kib};
}

json_t *dl_host_json(const struct dl_host *host)
{
    return json_pack("{s:f, s:f, s:f}", "wall_s", host->wall_s, "user_s", host->user_s, "peak_rss_bytes",
                     host->peak_rss_bytes);
}
