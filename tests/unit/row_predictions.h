/* row_predictions.h - what the analytic engine predicts for a few rows that a test writes down. */
#ifndef DL_TESTS_ROW_PREDICTIONS_H
#define DL_TESTS_ROW_PREDICTIONS_H

#include <string.h>

#include "sim/study/row_trials.h"
#include "tests/unit/suite.h"

#define THREE_ROWS(a, b, c) "{\"schema\":\"dlsim/steps/1\",\"source\":\"a test\",\"rows\":[" a "," b "," c "]}"

/* One for each row of the text, none of which fails; microbatch 0: as the row's strategy has it. Free with dl_free. */
static inline struct dl_row_prediction *predict_rows(const char *text, int64_t microbatch, struct dl_arena *arena)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct dl_training_rows rows = {0};
    ck_assert(!dl_json_parse(text, strlen(text), "test.json", arena, &doc, &err));
    ck_assert_msg(!dl_training_rows_add(doc, arena, &rows, &err), "%s", err.text);
    struct dl_row_trials trials = {.rows = &rows, .engine = "analytic", .jobs = 1};
    for (size_t i = 0; i < rows.n; i++)
        dl_row_trials_add(&trials, (struct dl_row_trial){.row = i, .microbatch = microbatch});
    struct dl_row_prediction *const got = dl_row_trials_run(&trials);
    for (size_t i = 0; i < rows.n; i++) ck_assert_msg(!got[i].err.status, "%s", got[i].err.text);
    dl_free(trials.items);
    dl_training_rows_release(&rows);
    json_decref(doc.value);
    return got;
}

#endif
