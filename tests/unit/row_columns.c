/* row_columns.c - descriptions of columns: their conditions and cases, and what a step took. */
#include "sim/study/row_columns.h"

#include "tests/unit/row_fixture.h"

static struct dl_row_columns read_columns(const char *text)
{
    const struct dl_json doc = {.value = json_loads(text, 0, NULL), .where = "c.json"}; /* leaked: see member */
    struct dl_row_columns columns = {.doc = NULL};
    dl_row_columns_read(doc, arena, &columns, &err);
    return columns;
}

#define COLUMNS "'schema':'dlsim/columns/1','source':'a test','columns':{'id':'id','chip':'','n':'devices'},"
#define LINES "id,chip,n\na-1,H100 96GB,8\na-2,A100,16\nb-1,H100,32\n"

static const char *quoted(const char *text)
{
    char *const copy = dl_arena_string(arena, text);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    return copy;
}

/* A star stands for any characters, a list for any of its texts; later cases replace what earlier ones say. */
START_TEST(conditions_are_patterns_or_lists_of_them)
{
    struct dl_csv table;
    ck_assert(!dl_csv_parse(LINES, strlen(LINES), "t.csv", arena, &table, &err));
    const struct dl_row_columns c =
        read_columns(quoted("{" COLUMNS "'all':{'topo':'x'},'cases':[{'if':{'chip':'H100*'},'row':{'topo':'h'}},"
                            "{'if':{'n':['16','32']},'row':{'tp':2}},{'if':{'id':'b*','chip':'H100'},"
                            "'leave_out':'why not'}]}"));
    ck_assert_msg(!err.status, "%s", err.text);
    static const char *const topos[] = {"h", "x", "h"};
    for (size_t i = 0; i < DL_COUNT(topos); i++) {
        json_t *const row = dl_row_columns_object(&c, &table, i);
        ck_assert_str_eq(json_string_value(json_object_get(row, "topo")), topos[i]);
        ck_assert(!json_object_get(row, "tp") == (i == 0));
        ck_assert(!dl_row_columns_left_out(&c, &table, i) == (i < 2));
        json_decref(row);
    }
}
END_TEST

/* As where another source says that a cell is wrong. */
START_TEST(a_case_goes_before_the_cell)
{
    struct dl_csv table;
    ck_assert(!dl_csv_parse(LINES, strlen(LINES), "t.csv", arena, &table, &err));
    const struct dl_row_columns c =
        read_columns(quoted("{" COLUMNS "'all':{'devices':1},'cases':[{'if':{'id':'a-2'},'row':{'devices':12}}]}"));
    ck_assert_msg(!err.status, "%s", err.text);
    static const json_int_t devices[] = {8, 12, 32};
    for (size_t i = 0; i < DL_COUNT(devices); i++) {
        json_t *const row = dl_row_columns_object(&c, &table, i);
        ck_assert_int_eq(json_integer_value(json_object_get(row, "devices")), devices[i]);
        json_decref(row);
    }
}
END_TEST

/* Alone it is of all other lines, beside an "if" of its lines but these. */
START_TEST(a_case_may_say_where_it_is_none)
{
    struct dl_csv table;
    ck_assert(!dl_csv_parse(LINES, strlen(LINES), "t.csv", arena, &table, &err));
    const struct dl_row_columns c =
        read_columns(quoted("{" COLUMNS "'all':{},'cases':[{'unless':{'chip':'H100*'},'leave_out':'no file'},"
                            "{'if':{'chip':'H100*'},'unless':{'id':'b-*'},'row':{'tp':2}}]}"));
    ck_assert_msg(!err.status, "%s", err.text);
    static const bool out[] = {false, true, false}, has_ways[] = {true, false, false};
    for (size_t i = 0; i < DL_COUNT(out); i++) {
        json_t *const row = dl_row_columns_object(&c, &table, i);
        ck_assert(!dl_row_columns_left_out(&c, &table, i) == !out[i]);
        ck_assert(!json_object_get(row, "tp") == !has_ways[i]);
        json_decref(row);
    }
    read_columns(quoted("{" COLUMNS "'all':{},'cases':[{'row':{'tp':2}}]}"));
    ck_assert_str_eq(err.text, "c.json:/cases/0: needs \"if\", \"unless\" or both");
}
END_TEST

/* The one that names the line goes before the one that names none, in any order. */
START_TEST(a_line_has_the_description_that_is_for_it)
{
    struct dl_csv table;
    ck_assert(!dl_csv_parse(LINES, strlen(LINES), "t.csv", arena, &table, &err));
    struct dl_row_columns items[] = {read_columns(quoted("{" COLUMNS "'all':{}}")),
                                     read_columns(quoted("{" COLUMNS "'all':{},'of':{'id':'a-*'}}"))};
    const struct dl_row_columns_found both = {.items = items, .n = 2}, one = {.items = items + 1, .n = 1};
    ck_assert_ptr_eq(dl_row_columns_of(&both, &table, 0), &items[1]);
    ck_assert_ptr_eq(dl_row_columns_of(&both, &table, 2), &items[0]);
    ck_assert_ptr_null(dl_row_columns_of(&one, &table, 2));
}
END_TEST

START_TEST(a_condition_is_of_texts)
{
    read_columns(quoted("{" COLUMNS "'all':{},'of':{'n':8}}"));
    ck_assert_str_eq(err.text,
                     "c.json:/of/n: must be a text like those in one of the columns, or a list of such texts");
}
END_TEST

/* ---- what a step took ---- */

#define STEPS                                                                                                          \
    "{'schema':'dlsim/steps/1','source':'a test','rows':[{'id':'a','topo':'p5','model':'x','workload':'llama3-8b',"    \
    "'software':'nanotron','devices':8,'global_batch':16,%s}]}"

static void read_step(const char *keys)
{
    const struct dl_json doc = {.value = json_loads(quoted(dl_arena_format(arena, STEPS, keys)), 0, NULL),
                                .where = "s.json"};
    dl_training_rows_add(doc, arena, &rows, &err);
    json_decref(doc.value);
}

START_TEST(rates_or_a_share_of_peak_say_what_a_step_took)
{
    read_step("'seq':4096,'tokens_per_s_per_device':2048,'reserved_bytes':8e10");
    read_step("'mfu':0.4");
    read_step("'samples_per_s':64");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_double_eq_tol(rows.items[0].step_s, 16.0 * 4096 / (8 * 2048), 1e-12);
    ck_assert_double_eq(rows.items[0].reserved_bytes, 8e10);
    ck_assert(rows.items[1].step_s == 0 && rows.items[1].mfu == 0.4);
    ck_assert_double_eq(rows.items[2].step_s, 16.0 / 64);
    read_step("'tokens_per_s_per_device':2048");
    ck_assert_str_eq(err.text, "s.json:/rows/0: needs the key 'seq'");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("row columns");
    TCase *const tests = tcase_create("row columns");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, conditions_are_patterns_or_lists_of_them);
    tcase_add_test(tests, a_case_goes_before_the_cell);
    tcase_add_test(tests, a_case_may_say_where_it_is_none);
    tcase_add_test(tests, a_line_has_the_description_that_is_for_it);
    tcase_add_test(tests, a_condition_is_of_texts);
    tcase_add_test(tests, rates_or_a_share_of_peak_say_what_a_step_took);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
