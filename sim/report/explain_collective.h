/* explain_collective.h - the time of one collective: its formula, and what the simulation differs from it by. */
#ifndef DL_REPORT_EXPLAIN_COLLECTIVE_H
#define DL_REPORT_EXPLAIN_COLLECTIVE_H

#include "sim/report/collective_report.h"
#include "sim/report/explain_formula.h"

struct dl_explained_collective {
    const struct dl_collective_report *report;
    struct dl_estimator *estimator;
    struct dl_json system_doc, transport_doc;
    bool has_scenario; /* links changed on the way */
};

enum dl_status dl_explain_collective(struct dl_explanation *e, const struct dl_explained_collective *of,
                                     struct dl_error *err);

#endif
