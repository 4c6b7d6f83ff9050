/* operand_rules.h - what a framework spends to quantise the operands of GEMMs.
 *
 * A software file has "operands": [{"precision": "fp8", "moves": 3, "launches": 3}, ...]. The input of a layer and,
 * in the backward, the gradient of its results are quantised once, with the copy that the weight gradient needs.
 * Weights change once a step and cost nothing here. */
#ifndef DL_STRATEGIES_OPERAND_RULES_H
#define DL_STRATEGIES_OPERAND_RULES_H

#include "sim/cost/device.h"

struct dl_operand_rule {
    int64_t precision;     /* enum dl_precision */
    double moves;          /* elements for each of the operand, read and written, in the precision of activations */
    double launches;       /* for each operand, and of experts for each of these */
    bool gathered;         /* tensor ranks that divide tokens gather them narrow */
    bool saved;            /* for the gradient of weights they are kept narrow, not as they were */
    int64_t weight_copies; /* of weights of blocks, narrow, beside these as they are; from step to step */
    bool pads; /* rows of each expert that an all-to-all brought are made a multiple of what products need */
};

struct dl_operand_rules {
    struct dl_operand_rule *rules;
    size_t n;
};

enum dl_status dl_operand_rules_read(struct dl_json list, struct dl_arena *arena, struct dl_operand_rules *out,
                                     struct dl_error *err);

/* The keys of a rule, for `dlsim list`. */
const struct dl_field *dl_operand_rule_fields(size_t *n_fields);

/* NULL: there is none; then dl_job_check refuses precisions that are quantised. */
const struct dl_operand_rule *dl_operand_rule_for(const struct dl_operand_rules *rules, enum dl_precision precision);

/* The kernel that quantises for k; 0 elements: nothing is to be done. */
struct dl_kernel dl_kernel_quantising(const struct dl_operand_rule *rule, const struct dl_kernel *k);

#endif
