/* sweep_heat.c - a heat map of a sweep as SVG: two columns span it, each cell has the best of its points, and a third
 * column, if another one varies, has a panel for each of its values. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "sim/app/sweep_results.h"
#include "sim/core/files.h"
#include "sim/draw/svg.h"
#include "sim/report/units.h"

enum {
    cell_width = 84,
    cell_height = 34,
    left = 120,
    top = 44,
    head = 60,
    gap = 56,
    usual_width = 1000,
    most_values = 64
};

/* The values of a column: numbers by size, names as the sweep file orders them. */
struct scale {
    const char *column; /* NULL: there is none, and one empty value */
    char *values[most_values];
    size_t n;
};

struct map {
    struct dl_results *results;
    struct scale x, y, panel;
    const char *by;
    double low, high; /* of all cells */
    struct dl_svg svg;
};

static void read_scale(struct map *m, struct scale *s, const char *where)
{
    if (!s->column) {
        s->values[s->n++] = sqlite3_mprintf("");
        return;
    }
    sqlite3_stmt *const values =
        dl_results_ask(m->results, sqlite3_mprintf("SELECT \"%w\" AS v FROM point WHERE (%s) GROUP BY v "
                                                   "ORDER BY CASE typeof(v) WHEN 'text' THEN min(point) ELSE v END",
                                                   s->column, where));
    while (values && sqlite3_step(values) == SQLITE_ROW && s->n < most_values)
        s->values[s->n++] = sqlite3_mprintf("%s", sqlite3_column_text(values, 0));
    if (values && s->n == most_values)
        dl_fail(m->results->err, DL_RANGE, "--svg", "'%.80s' has %d or more values; --where can leave some out",
                s->column, most_values);
    sqlite3_finalize(values);
}

static size_t index_of(const struct scale *s, sqlite3_stmt *row, int column)
{
    const char *const value = (const char *)sqlite3_column_text(row, column);
    size_t i = 0;
    while (i + 1 < s->n && strcmp(s->values[i], value ? value : "")) i++;
    return i;
}

static void release(struct scale *s)
{
    while (s->n) sqlite3_free(s->values[--s->n]);
}

/* ---- drawing ---- */

/* Panels stand side by side while there is room, then below each other. */
struct place {
    double x, y;
};

static double panel_width(const struct map *m) { return (double)m->x.n * cell_width + gap; }

static double panel_height(const struct map *m) { return (double)m->y.n * cell_height + head; }

static size_t panels_across(const struct map *m)
{
    const double n = fmax(1, floor((usual_width - left) / panel_width(m)));
    return n < (double)m->panel.n ? (size_t)n : m->panel.n;
}

/* The upper left corner of its cells. */
static struct place panel_at(const struct map *m, size_t panel)
{
    const size_t across = panels_across(m);
    return (struct place){left + (double)(panel % across) * panel_width(m),
                          top + head + (double)(panel / across) * panel_height(m)};
}

static void draw_cell(struct map *m, sqlite3_stmt *row)
{
    const struct place at = panel_at(m, index_of(&m->panel, row, 0));
    const double x = at.x + (double)index_of(&m->x, row, 1) * cell_width;
    const double y = at.y + (double)index_of(&m->y, row, 2) * cell_height;
    const bool has_best = sqlite3_column_type(row, 3) != SQLITE_NULL;
    const double best = sqlite3_column_double(row, 3), range = m->high - m->low;
    const double high_share = range > 0 ? (best - m->low) / range : 1;
    const double share = dl_larger_is_better(m->by) ? high_share : range > 0 ? 1 - high_share : 1;
    char text[DL_QUANTITY] = "refused", colour[DL_COLOUR];
    if (sqlite3_column_int(row, 4)) snprintf(text, sizeof text, "does not fit");
    if (has_best) snprintf(text, sizeof text, "%.4g", best);
    dl_svg_rect(&m->svg, (struct dl_box){x, y, cell_width - 2, cell_height - 2},
                (struct dl_look){.fill = has_best ? dl_heat_colour(share, colour) : NULL, .style = "cell"});
    dl_svg_text(&m->svg, x + cell_width / 2.0 - 1, y + cell_height / 2.0 + 4,
                !has_best    ? "middle faint"
                : share > .5 ? "middle light"
                             : "middle",
                text);
}

static void draw_frame(struct map *m)
{
    for (size_t p = 0; p < m->panel.n; p++) {
        char title[160];
        const struct place at = panel_at(m, p);
        snprintf(title, sizeof title, "%.70s = %.70s", m->panel.column ? m->panel.column : "", m->panel.values[p]);
        if (m->panel.column) dl_svg_text(&m->svg, at.x, at.y - 40, "bold", title);
        dl_svg_text(&m->svg, at.x, at.y - 24, "", m->x.column);
        for (size_t i = 0; i < m->x.n; i++)
            dl_svg_text(&m->svg, at.x + ((double)i + 0.5) * cell_width, at.y - 6, "middle", m->x.values[i]);
        if (p % panels_across(m)) continue;
        dl_svg_text(&m->svg, 16, at.y - 6, "", m->y.column);
        for (size_t i = 0; i < m->y.n; i++)
            dl_svg_text(&m->svg, left - 10, at.y + ((double)i + 0.6) * cell_height, "end", m->y.values[i]);
    }
}

static double picture_width(const struct map *m) { return left + (double)panels_across(m) * panel_width(m); }

static double picture_height(const struct map *m)
{
    const size_t across = panels_across(m), rows = (m->panel.n + across - 1) / across;
    return 2 * top + (double)rows * panel_height(m);
}

static void draw(struct map *m, sqlite3_stmt *cells)
{
    char title[160];
    snprintf(title, sizeof title, "%.80s: best %.40s, dark is best", dl_base_name(m->results->path), m->by);
    dl_svg_text(&m->svg, 16, 26, "title", title);
    draw_frame(m);
    while (sqlite3_step(cells) == SQLITE_ROW) draw_cell(m, cells);
}

/* ---- cells ---- */

static sqlite3_stmt *ask_cells(struct map *m, const char *where)
{
    char *const panel = m->panel.column ? sqlite3_mprintf("\"%w\"", m->panel.column) : sqlite3_mprintf("''");
    sqlite3_stmt *const cells = dl_results_ask(
        m->results,
        sqlite3_mprintf("SELECT %s AS panel, \"%w\" AS x, \"%w\" AS y, %s(CASE status WHEN 'done' THEN \"%w\" END), "
                        "max(status = 'does-not-fit') FROM point WHERE (%s) GROUP BY 1, 2, 3",
                        panel, m->x.column, m->y.column, dl_larger_is_better(m->by) ? "max" : "min", m->by, where));
    sqlite3_free(panel);
    return cells;
}

static void find_ends(struct map *m, sqlite3_stmt *cells)
{
    m->low = INFINITY;
    m->high = -INFINITY;
    while (sqlite3_step(cells) == SQLITE_ROW) {
        if (sqlite3_column_type(cells, 3) == SQLITE_NULL) continue;
        m->low = fmin(m->low, sqlite3_column_double(cells, 3));
        m->high = fmax(m->high, sqlite3_column_double(cells, 3));
    }
    sqlite3_reset(cells);
}

/* The first columns that vary, the ones that were asked for first: rows, then columns, then panels. */
static void choose_columns(struct map *m, const struct dl_varying *varying)
{
    m->y.column = varying->names[0];
    m->x.column = varying->names[1];
    if (varying->n > 2) m->panel.column = varying->names[2];
}

enum dl_status dl_sweep_heat(struct dl_results *r, const struct dl_sweep_view *v, const struct dl_varying *varying)
{
    struct map m = {.results = r, .by = v->by ? v->by : "step_s"};
    const char *const where = v->where ? v->where : "1";
    if (varying->n < 2)
        return dl_fail(r->err, DL_IMPOSSIBLE, "--svg", "a heat map needs two columns that vary, this sweep has %zu",
                       varying->n);
    choose_columns(&m, varying);
    read_scale(&m, &m.x, where);
    read_scale(&m, &m.y, where);
    read_scale(&m, &m.panel, where);
    sqlite3_stmt *const cells = ask_cells(&m, where);
    if (cells && !r->err->status) {
        find_ends(&m, cells);
        dl_svg_begin(&m.svg, picture_width(&m));
        draw(&m, cells);
        dl_svg_end(&m.svg, picture_height(&m), v->svg, r->err);
    }
    sqlite3_finalize(cells);
    release(&m.x);
    release(&m.y);
    release(&m.panel);
    return r->err->status;
}
