#define _GNU_SOURCE /* open_memstream */
#include "sim/app/sweep_results.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/core/json.h"
#include "sim/core/planned.h"
#include "sim/report/units.h"
#include "sim/sweep/columns.h"
#include "sim/sweep/store.h"

sqlite3_stmt *dl_results_ask(struct dl_results *r, char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (!r->err->status && sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL))
        dl_fail(r->err, DL_SYNTAX, r->path, "%s", sqlite3_errmsg(r->db));
    sqlite3_free(sql);
    return statement;
}

static sqlite3_int64 count(struct dl_results *r, const char *sql)
{
    sqlite3_stmt *const statement = dl_results_ask(r, sqlite3_mprintf("%s", sql));
    const sqlite3_int64 n = statement && sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return n;
}

static void print_statuses(struct dl_results *r)
{
    const sqlite3_int64 n = count(r, "SELECT value FROM sweep WHERE key = 'points'");
    const sqlite3_int64 n_finished = count(r, "SELECT count(*) FROM point");
    printf("%s: %lld of %lld points", r->path, (long long)n_finished, (long long)n);
    sqlite3_stmt *const statuses =
        dl_results_ask(r, sqlite3_mprintf("SELECT status, count(*) FROM point GROUP BY status ORDER BY count(*) DESC"));
    while (statuses && sqlite3_step(statuses) == SQLITE_ROW)
        printf(", %lld %s", (long long)sqlite3_column_int64(statuses, 1), sqlite3_column_text(statuses, 0));
    putchar('\n');
    sqlite3_finalize(statuses);
}

/* Why points have no answer, the most frequent reasons first. */
static void print_reasons(struct dl_results *r)
{
    sqlite3_stmt *const reasons =
        dl_results_ask(r, sqlite3_mprintf("SELECT status, count(*), min(reason) FROM point WHERE reason IS NOT NULL "
                                          "GROUP BY status, reason ORDER BY count(*) DESC, min(point) LIMIT 5"));
    while (reasons && sqlite3_step(reasons) == SQLITE_ROW)
        printf("  %s, %lld: %s\n", sqlite3_column_text(reasons, 0), (long long)sqlite3_column_int64(reasons, 1),
               sqlite3_column_text(reasons, 2));
    sqlite3_finalize(reasons);
}

/* ---- the best ---- */

/* Of these the largest is the best. */
bool dl_larger_is_better(const char *column)
{
    static const char *const names[] = {"samples_per_s", "tokens_per_s", "mfu", "hfu"};
    for (size_t i = 0; i < DL_COUNT(names); i++)
        if (sqlite3_stricmp(names[i], column) == 0) return true;
    return false;
}

static bool differs(struct dl_results *r, const char *column)
{
    char *const sql = sqlite3_mprintf("SELECT count(DISTINCT \"%w\") > 1 FROM point", column);
    const bool is_so = count(r, sql) != 0;
    sqlite3_free(sql);
    return is_so;
}

static void find_varying(struct dl_results *r, struct dl_varying *out)
{
    sqlite3_stmt *const inputs = dl_results_ask(
        r, sqlite3_mprintf("WITH c AS (SELECT cid, name FROM pragma_table_info('point')) SELECT name FROM c "
                           "WHERE cid > 0 AND cid < (SELECT cid FROM c WHERE name = 'status')"));
    while (inputs && sqlite3_step(inputs) == SQLITE_ROW && out->n < DL_MOST_VARYING) {
        const char *const name = (const char *)sqlite3_column_text(inputs, 0);
        if (differs(r, name)) out->names[out->n++] = sqlite3_mprintf("%s", name);
    }
    sqlite3_finalize(inputs);
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The number of the point, inputs that differ, some figures, and by what they are ordered. */
static char *shown_columns(struct dl_results *r, const struct dl_varying *varying, const char *by)
{
    static const char *const always[] = {"point", "step_s", "mfu", "peak_bytes"};
    sqlite3_str *const text = sqlite3_str_new(r->db);
    sqlite3_str_appendall(text, always[0]);
    for (size_t i = 0; i < varying->n; i++) sqlite3_str_appendf(text, ", \"%w\"", varying->names[i]);
    for (size_t i = 1; i < DL_COUNT(always); i++) sqlite3_str_appendf(text, ", %s", always[i]);
    if (!is_among(by, always, DL_COUNT(always)) && !is_among(by, (const char *const *)varying->names, varying->n))
        sqlite3_str_appendf(text, ", \"%w\"", by);
    return sqlite3_str_finish(text);
}

static enum dl_status check_where(struct dl_results *r, const char *where)
{
    sqlite3_stmt *statement = NULL;
    char *const sql = sqlite3_mprintf("SELECT 1 FROM point WHERE (%s)", where);
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL))
        dl_fail(r->err, DL_SYNTAX, "--where", "%s; it must be an SQL expression over the columns",
                sqlite3_errmsg(r->db));
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return r->err->status;
}

static enum dl_status check_column(struct dl_results *r, const char *column)
{
    const char *names[256];
    size_t n = 0;
    char hint[DL_HINT];
    bool is_there = false;
    sqlite3_stmt *const columns = dl_results_ask(r, sqlite3_mprintf("SELECT name FROM pragma_table_info('point')"));
    while (columns && sqlite3_step(columns) == SQLITE_ROW && n < DL_COUNT(names)) {
        names[n] = sqlite3_mprintf("%s", sqlite3_column_text(columns, 0));
        is_there = is_there || strcmp(names[n], column) == 0;
        n++;
    }
    sqlite3_finalize(columns);
    if (!is_there)
        dl_fail(r->err, DL_KEY, "--by", "no such column: '%.80s'%s", column, dl_hint(column, names, n, hint));
    while (n) sqlite3_free((char *)names[--n]);
    return r->err->status;
}

static void format_cell(sqlite3_stmt *row, int column, char text[64])
{
    const double x = sqlite3_column_double(row, column);
    const bool is_number = sqlite3_column_type(row, column) == SQLITE_FLOAT;
    if (is_number && strstr(sqlite3_column_name(row, column), "_bytes"))
        dl_format_bytes(x, text);
    else if (is_number)
        snprintf(text, 64, "%.4g", x);
    else
        snprintf(text, 64, "%.60s",
                 sqlite3_column_text(row, column) ? (const char *)sqlite3_column_text(row, column) : "");
}

/* Twice over the rows: for the widths, and to print. */
static void print_table(sqlite3_stmt *rows)
{
    enum { most = 64 };
    const int n = sqlite3_column_count(rows) < most ? sqlite3_column_count(rows) : most;
    int width[most];
    char cell[64];
    for (int i = 0; i < n; i++) width[i] = (int)strlen(sqlite3_column_name(rows, i));
    while (sqlite3_step(rows) == SQLITE_ROW)
        for (int i = 0; i < n; i++) {
            format_cell(rows, i, cell);
            if ((int)strlen(cell) > width[i]) width[i] = (int)strlen(cell);
        }
    for (int i = 0; i < n; i++) printf("%s%*s", i ? "  " : "", width[i], sqlite3_column_name(rows, i));
    putchar('\n');
    sqlite3_reset(rows);
    while (sqlite3_step(rows) == SQLITE_ROW)
        for (int i = 0; i < n; i++) {
            format_cell(rows, i, cell);
            printf("%s%*s%s", i ? "  " : "", width[i], cell, i + 1 < n ? "" : "\n");
        }
}

static void print_best(struct dl_results *r, const struct dl_sweep_view *v, const struct dl_varying *varying)
{
    const char *const by = v->by ? v->by : "step_s";
    char *const columns = shown_columns(r, varying, by);
    sqlite3_stmt *const rows = dl_results_ask(
        r, sqlite3_mprintf("SELECT %s FROM point WHERE status = 'done' AND (%s) ORDER BY \"%w\" %s, point LIMIT %lld",
                           columns, v->where ? v->where : "1", by, dl_larger_is_better(by) ? "DESC" : "ASC",
                           v->best ? (sqlite3_int64)v->best : 10));
    if (rows) print_table(rows);
    sqlite3_finalize(rows);
    sqlite3_free(columns);
}

enum dl_status dl_sweep_show(const char *path, const struct dl_sweep_view *v, struct dl_error *err)
{
    struct dl_results r = {path, NULL, err};
    struct dl_varying varying = {0};
    if (!dl_store_read(path, &r.db, err) && !check_column(&r, v->by ? v->by : "step_s") &&
        !(v->where && check_where(&r, v->where))) {
        find_varying(&r, &varying);
        if (!(v->svg && dl_sweep_heat(&r, v, &varying)) && !(v->html && dl_sweep_page(&r, v, &varying)) &&
            dl_tells_text(v->html)) {
            print_statuses(&r);
            print_reasons(&r);
            print_best(&r, v, &varying);
        }
    }
    while (varying.n) sqlite3_free(varying.names[--varying.n]);
    sqlite3_close(r.db);
    return err->status;
}

enum dl_status dl_sweep_summarize(const char *path, struct dl_error *err)
{
    return dl_sweep_show(path, &(struct dl_sweep_view){.best = 3}, err);
}

/* ---- export ---- */

/* RFC 4180. */
static void write_csv_cell(FILE *to, const char *text)
{
    if (!text) return;
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"') fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

/* See store.h: it is the last column. */
static bool is_whole_answer(sqlite3_stmt *row, int i) { return i + 1 == sqlite3_column_count(row); }

static void write_csv(FILE *to, sqlite3_stmt *row, bool head)
{
    const char *separator = "";
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        char exact[40];
        if (is_whole_answer(row, i)) continue;
        fputs(separator, to);
        separator = ",";
        if (head) {
            write_csv_cell(to, sqlite3_column_name(row, i));
        } else if (sqlite3_column_type(row, i) == SQLITE_FLOAT) {
            snprintf(exact, sizeof exact, "%.17g", sqlite3_column_double(row, i));
            write_csv_cell(to, exact);
        } else {
            write_csv_cell(to, (const char *)sqlite3_column_text(row, i));
        }
    }
    fputs("\r\n", to);
}

static void write_jsonl(FILE *to, sqlite3_stmt *row)
{
    json_t *const object = json_object();
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        json_t *value = dl_column_json(row, i);
        if (is_whole_answer(row, i) && json_is_string(value)) {
            json_t *const answer = json_loads(json_string_value(value), 0, NULL);
            json_decref(value);
            value = answer;
        }
        json_object_set_new(object, is_whole_answer(row, i) ? "answer" : sqlite3_column_name(row, i), value);
    }
    json_dumpf(object, to, JSON_COMPACT);
    fputc('\n', to);
    json_decref(object);
}

static void write_rows(struct dl_results *r, const struct dl_sweep_view *v, FILE *to)
{
    if (v->where && check_where(r, v->where)) return;
    sqlite3_stmt *const rows =
        dl_results_ask(r, sqlite3_mprintf("SELECT * FROM point WHERE (%s) ORDER BY point", v->where ? v->where : "1"));
    if (rows && v->csv) write_csv(to, rows, true);
    while (rows && sqlite3_step(rows) == SQLITE_ROW)
        if (v->csv)
            write_csv(to, rows, false);
        else
            write_jsonl(to, rows);
    sqlite3_finalize(rows);
}

enum dl_status dl_sweep_export(const char *path, const struct dl_sweep_view *view, struct dl_error *err)
{
    struct dl_results r = {path, NULL, err};
    char *text = NULL;
    size_t bytes = 0;
    const char *const to_path = view->output ? view->output : "-";
    if (view->csv == view->jsonl) return dl_fail(err, DL_SYNTAX, "sweep export", "needs one of --csv and --jsonl");
    if (dl_plan_output(to_path, "output", err) || dl_refuse_planned(path, err)) return err->status;
    FILE *const to = open_memstream(&text, &bytes);
    if (!dl_store_read(path, &r.db, err)) write_rows(&r, view, to);
    sqlite3_close(r.db);
    fclose(to);
    if (!err->status) (view->csv ? dl_write_file : dl_write_json_text)(to_path, text, bytes, err);
    free(text);
    return err->status;
}
