/* sweep_page.c - the results of a sweep as a page: a row for each point, with the inputs that vary and its figures. */
#include <sqlite3.h>

#include "sim/app/sweep_results.h"
#include "sim/core/files.h"
#include "sim/draw/page.h"
#include "sim/sweep/columns.h"
#include "sim/sweep/store.h"

enum { most_rows = 100000 }; /* that a browser can well show */

static json_t *names_json(const char *const *names, size_t n)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < n && names[i]; i++) json_array_append_new(list, json_string(names[i]));
    return list;
}

static sqlite3_stmt *ask_rows(struct dl_results *r, const char *where, const struct dl_varying *varying)
{
    sqlite3_str *const columns = sqlite3_str_new(r->db);
    for (size_t i = 0; i < varying->n; i++) sqlite3_str_appendf(columns, "\"%w\", ", varying->names[i]);
    for (const char *const *name = dl_point_figures; *name; name++) sqlite3_str_appendf(columns, "%s, ", *name);
    char *const text = sqlite3_str_finish(columns);
    sqlite3_stmt *const rows =
        dl_results_ask(r, sqlite3_mprintf("SELECT %s point, status FROM point WHERE (%s) ORDER BY point LIMIT %d", text,
                                          where, most_rows + 1));
    sqlite3_free(text);
    return rows;
}

static json_t *rows_json(sqlite3_stmt *rows)
{
    json_t *const list = json_array();
    while (sqlite3_step(rows) == SQLITE_ROW) {
        json_t *const row = json_array();
        for (int i = 0; i < sqlite3_column_count(rows); i++) json_array_append_new(row, dl_column_json(rows, i));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *columns_json(sqlite3_stmt *rows)
{
    json_t *const list = json_array();
    for (int i = 0; i < sqlite3_column_count(rows); i++)
        json_array_append_new(list, json_string(sqlite3_column_name(rows, i)));
    return list;
}

enum dl_status dl_sweep_page(struct dl_results *r, const struct dl_sweep_view *v, const struct dl_varying *varying)
{
    sqlite3_stmt *const rows = ask_rows(r, v->where ? v->where : "1", varying);
    if (!rows) return r->err->status;
    json_t *const list = rows_json(rows);
    json_t *const data =
        dl_json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "view", "sweep", "name", dl_base_name(r->path), "by",
                     v->by ? v->by : "step_s", "varying", names_json((const char *const *)varying->names, varying->n),
                     "figures", names_json(dl_point_figures, SIZE_MAX), "columns", columns_json(rows), "rows", list);
    const bool fits = json_array_size(list) <= most_rows;
    sqlite3_finalize(rows);
    if (fits) return dl_page_write(v->html, data, r->err);
    json_decref(data);
    return dl_fail(r->err, DL_RANGE, "--html", "a page holds %d rows at most; --where can leave some out", most_rows);
}
