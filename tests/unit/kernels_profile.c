/* kernels_profile.c - medians and spreads, journals that are gone on with, device files that are written whole. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernels/device_file.h"
#include "kernels/journal.h"
#include "kernels/profiling.h"
#include "tests/unit/suite.h"

static char folder[] = "/tmp/dlsim-kernels-XXXXXX", path[64], other[64];

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(strcpy(folder, "/tmp/dlsim-kernels-XXXXXX")));
    snprintf(path, sizeof path, "%s/one", folder);
    snprintf(other, sizeof other, "%s/two", folder);
}

static void remove_folder(void)
{
    remove(path);
    remove(other);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else may be left there */
}

static void write_text(const char *to, const char *text)
{
    FILE *const file = fopen(to, "w");
    fputs(text, file);
    fclose(file);
}

static const char *read_text(const char *from)
{
    static char text[20000];
    FILE *const file = fopen(from, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

START_TEST(median_and_spread_are_those_of_the_samples)
{
    double odd[] = {5, 1, 100, 2, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    const struct dl_timing of_odd = dl_timing_of(odd, 5), of_even = dl_timing_of(even, 4),
                           of_one = dl_timing_of(one, 1);
    ck_assert_double_eq(of_odd.seconds, 3);
    ck_assert_double_eq_tol(of_odd.spread, 2.0 / 3, 1e-15); /* deviations 0 1 2 2 97: an outlier does not count */
    ck_assert_double_eq(of_even.seconds, 2.5);
    ck_assert_double_eq_tol(of_even.spread, 1.0 / 2.5, 1e-15);
    ck_assert_double_eq(of_one.spread, 0);
}
END_TEST

static const struct dl_routine *copy_routine(void)
{
    for (size_t i = 0; i < dl_routine_count(&dl_backend_cpu); i++)
        if (strcmp(dl_routine_get(&dl_backend_cpu, i)->problem, "copy") == 0) return dl_routine_get(&dl_backend_cpu, i);
    ck_abort_msg("there is no copy");
    return NULL;
}

START_TEST(timing_calls_the_routine_and_gives_a_time)
{
    const int64_t given[] = {1000};
    const struct dl_timing t =
        dl_time(&(struct dl_trial_spec){&dl_backend_cpu, copy_routine(), given, DL_FLOAT_FP32, 1},
                &(struct dl_timing_plan){.spread = 0.1, .most_s = 0.01, .rotate_bytes = 1e5});
    ck_assert(t.n_samples >= 3 && t.seconds > 0 && t.spread >= 0);
}
END_TEST

static int n_opened;
static void *open_slowly(const struct dl_call *call)
{
    (void)call;
    n_opened++;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return NULL;
}

/* A library may take long to plan a call: it would plan a thousand times for a shape that is small. */
START_TEST(sets_of_tensors_are_made_no_longer_than_calls_are_timed)
{
    const int64_t given[] = {1000};
    struct dl_routine slow = *copy_routine();
    slow.open = open_slowly;
    dl_time(&(struct dl_trial_spec){&dl_backend_cpu, &slow, given, DL_FLOAT_FP32, 1},
            &(struct dl_timing_plan){.spread = 0.1, .most_s = 0.1, .rotate_bytes = 1e9});
    ck_assert_int_ge(n_opened, 1);
    ck_assert_int_le(n_opened, 6);
}
END_TEST

START_TEST(twins_have_the_same_contents)
{
    const int64_t given[] = {1000};
    struct dl_trial *const one =
        dl_trial_new(&(struct dl_trial_spec){&dl_backend_cpu, copy_routine(), given, DL_FLOAT_FP32, 1});
    struct dl_trial *const twin = dl_trial_twin(one);
    for (size_t i = 0; i < one->problem->n_tensors; i++) {
        ck_assert_ptr_ne(one->tensor[i], twin->tensor[i]);
        ck_assert_mem_eq(one->tensor[i], twin->tensor[i], 1000 * sizeof(float));
    }
    dl_trial_free(one);
    dl_trial_free(twin);
}
END_TEST

START_TEST(journal_remembers_what_was_timed)
{
    const char *wrong;
    const struct dl_timing t = {0.25, 0.125, 9};
    struct dl_journal *j = dl_journal_open(path, "a core; its libraries", &wrong);
    ck_assert(j && !wrong);
    ck_assert_uint_eq(dl_journal_find(j, "copy 10").n_samples, 0);
    dl_journal_add(j, "copy 10", &t);
    dl_journal_close(j, false);
    j = dl_journal_open(path, "a core; its libraries", &wrong);
    ck_assert_double_eq(dl_journal_find(j, "copy 10").seconds, 0.25);
    ck_assert_double_eq(dl_journal_find(j, "copy 10").spread, 0.125);
    ck_assert_uint_eq(dl_journal_find(j, "copy 1").n_samples, 0);
    dl_journal_close(j, true);
    ck_assert_ptr_null(fopen(path, "r"));
}
END_TEST

START_TEST(journal_of_another_device_is_refused)
{
    const char *wrong;
    dl_journal_close(dl_journal_open(path, "one core", &wrong), false);
    ck_assert_ptr_null(dl_journal_open(path, "another core", &wrong));
    ck_assert_str_eq(wrong, "is of another device or other libraries; delete it to begin anew");
}
END_TEST

START_TEST(journal_that_was_cut_off_loses_one_line)
{
    const char *wrong;
    const struct dl_timing t = {0.25, 0.125, 9};
    write_text(path, "a core\ncopy 10: 0.5 0.1 7\ncopy 20: 0.");
    struct dl_journal *j = dl_journal_open(path, "a core", &wrong);
    ck_assert_uint_eq(dl_journal_find(j, "copy 10").n_samples, 7);
    ck_assert_uint_eq(dl_journal_find(j, "copy 20").n_samples, 0);
    dl_journal_add(j, "copy 30", &t);
    dl_journal_close(j, false);
    j = dl_journal_open(path, "a core", &wrong);
    ck_assert_uint_eq(dl_journal_find(j, "copy 30").n_samples, 9);
    dl_journal_close(j, false);
}
END_TEST

START_TEST(times_that_no_clock_tells_are_refused)
{
    static const char *const times[] = {"nan 0.1 7",   "inf 0.1 7",  "-1e-5 0.1 7", "0 0.1 7",
                                        "1e300 0.1 7", "0.5 nan 7",  "0.5 inf 7",   "0.5 -0.1 7",
                                        "0.5 0.1 0",   "0.5 0.1 -7", "0.5 0.1 nan"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const char *wrong;
        char text[100], refusal[300];
        snprintf(text, sizeof text, "a core\ncopy 10: 0.5 0.1 7\ncopy 20: %s\n", times[i]);
        write_text(path, text);
        ck_assert_ptr_null(dl_journal_open(path, "a core", &wrong));
        snprintf(
            refusal, sizeof refusal,
            "line 3: must have seconds above 0, a spread of at least 0 and a count of samples, got '%s'; delete the "
            "line to time this again",
            times[i]);
        ck_assert_str_eq(wrong, refusal);
    }
}
END_TEST

START_TEST(a_journal_that_cannot_be_written_says_why)
{
    const char *wrong;
    const struct dl_timing t = {0.25, 0.125, 9};
    struct dl_journal *const j = dl_journal_open(path, "a core", &wrong);
    ck_assert_ptr_null(dl_journal_add(j, "copy 10", &t));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1, 1}), 0);
    ck_assert_str_eq(dl_journal_add(j, "copy 20", &t), strerror(EFBIG));
    dl_journal_close(j, false);
    remove(path);
    ck_assert_ptr_null(dl_journal_open(path, "a core", &wrong));
    ck_assert_str_eq(wrong, strerror(EFBIG));
}
END_TEST

START_TEST(joined_journals_have_each_key_once)
{
    const char *wrong;
    write_text(path, "a core\ncopy 10: 0.5 0.1 7\na core\ncopy 10: 0.6 0.1 8\ncopy 20: 0.1 0.1 7\n");
    struct dl_journal *const j = dl_journal_open(path, "a core", &wrong);
    ck_assert_uint_eq(dl_journal_count(j), 2);
    ck_assert_double_eq(dl_journal_find(j, "copy 10").seconds, 0.5);
    dl_journal_close(j, false);
}
END_TEST

/* Two products and a copy, as if they had been timed. */
static struct dl_profile made_up(struct dl_result *results)
{
    size_t n = 0;
    for (size_t i = 0; i < dl_routine_count(&dl_backend_cpu) && n < 3; i++) {
        const struct dl_routine *const r = dl_routine_get(&dl_backend_cpu, i);
        const bool is_copy = strcmp(r->problem, "copy") == 0;
        if (!is_copy && (strcmp(r->problem, "gemm") || strcmp(r->pass, "forward"))) continue;
        for (int64_t times = 1; times <= (is_copy ? 1 : 2); times++)
            results[n++] = (struct dl_result){r,
                                              dl_problem_find(r->problem, r->pass),
                                              DL_FLOAT_FP32,
                                              {is_copy ? 1000 : 1, 10 * times, 20, 30, 0},
                                              {1e-6, 0.01, 9}};
    }
    return (struct dl_profile){.backend = &dl_backend_cpu,
                               .facts = {"A \"core\"", "some library", 1e9, 1000, 2e9},
                               .launch = {1e-9, 0, 9},
                               .results = results,
                               .n = n};
}

static const char tables[] =
    "  \"measured\": [\n"
    "    {\"kernel\": \"gemm\", \"pass\": \"forward\", \"precision\": \"fp32\", \"library\": \"OpenBLAS";
static const char product_rows[] = "     \"columns\": [\"batch\", \"m\", \"n\", \"k\", \"seconds\", \"spread\"],\n"
                                   "     \"rows\": [\n      [1,10,20,30,1e-06,0.01],[1,20,20,30,1e-06,0.01]]},\n";
static const char copy_rows[] = "\"library\": \"dlsim\",\n     \"columns\": [\"elements\", \"seconds\", \"spread\"],\n"
                                "     \"rows\": [\n      [2000,1e-06,0.01]]}\n  ]\n}\n";

START_TEST(device_file_has_what_was_timed)
{
    struct dl_result results[3];
    const struct dl_profile p = made_up(results);
    ck_assert_ptr_null(dl_device_file_write(path, NULL, &p));
    const char *const text = read_text(path);
    ck_assert_ptr_eq(strstr(text, "{\n  \"schema\": \"dlsim/device/1\",\n"), text);
    ck_assert_ptr_nonnull(strstr(text, "A \\\"core\\\" at 2.00 GHz; some library"));
    ck_assert_ptr_nonnull(strstr(text, "\"fp32\": 2.4e+10")); /* 2 x 20 x 20 x 30 flop in 1 us */
    ck_assert_ptr_nonnull(strstr(text, "\"memory_bytes_per_s\": 8e+09"));
    ck_assert_ptr_nonnull(strstr(text, tables));
    ck_assert_ptr_nonnull(strstr(text, product_rows));
    ck_assert_ptr_nonnull(strstr(text, copy_rows));
}
END_TEST

START_TEST(device_file_keeps_the_head_of_another)
{
    struct dl_result results[3];
    const struct dl_profile p = made_up(results);
    const char head[] = "{\n  \"schema\": \"dlsim/device/1\",\n  \"launch_s\": 2e-6,\n  \"figures\": {\"units\": 108}";
    char text[300], wanted[600];
    snprintf(text, sizeof text, "%s\n}\n", head);
    snprintf(wanted, sizeof wanted, "%s,\n%s", head, tables);
    write_text(path, text);
    for (int again = 0; again < 2; again++) { /* the second time its own tables make room for the new ones */
        ck_assert_ptr_null(dl_device_file_write(other, again ? other : path, &p));
        ck_assert_msg(strncmp(read_text(other), wanted, strlen(wanted)) == 0, "%s", read_text(other));
        ck_assert_ptr_null(strstr(strstr(read_text(other), "measured") + 1, "measured"));
    }
    ck_assert_str_eq(dl_device_file_write(other, "/absent/file", &p), "No such file or directory");
}
END_TEST

/* Of one line, with "measured" in a text and in an object before the tables. */
START_TEST(device_file_keeps_a_head_that_speaks_of_measured_tables)
{
    struct dl_result results[3];
    const struct dl_profile p = made_up(results);
    static const char head[] = "{\"schema\": \"dlsim/device/1\", \"source\": \"\\\"measured\\\": [\", "
                               "\"facts\": {\"measured\": \"assumed: none}\"},";
    char text[300];
    snprintf(text, sizeof text, "%s \"measured\": [{\"library\": \"]\"}]}", head);
    write_text(path, text);
    ck_assert_ptr_null(dl_why_no_device_file(path));
    ck_assert_ptr_null(dl_device_file_write(other, path, &p));
    ck_assert_msg(strncmp(read_text(other), head, strlen(head)) == 0, "%s", read_text(other));
    ck_assert_int_eq(strncmp(read_text(other) + strlen(head) + 1, tables, strlen(tables)), 0);
}
END_TEST

/* Rows are short and long in turn. */
START_TEST(device_file_of_what_fits_is_small_enough_to_read)
{
    enum { many = 12000 };
    struct dl_result few[3], *const results = dl_memory(many * sizeof *results);
    struct dl_profile p = made_up(few);
    for (size_t i = 0; i < many; i++) {
        results[i] = few[i % 3];
        results[i].dim[1] = (int64_t)(i % 7 ? i : i * i);
    }
    p.results = results;
    ck_assert_uint_eq(dl_device_file_fits(&p, NULL), p.n);
    p.n = many;
    p.n = dl_device_file_fits(&p, NULL);
    ck_assert_uint_lt(p.n, many);
    ck_assert_ptr_null(dl_device_file_write(path, NULL, &p));
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert(info.st_size <= 200000 && info.st_size > 150000);
    free(results);
}
END_TEST

/* What the call with this share times; the caller frees the points. */
static const char *fill(struct dl_profile_options *o, size_t share, size_t n_shares, struct dl_profile *profile,
                        struct dl_agenda *agenda)
{
    o->backend = &dl_backend_cpu, o->share = share, o->n_shares = n_shares;
    *profile = (struct dl_profile){.backend = &dl_backend_cpu, .facts = {.last_cache_bytes = 32e6}};
    *agenda = (struct dl_agenda){.o = o, .profile = profile};
    return dl_agenda_fill(agenda);
}

START_TEST(shares_together_are_the_whole_and_each_has_the_basics)
{
    enum { n_shares = 3 };
    struct dl_profile_options o = {.precisions = ~0u};
    struct dl_profile whole, part;
    struct dl_agenda all, some;
    size_t n_beyond_basics = 0;
    ck_assert_ptr_null(fill(&o, 0, 1, &whole, &all));
    ck_assert_str_eq(all.points[0].problem->name, "copy");
    ck_assert_str_eq(all.points[1].problem->name, "gemm");
    for (size_t share = 0; share < n_shares; share++) {
        ck_assert_ptr_null(fill(&o, share, n_shares, &part, &some));
        ck_assert_int_eq(memcmp(some.points, all.points, 2 * sizeof *all.points), 0);
        for (size_t i = 0; i < part.n; i++) ck_assert(dl_profile_has(&whole, &some.points[i]));
        n_beyond_basics += part.n - 2;
        free(some.points);
    }
    ck_assert_uint_eq(n_beyond_basics, whole.n - 2);
    free(all.points);
}
END_TEST

/* Unless another file has the rates. */
START_TEST(nothing_is_timed_that_no_file_can_be_made_of)
{
    struct dl_profile_options o = {.precisions = 1u << DL_FLOAT_FP8};
    struct dl_profile profile;
    struct dl_agenda agenda;
    ck_assert_str_eq(fill(&o, 0, 1, &profile, &agenda),
                     "must have a large copy and a large product, as fp32 has: a file needs their rates, or --into "
                     "those of another");
    free(agenda.points);
    o.into = path;
    write_text(path, "{\"schema\": \"dlsim/device/1\"}");
    ck_assert_ptr_null(fill(&o, 0, 1, &profile, &agenda));
    free(agenda.points);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("kernels");
    TCase *const all = tcase_create("profile");
    tcase_add_checked_fixture(all, make_folder, remove_folder);
    tcase_add_test(all, median_and_spread_are_those_of_the_samples);
    tcase_add_test(all, timing_calls_the_routine_and_gives_a_time);
    tcase_add_test(all, sets_of_tensors_are_made_no_longer_than_calls_are_timed);
    tcase_add_test(all, twins_have_the_same_contents);
    tcase_add_test(all, journal_remembers_what_was_timed);
    tcase_add_test(all, journal_of_another_device_is_refused);
    tcase_add_test(all, journal_that_was_cut_off_loses_one_line);
    tcase_add_test(all, joined_journals_have_each_key_once);
    tcase_add_test(all, times_that_no_clock_tells_are_refused);
    tcase_add_test(all, a_journal_that_cannot_be_written_says_why);
    tcase_add_test(all, device_file_has_what_was_timed);
    tcase_add_test(all, device_file_keeps_the_head_of_another);
    tcase_add_test(all, device_file_keeps_a_head_that_speaks_of_measured_tables);
    tcase_add_test(all, device_file_of_what_fits_is_small_enough_to_read);
    tcase_add_test(all, shares_together_are_the_whole_and_each_has_the_basics);
    tcase_add_test(all, nothing_is_timed_that_no_file_can_be_made_of);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
