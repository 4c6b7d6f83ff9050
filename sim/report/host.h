/* host.h - what a run cost the machine that dlsim ran on. It is the only part of a result that differs from run to run.
 */
#ifndef DL_REPORT_HOST_H
#define DL_REPORT_HOST_H

#include "sim/core/json.h"

struct dl_host {
    double wall_s, user_s; /* the second with that of all children */
    double peak_rss_bytes; /* without them */
};

/* Call first in main; dl_host_now counts from there. */
void dl_host_begin(void);
struct dl_host dl_host_now(void);
json_t *dl_host_json(const struct dl_host *host);

#endif
