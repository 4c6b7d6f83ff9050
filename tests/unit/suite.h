/* suite.h - run a Check suite as a whole program. */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int run_suite_as(Suite *suite, enum fork_status forks)
{
    SRunner *const runner = srunner_create(suite);
    srunner_set_fork_status(runner, forks);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* For main to return. The suite is freed. CK_FORK says which, as ever. */
static inline int run_suite(Suite *suite) { return run_suite_as(suite, CK_FORK_GETENV); }

/* For hundreds of short tests, where forking would take longer than they do; or those that count something together, or
 * that run steps in children already. */
static inline int run_without_forking(Suite *suite) { return run_suite_as(suite, CK_NOFORK); }

#endif
