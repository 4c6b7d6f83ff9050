#include "sim/core/csv.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct reader {
    const char *at, *end, *name;
    size_t line; /* of `at`, from 1 */
    struct dl_arena *arena;
    const char **cells; /* of all lines, the first one's before */
    size_t n_cells, cells_capacity;
    size_t *lines, n_lines, lines_capacity;
};

static enum dl_status refuse(const struct reader *r, size_t line, const char *what, struct dl_error *err)
{
    return dl_fail(err, DL_SYNTAX, NULL, "%s:%zu: %s", r->name, line, what);
}

static bool at_end_of_cell(const struct reader *r)
{
    return r->at == r->end || *r->at == ',' || *r->at == '\n' ||
           (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'));
}

static void take_cell(struct reader *r, const char *text, size_t bytes)
{
    char *const cell = dl_arena_alloc(r->arena, bytes + 1);
    memcpy(cell, text, bytes);
    cell[bytes] = '\0';
    DL_GROW(r->cells, r->n_cells, r->cells_capacity);
    r->cells[r->n_cells++] = cell;
}

/* Between its quotes; a doubled one stands for itself. */
static enum dl_status read_quoted(struct reader *r, struct dl_error *err)
{
    const size_t first_line = r->line;
    char *const text = dl_alloc((size_t)(r->end - r->at));
    size_t n = 0;
    for (r->at++; r->at < r->end && (*r->at != '"' || (r->at + 1 < r->end && r->at[1] == '"')); r->at++) {
        r->at += *r->at == '"';
        r->line += *r->at == '\n';
        text[n++] = *r->at;
    }
    if (r->at == r->end) {
        refuse(r, first_line, "a quote is never closed", err);
    } else {
        r->at++;
        take_cell(r, text, n);
        if (!at_end_of_cell(r))
            refuse(r, r->line, "after a closing quote must come a comma or the end of the line", err);
    }
    dl_free(text);
    return err->status;
}

static enum dl_status read_plain(struct reader *r, struct dl_error *err)
{
    const char *const start = r->at;
    for (; !at_end_of_cell(r); r->at++)
        if (*r->at == '"') return refuse(r, r->line, "a cell with a quote in it must stand in quotes", err);
    take_cell(r, start, (size_t)(r->at - start));
    return DL_OK;
}

static enum dl_status read_line(struct reader *r, struct dl_error *err)
{
    DL_GROW(r->lines, r->n_lines, r->lines_capacity);
    r->lines[r->n_lines++] = r->line;
    for (;; r->at++) {
        if (r->at < r->end && *r->at == '"' ? read_quoted(r, err) : read_plain(r, err)) return err->status;
        if (r->at == r->end || *r->at != ',') break;
    }
    r->at += r->at < r->end && *r->at == '\r';
    r->at += r->at < r->end;
    r->line++;
    return DL_OK;
}

/* Nothing on it but its end. */
static bool skip_empty_line(struct reader *r)
{
    if (*r->at == ',' || !at_end_of_cell(r)) return false;
    r->at += *r->at == '\r';
    r->at += r->at < r->end;
    r->line++;
    return true;
}

/* A line that is refused is left out; the next begins after the end of the one that was being read. */
static void leave_out(struct reader *r, size_t n_cells, bool is_read)
{
    r->n_cells = n_cells;
    r->n_lines--;
    while (!is_read && r->at < r->end && *r->at != '\n') r->at++;
    if (is_read || r->at == r->end) return;
    r->at++;
    r->line++;
}

static enum dl_status read_lines(struct reader *r, size_t *n_columns, struct dl_error *err)
{
    while (r->at < r->end) {
        if (skip_empty_line(r)) continue;
        const size_t before = r->n_cells, line = r->line;
        const bool is_read = !read_line(r, err);
        const size_t n = r->n_cells - before;
        if (!before && is_read) *n_columns = n;
        if (is_read && n != *n_columns)
            dl_fail(err, DL_SYNTAX, NULL, "%s:%zu: has %zu cell%s, but there are %zu columns", r->name, line, n,
                    n == 1 ? "" : "s", *n_columns);
        if (!err->status) continue;
        if (!before || !dl_go_on(err)) return err->status;
        leave_out(r, before, is_read);
    }
    return DL_OK;
}

static void *keep(const void *block, size_t bytes, struct dl_arena *arena)
{
    void *const copy = dl_arena_alloc(arena, bytes);
    return bytes ? memcpy(copy, block, bytes) : copy;
}

enum dl_status dl_csv_parse(const char *text, size_t bytes, const char *name, struct dl_arena *arena,
                            struct dl_csv *out, struct dl_error *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* some spreadsheets begin with it */
    const size_t skipped = strncmp(text, byte_order_mark, 3) == 0 ? 3 : 0;
    struct reader r = {.at = text + skipped, .end = text + bytes, .name = name, .line = 1, .arena = arena};
    *out = (struct dl_csv){0};
    const size_t told = err->n_told;
    if (memchr(text, '\0', bytes))
        refuse(&r, 1, "holds a zero byte: no text", err);
    else if (!read_lines(&r, &out->n_columns, err) && !r.n_lines)
        refuse(&r, 1, "must name the columns", err);
    if (!err->status) {
        const char **const cells = keep(r.cells, r.n_cells * sizeof *cells, arena);
        const size_t *const lines = keep(r.lines, r.n_lines * sizeof *lines, arena);
        out->n_rows = r.n_lines - 1;
        out->columns = cells;
        out->cells = cells + out->n_columns;
        out->lines = lines + 1;
    }
    dl_free(r.cells);
    dl_free(r.lines);
    return dl_stop_if_told(err, told);
}

const char *dl_csv_place(const struct dl_csv *table, const char *name, size_t row, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s:%zu", name, table->lines[row]);
}
