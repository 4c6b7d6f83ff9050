/* links_report.h - the links with the highest load, for people and for programs.
 *
 * The rule to remember: only what was simulated is on the links. A collective that was priced without contention is
 * not: nothing else is on its links, or the loads as a whole are not known (simulated_s 0). */
#ifndef DL_REPORT_LINKS_REPORT_H
#define DL_REPORT_LINKS_REPORT_H

#include "sim/engine/wire.h"

enum { DL_MOST_LINKS = 10, DL_LINK_NAME = 160 };

struct dl_links {
    const struct dl_topology *topology;
    struct dl_link_load items[DL_MOST_LINKS]; /* the busiest first; in all that was simulated */
    size_t n;
    double simulated_s; /* 0: the loads are not known */
    double told_s;      /* bytes are told for so long: a step, of several that may have been simulated */
};

/* The name of the busiest; NULL: nothing moved. */
const char *dl_links_limiting(const struct dl_links *links, char name[DL_LINK_NAME]);

/* Nothing if the loads are not known. */
void dl_links_print(const struct dl_links *links);
/* null if they are not. */
json_t *dl_links_json(const struct dl_links *links);

#endif
