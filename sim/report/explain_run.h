/* explain_run.h - a training step, cause by cause: each is a sum over kernels, collectives and messages, with the
 * figures that they are priced by, and what overlap, contention and the order of the work make of it.
 *
 * Causes are means over ranks, as in the report; so counts are those of all stages over their number. */
#ifndef DL_REPORT_EXPLAIN_RUN_H
#define DL_REPORT_EXPLAIN_RUN_H

#include "sim/report/explain_formula.h"
#include "sim/report/run_report.h"

struct dl_explained_run {
    const struct dl_run_report *report;
    struct dl_estimator *estimator;
    struct dl_json system_doc, device_doc, transport_doc, software_doc;
    const uint32_t *device_of_rank;
    const struct dl_choice *choices; /* by call; algorithm is NULL: not known */
    bool slows_ranks;                /* a scenario, or the variability of the machine */
};

enum dl_status dl_explain_run(struct dl_explanation *e, const struct dl_explained_run *of, struct dl_error *err);

#endif
