/* Files: read within a limit, written whole or not at all, found by name among what is shipped. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/core/files.h"
#include "sim/core/json.h"
#include "tests/unit/suite.h"

static char folder[] = "/tmp/dlsim-files-XXXXXX";
static struct dl_arena *arena;
static struct dl_error err;

static const char *in_folder(const char *name) { return dl_arena_format(arena, "%s/%s", folder, name); }

static void put(const char *name, const char *text)
{
    FILE *const file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static size_t n_entries(void)
{
    DIR *const dir = opendir(folder);
    size_t n = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void set_up(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    arena = dl_arena_new();
    err = (struct dl_error){0};
}

static void tear_down(void)
{
    const char *const command = dl_arena_format(arena, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    dl_arena_free(arena);
}

static void expect_content(const char *path, const char *wanted)
{
    char *text = NULL;
    size_t bytes = 0;
    ck_assert_msg(dl_read_file(path, 1 << 20, &text, &bytes, &err) == DL_OK, "%s", err.text);
    ck_assert_uint_eq(bytes, strlen(wanted));
    ck_assert_str_eq(text, wanted);
    dl_free(text);
}

START_TEST(what_is_written_is_read_back)
{
    const char *const path = in_folder("out.json");
    ck_assert_int_eq(dl_write_file(path, "{}\n", 3, &err), DL_OK);
    expect_content(path, "{}\n");
    ck_assert_int_eq(dl_write_file(path, "", 0, &err), DL_OK);
    expect_content(path, "");
    ck_assert_uint_eq(n_entries(), 1);
}
END_TEST

START_TEST(a_failed_write_leaves_what_was_there)
{
    put("taken", "");
    const char *const below_a_file = in_folder("taken/out.json");
    ck_assert_int_eq(dl_write_file(below_a_file, "{}", 2, &err), DL_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, "taken/out.json: cannot be written: "));
    err = (struct dl_error){0};
    ck_assert_int_eq(mkdir(in_folder("sub"), 0700), 0);
    ck_assert_int_eq(dl_write_file(in_folder("sub"), "{}", 2, &err), DL_NOT_FOUND); /* a folder is no target */
    ck_assert_uint_eq(n_entries(), 2);
}
END_TEST

START_TEST(a_pipe_is_written_to_not_replaced)
{
    const char *const path = in_folder("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_eq(dl_write_file(path, "{}", 2, &err), DL_OK);
    char got[3] = "";
    ck_assert_int_eq(read(reader, got, sizeof got - 1), 2);
    close(reader);
    ck_assert_str_eq(got, "{}");
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
}
END_TEST

START_TEST(reading_refuses_what_is_no_file_or_too_large)
{
    char *text = NULL;
    size_t bytes;
    ck_assert_int_eq(dl_read_file(in_folder("absent"), 100, &text, &bytes, &err), DL_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, "absent: No such file or directory"));
    err = (struct dl_error){0};
    ck_assert_int_eq(dl_read_file(folder, 100, &text, &bytes, &err), DL_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, ": is not a file"));
    err = (struct dl_error){0};
    put("three", "abc");
    ck_assert_int_eq(dl_read_file(in_folder("three"), 2, &text, &bytes, &err), DL_RANGE);
    ck_assert_ptr_null(text);
}
END_TEST

START_TEST(the_base_name_is_what_follows_the_last_slash)
{
    ck_assert_str_eq(dl_base_name("a/b/c.json"), "c.json");
    ck_assert_str_eq(dl_base_name("c.json"), "c.json");
    ck_assert_str_eq(dl_base_name("a/"), "");
}
END_TEST

static void ship(const char *name)
{
    ck_assert_int_eq(setenv("DLSIM_HOME", folder, 1), 0);
    mkdir(in_folder("systems"), 0700);
    put(dl_arena_format(arena, "systems/%s", name), "{}");
}

START_TEST(a_name_is_found_with_and_without_its_ending)
{
    ship("frontier.json");
    const char *path;
    ck_assert_int_eq(dl_find_file("systems", "topology", "frontier", arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, in_folder("systems/frontier.json"));
    ck_assert_int_eq(dl_find_file("systems", "topology", "frontier.json", arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, in_folder("systems/frontier.json"));
}
END_TEST

START_TEST(a_path_is_taken_as_it_is)
{
    put("mine.json", "{}");
    const char *path;
    ck_assert_int_eq(dl_find_file("systems", "topology", in_folder("mine.json"), arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, in_folder("mine.json"));
    ck_assert_int_ne(dl_find_file("systems", "topology", in_folder("other.json"), arena, &path, &err), DL_OK);
    ck_assert_str_eq(err.text, dl_arena_format(arena, "%s: no such topology file", in_folder("other.json")));
}
END_TEST

START_TEST(a_shipped_name_wins_over_a_file_here_and_beside_the_file_that_names_it)
{
    ship("frontier.json");
    put("frontier", "mine");
    put("frontier.json", "mine");
    put("mine.json", "mine");
    const char *path;
    char here[4096];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(dl_find_file("systems", "topology", "frontier", arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, in_folder("systems/frontier.json"));
    ck_assert(dl_is_shipped(path, "systems", arena));
    ck_assert_int_eq(dl_find_file("systems", "topology", "mine", arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, "./mine.json");
    ck_assert(!dl_is_shipped(path, "systems", arena));
    ck_assert_int_eq(chdir(here), 0);
    const struct dl_sought beside = {
        .folder = "systems", .what = "topology", .name = "mine", .file = in_folder("names-it.json")};
    const struct dl_sought shipped = {
        .folder = "systems", .what = "topology", .name = "frontier.json", .file = in_folder("names-it.json")};
    ck_assert_int_eq(dl_find_sought(&beside, arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, in_folder("mine.json"));
    ck_assert_int_eq(dl_find_sought(&shipped, arena, &path, &err), DL_OK);
    ck_assert_str_eq(path, in_folder("systems/frontier.json"));
}
END_TEST

START_TEST(what_a_file_calls_another_is_found_from_its_folder)
{
    static const struct {
        const char *file, *other, *name;
    } cases[] = {
        {"a.json", "b.json", "./b.json"},          {"x/a.json", "x/b.json", "./b.json"},
        {"x/a.json", "b.json", "../b.json"},       {"a.json", "x/b.json", "./x/b.json"},
        {"x/a.json", "xy/b.json", "../xy/b.json"}, {"x/../xy/a.json", "x/b.json", "../x/b.json"},
    };
    mkdir(in_folder("x"), 0700);
    mkdir(in_folder("xy"), 0700);
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        const char *const file = in_folder(cases[i].file), *const other = in_folder(cases[i].other), *path;
        const char *const name = dl_name_from(file, other, arena);
        ck_assert_str_eq(name, cases[i].name);
        put(cases[i].other, "{}");
        const struct dl_sought sought = {.folder = "systems", .what = "topology", .name = name, .file = file};
        ck_assert_msg(!dl_find_sought(&sought, arena, &path, &err), "%s", err.text);
        char *const found = realpath(path, NULL), *const meant = realpath(other, NULL);
        ck_assert_str_eq(found, meant);
        free(found);
        free(meant);
    }
    ck_assert_str_eq(dl_name_from(in_folder("a.json"), "/dev/b.json", arena), "/dev/b.json");
}
END_TEST

START_TEST(a_misspelt_name_gets_its_neighbour_offered)
{
    ship("frontier.json");
    const char *path;
    ck_assert_int_eq(dl_find_file("systems", "topology", "fronteir", arena, &path, &err), DL_NOT_FOUND);
    ck_assert_str_eq(err.text, "fronteir: no such topology, did you mean 'frontier'?");
}
END_TEST

START_TEST(a_folder_is_listed_in_order_and_without_strangers)
{
    ship("b.json");
    ship("a.json");
    ship("notes.txt");
    ship(".json");
    const char **names;
    ck_assert_uint_eq(dl_list_folder("systems", arena, &names), 2);
    ck_assert_str_eq(names[0], "a");
    ck_assert_str_eq(names[1], "b");
    ck_assert_uint_eq(dl_list_folder("absent", arena, &names), 0);
}
END_TEST

/* Jansson leaves such members out, or makes no object at all. */
START_TEST(no_answer_is_written_that_is_not_finite)
{
    static const double wrong[] = {INFINITY, -INFINITY, NAN};
    const char *const path = in_folder("answer.json");
    for (size_t i = 0; i < DL_COUNT(wrong); i++) {
        const struct {
            json_t *answer;
            const char *message;
        } cases[] = {
            {dl_json_pack("{s:f, s:[o, o]}", "a", 1.0, "list", dl_json_real(2), dl_json_real(wrong[i])), "/list/1"},
            {dl_json_pack("{s:f, s:o}", "a", 1.0, "part", dl_json_pack("{s:f}", "b", wrong[i])), "/part"},
            {dl_json_pack("{s:f}", "a", wrong[i]), "the answer"},
            {NULL, "the answer"},
        };
        for (size_t k = 0; k < DL_COUNT(cases); k++) {
            char message[200];
            err = (struct dl_error){0};
            snprintf(message, sizeof message, "%s: %s is not a finite number, so nothing is written", path,
                     cases[k].message);
            ck_assert_int_eq(dl_write_json(path, cases[k].answer, &err), DL_STALLED);
            ck_assert_str_eq(err.text, message);
            ck_assert_int_ne(access(path, F_OK), 0);
        }
    }
    err = (struct dl_error){0};
    ck_assert_int_eq(dl_write_json(path, dl_json_pack("{s:o}", "a", dl_json_real(1e308)), &err), DL_OK);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("files");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_is_written_is_read_back);
    tcase_add_test(tests, a_failed_write_leaves_what_was_there);
    tcase_add_test(tests, a_pipe_is_written_to_not_replaced);
    tcase_add_test(tests, reading_refuses_what_is_no_file_or_too_large);
    tcase_add_test(tests, the_base_name_is_what_follows_the_last_slash);
    tcase_add_test(tests, a_name_is_found_with_and_without_its_ending);
    tcase_add_test(tests, a_path_is_taken_as_it_is);
    tcase_add_test(tests, a_shipped_name_wins_over_a_file_here_and_beside_the_file_that_names_it);
    tcase_add_test(tests, what_a_file_calls_another_is_found_from_its_folder);
    tcase_add_test(tests, a_misspelt_name_gets_its_neighbour_offered);
    tcase_add_test(tests, a_folder_is_listed_in_order_and_without_strangers);
    tcase_add_test(tests, no_answer_is_written_that_is_not_finite);
    Suite *const suite = suite_create("files");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
