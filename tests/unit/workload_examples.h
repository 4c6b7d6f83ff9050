/* workload_examples.h - an example of every kind of workload with its parameters and flop by closed forms, and one of
 * every device model.
 *
 * The rule to remember: an entry of either table without a line here fails a test. */
#ifndef DL_TESTS_WORKLOAD_EXAMPLES_H
#define DL_TESTS_WORKLOAD_EXAMPLES_H

#include "tests/unit/divided_step.h"
#include "tests/unit/workload_counts.h"

#define CONVNET                                                                                                        \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8,8],'layers':["                       \
    "{'kind':'conv','filters':16,'window':3,'pad':1,'relu':true},{'kind':'conv','filters':16,'window':1,'relu':true}," \
    "{'kind':'fc','outputs':10},{'kind':'cross_entropy'}]}"
#define MLP                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','loss':'cross_entropy','widths':[64,64,64,64,64]}"

struct counts {
    double parameters, forward_flop, not_needed; /* of a sample; not needed: the gradient of the input, which is data */
};

static inline struct counts of_written(const json_t *workload)
{
    const struct parameter_counts p = count_parameters(workload);
    const struct flop_counts f = count_flop(workload, false);
    const double block = f.divided + f.repeated + f.attention;
    return (struct counts){p.inside + p.outside + p.experts, count_blocks(workload) * block + f.head, f.not_needed};
}

/* 64 pixels: from 3 channels to 16 in windows of nine, from 16 to 16, and all of them to 10. */
static inline struct counts of_convnet(const json_t *workload)
{
    (void)workload;
    const double first = 3 * 9 * 16, second = 16 * 16, last = 64 * 16 * 10;
    return (struct counts){first + 16 + second + 16 + last + 10, 2 * (64 * (first + second) + last), 2 * 64 * first};
}

static const struct kind_example {
    const char *kind, *text;
    struct counts (*counts)(const json_t *workload);
} kinds[] = {{"transformer", FOUR_BLOCKS, of_written},
             {"transformer", TWO_WITH_EXPERTS, of_written},
             {"mlp", MLP, of_written},
             {"convnet", CONVNET, of_convnet}};

static const struct {
    const char *model, *device, *precision;
} models[] = {{"cpu", "xeon-core", "fp32"},      {"dataflow", "sn40l", "bf16"},  {"gpu", "h100", "bf16"},
              {"gpu", "mi250x-gcd", "bf16"},     {"systolic", "tpu-v4", "bf16"}, {"wafer", "wse-2", "fp16"},
              {"roofline", IDEAL_DEVICE, "fp16"}};

#endif
