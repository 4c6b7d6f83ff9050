/* divided_step.h - training steps of one stage on a machine where seconds are bytes or flop, and what they are made of.
 */
#ifndef DL_TESTS_DIVIDED_STEP_H
#define DL_TESTS_DIVIDED_STEP_H

#include <check.h>
#include <math.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define SLOW_BYTES_PER_S 1e3
#define FAST_BYTES_PER_S 1e15
#define SLOW_SYSTEM IDEAL_SYSTEM("1e3", "0")  /* whatever is sent takes longer than any kernel */
#define FAST_SYSTEM IDEAL_SYSTEM("1e15", "0") /* and here less */
#define FLASH                                                                                                          \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash'}"
/* Small transformers that several tests divide. A block has twelve squares: three of q, k and v, one that follows
 * attention, four and four of the feed-forward. */
#define FOUR_BLOCKS                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512}"
#define TWO_WITH_EXPERTS                                                                                               \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'experts':8,'top_k':2}"

static const double activation_bytes = 2, gradient_bytes = 4;
static const double scale_bytes = 4.0 / 512; /* a value, where they are quantised */

/* What passes a rank's port when n ranks gather or scatter so many bytes. */
static inline double once(double n, double bytes) { return (n - 1) / n * bytes; }

struct step {
    const char *system, *device, *software, *workload, *head, *stack; /* NULL: slow, ideal, with flash attention */
    const char *set;                                                  /* as --set; NULL: nothing */
    struct dl_most most;
};

/* A refusal is in t->err. */
static inline void try_step(struct dl_session *t, const struct step *step)
{
    const struct training_inputs inputs = {.system = step->system ? step->system : SLOW_SYSTEM,
                                           .device = step->device ? step->device : IDEAL_DEVICE,
                                           .software = step->software ? step->software : FLASH,
                                           .workload = step->workload,
                                           .set = step->set,
                                           .most = step->most};
    training_open_stack(t, inputs, step->head, step->stack);
}

static inline void open_step(struct dl_session *t, const struct step *step)
{
    try_step(t, step);
    ck_assert_msg(!t->err.status, "%s", t->err.text);
}

static inline void check_refusal(const struct step *step, const char *message)
{
    struct dl_session t;
    try_step(&t, step);
    ck_assert_str_eq(t.err.text, message);
    dl_session_close(&t);
}

static inline void check_close(const char *what, double is, double should, double exactly)
{
    ck_assert_msg(fabs(is - should) <= exactly * fabs(should), "%s: %.15g, not %.15g", what, is, should);
}

static inline const struct dl_template *item(const struct dl_session *t, enum dl_item_kind kind)
{
    return &t->lowered.positions[0].items[kind];
}

static inline double flop_of(const struct dl_session *t)
{
    return item(t, DL_ITEM_F)->total.flop + item(t, DL_ITEM_B)->total.flop;
}

static inline double cause_s(const struct dl_session *t, enum dl_item_kind kind, enum dl_cause cause)
{
    return item(t, kind)->total.by_cause[cause];
}

static inline uint32_t count_cause(const struct dl_session *t, enum dl_item_kind kind, enum dl_cause cause)
{
    const struct dl_template *const work = training_priced(t, item(t, kind));
    uint32_t n = 0;
    for (size_t i = 0; i < work->n_instructions; i++) n += work->instructions[i].cause == cause;
    return n;
}

/* Of the kernels whose names begin like that. */
static inline double kernels_s(const struct dl_session *t, enum dl_item_kind kind, const char *name)
{
    const struct dl_template *const work = training_priced(t, item(t, kind));
    double sum = 0;
    for (size_t i = 0; i < work->n_instructions; i++)
        if (strncmp(work->instructions[i].name, name, strlen(name)) == 0) sum += work->instructions[i].device_s;
    return sum;
}

#endif
