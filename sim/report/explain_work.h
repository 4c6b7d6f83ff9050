/* explain_work.h - what all stages do in a step, alike things counted together. Internal to explain_*.c. */
#ifndef DL_REPORT_EXPLAIN_WORK_H
#define DL_REPORT_EXPLAIN_WORK_H

#include "sim/report/explain_run.h"

/* The templates of a program, and its end. */
enum { DL_WORK_END = DL_N_TEMPLATES };

struct dl_work_line {
    struct dl_instruction what;       /* one of them: work, or the start of a collective */
    const struct dl_comm *collective; /* of ranks in lockstep, which is work; NULL: it is none, or not of one kind */
    int kind;                         /* of template */
    double n, seconds;                /* in a step, of all stages: how many; their time on devices */
    bool is_beside;                   /* some of them go on beside kernels */
};

/* Waiting for the host, if host and device begin a template together. */
struct dl_work_wait {
    int kind;
    double seconds, host_s, n; /* host: that it launches for */
};

struct dl_work_lines {
    const struct dl_comm *calls;
    struct dl_work_line *items;
    size_t n, capacity;
    struct dl_work_wait *waits;
    size_t n_waits, waits_capacity;
};

/* Release with dl_free the two lists. */
void dl_work_lines_collect(const struct dl_run_report *r, struct dl_work_lines *out);

const char *dl_work_kind_name(int kind);

/* Messages between stages in a step, of all stages. */
double dl_work_count_sends(const struct dl_schedule *s);

#endif
