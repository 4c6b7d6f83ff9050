/* explain_step.h - a step as it is told, cause by cause. Internal to explain_*.c. */
#ifndef DL_REPORT_EXPLAIN_STEP_H
#define DL_REPORT_EXPLAIN_STEP_H

#include "sim/report/explain_work.h"

struct dl_told_step {
    struct dl_explanation *e;
    const struct dl_explained_run *of;
    const struct dl_run_report *r;
    const struct dl_setting *setting;
    struct dl_work_lines lines;
    double n_stages;
    bool has_cited_model;
    struct dl_error *err;
};

static inline const char *number(const struct dl_told_step *t, double x) { return dl_explain_number(t->e, x); }

static inline struct dl_json below(const struct dl_told_step *t, struct dl_json object, const char *key)
{
    return dl_json_member(object, key, t->e->arena);
}

/* "96", or "6144 / 64": the mean over stages of what all of them have. */
const char *dl_told_count(const struct dl_told_step *t, double n);
/* What the simulation differs by, if it is more than rounding. */
void dl_tell_difference(const struct dl_told_step *t, enum dl_cause cause, double seconds, const char *words);

/* explain_kernels.c */
void dl_tell_kernel(struct dl_told_step *t, const struct dl_work_line *line);
/* What collectives take from kernels beside them, by the device and by the software that limits them. */
void dl_cite_taken(const struct dl_told_step *t);

/* explain_calls.c: a collective of ranks in lockstep, one over replicas, and all messages between stages. */
void dl_tell_in_step(struct dl_told_step *t, const struct dl_work_line *line);
void dl_tell_call(struct dl_told_step *t, const struct dl_work_line *line);
void dl_tell_sends(struct dl_told_step *t);

#endif
