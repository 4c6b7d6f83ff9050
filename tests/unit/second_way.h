/* second_way.h - a training step of a small model, played, to be told in another way. */
#ifndef DL_TESTS_SECOND_WAY_H
#define DL_TESTS_SECOND_WAY_H

#include <check.h>
#include <math.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define GPT                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':10,'hidden':1024,'heads':16,"        \
    "'seq':256,'vocab':8192}"
#define FAST_SYSTEM IDEAL_SYSTEM("1e18", "1e-6")

static struct dl_session training;

static inline struct training_outcome play_opened(const char *engine)
{
    const struct training_outcome outcome = training_simulate(&training, engine);
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
    return outcome;
}

static inline struct training_outcome play(const struct training_inputs *inputs, const char *engine)
{
    ck_assert_msg(!training_open(&training, inputs), "%s", training.err.text);
    return play_opened(engine);
}

static inline void check_close(const char *what, double is, double should, double tolerance)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fabs(should), "%s: %.15g, not %.15g", what, is, should);
}

#endif
