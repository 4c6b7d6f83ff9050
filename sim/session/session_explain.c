/* session_explain.c - where the step of a session comes from. */
#include "sim/report/explain_run.h"
#include "sim/session/session.h"

enum dl_status dl_session_explain(struct dl_session *s)
{
    dl_explanation_init(&s->explanation, s->arena);
    s->report.explanation = &s->explanation;
    return dl_explain_run(
        &s->explanation,
        &(struct dl_explained_run){.report = &s->report,
                                   .estimator = &s->estimator,
                                   .system_doc = s->machine.system_doc,
                                   .device_doc = s->device_doc,
                                   .transport_doc = s->machine.transport_doc,
                                   .software_doc = s->software_doc,
                                   .device_of_rank = s->device_of_rank,
                                   .choices = s->choices,
                                   .slows_ranks = s->scenario_doc.value || dl_session_slowdown_of_rank(s)},
        &s->err);
}
