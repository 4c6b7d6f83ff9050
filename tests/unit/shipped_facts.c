/* shipped_facts.c - every number of a shipped transport or software file says where it comes from. Systems and devices
 * have this among their own tests. */
#include <string.h>

#include "sim/core/facts.h"
#include "sim/core/files.h"
#include "tests/unit/suite.h"

static const char *const folders[] = {"topologies/transports", "strategies/software", "topologies/devices"};

struct tally {
    size_t n_numbers, n_without_fact;
    const char *first;
};

static void count_fact(void *user, const struct dl_fact *fact)
{
    struct tally *const tally = user;
    tally->n_numbers++;
    if (!fact->stated && !tally->n_without_fact++) tally->first = fact->where;
    const bool sounds_fitted =
        strstr(fact->text, ": fitted") || strstr(fact->text, ": chosen by") || strstr(fact->text, "published steps");
    ck_assert_msg(!sounds_fitted || fact->grade == DL_FITTED, "%s: '%s' must have the grade fitted", fact->where,
                  fact->text);
}

static void check_file(const char *folder, const char *name, struct dl_arena *arena)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct tally tally = {0};
    const char *path;
    ck_assert_msg(!dl_find_file(folder, "file", name, arena, &path, &err), "%s", err.text);
    ck_assert_msg(!dl_json_load(path, arena, &doc, &err), "%s", err.text);
    dl_json_facts(doc, arena, count_fact, &tally);
    ck_assert_msg(!tally.n_without_fact, "%s: %zu of %zu numbers have no fact, the first is %s", name,
                  tally.n_without_fact, tally.n_numbers, tally.first);
    json_decref(doc.value);
}

START_TEST(every_number_says_where_it_comes_from)
{
    struct dl_arena *const arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder(folders[_i], arena, &names);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) check_file(folders[_i], names[i], arena);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("shipped_facts");
    TCase *const tests = tcase_create("shipped_facts");
    tcase_add_loop_test(tests, every_number_says_where_it_comes_from, 0, (int)DL_COUNT(folders));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
