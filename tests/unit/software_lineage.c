/* software_lineage.c - how sure software is whose file is like another's: as with few steps of its own, where the
 * other's were measured. */
#define _GNU_SOURCE /* mkdtemp */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/core/files.h"
#include "sim/study/sensitivity_runs.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

/* A file has entries of these on one system, one of them of three families, and first predictions of three. */
static struct dl_json measured(void)
{
    static const char entry[] = "{\"family\": \"%s\", \"software\": \"%s\", \"system\": \"selene\", \"rows\": 10, "
                                "\"bias\": %g, \"spread\": 0.05, \"blind\": %s}";
    static const struct {
        const char *family, *software;
        double bias;
        const char *blind;
    } known[] = {{"A", "megatron-2022", 0.02, "false"},
                 {"B", "fsdp", 0.3, "false"},
                 {"F", "nemo-2024", 0.01, "false"},
                 {"G", "nemo-2024", 0.02, "false"},
                 {"H", "nemo-2024", 0.03, "false"},
                 {"C", "x", 0.5, "true"},
                 {"D", "x", 0.3, "true"},
                 {"E", "x", 0.1, "true"}};
    struct dl_json doc = {
        .value = json_pack("{s:s, s:s, s:[]}", "schema", "dlsim/discrepancy/1", "source", "a test", "measured"),
        .where = "test.json",
        .file = "test.json"};
    for (size_t i = 0; i < DL_COUNT(known); i++)
        json_array_append_new(
            json_object_get(doc.value, "measured"),
            json_loads(dl_arena_format(arena, entry, known[i].family, known[i].software, known[i].bias, known[i].blind),
                       0, NULL));
    return doc;
}

/* Of a software file of this text, or of a shipped one if it has none. */
static struct dl_discrepancy known_of(const char *name, const char *text)
{
    const struct dl_session_request request = {.topo = {.name = "selene"},
                                               .strategy = {.name = "korthikanti-175b"},
                                               .software = {.name = name, .text = text},
                                               .engine = "analytic"};
    struct dl_json doc = measured();
    struct dl_session s;
    struct dl_error err = {0};
    struct dl_discrepancy found;
    ck_assert_msg(!dl_session_open(&s, &request), "%s", s.err.text);
    ck_assert_msg(!dl_discrepancy_of(doc, &s, NULL, &found, &err), "%s", err.text);
    found.of.software = dl_arena_format(arena, "%s", found.of.software);
    found.own_software = dl_arena_format(arena, "%s", found.own_software);
    dl_session_close(&s);
    json_decref(doc.value);
    return found;
}

#define LIKE(name) "{\"schema\": \"dlsim/software/1\", \"source\": \"a test\", \"like\": \"" name "\"}"

START_TEST(a_file_that_is_like_one_that_was_measured_has_its_steps)
{
    static const char *const texts[] = {LIKE("megatron-2022"), LIKE("megatron-bigcode")}; /* which is like the first */
    const struct dl_discrepancy known = known_of("megatron-2022", NULL);
    ck_assert(known.own.rows == 10 && !known.by_blind);
    for (size_t i = 0; i < DL_COUNT(texts); i++) {
        const struct dl_discrepancy mine = known_of("mine", texts[i]);
        ck_assert_str_eq(mine.of.software, "mine");
        ck_assert_str_eq(mine.own_software, "megatron-2022");
        ck_assert(mine.own.rows == known.own.rows && mine.bias == known.bias && mine.spread == known.spread);
    }
}
END_TEST

/* Which may have changed anything of it: all families tell of it, first predictions among them. */
START_TEST(three_families_of_another_are_not_its_own)
{
    const struct dl_discrepancy known = known_of("nemo-2024", NULL), mine = known_of("mine", LIKE("nemo-2024"));
    ck_assert(known.by_own && known.families == 3 && known.own.rows == 30);
    ck_assert(!mine.by_own && mine.families == 8 && mine.own.rows == 30);
    ck_assert_double_gt(dl_discrepancy_half_width(&mine), dl_discrepancy_half_width(&known));
}
END_TEST

/* Names in a file are relative to it, wherever the command runs. */
START_TEST(a_base_in_the_folder_of_the_file_is_followed)
{
    static const char base[] = LIKE("megatron-2022"), heir[] = LIKE("base_of_lineage");
    char folder[] = "/tmp/lineageXXXXXX";
    struct dl_error err = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *const files[] = {dl_arena_format(arena, "%s/base_of_lineage.json", folder),
                                 dl_arena_format(arena, "%s/heir.json", folder)};
    ck_assert(!dl_write_file(files[0], base, strlen(base), &err) && !dl_write_file(files[1], heir, strlen(heir), &err));
    const struct dl_discrepancy mine = known_of(files[1], NULL);
    ck_assert_str_eq(mine.own_software, "megatron-2022");
    ck_assert(mine.own.rows == 10 && !mine.by_blind);
    for (size_t i = 0; i < DL_COUNT(files); i++) ck_assert_int_eq(unlink(files[i]), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(one_that_is_like_none_of_them_is_as_sure_as_first_predictions)
{
    const struct dl_discrepancy mine = known_of("mine", LIKE("megatron-core"));
    ck_assert(mine.own.rows == 0 && mine.by_blind && mine.families == 3);
    ck_assert_str_eq(mine.own_software, "mine");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("software_lineage");
    TCase *const tests = tcase_create("software_lineage");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_file_that_is_like_one_that_was_measured_has_its_steps);
    tcase_add_test(tests, three_families_of_another_are_not_its_own);
    tcase_add_test(tests, a_base_in_the_folder_of_the_file_is_followed);
    tcase_add_test(tests, one_that_is_like_none_of_them_is_as_sure_as_first_predictions);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
