/* collective_report.h - the answer of `dlsim collective`, for people and for programs. */
#ifndef DL_REPORT_COLLECTIVE_REPORT_H
#define DL_REPORT_COLLECTIVE_REPORT_H

#include "sim/collective/choose.h"
#include "sim/engine/exchange.h"
#include "sim/report/assumptions.h"
#include "sim/report/files_read.h"
#include "sim/report/host.h"
#include "sim/report/links_report.h"

struct dl_collective_report {
    const struct dl_topology *topology;
    const struct dl_transport *transport;
    const struct dl_choice *choice;
    struct dl_exchange_result result;
    const char *engine;
    bool fluid;
    uint64_t n_events;
    struct dl_links links;
    struct dl_assumptions assumptions;
    struct dl_files_read files;
};

/* `links`: with the links that have the highest load. */
void dl_collective_report_text(const struct dl_collective_report *r, bool links);
/* The caller's to release. Everything outside "host" is the same from run to run. */
json_t *dl_collective_report_json(const struct dl_collective_report *r);

#endif
