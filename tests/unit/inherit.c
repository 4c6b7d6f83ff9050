/* inherit.c - a data file that is like another one: what it takes over, what it replaces, what it adds to. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/core/inherit.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static char folder[64];

static void write_file(const char *name, const char *text)
{
    FILE *const file = fopen(dl_arena_format(arena, "%s/%s", folder, name), "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void set_up(void)
{
    arena = dl_arena_new();
    snprintf(folder, sizeof folder, "/tmp/dlsim-inherit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("base.json", "{\"a\": 1, \"b\": 2, \"facts\": {\"a\": \"base\", \"b\": \"base\"}, \"list\": [3, 4]}");
    write_file("second.json", "{\"like\": \"base\"}");
}

static void tear_down(void)
{
    static const char *const names[] = {"base.json", "second.json", "own.json"};
    for (size_t i = 0; i < DL_COUNT(names); i++) unlink(dl_arena_format(arena, "%s/%s", folder, names[i]));
    rmdir(folder);
    dl_arena_free(arena);
}

/* The document as text after it has inherited, or the error. */
static const char *completed(const char *text)
{
    struct dl_error err = {0};
    struct dl_json doc = {0};
    write_file("own.json", text);
    ck_assert(!dl_json_load(dl_arena_format(arena, "%s/own.json", folder), arena, &doc, &err));
    if (dl_json_inherit(doc, "strategies/software", "software", arena, &err)) {
        json_decref(doc.value);
        return dl_arena_string(arena, err.text);
    }
    char *const dump = json_dumps(doc.value, JSON_COMPACT | JSON_SORT_KEYS);
    const char *const out = dl_arena_string(arena, dump);
    free(dump);
    json_decref(doc.value);
    return out;
}

START_TEST(own_values_replace_and_others_are_taken_over)
{
    ck_assert_str_eq(completed("{\"like\": \"base\", \"a\": 5, \"facts\": {\"a\": \"own\"}, \"list\": [1, \"...\"]}"),
                     "{\"a\":5,\"b\":2,\"facts\":{\"a\":\"own\",\"b\":\"base\"},\"list\":[1,3,4]}");
}
END_TEST

START_TEST(lists_are_replaced_unless_they_say_that_they_go_on)
{
    ck_assert_str_eq(completed("{\"like\": \"base\", \"facts\": {}, \"list\": [1]}"),
                     "{\"a\":1,\"b\":2,\"facts\":{\"a\":\"base\",\"b\":\"base\"},\"list\":[1]}");
}
END_TEST

#define FACT(interval) "{\"grade\":\"measured\"" interval ",\"source\":\"base\"}"

START_TEST(an_interval_is_inherited_with_its_value_only)
{
    write_file("base.json", "{\"a\": 1, \"b\": 2, \"facts\": {\"a\": " FACT(",\"high\":2,\"low\":0") ", \"b\": " FACT(
                                ",\"high\":3,\"low\":1") "}}");
    ck_assert_str_eq(completed("{\"like\": \"base\", \"a\": 5, \"b\": 2}"),
                     "{\"a\":5,\"b\":2,\"facts\":{\"a\":" FACT("") ",\"b\":" FACT(",\"high\":3,\"low\":1") "}}");
}
END_TEST

START_TEST(a_file_that_is_like_none_stays_as_it_is) { ck_assert_str_eq(completed("{\"a\": 5}"), "{\"a\":5}"); }
END_TEST

START_TEST(a_file_may_be_like_one_that_is_like_another)
{
    write_file("second.json", "{\"like\": \"base\", \"b\": 7, \"list\": [2, \"...\"], \"facts\": {\"b\": \"second\"}}");
    ck_assert_str_eq(completed("{\"like\": \"second\", \"list\": [1, \"...\"]}"),
                     "{\"a\":1,\"b\":7,\"facts\":{\"a\":\"base\",\"b\":\"second\"},\"list\":[1,2,3,4]}");
}
END_TEST

START_TEST(circles_and_other_types_are_refused)
{
    write_file("second.json", "{\"like\": \"second\"}");
    ck_assert_ptr_nonnull(
        strstr(completed("{\"like\": \"second\"}"), "second.json:/like: 'second' leads in a circle, or through more"));
    ck_assert_ptr_nonnull(strstr(completed("{\"like\": 1}"), "own.json:/like: must be the name of a file"));
    ck_assert_ptr_nonnull(strstr(completed("{\"like\": \"nothing\"}"), "own.json:/like: nothing: no such software"));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("inherit");
    TCase *const tests = tcase_create("inherit");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, own_values_replace_and_others_are_taken_over);
    tcase_add_test(tests, lists_are_replaced_unless_they_say_that_they_go_on);
    tcase_add_test(tests, an_interval_is_inherited_with_its_value_only);
    tcase_add_test(tests, a_file_that_is_like_none_stays_as_it_is);
    tcase_add_test(tests, a_file_may_be_like_one_that_is_like_another);
    tcase_add_test(tests, circles_and_other_types_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
