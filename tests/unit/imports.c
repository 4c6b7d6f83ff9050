/* imports.c - files of other tools: nothing of them is dropped silently. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/import/hf_models.h"
#include "tests/unit/suite.h"

#define CONFIGS "tests/import/huggingface"

static const char **names;
static int n_names;

/* What an import says: the documents and all that is left out, in one string for free(); NULL: it is refused. */
static char *said_of(json_t *config)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_imported imported;
    struct dl_error err = {0};
    const struct dl_import_format *format = NULL;
    char *said = NULL, *const text = json_dumps(config, 0);
    const struct dl_foreign file = {.text = text, .bytes = strlen(text), .where = "config.json"};
    if (dl_import(&file, arena, &imported, &format, &err)) {
        ck_assert_msg(strncmp(err.text, "config.json", strlen("config.json")) == 0, "%s", err.text);
    } else {
        json_t *const all = json_pack("{sO s[]}", "workload", imported.workload, "left_out");
        for (size_t i = 0; i < imported.n_left_out; i++)
            json_array_append_new(
                json_object_get(all, "left_out"),
                json_pack("[s s s]", imported.left_out[i].key, imported.left_out[i].value, imported.left_out[i].why));
        said = json_dumps(all, 0);
        json_decref(all);
    }
    free(text);
    dl_imported_release(&imported);
    dl_arena_free(arena);
    return said;
}

static json_t *load(const char *name, struct dl_arena *arena)
{
    struct dl_json doc = {0};
    struct dl_error err = {0};
    ck_assert_msg(
        !dl_json_load(dl_arena_format(arena, "%s/%s.json", dl_shipped(CONFIGS, arena), name), arena, &doc, &err), "%s",
        err.text);
    return doc.value;
}

/* A value that the file did not have in place of this one. */
static json_t *another(const json_t *value)
{
    if (json_is_boolean(value)) return json_boolean(!json_is_true(value));
    if (json_is_integer(value)) return json_integer(json_integer_value(value) + 1);
    return json_is_real(value) ? json_real(json_real_value(value) + 1) : json_string("another");
}

/* Whichever key has another value, what is made is another, or it is told, or it is refused. */
START_TEST(no_key_is_dropped_silently)
{
    struct dl_arena *const arena = dl_arena_new();
    json_t *const config = load(names[_i], arena), *const all = json_deep_copy(config), *value;
    char *const as_it_is = said_of(config);
    const char *key;
    ck_assert_ptr_nonnull(as_it_is);
    json_object_foreach(all, key, value)
    {
        json_object_set_new(config, key, another(value));
        char *const said = said_of(config);
        ck_assert_msg(!said || strcmp(said, as_it_is), "%s: /%s", names[_i], key);
        free(said);
        json_object_set(config, key, value);
    }
    free(as_it_is);
    json_decref(all);
    json_decref(config);
    dl_arena_free(arena);
}
END_TEST

START_TEST(an_unknown_key_is_refused)
{
    struct dl_arena *const arena = dl_arena_new();
    json_t *const config = load(names[_i], arena);
    json_object_set_new(config, "unheard_of", json_true());
    ck_assert_ptr_null(said_of(config));
    json_decref(config);
    dl_arena_free(arena);
}
END_TEST

/* Otherwise it would depend on the order of the table what a file is. */
START_TEST(one_format_recognises_a_file)
{
    struct dl_arena *const arena = dl_arena_new();
    json_t *const config = load(names[_i], arena);
    char *const text = json_dumps(config, 0);
    int n = 0;
    for (size_t i = 0; i < dl_import_format_count(); i++) {
        n += dl_import_format_get(i)->recognises(text, strlen(text));
        ck_assert_str_eq(dl_import_format_get(i)->name, dl_import_format_names[i]);
    }
    ck_assert_int_eq(n, 1);
    free(text);
    json_decref(config);
    dl_arena_free(arena);
}
END_TEST

static void check_json(const char *text)
{
    json_t *const value = text && *text ? json_loads(text, JSON_DECODE_ANY, NULL) : json_null();
    ck_assert_msg(value != NULL, "%s", text);
    json_decref(value);
}

static void check_keys(const struct dl_hf_keys *keys)
{
    for (size_t i = 0; keys && i < keys->n; i++) {
        check_json(keys->items[i].absent);
        check_json(keys->items[i].same);
        for (size_t k = 0; k < i; k++) ck_assert_str_ne(keys->items[i].key, keys->items[k].key);
    }
}

/* A configuration of each model type is tried above; in a table no key is twice, and what is JSON is. */
START_TEST(tables_of_model_types_are_well_formed)
{
    struct dl_arena *const arena = dl_arena_new();
    const char **types;
    const size_t n_types = dl_hf_model_names(&types, arena);
    for (size_t i = 0; i < n_types; i++) {
        const struct dl_hf_model *const model = dl_hf_model_find(types[i]);
        bool is_tried = false;
        for (int k = 0; k < n_names; k++) {
            json_t *const config = load(names[k], arena);
            is_tried |= strcmp(json_string_value(json_object_get(config, "model_type")), types[i]) == 0;
            json_decref(config);
        }
        ck_assert_msg(is_tried, "%s", types[i]);
        check_json(model->always);
        check_keys(&model->keys);
        check_keys(model->shared);
    }
    check_keys(&dl_hf_common);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    n_names = (int)dl_list_folder(CONFIGS, arena, &names);
    Suite *const suite = suite_create("import");
    TCase *const all = tcase_create("import");
    tcase_add_loop_test(all, no_key_is_dropped_silently, 0, n_names);
    tcase_add_loop_test(all, an_unknown_key_is_refused, 0, n_names);
    tcase_add_loop_test(all, one_format_recognises_a_file, 0, n_names);
    tcase_add_test(all, tables_of_model_types_are_well_formed);
    suite_add_tcase(suite, all);
    const int code = n_names ? run_suite(suite) : EXIT_FAILURE;
    dl_arena_free(arena);
    return code;
}
