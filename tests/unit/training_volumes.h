/* training_volumes.h - small steps on an ideal machine, of which the bytes are known: what training_volumes.c and
 * training_volumes_replicas.c share. */
#ifndef DL_TESTS_UNIT_TRAINING_VOLUMES_H
#define DL_TESTS_UNIT_TRAINING_VOLUMES_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"
#include "tests/unit/workload_counts.h"

#define BYTES_PER_S 1e9
#define SYSTEM IDEAL_SYSTEM("1e9", "0")
#define LAYERS 4
#define HIDDEN 64
#define SEQ 32
#define VOCAB 512
#define WORKLOAD                                                                                                       \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512}"
#define UNTIED                                                                                                         \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'tied_embedding':false}"
#define SOFTWARE(gradient_bytes, scatters)                                                                             \
    "{'schema':'dlsim/software/1','source':'a "                                                                        \
    "test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':" gradient_bytes ",'scatters_sends':" scatters \
    "}"

static const double exactly = 1e-6, activation_bytes = 2;

static struct dl_session training;
static struct training_outcome outcome;

static inline void play_workload(const char *workload, const char *software, const char *head, const char *stack)
{
    const struct training_inputs inputs = {
        .system = SYSTEM, .device = IDEAL_DEVICE, .software = software, .workload = workload};
    ck_assert_msg(!training_open_stack(&training, inputs, head, stack), "%s", training.err.text);
    outcome = training_simulate(&training, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
}

static inline void play(const char *software, const char *head, const char *stack)
{
    play_workload(WORKLOAD, software, head, stack);
}

static inline void done(void) { dl_session_close(&training); }

static inline void check_close(const char *what, double is, double should)
{
    ck_assert_msg(fabs(is - should) <= exactly * fabs(should), "%s: %.12g, not %.12g", what, is, should);
}

/* Of one stage that has the whole model, on a rank. */
static inline double rank_parameters(void)
{
    const struct parameter_counts p = count_parameters(training.workload_doc.value);
    return p.inside / training.job.setting.ways[DL_AXIS_TENSOR] + p.outside;
}

#endif
