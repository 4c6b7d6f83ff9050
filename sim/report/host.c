#define _GNU_SOURCE /* getrusage */
#include "sim/report/host.h"

#include <sys/resource.h>

#include "sim/core/clock.h"

static double begin_s, begin_children_s; /* who called us by exec may have had children */

static double user_s(const struct rusage *usage)
{
    return (double)usage->ru_utime.tv_sec + 1e-6 * (double)usage->ru_utime.tv_usec;
}

static struct rusage usage_of(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return usage;
}

void dl_host_begin(void)
{
    const struct rusage children = usage_of(RUSAGE_CHILDREN);
    begin_s = dl_clock_s();
    begin_children_s = user_s(&children);
}

struct dl_host dl_host_now(void)
{
    const double kib = 1024;
    const struct rusage self = usage_of(RUSAGE_SELF), children = usage_of(RUSAGE_CHILDREN);
    return (struct dl_host){.wall_s = dl_clock_s() - begin_s,
                            .user_s = user_s(&self) + user_s(&children) - begin_children_s,
                            .peak_rss_bytes = (double)self.ru_maxrss * kib};
}

json_t *dl_host_json(const struct dl_host *host)
{
    return dl_json_pack("{s:f, s:f, s:f}", "wall_s", host->wall_s, "user_s", host->user_s, "peak_rss_bytes",
                        host->peak_rss_bytes);
}
