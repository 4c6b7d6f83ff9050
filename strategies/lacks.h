/* lacks.h - features that a framework lacks, as its software file says: neither `dlsim search` nor the
 * remedies of a step that does not fit propose them.
 *
 * The rule to remember: a run may still ask for it, since "what if it had" is a question too. */
#ifndef DL_STRATEGIES_LACKS_H
#define DL_STRATEGIES_LACKS_H

#include "sim/core/json.h"

enum dl_feature {
    DL_FEATURE_TENSOR,
    DL_FEATURE_SEQUENCE, /* beside tensor */
    DL_FEATURE_CONTEXT,
    DL_FEATURE_PIPELINE,
    DL_FEATURE_EXPERT,
    DL_FEATURE_ZERO_1, /* stages in a row */
    DL_FEATURE_ZERO_2,
    DL_FEATURE_ZERO_3,
    DL_FEATURE_SELECTIVE, /* recomputation */
    DL_FEATURE_OFFLOAD,
    DL_N_FEATURES,
};

struct dl_lacks {
    uint32_t features;  /* bits 1 << enum dl_feature */
    uint32_t schedules; /* bits 1 << index of dl_schedule_get */
};

/* `lacks` has names of features, `schedules` those of the schedules that it has; nothing: it lacks none. */
enum dl_status dl_lacks_read(struct dl_json lacks, struct dl_json schedules, struct dl_lacks *out,
                             struct dl_error *err);

bool dl_has_feature(const struct dl_lacks *l, enum dl_feature feature);
bool dl_has_schedule(const struct dl_lacks *l, size_t index);

#endif
