/* Outputs: no name that others can have prepared is written to, and what was there keeps its mode, its link and, until
 * all is written, its content. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/output.h"
#include "tests/unit/suite.h"

static char folder[] = "/tmp/dlsim-output-XXXXXX";
static const char old[] = "old", new[] = "new";

static void set_up(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void tear_down(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *path, const char *text)
{
    FILE *const file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect(const char *path, const char *wanted)
{
    char got[100] = "";
    FILE *const file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is not there", path);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(got, wanted);
}

static size_t n_entries(void)
{
    DIR *const dir = opendir(".");
    size_t n = 0;
    for (const struct dirent *e; (e = readdir(dir));) n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

static void write_new(const char *path)
{
    struct dl_output out;
    const char *wrong = dl_output_open(&out, path);
    ck_assert_msg(!wrong, "%s: %s", path, wrong);
    fputs(new, out.stream);
    wrong = dl_output_close(&out, true);
    ck_assert_msg(!wrong, "%s: %s", path, wrong);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    ck_assert_int_eq(lstat(path, &info), 0);
    return info.st_mode;
}

START_TEST(a_link_at_a_name_that_can_be_foreseen_is_not_followed)
{
    char prepared[100];
    put("victim", old);
    snprintf(prepared, sizeof prepared, "out.%ld.part", (long)getpid());
    ck_assert_int_eq(symlink("victim", prepared), 0);
    ck_assert_int_eq(symlink("victim", "out.part"), 0);
    write_new("out");
    expect("victim", old);
    expect("out", new);
    ck_assert_uint_eq(n_entries(), 4);
}
END_TEST

START_TEST(a_new_file_has_the_usual_mode_and_an_old_one_its_own)
{
    umask(027);
    write_new("fresh");
    ck_assert_uint_eq(mode_of("fresh") & 07777, 0640);
    put("kept", old);
    ck_assert_int_eq(chmod("kept", 0606), 0);
    write_new("kept");
    ck_assert_uint_eq(mode_of("kept") & 07777, 0606);
}
END_TEST

START_TEST(a_link_stays_and_the_file_behind_it_is_written)
{
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    put("sub/real", old);
    ck_assert_int_eq(symlink("real", "sub/second"), 0);
    ck_assert_int_eq(symlink("sub/second", "first"), 0);
    ck_assert_int_eq(symlink("sub/later", "dangling"), 0);
    write_new("first");
    write_new("dangling");
    expect("sub/real", new);
    expect("sub/later", new);
    ck_assert(S_ISLNK(mode_of("first")) && S_ISLNK(mode_of("sub/second")) && S_ISLNK(mode_of("dangling")));
    ck_assert_int_eq(symlink("round", "round"), 0);
    ck_assert_ptr_nonnull(dl_why_not_written("round"));
}
END_TEST

START_TEST(what_is_not_whole_changes_nothing)
{
    struct dl_output out;
    put("out", old);
    ck_assert_ptr_null(dl_output_open(&out, "out"));
    fputs(new, out.stream);
    ck_assert_ptr_null(dl_output_close(&out, false));
    expect("out", old);
    const struct rlimit little = {.rlim_cur = 1, .rlim_max = 1};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
    ck_assert_ptr_null(dl_output_open(&out, "out"));
    fputs(new, out.stream);
    ck_assert_ptr_nonnull(dl_output_close(&out, true));
    expect("out", old);
    ck_assert_uint_eq(n_entries(), 1);
}
END_TEST

static const int endings[] = {SIGINT, SIGTERM, SIGHUP};

START_TEST(a_signal_leaves_nothing_behind)
{
    put("out", old);
    const pid_t child = fork();
    if (child == 0) {
        struct dl_output out;
        signal(endings[_i], SIG_DFL); /* Check has handlers of its own */
        if (dl_output_open(&out, "out")) _exit(1);
        raise(endings[_i]);
        _exit(2);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), endings[_i]);
    expect("out", old);
    ck_assert_uint_eq(n_entries(), 1);
}
END_TEST

START_TEST(a_signal_that_is_ignored_stays_so)
{
    struct dl_output out;
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    ck_assert_ptr_null(dl_output_open(&out, "out"));
    raise(SIGHUP);
    fputs(new, out.stream);
    ck_assert_ptr_null(dl_output_close(&out, true));
    expect("out", new);
    struct sigaction now;
    sigaction(SIGTERM, NULL, &now);
    ck_assert(now.sa_handler == SIG_DFL);
}
END_TEST

/* The name leads to a file, which the shell has opened at some place of it: what was there before must stay. */
START_TEST(an_own_descriptor_is_written_where_it_stands)
{
    put("log", old);
    ck_assert_ptr_nonnull(freopen("log", "a", stdout));
    write_new("/dev/stdout");
    write_new("-");
    expect("log", "oldnewnew");
    ck_assert(dl_is_same_file("log", "-") && dl_is_same_file("/dev/stdout", "/dev/fd/1"));
    ck_assert_ptr_nonnull(dl_why_not_written("/dev/fd/777"));
}
END_TEST

START_TEST(one_file_is_known_by_all_its_names)
{
    char absolute[100];
    put("there", old);
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    ck_assert_int_eq(symlink("..", "sub/up"), 0);
    ck_assert_int_eq(symlink("later", "to-later"), 0);
    ck_assert_int_eq(link("there", "hard"), 0);
    snprintf(absolute, sizeof absolute, "%s/later", folder);
    static const char *const there[] = {"there", "./there", "sub/../there", "sub/up/there", "hard"};
    const char *const later[] = {"later", "./later", "sub/up/later", "to-later", absolute};
    for (size_t i = 0; i < 5; i++) {
        ck_assert(dl_is_same_file(there[0], there[i]) && dl_is_same_file(there[i], there[0]));
        ck_assert(dl_is_same_file(later[0], later[i]) && dl_is_same_file(later[i], later[0]));
        ck_assert(!dl_is_same_file(there[i], later[i]));
    }
    ck_assert(!dl_is_same_file("sub/later", "later"));
    ck_assert(!dl_is_same_file("/dev/null", "/dev/null"));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("output");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_link_at_a_name_that_can_be_foreseen_is_not_followed);
    tcase_add_test(tests, a_new_file_has_the_usual_mode_and_an_old_one_its_own);
    tcase_add_test(tests, a_link_stays_and_the_file_behind_it_is_written);
    tcase_add_test(tests, what_is_not_whole_changes_nothing);
    tcase_add_loop_test(tests, a_signal_leaves_nothing_behind, 0, sizeof endings / sizeof *endings);
    tcase_add_test(tests, a_signal_that_is_ignored_stays_so);
    tcase_add_test(tests, an_own_descriptor_is_written_where_it_stands);
    tcase_add_test(tests, one_file_is_known_by_all_its_names);
    Suite *const suite = suite_create("output");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
