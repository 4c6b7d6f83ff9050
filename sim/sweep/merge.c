/* merge.c - parts of a sweep into one file. */
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "sim/sweep/store.h"

/* Both have this value, or the first has none yet. */
static bool is_same(sqlite3 *db, const char *key)
{
    sqlite3_stmt *statement = NULL;
    bool is_so = false;
    char *const sql = sqlite3_mprintf("SELECT (SELECT value FROM main.sweep WHERE key = %Q) IS "
                                      "(SELECT value FROM part.sweep WHERE key = %Q)",
                                      key, key);
    if (!sqlite3_prepare_v2(db, sql, -1, &statement, NULL) && sqlite3_step(statement) == SQLITE_ROW)
        is_so = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return is_so;
}

static const char make_alike[] =
    "BEGIN IMMEDIATE; CREATE TABLE main.sweep AS SELECT * FROM part.sweep WHERE 0;"
    "CREATE TABLE main.file AS SELECT * FROM part.file WHERE 0;"
    "INSERT INTO main.sweep SELECT key, CASE key WHEN 'shard' THEN '1/1' ELSE value END FROM part.sweep;";

/* Of points that are in both, the content must be the same; then the first row stays. */
static const char find_conflict[] = "SELECT a.point FROM main.point a JOIN part.point b USING (point) "
                                    "WHERE a.sha256 IS NOT b.sha256 LIMIT 1";
static const char copy_rows[] = "INSERT OR IGNORE INTO main.point SELECT * FROM part.point;"
                                "INSERT OR IGNORE INTO main.file SELECT * FROM part.file; COMMIT;";

static char *definition_of_points(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    char *sql = NULL;
    if (!sqlite3_prepare_v2(db, "SELECT sql FROM part.sqlite_schema WHERE name = 'point'", -1, &statement, NULL) &&
        sqlite3_step(statement) == SQLITE_ROW)
        sql = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return sql;
}

static enum dl_status add_part(sqlite3 *db, const char *part, bool is_new, struct dl_error *err)
{
    sqlite3_stmt *conflict = NULL;
    if (is_new) {
        char *const points = definition_of_points(db);
        if (sqlite3_exec(db, make_alike, NULL, NULL, NULL) || sqlite3_exec(db, points, NULL, NULL, NULL))
            dl_fail(err, DL_NOT_FOUND, part, "cannot be copied: %s", sqlite3_errmsg(db));
        sqlite3_free(points);
    } else if (!is_same(db, "sha256")) {
        return dl_fail(err, DL_IMPOSSIBLE, part, "has results of another sweep, or of another version of dlsim");
    } else if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL)) {
        return dl_fail(err, DL_IMPOSSIBLE, part, "cannot be merged: %s", sqlite3_errmsg(db));
    }
    if (err->status) return err->status;
    if (!sqlite3_prepare_v2(db, find_conflict, -1, &conflict, NULL) && sqlite3_step(conflict) == SQLITE_ROW)
        dl_fail(err, DL_IMPOSSIBLE, part, "point %lld was made from other files than the one that is there",
                (long long)sqlite3_column_int64(conflict, 0));
    sqlite3_finalize(conflict);
    if (!err->status && sqlite3_exec(db, copy_rows, NULL, NULL, NULL))
        dl_fail(err, DL_NOT_FOUND, part, "cannot be copied: %s", sqlite3_errmsg(db));
    return err->status;
}

static enum dl_status merge_part(sqlite3 *db, const char *part, bool is_new, struct dl_error *err)
{
    sqlite3 *checked = NULL;
    const bool is_readable = !dl_store_read(part, &checked, err);
    sqlite3_close(checked);
    if (!is_readable) return err->status;
    char *const attach = sqlite3_mprintf("ATTACH %Q AS part", part);
    if (sqlite3_exec(db, attach, NULL, NULL, NULL))
        dl_fail(err, DL_NOT_FOUND, part, "cannot be opened: %s", sqlite3_errmsg(db));
    else
        add_part(db, part, is_new, err);
    sqlite3_free(attach);
    if (!err->status) sqlite3_exec(db, "DETACH part", NULL, NULL, NULL);
    return err->status;
}

enum dl_status dl_store_merge(const char *path, const char *const *parts, size_t n_parts, struct dl_error *err)
{
    sqlite3 *db = NULL;
    bool is_new = access(path, F_OK) != 0;
    if (!is_new) {
        dl_store_read(path, &db, err);
        sqlite3_close(db);
        if (err->status) return err->status;
    }
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL))
        dl_fail(err, DL_NOT_FOUND, path, "cannot be opened: %s", sqlite3_errmsg(db));
    for (size_t i = 0; i < n_parts && !err->status; i++, is_new = false) merge_part(db, parts[i], is_new, err);
    sqlite3_close(db);
    return err->status;
}
