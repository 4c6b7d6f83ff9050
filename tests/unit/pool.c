/* pool.c - many jobs in processes of their own: in order, as if alone, and none disturbs another. */
#define _GNU_SOURCE /* usleep */
#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/report/host.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

enum { most_jobs = 300 };
static struct dl_error errors[most_jobs];

struct square {
    size_t of, square;
    pid_t process;
};
static struct square squares[most_jobs];

/* Later jobs end earlier. */
static void square(void *user, size_t job, void *result)
{
    const size_t n = *(const size_t *)user;
    usleep((useconds_t)(200 * (n - job) / n));
    *(struct square *)result = (struct square){job, job * job, getpid()};
}

START_TEST(results_are_in_the_order_of_the_jobs)
{
    static const struct {
        size_t n_jobs, n_workers;
    } cases[] = {{1, 1}, {7, 1}, {7, 3}, {3, 7}, {most_jobs, 4}, {20, 0}, {0, 2}};
    size_t n = cases[_i].n_jobs;
    dl_pool_run(
        &(struct dl_pool_request){
            .n_jobs = n, .n_workers = cases[_i].n_workers, .result_bytes = sizeof *squares, .run = square, .user = &n},
        squares, errors);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(!errors[i].status, "%s", errors[i].text);
        ck_assert(squares[i].of == i && squares[i].square == i * i && squares[i].process != getpid());
    }
}
END_TEST

START_TEST(where_processes_are_few_those_that_run_make_room)
{
    size_t n = most_jobs;
    const rlim_t few = 16;
    ck_assert(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){few, few}));
    dl_pool_run(
        &(struct dl_pool_request){
            .n_jobs = n, .n_workers = 100, .result_bytes = sizeof *squares, .run = square, .user = &n},
        squares, errors);
    for (size_t i = 0; i < n; i++) ck_assert(!errors[i].status && squares[i].square == i * i);
}
END_TEST

/* ---- jobs that end badly ---- */

static void wait_for_ever(void *user, size_t job, void *result)
{
    (void)result;
    if (write(*(const int *)user, &job, 1) == 1) pause();
}

/* The pipe has an end when all who could write into it are gone. */
START_TEST(jobs_end_with_a_parent_that_is_killed)
{
    int ends[2];
    char byte;
    ck_assert(!pipe(ends));
    const pid_t parent = fork();
    if (!parent) {
        close(ends[0]);
        dl_pool_run(
            &(struct dl_pool_request){
                .n_jobs = 2, .n_workers = 2, .result_bytes = sizeof *squares, .run = wait_for_ever, .user = &ends[1]},
            squares, errors);
    }
    close(ends[1]);
    ck_assert(read(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);
}
END_TEST

static void misbehave(void *user, size_t job, void *result)
{
    (void)user;
    memset(result, 1, sizeof(int));
    if (job == 1) raise(SIGKILL);
    if (job == 2) _exit(7);
    if (job == 3) _exit(0);
}

START_TEST(a_crash_is_the_error_of_its_job)
{
    static const char *const messages[] = {"", "its process ended by signal 9, Killed",
                                           "its process ended with exit code 7 before the result",
                                           "its process ended with exit code 0 before the result", ""};
    int results[5];
    struct dl_pool_request pool = {.n_jobs = 5, .n_workers = 2, .result_bytes = sizeof *results, .run = misbehave};
    struct dl_error err = {0};
    dl_pool_run(&pool, results, errors);
    ck_assert_int_eq(dl_pool_check(&pool, errors, "--option", &err), DL_STALLED);
    ck_assert_str_eq(err.text, "--option: 3 of 5 runs were lost, so there is no answer; of the first its process ended "
                               "by signal 9, Killed");
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(errors[i].text, messages[i]);
        ck_assert_int_eq(results[i], *messages[i] ? 0 : 0x01010101);
    }
    err = (struct dl_error){0};
    pool.n_jobs = 1; /* which came back */
    ck_assert_int_eq(dl_pool_check(&pool, errors, "--option", &err), DL_OK);
}
END_TEST

/* Until the clock of the process has moved, which it does in steps. */
static void work(void *user, size_t job, void *result)
{
    (void)user;
    (void)job;
    const double before_s = dl_host_now().user_s;
    while (!(dl_host_now().user_s > before_s)) continue;
    *(double *)result = dl_host_now().user_s;
}

START_TEST(the_time_of_jobs_is_time_of_the_host)
{
    double user_s[3], before_s;
    dl_host_begin();
    before_s = dl_host_now().user_s;
    dl_pool_run(&(struct dl_pool_request){.n_jobs = 3, .n_workers = 2, .result_bytes = sizeof *user_s, .run = work},
                user_s, errors);
    ck_assert_double_gt(user_s[0], 0);
    ck_assert_double_ge(dl_host_now().user_s, before_s + user_s[0] + user_s[1] + user_s[2]);
}
END_TEST

/* More than a pipe holds. */
enum { large_bytes = 1 << 20 };

static void fill(void *user, size_t job, void *result)
{
    (void)user;
    memset(result, (int)job + 1, large_bytes);
}

START_TEST(a_large_result_comes_whole)
{
    unsigned char *const results = dl_alloc(3 * (size_t)large_bytes);
    dl_pool_run(&(struct dl_pool_request){.n_jobs = 3, .n_workers = 3, .result_bytes = large_bytes, .run = fill},
                results, errors);
    size_t n_wrong = 0;
    for (size_t i = 0; i < 3 * (size_t)large_bytes; i++) n_wrong += results[i] != i / large_bytes + 1;
    ck_assert_uint_eq(n_wrong, 0);
    dl_free(results);
}
END_TEST

/* ---- simulations ---- */

#define WORKLOAD                                                                                                       \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':512,'heads':8,"           \
    "'seq':128,'vocab':1024}"

static struct dl_session sessions[4];

static void simulate(void *user, size_t job, void *result)
{
    (void)user;
    training_simulate_here(&sessions[job % 4], job, result);
}

START_TEST(many_simulations_give_the_bits_of_each_alone)
{
    static struct training_outcome together[12];
    for (int i = 0; i < 4; i++) {
        char strategy[400];
        snprintf(strategy, sizeof strategy,
                 "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':8,'global_batch':16,"
                 "'stack':[{'name':'tensor','ways':%d},{'name':'pipeline','ways':2},{'name':'data'}]}",
                 1 << i % 3);
        const struct training_inputs in = {.system = i == 3 ? "selene" : IDEAL_SYSTEM("1e9", "1e-6"),
                                           .device = i == 3 ? "a100-80" : IDEAL_DEVICE,
                                           .software = "megatron-2021",
                                           .workload = WORKLOAD,
                                           .strategy = strategy};
        ck_assert_msg(!training_open(&sessions[i], &in), "%s", sessions[i].err.text);
    }
    dl_pool_run(
        &(struct dl_pool_request){.n_jobs = 12, .n_workers = 3, .result_bytes = sizeof *together, .run = simulate},
        together, errors);
    for (size_t i = 0; i < 12; i++) {
        const struct training_outcome alone = training_simulate(&sessions[i % 4], "simgrid");
        ck_assert_msg(!errors[i].status, "%s", errors[i].text);
        ck_assert(alone.result.step_s > 0 && alone.report_hash == together[i].report_hash);
        ck_assert(memcmp(&alone.result.step_s, &together[i].result.step_s, sizeof(double)) == 0);
    }
    for (int i = 0; i < 4; i++) dl_session_close(&sessions[i]);
}
END_TEST

static void sleep_long(void *user, size_t job, void *result)
{
    (void)user;
    if (job % 2) sleep(100);
    *(size_t *)result = job;
}

START_TEST(a_job_that_is_late_is_ended_and_the_others_are_not)
{
    enum { n_jobs = 5 };
    size_t results[n_jobs];
    dl_pool_run(
        &(struct dl_pool_request){
            .n_jobs = n_jobs, .n_workers = 2, .result_bytes = sizeof *results, .run = sleep_long, .limit_s = 1},
        results, errors);
    for (size_t i = 0; i < n_jobs; i++) {
        ck_assert_int_eq(errors[i].status, i % 2 ? DL_LATE : DL_OK);
        ck_assert_uint_eq(results[i], i % 2 ? 0 : i);
    }
    ck_assert_str_eq(errors[1].text, "took longer than 1 s");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("pool");
    tcase_add_loop_test(tests, results_are_in_the_order_of_the_jobs, 0, 7);
    tcase_add_test(tests, where_processes_are_few_those_that_run_make_room);
    tcase_add_test(tests, jobs_end_with_a_parent_that_is_killed);
    tcase_add_test(tests, a_crash_is_the_error_of_its_job);
    tcase_add_test(tests, the_time_of_jobs_is_time_of_the_host);
    tcase_add_test(tests, a_large_result_comes_whole);
    tcase_add_test(tests, many_simulations_give_the_bits_of_each_alone);
    tcase_add_test(tests, a_job_that_is_late_is_ended_and_the_others_are_not);
    Suite *const suite = suite_create("pool");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
