/* store.h - the results of a sweep in one SQLite file.
 *
 * The rule to remember: a point is finished when its row is committed, and rows are never changed. So a sweep that is
 * killed at any moment goes on where it was, and parts of a sweep are merged by copying rows.
 *
 * Tables: `sweep` (key, value): format, version, sha256 and text of the sweep, number of points, shard.
 * `point`: a row for each finished point: its number, its inputs, status, reason, seconds, sha256, the answer's
 * figures, and the whole answer as JSON. `file` (path, sha256): every file that was read. */
#ifndef DL_SWEEP_STORE_H
#define DL_SWEEP_STORE_H

#include "sim/sweep/sweep.h"

struct sqlite3;
struct dl_store;

struct dl_store_request {
    const char *path;
    const struct dl_sweep *sweep;
    size_t n_points;   /* of the whole sweep */
    const char *shard; /* "2/8"; NULL: all points */
    bool restart;      /* forget what is there */
    const char *retry; /* forget results of this status ("failed"); NULL: none */
};

/* Make the file, or go on with one of the same sweep. Refuses results of another sweep, version or shard, files that
 * have changed since they were read, and a second writer. Close it in any case. */
enum dl_status dl_store_open(const struct dl_store_request *request, struct dl_store **out, struct dl_error *err);
void dl_store_close(struct dl_store *store);

/* Leave in the list those that are not finished. */
void dl_store_unfinished(const struct dl_store *store, uint64_t *points, size_t *n);

/* A result: {"point", "status", "reason", "seconds", "files": {path: sha256}, "figures", "answer"}, the answer as the
 * text of its JSON. It counts when committed. */
enum dl_status dl_store_add(struct dl_store *store, const json_t *result, struct dl_error *err);
enum dl_status dl_store_commit(struct dl_store *store, struct dl_error *err);

/* Open the results of some sweep to read; the caller releases it with sqlite3_close. */
enum dl_status dl_store_read(const char *path, struct sqlite3 **db, struct dl_error *err);

/* Copy the results of parts of a sweep into one file, which may be there already. */
enum dl_status dl_store_merge(const char *path, const char *const *parts, size_t n_parts, struct dl_error *err);

/* Every status that a point may have, and the columns of `point` that are figures of the answer; end with NULL. */
extern const char *const dl_point_statuses[];
extern const char *const dl_point_figures[];

#endif
