/* log_phases.c - timers of programs, and what of a predicted step is the same.
 *
 * Megatron-LM's forward-backward ends when gradients are summed; what is left of the step is the optimizer's. */
#include <string.h>

#include "sim/study/log_run.h"

static double all_but_end(const struct dl_training_result *r) { return r->step_s - r->elapsed_s[DL_PHASE_END]; }
static double forward(const struct dl_training_result *r) { return r->elapsed_s[DL_PHASE_FORWARD]; }
static double backward(const struct dl_training_result *r) { return r->elapsed_s[DL_PHASE_BACKWARD]; }
static double end(const struct dl_training_result *r) { return r->elapsed_s[DL_PHASE_END]; }
static double data(const struct dl_training_result *r) { return r->exposed_s[DL_CAUSE_DATA]; }

static const struct {
    const char *timer;
    double (*predicted_s)(const struct dl_training_result *r);
} phases_of[] = {{"forward-backward", all_but_end},     {"forward-compute", forward},
                 {"backward-compute", backward},        {"all-grads-sync", data},
                 {"backward-reduce-model-grads", data}, {"optimizer", end}};

size_t dl_log_phases(const struct dl_log *log, const struct dl_training_result *predicted, size_t warmup,
                     struct dl_logged_phase phases[DL_LOG_TIMERS])
{
    size_t n = 0;
    for (size_t i = 0; i < DL_COUNT(phases_of); i++)
        for (size_t j = 0; j < log->n_timers; j++) {
            const struct dl_log_timer *const t = &log->timers[j];
            const double measured_s = dl_log_timer_s(t, warmup);
            if (strcmp(t->name, phases_of[i].timer) == 0 && measured_s > 0)
                phases[n++] = (struct dl_logged_phase){t->name, measured_s, phases_of[i].predicted_s(predicted)};
        }
    return n;
}
