/* training_row.h - a measured training step: where and how it ran, and the seconds that it took.
 *
 * Rows come from a CSV file whose columns are the fields below, or from a JSON file (schema dlsim/steps/1) with the
 * same keys in a list of "rows". A row becomes the documents of a session; nothing in this step depends on what was
 * measured. */
#ifndef DL_APP_TRAINING_ROW_H
#define DL_APP_TRAINING_ROW_H

#include "sim/app/session.h"

/* 0 or NULL where the source says nothing and the field may be empty. */
struct dl_training_row {
    const char *where; /* "rows.csv:12" */
    const char *id, *topo, *model, *software, *source;
    const char *schedule, *recompute, *precision, *attention, *stage_rule;
    const char *assumed; /* columns that the source does not state */
    int64_t devices, layers, hidden, ffn, heads, kv_heads, seq, vocab, experts, top_k, expert_ffn;
    int64_t global_batch, microbatch, tp, pp, dp, cp, ep, vpp, sp, zero;
    double step_s;
};

struct dl_training_rows {
    struct dl_training_row *items;
    size_t n, capacity;
};

/* Add the rows of a text of CSV, or of a document; `name` is that of the file, for errors. Release with
 * dl_free(rows->items). */
enum dl_status dl_training_rows_parse(const char *text, size_t bytes, const char *name, struct dl_arena *arena,
                                      struct dl_training_rows *rows, struct dl_error *err);
enum dl_status dl_training_rows_add(struct dl_json doc, struct dl_arena *arena, struct dl_training_rows *rows,
                                    struct dl_error *err);
/* Add the rows of a file: JSON if its name ends so, else CSV. */
enum dl_status dl_training_rows_read(const char *path, struct dl_arena *arena, struct dl_training_rows *rows,
                                     struct dl_error *err);
/* Add the rows of every shipped file of published training steps. */
enum dl_status dl_training_rows_published(struct dl_arena *arena, struct dl_training_rows *rows, struct dl_error *err);

/* What to run, with this micro-batch; the texts live in the arena. */
enum dl_status dl_training_row_request(const struct dl_training_row *row, int64_t microbatch, struct dl_arena *arena,
                                       struct dl_session_request *out, struct dl_error *err);

/* Samples of a step of one replica; 0: the row's numbers do not go together. */
int64_t dl_training_row_batch(const struct dl_training_row *row);

#endif
