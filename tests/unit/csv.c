/* csv.c - tables of texts: what RFC 4180 allows is read, everything else is refused with its line. */
#include <check.h>
#include <string.h>

#include "sim/core/csv.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_csv table;
static struct dl_error err;

static void parse(const char *text)
{
    memset(&err, 0, sizeof err);
    dl_csv_parse(text, strlen(text), "t.csv", arena, &table, &err);
}

static void check_cells(size_t n_rows, size_t n_columns, const char *const *cells)
{
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(table.n_rows, n_rows);
    ck_assert_uint_eq(table.n_columns, n_columns);
    for (size_t i = 0; i < n_rows * n_columns; i++) ck_assert_str_eq(table.cells[i], cells[i]);
}

START_TEST(cells_are_read)
{
    static const struct {
        const char *text;
        size_t n_rows, n_columns;
        const char *cells[6];
    } cases[] = {
        {"a,b\n1,2\n3,4\n", 2, 2, {"1", "2", "3", "4"}},
        {"a,b\r\n1,2\r\n", 1, 2, {"1", "2"}},
        {"a,b\n1,2", 1, 2, {"1", "2"}}, /* the last line may lack its end */
        {"a,b\n,\n", 1, 2, {"", ""}},
        {"a,b\n\n1,\n\r\n", 1, 2, {"1", ""}}, /* empty lines are none */
        {"a\n\"x, \"\"y\"\"\nz\"\n", 1, 1, {"x, \"y\"\nz"}},
        {"a,b\n\"\",\" \"\n", 1, 2, {"", " "}},
        {"\xef\xbb\xbf"
         "a\n1\n",
         1,
         1,
         {"1"}},
        {"a\rb\nc\n", 1, 1, {"c"}}, /* a lone return is a character like others */
        {"a,b", 0, 2, {NULL}},
    };
    parse(cases[_i].text);
    check_cells(cases[_i].n_rows, cases[_i].n_columns, cases[_i].cells);
}
END_TEST

START_TEST(columns_have_names_and_rows_lines)
{
    parse("id,\"x,y\"\n\"two\nlines\",1\n\n3,4\n");
    ck_assert_str_eq(table.columns[0], "id");
    ck_assert_str_eq(table.columns[1], "x,y");
    ck_assert_str_eq(dl_csv_place(&table, "t.csv", 0, arena), "t.csv:2");
    ck_assert_str_eq(dl_csv_place(&table, "t.csv", 1, arena), "t.csv:5");
}
END_TEST

START_TEST(what_is_no_table_is_refused_with_its_line)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.csv:1: must name the columns"},
        {"\n\n", "t.csv:1: must name the columns"},
        {"a,b\n1,2\n3\n", "t.csv:3: has 1 cell, but there are 2 columns"},
        {"a\n1,2\n", "t.csv:2: has 2 cells, but there are 1 columns"},
        {"a\n\"x\ny", "t.csv:2: a quote is never closed"},
        {"a\n\"", "t.csv:2: a quote is never closed"},
        {"a\n\"x\"y\n", "t.csv:2: after a closing quote must come a comma or the end of the line"},
        {"a\nx\"y\"\n", "t.csv:2: a cell with a quote in it must stand in quotes"},
    };
    parse(cases[_i].text);
    ck_assert_str_eq(err.text, cases[_i].message);
}
END_TEST

START_TEST(a_zero_byte_is_no_text)
{
    dl_csv_parse("a\n\0\n", 4, "t.csv", arena, &table, &err);
    ck_assert_str_eq(err.text, "t.csv:1: holds a zero byte: no text");
}
END_TEST

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

int main(void)
{
    TCase *const tests = tcase_create("csv");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, cells_are_read, 0, 10);
    tcase_add_test(tests, columns_have_names_and_rows_lines);
    tcase_add_loop_test(tests, what_is_no_table_is_refused_with_its_line, 0, 8);
    tcase_add_test(tests, a_zero_byte_is_no_text);
    Suite *const suite = suite_create("csv");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
