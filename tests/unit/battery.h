/* battery.h - what batteries ask of any step, whatever strategies, workload or device it has: seen from outside, by its
 * result, its report and its memory, so that it holds for those that come. */
#ifndef DL_TESTS_BATTERY_H
#define DL_TESTS_BATTERY_H

#include "sim/memory/memory_floor.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/memory_recount.h"

/* Ends the test unless the step does end. */
static inline struct dl_training_result simulated(struct dl_session *t, const char *what)
{
    const struct training_outcome outcome = training_simulate(t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s: %s", what, outcome.err.text);
    return outcome.result;
}

/* In this process, so that the report of the session is of it; after all that is simulated. */
static inline struct dl_training_result estimated(struct dl_session *t, const char *what)
{
    t->request.engine = "analytic";
    ck_assert_msg(!dl_session_run(t) && t->report.result.complete, "%s: %s", what, t->err.text);
    return t->report.result;
}

/* Every instant has one cause. */
static inline void check_causes(const struct dl_training_result *r, const char *what)
{
    double sum = 0;
    for (int i = 0; i < DL_N_CAUSES; i++) {
        ck_assert_msg(r->exposed_s[i] >= -1e-9 * r->step_s, "%s: %g s of %s", what, r->exposed_s[i],
                      dl_cause_name((enum dl_cause)i));
        sum += r->exposed_s[i];
    }
    check_close(what, sum, r->step_s, 1e-9);
}

/* ---- what all ranks together do and hold ---- */

/* In a step, after estimated(). */
static inline double spent_flop(const struct dl_session *t, enum dl_flop_count count)
{
    const struct dl_run_report *const r = &t->report;
    return dl_run_hfu(r, count) * r->result.step_s * r->job->n_devices *
           r->device->peak_flop_per_s[r->job->setting.precision];
}

static inline double spent_per_sample(const struct dl_session *t)
{
    return spent_flop(t, DL_FLOP_CAUSAL) / t->job.setting.global_batch;
}

static inline uint32_t count_stages(const struct dl_session *t) { return t->lowered.schedule.stages; }

struct held_bytes {
    double parameters, states; /* states: parameters, gradients, optimizer, and what is on hosts */
};

static inline struct held_bytes held_bytes(const struct dl_session *t)
{
    struct held_bytes sum = {0};
    const double ranks = (double)t->job.n_devices / count_stages(t);
    for (uint32_t i = 0; i < count_stages(t); i++) {
        const struct dl_memory_use *const m = &t->memory[i];
        sum.parameters += ranks * m->parameters;
        sum.states += ranks * (m->parameters + m->gradients + m->optimizer + m->on_host);
    }
    return sum;
}

/* Whatever is divided, nothing is lost. */
static inline void check_states(const struct dl_session *t, const struct dl_session *single, const char *what)
{
    ck_assert_msg(held_bytes(t).states >= held_bytes(single).states * (1 - 1e-9), "%s: %g bytes of states, not %g",
                  what, held_bytes(t).states, held_bytes(single).states);
}

static inline double fullest_bytes(const struct dl_session *t)
{
    double most = 0;
    for (uint32_t i = 0; i < count_stages(t); i++) most = fmax(most, t->memory[i].peak);
    return most;
}

/* Parts are there or not, sum to the peak, are what a recount says, and no less than the least that there must be. */
static inline void check_memory(const struct dl_session *t, const char *what)
{
    for (uint32_t i = 0; i < count_stages(t); i++) {
        const struct dl_memory_use *const m = &t->memory[i];
        const double parts[] = {m->parameters, m->gradients, m->optimizer, m->activations, m->buffers, m->workspace};
        double sum = 0;
        for (size_t k = 0; k < DL_COUNT(parts); k++) {
            ck_assert_msg(parts[k] >= 0, "%s: part %zu has %g bytes", what, k, parts[k]);
            sum += parts[k];
        }
        check_close(what, m->peak, sum, 1e-9);
        check_memory_of_stage(what, &t->lowered.programs[i], m);
    }
    ck_assert_msg(fullest_bytes(t) >= dl_memory_floor(&t->job, &t->model) * (1 - 1e-9),
                  "%s: %g bytes are below the floor", what, fullest_bytes(t));
}

#endif
