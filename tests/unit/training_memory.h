/* training_memory.h - a job that a test of memory has opened, and the small GPT that several count by hand. */
#ifndef DL_TESTS_TRAINING_MEMORY_H
#define DL_TESTS_TRAINING_MEMORY_H

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/core/files.h"
#include "tests/training_runs.h"
#include "tests/unit/allocated.h"
#include "tests/unit/suite.h"

#define SYSTEM IDEAL_SYSTEM("1e9", "0")

static struct dl_session training;

static inline void open_strategy(const char *workload, const char *software, const char *head, const char *stack)
{
    const struct training_inputs inputs = {
        .system = SYSTEM, .device = IDEAL_DEVICE, .software = software, .workload = workload};
    ck_assert_msg(!training_open_stack(&training, inputs, head, stack), "%s", training.err.text);
}

static inline void check_equal(const char *what, double is, double should)
{
    ck_assert_msg(fabs(is - should) <= 1e-12 * should, "%s: %.17g, not %.17g", what, is, should);
}

struct gpt {
    double s, b, h, a, layers, v;
};

/* sbh and 5as/h of the model in the paper's equations. */
#define SMALL_GPT                                                                                                      \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':24,'hidden':1024,'heads':16,"        \
    "'seq':512,'vocab':4096}"
static const struct gpt small = {.s = 512, .b = 2, .h = 1024, .a = 16, .layers = 24, .v = 4096};

static inline double states_of(const struct dl_memory_use *u) { return u->parameters + u->gradients + u->optimizer; }

#endif
