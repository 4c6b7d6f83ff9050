/* Where the shipped files are: what DLSIM_HOME says; without it, found from where the program is. */
#define _XOPEN_SOURCE 700
#include "sim/core/home.h"

#include <stdlib.h>

#include "sim/core/files.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

START_TEST(the_program_is_in_its_folder)
{
    const char *const folder = dl_program_folder(arena);
    ck_assert_int_eq(*folder, '/');
    ck_assert(dl_is_regular(dl_arena_format(arena, "%stest_home", folder)));
}
END_TEST

START_TEST(the_variable_wins_unless_it_is_empty)
{
    ck_assert_int_eq(setenv("DLSIM_HOME", "/elsewhere", 1), 0);
    ck_assert_str_eq(dl_home(arena), "/elsewhere");
    ck_assert_str_eq(dl_shipped("topologies/systems", arena), "/elsewhere/topologies/systems");
    ck_assert_int_eq(setenv("DLSIM_HOME", "", 1), 0);
    ck_assert_str_ne(dl_home(arena), "");
}
END_TEST

START_TEST(without_it_a_program_that_was_built_finds_the_sources)
{
    ck_assert_int_eq(unsetenv("DLSIM_HOME"), 0);
    ck_assert(dl_is_regular(dl_arena_format(arena, "%s/CMakeLists.txt", dl_home(arena))));
    ck_assert(dl_is_regular(dl_arena_format(arena, "%s/frontier.json", dl_shipped("topologies/systems", arena))));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("home");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, the_program_is_in_its_folder);
    tcase_add_test(tests, the_variable_wins_unless_it_is_empty);
    tcase_add_test(tests, without_it_a_program_that_was_built_finds_the_sources);
    Suite *const suite = suite_create("home");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
