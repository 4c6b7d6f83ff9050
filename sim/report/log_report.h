/* log_report.h - a run that a log tells of, beside what is predicted for it: the step, its phases, its memory, and what
 * the difference may come from. */
#ifndef DL_REPORT_LOG_REPORT_H
#define DL_REPORT_LOG_REPORT_H

#include <jansson.h>

#include "sim/engine/training.h"
#include "sim/report/validation.h"

/* A part of the step that the program measures, and the same of the prediction. */
struct dl_logged_phase {
    const char *name;
    double measured_s, predicted_s;
};

struct dl_logged {
    const char *file, *program; /* the log, and what wrote it */
    const char *said;           /* what the log says of the run, in a line */
    const char *software;       /* that is taken as the nearest to the program; NULL: it was given */
    const char *left_out;       /* what it says that dlsim knows nothing of; NULL: nothing */
    size_t n_steps, n_warmup, n_other_batch, n_used, n_runs_before;
    double low_s, high_s; /* 10 and 90 % of the measured steps */
    double peak_bytes;    /* measured; 0: not */
    const char *peak;     /* what the program calls it */
    const struct dl_logged_phase *phases;
    size_t n_phases;
    struct dl_training_result predicted;
};

/* What a cause would have to be multiplied by to make the predicted step the measured one; NAN: it cannot alone. */
double dl_logged_factor(const struct dl_compared *row, enum dl_cause cause);

/* In place of the table of families. */
void dl_logged_text(const struct dl_compared *row, const char *engine);
json_t *dl_logged_json(const struct dl_compared *row);

#endif
