/* Strict reading: what the tables of fields allow is read exactly, all else is refused with its place. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/core/facts.h"
#include "sim/core/files.h"
#include "tests/unit/suite.h"

struct sample {
    int64_t count;
    double rate;
    bool on;
    const char *name;
    int64_t routing;
    struct dl_int_list sizes;
    struct dl_json parts, inner, any;
};

static const char *const routings[] = {"minimal", "valiant", "adaptive", NULL};
static const struct dl_field fields[] = {
    {"count", DL_INT, offsetof(struct sample, count), 1, 1e18, false, NULL, NULL},
    {"rate", DL_NUMBER, offsetof(struct sample, rate), 0, 100, true, NULL, NULL},
    {"on", DL_BOOL, offsetof(struct sample, on), 0, 0, true, NULL, NULL},
    {"name", DL_TEXT, offsetof(struct sample, name), 0, 0, true, NULL, NULL},
    {"routing", DL_CHOICE, offsetof(struct sample, routing), 0, 0, true, routings, NULL},
    {"sizes", DL_INT_LIST, offsetof(struct sample, sizes), 1, 9, true, NULL, NULL},
    {"parts", DL_LIST, offsetof(struct sample, parts), 0, 0, true, NULL, NULL},
    {"inner", DL_OBJECT, offsetof(struct sample, inner), 0, 0, true, NULL, NULL},
    {"any", DL_ANY, offsetof(struct sample, any), 0, 0, true, NULL, NULL},
};

static struct dl_arena *arena;
static struct dl_json doc;
static struct dl_error err;
static struct sample got;

static void set_up(void)
{
    arena = dl_arena_new();
    doc = (struct dl_json){0};
    err = (struct dl_error){0};
    got = (struct sample){.rate = 7, .name = "default"};
}

static void tear_down(void)
{
    json_decref(doc.value);
    dl_arena_free(arena);
}

static enum dl_status parse(const char *text) { return dl_json_parse(text, strlen(text), "f.json", arena, &doc, &err); }

static enum dl_status read_sample(const char *text)
{
    ck_assert_msg(parse(text) == DL_OK, "%s", err.text);
    return dl_read(doc, fields, DL_COUNT(fields), &got, arena, &err);
}

struct refusal {
    const char *text;
    enum dl_status status;
    const char *message;
};

/* What dl_read refuses, each with the whole message. */
static const struct refusal refusals[] = {
    {"{}", DL_KEY, "f.json: needs the key 'count'"},
    {"{\"count\": 1, \"ruoting\": 1}", DL_KEY, "f.json:/ruoting: unknown key, did you mean 'routing'?"},
    {"{\"count\": 1, \"wavelength\": 1}", DL_KEY,
     "f.json:/wavelength: unknown key; known here: count, rate, on, name, routing, sizes, parts, inner, any"},
    {"{\"count\": 1, \"a\\nb\\u001bccccccc\": 1}", DL_KEY,
     "f.json:/a?b?ccccccc: unknown key; known here: count, rate, on, name, routing, sizes, parts, inner, any"},
    {"{\"count\": \"1\"}", DL_TYPE, "f.json:/count: must be a number, got a string"},
    {"{\"count\": null}", DL_TYPE, "f.json:/count: must be a number, got null"},
    {"{\"count\": 1.5}", DL_TYPE, "f.json:/count: must be a whole number, got 1.5"},
    {"{\"count\": 0}", DL_RANGE, "f.json:/count: must be in [1, 1e+18], got 0"},
    {"{\"count\": 1, \"rate\": 100.5}", DL_RANGE, "f.json:/rate: must be in [0, 100], got 100.5"},
    {"{\"count\": 1, \"rate\": -1e-300}", DL_RANGE, "f.json:/rate: must be in [0, 100], got -1e-300"},
    {"{\"count\": 1, \"on\": 1}", DL_TYPE, "f.json:/on: must be true or false, got an integer"},
    {"{\"count\": 1, \"name\": []}", DL_TYPE, "f.json:/name: must be a string, got a list"},
    {"{\"count\": 1, \"routing\": \"best\"}", DL_RANGE,
     "f.json:/routing: must be one of minimal, valiant, adaptive, got 'best'"},
    {"{\"count\": 1, \"routing\": 2.5}", DL_TYPE, "f.json:/routing: must be a string, got a number"},
    {"{\"count\": 1, \"sizes\": 3}", DL_TYPE, "f.json:/sizes: must be a list of whole numbers, got an integer"},
    {"{\"count\": 1, \"sizes\": [1, 10]}", DL_RANGE, "f.json:/sizes/1: must be in [1, 9], got 10"},
    {"{\"count\": 1, \"sizes\": [1, \"x\"]}", DL_TYPE, "f.json:/sizes/1: must be a number, got a string"},
    {"{\"count\": 1, \"parts\": {}}", DL_TYPE, "f.json:/parts: must be a list, got an object"},
    {"{\"count\": 1, \"inner\": true}", DL_TYPE, "f.json:/inner: must be an object, got a boolean"},
    {"{\"count\": 1, \"facts\": []}", DL_TYPE, "f.json:/facts: must be an object, got a list"},
    {"{\"count\": 1, \"facts\": {\"rate\": \"assumed: x\"}}", DL_KEY,
     "f.json:/facts/rate: speaks of a key that is not there"},
    {"{\"count\": 1, \"facts\": {\"count\": \"guessed: x\"}}", DL_RANGE,
     "f.json:/facts/count: must be 'measured|published|derived|assumed: source', or an object with the grade "
     "fitted"},
    {"{\"count\": 1, \"facts\": {\"count\": \"assumed: \"}}", DL_RANGE,
     "f.json:/facts/count: must be 'measured|published|derived|assumed: source', or an object with the grade "
     "fitted"},
    {"{\"count\": 1, \"facts\": {\"*\": 3}}", DL_RANGE,
     "f.json:/facts/*: must be 'measured|published|derived|assumed: source', or an object with the grade "
     "fitted"},
#define FACT(what) "{\"count\": 1, \"facts\": {\"count\": {\"source\": \"x\", " what "}}}"
    {FACT("\"grade\": \"guessed\""), DL_RANGE,
     "f.json:/facts/count/grade: must be one of measured, published, derived, fitted, assumed, got 'guessed'"},
    {FACT("\"low\": 1, \"high\": 1"), DL_KEY, "f.json:/facts/count: needs the key 'grade'"},
    {FACT("\"grade\": \"measured\", \"hihg\": 1"), DL_KEY,
     "f.json:/facts/count/hihg: unknown key, did you mean 'high'?"},
    {FACT("\"grade\": \"measured\", \"low\": 1"), DL_KEY,
     "f.json:/facts/count: an interval needs both 'low' and 'high'"},
    {FACT("\"grade\": \"measured\", \"low\": 1.5, \"high\": 2"), DL_RANGE,
     "f.json:/facts/count: low <= value <= high must hold, got 1.5, 1, 2"},
    {FACT("\"grade\": \"measured\", \"low\": 0, \"high\": 0.5"), DL_RANGE,
     "f.json:/facts/count: low <= value <= high must hold, got 0, 1, 0.5"},
    {"{\"count\": 1, \"facts\": {\"*\": {\"grade\": \"measured\", \"source\": \"x\", \"low\": 0, \"high\": 2}}}",
     DL_TYPE, "f.json:/facts/*: an interval is of one number, and this key has none"},
    {"{\"count\": 1, \"facts\": {\"*\": {\"grade\": \"measured\", \"source\": \"\"}}}", DL_RANGE,
     "f.json:/facts/*: must say in 'source' where the figure comes from"},
};

START_TEST(what_the_table_does_not_allow_is_refused_with_its_place)
{
    const struct refusal *const r = &refusals[_i];
    ck_assert_int_eq(read_sample(r->text), r->status);
    ck_assert_str_eq(err.text, r->message);
}
END_TEST

/* What is not JSON at all: never a document, and a line and column in the message. */
static const char *const not_json[] = {
    "",
    " ",
    "{\"count\": 1",
    "{\"count\": NaN}",
    "{\"count\": Infinity}",
    "{\"count\": 1e999}",
    "{\"count\": 99999999999999999999}",
    "{\"count\": 01}",
    "{\"count\": 1,}",
    "{\"count\": 1} x",
    "{\"count\": 1, \"count\": 2}",
    "{'count': 1}",
    "{\"name\": \"\xff\"}",
    "{\"name\": \"a\nb\"}",
    "{\"name\": \"\\u0000\"}",
    "{\"name\": \"\\ud800\"}",
};

START_TEST(what_is_not_json_is_refused_with_line_and_column)
{
    ck_assert_int_eq(parse(not_json[_i]), DL_SYNTAX);
    int line = -1, column = -1;
    ck_assert_int_eq(sscanf(err.text, "f.json:%d:%d: ", &line, &column), 2);
    ck_assert_int_ge(line, 1);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

START_TEST(a_document_is_an_object)
{
    ck_assert_int_eq(parse("[1]"), DL_TYPE);
    ck_assert_str_eq(err.text, "f.json: must be a JSON object, {...}");
}
END_TEST

START_TEST(deep_nesting_is_refused_not_followed)
{
    const size_t depth = 1 << 20;
    char *const text = dl_alloc(depth + 1);
    memset(text, '[', depth);
    ck_assert_int_eq(parse(text), DL_SYNTAX);
    dl_free(text);
}
END_TEST

START_TEST(every_type_is_read_exactly)
{
    ck_assert_int_eq(
        read_sample("{\"count\": 3, \"rate\": 0.1, \"on\": true, \"name\": \"\\u00e9\", \"routing\": \"adaptive\","
                    " \"sizes\": [1, 9], \"parts\": [0, 5], \"inner\": {\"k\": 6}, \"any\": null}"),
        DL_OK);
    ck_assert_int_eq(got.count, 3);
    ck_assert_double_eq(got.rate, 0.1);
    ck_assert(got.on);
    ck_assert_str_eq(got.name, "\xc3\xa9");
    ck_assert_int_eq(got.routing, 2);
    ck_assert_uint_eq(got.sizes.n, 2);
    ck_assert_int_eq(got.sizes.items[0], 1);
    ck_assert_int_eq(got.sizes.items[1], 9);
    ck_assert_int_eq(json_integer_value(dl_json_element(got.parts, 1, arena).value), 5);
    ck_assert_str_eq(dl_json_element(got.parts, 1, arena).where, "f.json:/parts/1");
    ck_assert_int_eq(json_integer_value(dl_json_member(got.inner, "k", arena).value), 6);
    ck_assert_str_eq(dl_json_member(got.inner, "k", arena).where, "f.json:/inner/k");
    ck_assert(json_is_null(got.any.value));
}
END_TEST

START_TEST(absent_means_the_default)
{
    ck_assert_int_eq(read_sample("{\"count\": 1}"), DL_OK);
    ck_assert_double_eq(got.rate, 7);
    ck_assert_str_eq(got.name, "default");
    ck_assert_ptr_null(got.inner.value);
}
END_TEST

START_TEST(both_ends_of_a_range_belong_to_it)
{
    ck_assert_int_eq(read_sample("{\"count\": 1, \"rate\": 0}"), DL_OK);
    json_decref(doc.value);
    ck_assert_int_eq(read_sample("{\"count\": 1000000000000000000, \"rate\": 100}"), DL_OK);
}
END_TEST

START_TEST(whole_numbers_keep_every_digit_and_may_be_written_with_an_exponent)
{
    ck_assert_int_eq(read_sample("{\"count\": 9007199254740993}"), DL_OK); /* 2^53 + 1: no double holds it */
    ck_assert_int_eq(got.count, 9007199254740993);
    json_decref(doc.value);
    ck_assert_int_eq(read_sample("{\"count\": 1e9}"), DL_OK);
    ck_assert_int_eq(got.count, 1000000000);
}
END_TEST

static enum dl_status read_system(const char *text)
{
    ck_assert_msg(parse(text) == DL_OK, "%s", err.text);
    return dl_read_document(doc, "system", fields, DL_COUNT(fields), &got, arena, &err);
}

START_TEST(a_document_needs_its_schema_and_a_source_that_says_something)
{
    ck_assert_int_eq(read_system("{\"schema\": \"dlsim/system/1\", \"source\": \"s\", \"count\": 2}"), DL_OK);
    ck_assert_int_eq(got.count, 2);
    json_decref(doc.value);
    ck_assert_int_eq(read_system("{\"source\": \"s\", \"count\": 2}"), DL_KEY);
    ck_assert_str_eq(err.text, "f.json:/schema: must be \"dlsim/system/1\"");
    json_decref(doc.value);
    err = (struct dl_error){0};
    ck_assert_int_eq(read_system("{\"schema\": \"dlsim/device/1\", \"source\": \"s\", \"count\": 2}"), DL_KEY);
    ck_assert_str_eq(err.text, "f.json:/schema: must be \"dlsim/system/1\", got \"dlsim/device/1\"");
    json_decref(doc.value);
    err = (struct dl_error){0};
    ck_assert_int_eq(read_system("{\"schema\": \"dlsim/system/1\", \"count\": 3}"), DL_OK);
    ck_assert_int_eq(got.count, 3);
    json_decref(doc.value);
    ck_assert_int_eq(read_system("{\"schema\": \"dlsim/system/1\", \"source\": \"\", \"count\": 2}"), DL_KEY);
    ck_assert_str_eq(err.text, "f.json:/source: must say in a string where the figures come from");
}
END_TEST

START_TEST(set_replaces_and_adds_by_key_index_and_name)
{
    const char *const assignments[] = {"count=5", "list.1=[]", "stack.tensor.ways=8", "stack.0.ways=\"x\"", "new={}"};
    ck_assert_int_eq(
        parse("{\"count\": 1, \"list\": [0, 0], \"stack\": [{\"name\": \"data\"}, {\"name\": \"tensor\"}]}"), DL_OK);
    for (size_t i = 0; i < DL_COUNT(assignments); i++)
        ck_assert_msg(dl_json_set(doc, assignments[i], arena, &err) == DL_OK, "%s", err.text);
    char *const text = json_dumps(doc.value, JSON_COMPACT);
    ck_assert_str_eq(text, "{\"count\":5,\"list\":[0,[]],\"stack\":[{\"name\":\"data\",\"ways\":\"x\"},"
                           "{\"name\":\"tensor\",\"ways\":8}],\"new\":{}}");
    free(text);
}
END_TEST

#define STACK "{'a': 1, 'facts': {'a': 'assumed: x'}, 'stack': [{'name': 'data'}, {'name': 'zero', 'stage': 1}]}"

/* What a sign in front of a path makes of STACK. */
static const struct {
    const char *assignment, *becomes;
} signed_assignments[] = {
    {"+stack.tensor.ways=8", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'data'},{'name':'zero','stage':1},"
                             "{'name':'tensor','ways':8}]}"},
    {"+stack.zero.stage=3", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'data'},{'name':'zero','stage':3}]}"},
    {"+stack.tensor", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'data'},{'name':'zero','stage':1},"
                      "{'name':'tensor'}]}"},
    {"+stack.tensor={'ways':2}", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'data'},{'name':'zero','stage':1},"
                                 "{'name':'tensor','ways':2}]}"},
    {"-stack.zero", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'data'}]}"},
    {"-stack.0", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'zero','stage':1}]}"},
    {"-stack.zero.stage", "{'a':1,'facts':{'a':'assumed: x'},'stack':[{'name':'data'},{'name':'zero'}]}"},
    {"-a", "{'facts':{},'stack':[{'name':'data'},{'name':'zero','stage':1}]}"}, /* nor is there a fact of it */
};

static char *with_double_quotes(const char *text)
{
    char *const copy = dl_arena_string(arena, text);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    return copy;
}

START_TEST(a_sign_adds_and_takes_out_entries)
{
    const char *const assignment = with_double_quotes(signed_assignments[_i].assignment);
    ck_assert_int_eq(parse(with_double_quotes(STACK)), DL_OK);
    ck_assert_msg(dl_json_set(doc, assignment, arena, &err) == DL_OK, "%s", err.text);
    char *const text = json_dumps(doc.value, JSON_COMPACT);
    ck_assert_str_eq(text, with_double_quotes(signed_assignments[_i].becomes));
    free(text);
}
END_TEST

static const struct refusal bad_assignments[] = {
    {"count", DL_SYNTAX, "--set: 'count' must be PATH=JSON, for example topo.nodes=4"},
    {"=1", DL_SYNTAX, "--set: '=1' must be PATH=JSON, for example topo.nodes=4"},
    {"name=text", DL_SYNTAX,
     "--set: 'text' is not JSON (invalid token near 'text'); strings need quotes: 'name=\"text\"'"},
    {"count=", DL_SYNTAX, "--set: '' is not JSON ("},
    {"absent.key=1", DL_KEY, "--set: 'absent.key=1': there is no 'absent' in f.json; there are count, list"},
    {"lists.0=1", DL_KEY, "--set: 'lists.0=1': there is no 'lists' in f.json, did you mean 'list'?"},
    {"count.key=1", DL_KEY, "--set: 'count.key=1': 'key' is no key of an object and no element of a list"},
    {"list.2=1", DL_KEY, "--set: 'list.2=1': '2' is no key of an object and no element of a list"},
    {"list.-1=1", DL_KEY, "--set: 'list.-1=1': '-1' is no key of an object and no element of a list"},
    {"list.99999999999999999999=1", DL_KEY, "--set: 'list.99999999999999999999=1': '"},
    {"\xff=1", DL_KEY, "--set: '?=1': '?' is not UTF-8"},
};

START_TEST(a_bad_assignment_is_refused)
{
    const struct refusal *const r = &bad_assignments[_i];
    ck_assert_int_eq(parse("{\"count\": 1, \"list\": [0, 0]}"), DL_OK);
    ck_assert_int_eq(dl_json_set(doc, r->text, arena, &err), r->status);
    ck_assert_msg(strncmp(err.text, r->message, strlen(r->message)) == 0, "%s", err.text);
}
END_TEST

static void write_fact(void *user, const struct dl_fact *fact)
{
    char *const text = user;
    static const char letters[] = "mpdfa";
    const size_t used = strlen(text);
    snprintf(text + used, 400 - used, "%s %c%s\n", fact->where, letters[fact->grade], fact->stated ? "" : "?");
}

START_TEST(every_number_has_the_grade_that_stands_nearest)
{
    ck_assert_int_eq(
        parse("{\"a\": 1, \"b\": [2, 3], \"c\": {\"d\": 4, \"e\": \"text\", \"facts\": {\"*\": \"derived: x\"}},"
              " \"f\": [{\"g\": 5}], \"facts\": {\"a\": \"measured: x\", \"b\": \"published: y\"}}"),
        DL_OK);
    char text[400] = "";
    dl_json_facts(doc, arena, write_fact, text);
    ck_assert_str_eq(text, "f.json:/a m\n"
                           "f.json:/b/0 p\n"
                           "f.json:/b/1 p\n"
                           "f.json:/c/d d\n"
                           "f.json:/f/0/g a?\n");
}
END_TEST

static void take_fact(void *user, const struct dl_fact *fact) { *(struct dl_fact *)user = *fact; }

START_TEST(an_interval_is_read_and_goes_when_its_value_is_changed)
{
    struct dl_fact fact;
    ck_assert_int_eq(read_sample(FACT("\"grade\": \"derived\", \"low\": 0.5, \"high\": 3")), DL_OK);
    dl_json_facts(doc, arena, take_fact, &fact);
    ck_assert_str_eq(fact.text, "derived: x");
    ck_assert(fact.stated && fact.has_interval && fact.grade == DL_DERIVED);
    ck_assert_double_eq(fact.value, 1);
    ck_assert_double_eq(fact.low, 0.5);
    ck_assert_double_eq(fact.high, 3);
    ck_assert_int_eq(dl_json_set(doc, "count=7", arena, &err), DL_OK);
    ck_assert_int_eq(dl_read(doc, fields, DL_COUNT(fields), &got, arena, &err), DL_OK);
    dl_json_facts(doc, arena, take_fact, &fact);
    ck_assert_str_eq(fact.text, "derived: x");
    ck_assert(!fact.has_interval);
}
END_TEST

START_TEST(a_fitted_figure_tells_what_it_was_fitted_to)
{
    struct dl_fact fact;
    struct dl_fitted fitted;
    ck_assert_int_eq(read_sample(FACT("\"grade\": \"fitted\", \"to\": \"validation_rows\", \"half\": \"both\", "
                                      "\"rows\": \"SC21\", \"low\": 0, \"high\": 2")),
                     DL_OK);
    dl_json_facts(doc, arena, take_fact, &fact);
    ck_assert_str_eq(fact.text, "fitted: x");
    ck_assert(fact.grade == DL_FITTED && fact.has_interval && dl_json_grade(doc.value, "count") == DL_FITTED);
    ck_assert(dl_fact_is_fitted(json_object_get(json_object_get(doc.value, "facts"), "count"), &fitted));
    ck_assert(fitted.to_validation_rows && fitted.by_both_halves);
    ck_assert_str_eq(fitted.rows, "SC21");
    ck_assert_int_eq(read_sample(FACT("\"grade\": \"derived\"")), DL_OK);
    ck_assert(!dl_fact_is_fitted(json_object_get(json_object_get(doc.value, "facts"), "count"), &fitted));
}
END_TEST

static void count_interval(void *user, const struct dl_fact *fact) { *(int *)user += fact->has_interval; }

START_TEST(an_interval_is_only_of_the_key_that_owns_it)
{
    int n_intervals = 0;
    ck_assert_int_eq(parse("{\"a\": 1, \"*\": 1, \"b\": [1], \"facts\": {\"*\": {\"grade\": \"derived\", "
                           "\"source\": \"x\", \"low\": 0, \"high\": 2}}}"),
                     DL_OK);
    dl_json_facts(doc, arena, count_interval, &n_intervals);
    ck_assert_int_eq(n_intervals, 1);
}
END_TEST

START_TEST(a_file_reads_as_its_text_does)
{
    char path[] = "/tmp/dlsim-json-XXXXXX";
    const int made = mkstemp(path);
    ck_assert_int_ne(made, -1);
    close(made);
    ck_assert_int_eq(dl_write_file(path, "{\"count\": 4}", 12, &err), DL_OK);
    ck_assert_int_eq(dl_json_load(path, arena, &doc, &err), DL_OK);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(doc.value, "count")), 4);
    ck_assert_str_eq(doc.where, dl_base_name(path));
    json_decref(doc.value);
    doc.value = NULL;
    ck_assert_int_eq(dl_json_load(path, arena, &doc, &err), DL_NOT_FOUND);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("json");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, what_the_table_does_not_allow_is_refused_with_its_place, 0, DL_COUNT(refusals));
    tcase_add_loop_test(tests, what_is_not_json_is_refused_with_line_and_column, 0, DL_COUNT(not_json));
    tcase_add_test(tests, a_document_is_an_object);
    tcase_add_test(tests, deep_nesting_is_refused_not_followed);
    tcase_add_test(tests, every_type_is_read_exactly);
    tcase_add_test(tests, absent_means_the_default);
    tcase_add_test(tests, both_ends_of_a_range_belong_to_it);
    tcase_add_test(tests, whole_numbers_keep_every_digit_and_may_be_written_with_an_exponent);
    tcase_add_test(tests, a_document_needs_its_schema_and_a_source_that_says_something);
    tcase_add_loop_test(tests, a_sign_adds_and_takes_out_entries, 0, DL_COUNT(signed_assignments));
    tcase_add_test(tests, set_replaces_and_adds_by_key_index_and_name);
    tcase_add_loop_test(tests, a_bad_assignment_is_refused, 0, DL_COUNT(bad_assignments));
    tcase_add_test(tests, every_number_has_the_grade_that_stands_nearest);
    tcase_add_test(tests, a_fitted_figure_tells_what_it_was_fitted_to);
    tcase_add_test(tests, an_interval_is_only_of_the_key_that_owns_it);
    tcase_add_test(tests, an_interval_is_read_and_goes_when_its_value_is_changed);
    tcase_add_test(tests, a_file_reads_as_its_text_does);
    Suite *const suite = suite_create("json");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
