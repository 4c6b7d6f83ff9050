/* asked.h - what was asked: the block `inputs` that every answer in JSON has, with the same keys whatever the command.
 *
 * The rule to remember: a key that means nothing for a command is null, so that programs can read all answers alike. */
#ifndef DL_REPORT_ASKED_H
#define DL_REPORT_ASKED_H

#include "sim/core/fingerprint.h"
#include "strategies/strategy.h"

/* NULL or 0: means nothing here. */
struct dl_asked {
    const char *command; /* "run" */
    const char *topology, *device, *transport, *workload, *strategy, *software, *scenario, *program;
    double device_memory_bytes;
    uint32_t n_devices;
    const struct dl_setting *setting; /* of a training step */
    double tokens_per_sample;
    const char *placement;
    uint64_t seed; /* where there is a placement */
    const char *engine, *fidelity;
    const char *const *overrides; /* as --set has them */
    size_t n_overrides;
    char sha256[DL_SHA256_HEX]; /* see fingerprint.h */
};

/* The whole answer: the schema dlsim/COMMAND/1, `inputs`, and what the report has, which is taken over. */
json_t *dl_answer(const struct dl_asked *asked, json_t *report);

#endif
