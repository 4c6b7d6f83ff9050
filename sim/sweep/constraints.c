/* constraints.c - which combinations are points: SQLite evaluates the constraints over the columns of each. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "sim/sweep/columns.h"
#include "sim/sweep/sweep.h"

struct filter {
    sqlite3 *db;
    sqlite3_stmt *statement;
};

/* An expression may use columns and functions, not other tables or files. */
static int only_expressions(void *user, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)user, (void)b, (void)c, (void)d;
    const bool reads_nothing_else = action == SQLITE_READ && !a[0];
    return action == SQLITE_SELECT || action == SQLITE_FUNCTION || reads_nothing_else ? SQLITE_OK : SQLITE_DENY;
}

static char *all_columns(const struct dl_sweep *s)
{
    sqlite3_str *const text = sqlite3_str_new(NULL);
    for (size_t i = 0; i < s->n_columns; i++)
        sqlite3_str_appendf(text, "%s?%d AS \"%w\"", i ? ", " : "", (int)i + 1, s->columns[i].name);
    return sqlite3_str_finish(text);
}

static enum dl_status prepare(struct filter *f, const struct dl_sweep *s, size_t which, struct dl_error *err)
{
    char where[100];
    char *const columns = all_columns(s);
    char *const query = sqlite3_mprintf("SELECT (%s) FROM (SELECT %s)", s->constraints[which], columns);
    const char *rest = "";
    const int status = sqlite3_prepare_v2(f->db, query, -1, &f->statement, &rest);
    snprintf(where, sizeof where, "%.50s:/constraints/%zu", s->doc.where, which);
    if (status)
        dl_fail(err, DL_SYNTAX, where, "'%.120s': %s; it must be an SQL expression over the columns",
                s->constraints[which], sqlite3_errmsg(f->db));
    else if (strspn(rest, " ") < strlen(rest))
        dl_fail(err, DL_SYNTAX, where, "'%.120s' is more than one expression", s->constraints[which]);
    sqlite3_free(query);
    sqlite3_free(columns);
    return err->status;
}

static bool meets(const struct filter *f, const struct dl_sweep *s, uint64_t point, const json_t **values)
{
    dl_sweep_point(s, point, values);
    for (size_t i = 0; i < s->n_columns; i++) dl_bind_json(f->statement, (int)i + 1, values[i]);
    const bool is_met = sqlite3_step(f->statement) == SQLITE_ROW && sqlite3_column_double(f->statement, 0) != 0;
    sqlite3_reset(f->statement);
    return is_met;
}

/* Those of the points that meet one more constraint stay. */
static enum dl_status keep(struct filter *f, const struct dl_sweep *s, size_t which, uint64_t *points, size_t *n,
                           struct dl_error *err)
{
    const json_t **const values = dl_alloc((s->n_columns + 1) * sizeof *values);
    size_t n_kept = 0;
    if (!prepare(f, s, which, err))
        for (size_t i = 0; i < *n; i++)
            if (meets(f, s, points[i], values)) points[n_kept++] = points[i];
    *n = n_kept;
    sqlite3_finalize(f->statement);
    dl_free(values);
    return err->status;
}

enum dl_status dl_sweep_points(const struct dl_sweep *s, uint64_t **points, size_t *n, struct dl_error *err)
{
    struct filter f = {0};
    *n = (size_t)s->n_combinations;
    *points = dl_alloc(*n * sizeof **points);
    for (size_t i = 0; i < *n; i++) (*points)[i] = i;
    if (sqlite3_open(":memory:", &f.db)) return dl_fail(err, DL_STALLED, NULL, "SQLite: %s", sqlite3_errmsg(f.db));
    sqlite3_set_authorizer(f.db, only_expressions, NULL);
    for (size_t i = 0; i < s->n_constraints && !err->status; i++) keep(&f, s, i, *points, n, err);
    sqlite3_close(f.db);
    if (!err->status && !*n)
        return dl_fail(err, DL_IMPOSSIBLE, s->doc.where, "no combination meets all constraints, so there is no point");
    return err->status;
}
