/* log_run.h - the run that a log tells of, as a measured training step.
 *
 * The rule to remember: what the log says of the run is taken from it, what it does not say must be given, and where
 * both say it they must agree: nothing is guessed. */
#ifndef DL_STUDY_LOG_RUN_H
#define DL_STUDY_LOG_RUN_H

#include "sim/import/log.h"
#include "sim/report/log_report.h"
#include "sim/study/row_trials.h"

/* What is given beside the log. */
struct dl_log_given {
    const char *topo, *strategy, *workload, *software; /* NULL: not given */
    uint64_t devices;                                  /* 0: not given */
    uint64_t warmup;                                   /* steps that are left out at the beginning */
};

struct dl_log_run {
    struct dl_log log;
    const char *file, *said, *software, *left_out; /* as struct dl_logged has them */
    size_t warmup;
    struct dl_log_summary steps;
};

/* Whether a file of rows may be a log: it is no table by its name. */
bool dl_may_be_log(const char *path);

/* Read a log and add its run to the rows. `set` has the values of --set; those of the log come before them.
 * run->log.format is NULL where the file is a table of rows after all. Close it in any case. */
enum dl_status dl_log_run_open(struct dl_log_run *run, const char *path, const struct dl_log_given *given,
                               struct dl_texts *set, struct dl_arena *arena, struct dl_training_rows *rows,
                               struct dl_error *err);
/* What the log says beside what is predicted; in the arena. */
const struct dl_logged *dl_log_run_told(const struct dl_log_run *run, const struct dl_training_result *predicted,
                                        struct dl_arena *arena);
void dl_log_run_close(struct dl_log_run *run);

/* Its row, a new reference; names of documents that only the log has are the log's, and these documents are then put in
 * place of files of that name. */
json_t *dl_log_row(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_arena *arena);
void dl_log_row_put_documents(const struct dl_log_run *run, const struct dl_log_given *given,
                              struct dl_training_row *row, struct dl_arena *arena);

/* The timers of the log that have a counterpart in a prediction. */
size_t dl_log_phases(const struct dl_log *log, const struct dl_training_result *predicted, size_t warmup,
                     struct dl_logged_phase phases[DL_LOG_TIMERS]);

#endif
