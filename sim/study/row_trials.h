/* row_trials.h - measured training steps, simulated: many at once, each in a process of its own. */
#ifndef DL_STUDY_ROW_TRIALS_H
#define DL_STUDY_ROW_TRIALS_H

#include "sim/report/validation.h"
#include "sim/study/training_row.h"

/* A row with one micro-batch, and with parts at their best as dl_session_request says. */
struct dl_row_trial {
    size_t row;
    int64_t microbatch;
    unsigned ideal;
};

struct dl_row_trials {
    const struct dl_training_rows *rows;
    struct dl_row_trial *items; /* for dl_free */
    size_t n, capacity;
    /* How all are run. */
    const char *engine;
    uint64_t jobs;
    double limit_s; /* of a run; 0: none */
    struct dl_texts set;
};

struct dl_row_prediction {
    double step_s, samples_per_s;
    struct dl_training_result result;
    double mfu, hfu; /* counted as the row does */
    bool fits, experts;
    enum dl_domain domain;
    double peak_bytes;          /* of the fullest stage */
    double reserved_bytes;      /* of the stage that the row tells it of, with what fragmentation adds */
    bool lost;                  /* its process died, or took longer than the limit: then with the error DL_LATE */
    char sha256[DL_SHA256_HEX]; /* of what was asked; empty: it was refused */
    struct dl_error err;        /* why there is none */
};

void dl_row_trials_add(struct dl_row_trials *t, struct dl_row_trial trial);
/* One for each trial, for dl_free. */
struct dl_row_prediction *dl_row_trials_run(const struct dl_row_trials *t);
/* Fail if any was lost by itself, and say of which row. */
enum dl_status dl_row_trials_check(const struct dl_row_trials *t, const struct dl_row_prediction *predictions,
                                   struct dl_error *err);

/* What each part adds to the steps of the rows that were predicted, by as many runs again as parts can be ideal. `like`
 * says how to run. An error: a run was lost. */
void dl_find_added(const struct dl_row_trials *like, struct dl_compared *compared, struct dl_error *err);

/* What rows may have in common ("tensor ways 8"), for dl_compared; in the arena. */
const char *const *dl_row_traits(const struct dl_training_row *row, struct dl_arena *arena);

/* The files of each row and their constants, in the arena. */
void dl_find_constants(const struct dl_row_trials *like, struct dl_compared *compared, struct dl_arena *arena);

#endif
