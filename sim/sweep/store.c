#define _GNU_SOURCE /* flock */
#include "sim/sweep/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/core/clock.h"
#include "sim/core/files.h"
#include "sim/core/fingerprint.h"
#include "sim/core/output.h"
#include "sim/sweep/columns.h"

static const char format[] = "dlsim sweep 1";

const char *const dl_point_statuses[] = {"done", "does-not-fit", "refused", "failed", "timed-out", NULL};
const char *const dl_point_figures[] = {"step_s", "samples_per_s", "tokens_per_s", "mfu",
                                        "hfu",    "fits",          "peak_bytes",   NULL};
/* The columns of `point` between its inputs and these; `point` comes first and `json` last. */
static const char *const own_columns[] = {"status", "reason", "seconds", "sha256", NULL};

struct dl_store {
    sqlite3 *db;
    char *path, *lock_path;
    const struct dl_sweep *sweep;
    sqlite3_stmt *insert, *insert_file, *find_file;
    const json_t **values;
    int lock;
    bool in_transaction;
};

/* ---- saying what went wrong ---- */

static enum dl_status cannot(const char *path, sqlite3 *db, const char *what, struct dl_error *err)
{
    switch (sqlite3_errcode(db)) {
    case SQLITE_NOTADB: return dl_fail(err, DL_TYPE, path, "is no database of a sweep");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return dl_fail(err, DL_IMPOSSIBLE, path, "is locked by another process; wait for it, or give each its --shard");
    case SQLITE_FULL:
        return dl_fail(err, DL_STALLED, path,
                       "the disk is full; all finished points are kept, make room and run the same command again");
    default: return dl_fail(err, DL_NOT_FOUND, path, "cannot be %s: %s", what, sqlite3_errmsg(db));
    }
}

static enum dl_status execute(struct dl_store *store, const char *sql, struct dl_error *err)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL)) return cannot(store->path, store->db, "written", err);
    return DL_OK;
}

static sqlite3_stmt *prepare(struct dl_store *store, const char *sql, struct dl_error *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL)) cannot(store->path, store->db, "read", err);
    return statement;
}

/* ---- what sweep it is ---- */

/* Content and version: see fingerprint.h. */
static void sweep_sha256(const struct dl_sweep *sweep, char hex[DL_SHA256_HEX])
{
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_fingerprint_json(&f, "sweep", sweep->doc.value);
    dl_fingerprint_end(&f, hex);
}

static char *value_of(sqlite3 *db, const char *key)
{
    sqlite3_stmt *statement = NULL;
    char *value = NULL;
    if (sqlite3_prepare_v2(db, "SELECT value FROM sweep WHERE key = ?", -1, &statement, NULL)) return NULL;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW) value = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return value;
}

static bool has_value(sqlite3 *db, const char *key, const char *wanted)
{
    char *const value = value_of(db, key);
    const bool is_it = value && strcmp(value, wanted) == 0;
    sqlite3_free(value);
    return is_it;
}

static enum dl_status check_format(const char *path, sqlite3 *db, struct dl_error *err)
{
    if (has_value(db, "format", format)) return DL_OK;
    if (sqlite3_errcode(db) == SQLITE_NOTADB || sqlite3_errcode(db) == SQLITE_BUSY)
        return cannot(path, db, "read", err);
    return dl_fail(err, DL_TYPE, path, "is a database, but not of a sweep");
}

static enum dl_status check_columns(const struct dl_sweep *sweep, struct dl_error *err)
{
    static const char *const ends[] = {"point", "json", NULL};
    const char *const *const taken[] = {ends, own_columns, dl_point_figures};
    for (size_t i = 0; i < sweep->n_columns; i++)
        for (size_t k = 0; k < DL_COUNT(taken); k++)
            for (const char *const *name = taken[k]; *name; name++)
                if (sqlite3_stricmp(*name, sweep->columns[i].name) == 0)
                    return dl_fail(err, DL_KEY, sweep->columns[i].where,
                                   "the column '%s' holds results; give this one another name", *name);
    return DL_OK;
}

static void append_columns(sqlite3_str *text, const char *const *names, const char *pattern)
{
    for (; *names; names++) sqlite3_str_appendf(text, pattern, *names);
}

static enum dl_status put_value(struct dl_store *store, const char *key, const char *value, struct dl_error *err)
{
    char *const sql = sqlite3_mprintf("INSERT INTO sweep VALUES (%Q, %Q)", key, value);
    execute(store, sql, err);
    sqlite3_free(sql);
    return err->status;
}

static enum dl_status make_tables(struct dl_store *store, const struct dl_store_request *q, struct dl_error *err)
{
    char sha256[DL_SHA256_HEX], n_points[24];
    sqlite3_str *const text = sqlite3_str_new(store->db);
    sqlite3_str_appendall(text, "BEGIN; CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT);"
                                "CREATE TABLE file (path TEXT PRIMARY KEY, sha256 TEXT NOT NULL);"
                                "CREATE TABLE point (point INTEGER PRIMARY KEY");
    for (size_t i = 0; i < q->sweep->n_columns; i++) sqlite3_str_appendf(text, ", \"%w\"", q->sweep->columns[i].name);
    append_columns(text, own_columns, ", \"%w\"");
    append_columns(text, dl_point_figures, ", \"%w\"");
    sqlite3_str_appendall(text, ", json);");
    char *const sql = sqlite3_str_finish(text);
    char *const document = json_dumps(q->sweep->doc.value, JSON_COMPACT);
    sweep_sha256(q->sweep, sha256);
    snprintf(n_points, sizeof n_points, "%zu", q->n_points);
    (void)(execute(store, sql, err) || put_value(store, "format", format, err) ||
           put_value(store, "sha256", sha256, err) || put_value(store, "points", n_points, err) ||
           put_value(store, "shard", q->shard ? q->shard : "1/1", err) || put_value(store, "sweep", document, err) ||
           execute(store, "COMMIT", err));
    sqlite3_free(sql);
    free(document);
    return err->status;
}

/* Of a file that is read as a whole, as dl_json_load does. */
static bool is_unchanged(const char *path, const char *sha256)
{
    struct dl_error none = {0};
    char *text = NULL, hex[DL_SHA256_HEX];
    size_t bytes = 0;
    if (dl_read_file(path, (size_t)1 << 30, &text, &bytes, &none)) return false;
    dl_sha256_of(text, bytes, hex);
    dl_free(text);
    return strcmp(hex, sha256) == 0;
}

static enum dl_status check_files(struct dl_store *store, struct dl_error *err)
{
    sqlite3_stmt *const files = prepare(store, "SELECT path, sha256 FROM file", err);
    while (!err->status && sqlite3_step(files) == SQLITE_ROW) {
        const char *const path = (const char *)sqlite3_column_text(files, 0);
        if (!is_unchanged(path, (const char *)sqlite3_column_text(files, 1)))
            dl_fail(err, DL_IMPOSSIBLE, store->path,
                    "%.200s has changed since its results were made; --restart begins anew, --output keeps both", path);
    }
    sqlite3_finalize(files);
    return err->status;
}

static enum dl_status check_same(struct dl_store *store, const struct dl_store_request *q, struct dl_error *err)
{
    char sha256[DL_SHA256_HEX];
    const char *const shard = q->shard ? q->shard : "1/1";
    sweep_sha256(q->sweep, sha256);
    if (check_format(store->path, store->db, err)) return err->status;
    if (!has_value(store->db, "sha256", sha256))
        return dl_fail(err, DL_IMPOSSIBLE, store->path,
                       "has results of another sweep, or of another version of dlsim; --restart begins anew, --output "
                       "keeps both");
    if (!has_value(store->db, "shard", shard)) {
        char *const other = value_of(store->db, "shard");
        dl_fail(err, DL_IMPOSSIBLE, store->path, "has results of --shard %s, not %s; give each shard its --output",
                other, shard);
        sqlite3_free(other);
        return err->status;
    }
    return check_files(store, err);
}

/* ---- opening and closing ---- */

/* Workers of a sweep that was killed keep its lock until they have ended, which takes a moment. */
static bool get_lock(int file)
{
    enum { patience_s = 3, pause_us = 20000 };
    const double begun_s = dl_clock_s();
    while (flock(file, LOCK_EX | LOCK_NB)) {
        if (dl_clock_s() - begun_s > patience_s) return false;
        usleep(pause_us);
    }
    return true;
}

/* Beside the database, because SQLite's own locks do not outlive a transaction. A file that was removed meanwhile by
 * its last owner locks nobody out. */
static enum dl_status take_lock(struct dl_store *store, struct dl_error *err)
{
    struct stat ours, theirs;
    do {
        if (store->lock >= 0) close(store->lock);
        store->lock = open(store->lock_path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (store->lock < 0) return dl_fail(err, DL_NOT_FOUND, store->lock_path, "cannot be made: %s", strerror(errno));
        if (!get_lock(store->lock))
            return dl_fail(err, DL_IMPOSSIBLE, store->path,
                           "is locked by another process; wait for it, or give each its --shard");
    } while (fstat(store->lock, &ours) || stat(store->lock_path, &theirs) || ours.st_ino != theirs.st_ino);
    return DL_OK;
}

static enum dl_status forget(struct dl_store *store, struct dl_error *err)
{
    if (check_format(store->path, store->db, err)) return err->status; /* never someone else's data */
    return execute(store, "DROP TABLE point; DROP TABLE file; DROP TABLE sweep; VACUUM;", err);
}

static enum dl_status forget_status(struct dl_store *store, const char *status, struct dl_error *err)
{
    char *const sql = sqlite3_mprintf("DELETE FROM point WHERE status = %Q", status);
    execute(store, sql, err);
    sqlite3_free(sql);
    return err->status;
}

static bool is_empty(const struct dl_store *store)
{
    struct stat s;
    return stat(store->path, &s) || s.st_size == 0;
}

static enum dl_status prepare_inserts(struct dl_store *store, struct dl_error *err)
{
    const size_t n = 1 + store->sweep->n_columns + DL_COUNT(own_columns) - 1 + DL_COUNT(dl_point_figures) - 1 + 1;
    sqlite3_str *const text = sqlite3_str_new(store->db);
    sqlite3_str_appendall(text, "INSERT INTO point VALUES (?");
    for (size_t i = 1; i < n; i++) sqlite3_str_appendall(text, ", ?");
    sqlite3_str_appendall(text, ")");
    char *const sql = sqlite3_str_finish(text);
    store->insert = prepare(store, sql, err);
    store->insert_file = prepare(store, "INSERT INTO file VALUES (?, ?)", err);
    store->find_file = prepare(store, "SELECT sha256 FROM file WHERE path = ?", err);
    store->values = dl_alloc((store->sweep->n_columns + 1) * sizeof *store->values);
    sqlite3_free(sql);
    return err->status;
}

static enum dl_status check_path(const char *path, struct dl_error *err)
{
    const char *const reason = dl_why_not_written(path);
    return reason ? dl_fail(err, DL_NOT_FOUND, path, "cannot be written: %s", reason) : DL_OK;
}

enum dl_status dl_store_open(const struct dl_store_request *q, struct dl_store **out, struct dl_error *err)
{
    struct dl_store *const store = *out = dl_alloc(sizeof *store);
    store->lock = -1;
    store->sweep = q->sweep;
    store->path = sqlite3_mprintf("%s", q->path);
    store->lock_path = sqlite3_mprintf("%s.lock", q->path);
    if (check_columns(q->sweep, err) || check_path(q->path, err) || take_lock(store, err)) return err->status;
    const bool is_new = is_empty(store);
    if (sqlite3_open_v2(q->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL))
        return cannot(q->path, store->db, "opened", err);
    sqlite3_busy_timeout(store->db, 10000); /* someone who reads it meanwhile */
    if (execute(store, "PRAGMA synchronous = NORMAL", err)) return err->status;
    if (!is_new && q->restart && forget(store, err)) return err->status;
    if (is_new || q->restart ? make_tables(store, q, err) : check_same(store, q, err)) return err->status;
    if (q->retry && forget_status(store, q->retry, err)) return err->status;
    return prepare_inserts(store, err);
}

void dl_store_close(struct dl_store *store)
{
    if (!store) return;
    sqlite3_stmt *const statements[] = {store->insert, store->insert_file, store->find_file};
    for (size_t i = 0; i < DL_COUNT(statements); i++) sqlite3_finalize(statements[i]);
    sqlite3_close(store->db);
    dl_free(store->values);
    if (store->lock >= 0 && flock(store->lock, LOCK_EX | LOCK_NB) == 0) unlink(store->lock_path);
    if (store->lock >= 0) close(store->lock);
    sqlite3_free(store->path);
    sqlite3_free(store->lock_path);
    dl_free(store);
}

/* ---- results ---- */

void dl_store_unfinished(const struct dl_store *store, uint64_t *points, size_t *n)
{
    sqlite3_stmt *finished = NULL;
    size_t n_left = 0, i = 0;
    if (sqlite3_prepare_v2(store->db, "SELECT point FROM point ORDER BY point", -1, &finished, NULL)) return;
    while (sqlite3_step(finished) == SQLITE_ROW) {
        const uint64_t done = (uint64_t)sqlite3_column_int64(finished, 0);
        while (i < *n && points[i] < done) points[n_left++] = points[i++];
        if (i < *n && points[i] == done) i++;
    }
    while (i < *n) points[n_left++] = points[i++];
    *n = n_left;
    sqlite3_finalize(finished);
}

static enum dl_status begin(struct dl_store *store, struct dl_error *err)
{
    if (store->in_transaction) return DL_OK;
    if (execute(store, "BEGIN IMMEDIATE", err)) return err->status;
    store->in_transaction = true;
    return DL_OK;
}

enum dl_status dl_store_commit(struct dl_store *store, struct dl_error *err)
{
    if (!store->in_transaction) return DL_OK;
    if (execute(store, "COMMIT", err)) return err->status;
    store->in_transaction = false;
    return DL_OK;
}

static enum dl_status step(struct dl_store *store, sqlite3_stmt *statement, struct dl_error *err)
{
    if (sqlite3_step(statement) != SQLITE_DONE) cannot(store->path, store->db, "written", err);
    sqlite3_reset(statement);
    return err->status;
}

static enum dl_status add_file(struct dl_store *store, const char *path, const char *sha256, struct dl_error *err)
{
    sqlite3_bind_text(store->find_file, 1, path, -1, SQLITE_STATIC);
    const bool is_known = sqlite3_step(store->find_file) == SQLITE_ROW;
    const bool has_changed = is_known && strcmp((const char *)sqlite3_column_text(store->find_file, 0), sha256);
    sqlite3_reset(store->find_file);
    if (has_changed) return dl_fail(err, DL_IMPOSSIBLE, path, "has changed while the sweep ran; --restart begins anew");
    if (is_known) return DL_OK;
    sqlite3_bind_text(store->insert_file, 1, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(store->insert_file, 2, sha256, -1, SQLITE_STATIC);
    return step(store, store->insert_file, err);
}

/* Of all that decides the answer: the version, what the point sets, and the content of the files that it read. */
static void point_sha256(const struct dl_store *store, json_t *files, char hex[DL_SHA256_HEX])
{
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    for (size_t i = 0; i < store->sweep->n_columns; i++)
        dl_fingerprint_json(&f, store->sweep->columns[i].path, store->values[i]);
    for (void *at = json_object_iter(files); at; at = json_object_iter_next(files, at))
        dl_fingerprint_text(&f, "file", json_string_value(json_object_iter_value(at)));
    dl_fingerprint_end(&f, hex);
}

enum dl_status dl_store_add(struct dl_store *store, const json_t *result, struct dl_error *err)
{
    json_t *const files = json_object_get(result, "files"), *const figures = json_object_get(result, "figures");
    const json_int_t point = json_integer_value(json_object_get(result, "point"));
    char hex[DL_SHA256_HEX];
    int at = 1;
    if (begin(store, err)) return err->status;
    for (void *file = json_object_iter(files); file; file = json_object_iter_next(files, file))
        if (add_file(store, json_object_iter_key(file), json_string_value(json_object_iter_value(file)), err))
            return err->status;
    dl_sweep_point(store->sweep, (uint64_t)point, store->values);
    point_sha256(store, files, hex);
    sqlite3_bind_int64(store->insert, at++, point);
    for (size_t i = 0; i < store->sweep->n_columns; i++) dl_bind_json(store->insert, at++, store->values[i]);
    dl_bind_json(store->insert, at++, json_object_get(result, "status"));
    dl_bind_json(store->insert, at++, json_object_get(result, "reason"));
    dl_bind_json(store->insert, at++, json_object_get(result, "seconds"));
    sqlite3_bind_text(store->insert, at++, hex, -1, SQLITE_TRANSIENT);
    for (const char *const *name = dl_point_figures; *name; name++)
        dl_bind_json(store->insert, at++, json_object_get(figures, *name));
    dl_bind_json(store->insert, at++, json_object_get(result, "answer"));
    return step(store, store->insert, err);
}

enum dl_status dl_store_read(const char *path, sqlite3 **db, struct dl_error *err)
{
    if (sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL)) return cannot(path, *db, "opened", err);
    sqlite3_busy_timeout(*db, 10000);
    return check_format(path, *db, err);
}
