/* kernels_battery.c - every routine of every backend that is here computes what its problem says, at odd sizes. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kernels/harness.h"
#include "tests/unit/suite.h"

static const struct dl_backend *backend;

static void check_shape(const struct dl_routine *r, const int64_t *given, enum dl_float f, uint64_t seed)
{
    int64_t dim[DL_MAX_DIMS];
    dl_problem_complete(dl_problem_find(r->problem, r->pass), given, dim);
    if (!dl_routine_can(r, dim, f)) return;
    struct dl_trial *const trial = dl_trial_new(&(struct dl_trial_spec){backend, r, given, f, seed});
    const char *const wrong = dl_trial_check(trial, NULL);
    ck_assert_msg(!wrong, "%s %s %s %s, %lld x %lld x %lld: %s", r->problem, r->pass, r->way, dl_float_name(f),
                  (long long)given[0], (long long)given[1], (long long)given[2], wrong);
    dl_trial_run(trial); /* a second call on what the first left must not hurt */
    dl_trial_free(trial);
}

START_TEST(routine_is_right)
{
    const struct dl_routine *const r = dl_routine_get(backend, (size_t)_i);
    const struct dl_problem *const p = dl_problem_find(r->problem, r->pass);
    ck_assert_msg(p != NULL, "%s %s: there is no such problem", r->problem, r->pass);
    ck_assert_msg(p->odd && p->odd[0][0], "%s %s: has no shapes to check", r->problem, r->pass);
    for (int f = 0; f < DL_N_FLOATS; f++)
        for (size_t i = 0; p->odd[i][0]; i++)
            for (uint64_t seed = 1; seed <= 2; seed++) check_shape(r, p->odd[i], (enum dl_float)f, seed);
}
END_TEST

/* What the backend cannot do at all is a gap that must be seen. */
START_TEST(problem_has_a_routine)
{
    const struct dl_problem *const p = dl_problem_get((size_t)_i);
    for (size_t i = 0; i < dl_routine_count(&dl_backend_cpu); i++) {
        const struct dl_routine *const r = dl_routine_get(&dl_backend_cpu, i);
        if (strcmp(r->problem, p->name) == 0 && strcmp(r->pass, p->pass) == 0) return;
    }
    ck_abort_msg("%s %s: the CPU has no routine for it", p->name, p->pass);
}
END_TEST

/* A kernel that does nothing, one that forgets an element, one that changes its input, one that writes too far. */
static void do_nothing(const struct dl_call *call) { (void)call; }
static void copy(const struct dl_call *call, int64_t n)
{
    memcpy(call->tensor[1], call->tensor[0], (size_t)n * sizeof(float));
}
static void forget_one(const struct dl_call *call) { copy(call, call->dim[0] - 1); }
static void write_too_far(const struct dl_call *call)
{
    copy(call, call->dim[0]);
    ((float *)call->tensor[1])[call->dim[0]] = 0;
}
static void change_input(const struct dl_call *call)
{
    copy(call, call->dim[0]);
    ((float *)call->tensor[0])[0] += 1;
}
static void be_imprecise(const struct dl_call *call)
{
    copy(call, call->dim[0]);
    ((float *)call->tensor[1])[0] *= 1.001f;
}

START_TEST(wrong_routines_are_found_out)
{
    void (*const wrong[])(const struct dl_call *) = {do_nothing, forget_one, write_too_far, change_input, be_imprecise};
    const int64_t given[] = {100};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct dl_routine r = {.problem = "copy", .pass = "forward", .precisions = 1, .run = wrong[i]};
        const struct dl_trial_spec spec = {&dl_backend_cpu, &r, given, DL_FLOAT_FP32, 1};
        struct dl_trial *const trial = dl_trial_new(&spec);
        ck_assert_msg(dl_trial_check(trial, NULL) != NULL, "wrong routine %zu was not found out", i);
        dl_trial_free(trial);
    }
}
END_TEST

static size_t three_bytes(const int64_t *dim, enum dl_float f)
{
    (void)dim, (void)f;
    return 3;
}
static void use_four(const struct dl_call *call)
{
    copy(call, call->dim[0]);
    memset(call->workspace, 0, 4);
}

START_TEST(a_routine_that_needs_more_workspace_than_it_says_is_found_out)
{
    const int64_t given[] = {100};
    const struct dl_routine r = {
        .problem = "copy", .pass = "forward", .precisions = 1, .run = use_four, .workspace_bytes = three_bytes};
    struct dl_trial *const trial = dl_trial_new(&(struct dl_trial_spec){&dl_backend_cpu, &r, given, DL_FLOAT_FP32, 1});
    ck_assert_str_eq(dl_trial_check(trial, NULL), "workspace: the memory behind it was changed");
    dl_trial_free(trial);
}
END_TEST

START_TEST(routine_that_lacks_something_is_never_run)
{
    const int64_t given[] = {100};
    struct dl_routine r = {.problem = "copy", .pass = "forward", .precisions = 1, .run = do_nothing};
    ck_assert(dl_routine_can(&r, given, DL_FLOAT_FP32));
    r.lacks = "a library";
    ck_assert(!dl_routine_can(&r, given, DL_FLOAT_FP32));
}
END_TEST

static TCase *battery(const struct dl_backend *b)
{
    TCase *const all = tcase_create(b->name);
    backend = b;
    tcase_add_loop_test(all, routine_is_right, 0, (int)dl_routine_count(b));
    return all;
}

static int run_backend(const struct dl_backend *b)
{
    const char *const absent = b->open();
    if (absent) {
        printf("%s: left out, %s\n", b->name, absent);
        return 0;
    }
    Suite *const suite = suite_create("kernels");
    suite_add_tcase(suite, battery(b));
    return run_suite(suite);
}

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < dl_backend_count(); i++) failed |= run_backend(dl_backend_get(i));
    Suite *const suite = suite_create("harness");
    TCase *const all = tcase_create("harness");
    tcase_add_loop_test(all, problem_has_a_routine, 0, (int)dl_problem_count());
    tcase_add_test(all, wrong_routines_are_found_out);
    tcase_add_test(all, a_routine_that_needs_more_workspace_than_it_says_is_found_out);
    tcase_add_test(all, routine_that_lacks_something_is_never_run);
    suite_add_tcase(suite, all);
    return run_suite(suite) | failed;
}
