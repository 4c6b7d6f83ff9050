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
#define HYBRID                                                                                                         \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':6,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'experts':8,'top_k':2,'pattern':'M*-MEM','state_heads':8,'state_head_size':16,'state_size':16,"       \
    "'state_groups':8}"
#define TRANSLATOR                                                                                                     \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'encoder_layers':3,'hidden':64,"   \
    "'heads':4,'seq':16,'encoder_seq':32,'vocab':512}"

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

/* Letter by letter: a mixer, or half a block of GPT with the norm before it. */
static inline struct counts of_letter(const json_t *workload, char letter)
{
    const double h = width_of(workload), s = key_of(workload, "seq", 1), norm = 2 * h, matrix = 8 * h * h;
    const double experts = key_of(workload, "experts", 0), top_k = key_of(workload, "top_k", 1);
    const struct parameter_counts mixer = count_mixer_parameters(workload);
    const struct flop_counts scanned = count_mixer_flop(workload);
    switch (letter) {
    case 'M': return (struct counts){mixer.inside + mixer.outside, scanned.divided + scanned.attention, 0};
    case '*': return (struct counts){4 * h * h + 4 * h + norm, 2 * s * 4 * h * h + 4 * s * s * h, 0};
    case 'E': return (struct counts){experts * (matrix + 5 * h + h) + norm, 2 * s * (top_k * matrix + experts * h), 0};
    default: return (struct counts){matrix + 5 * h + norm, 2 * s * matrix, 0};
    }
}

static inline struct counts of_hybrid(const json_t *workload)
{
    const char *const letters = json_string_value(json_object_get(workload, "pattern"));
    const double h = width_of(workload), s = key_of(workload, "seq", 1), table = count_table(workload);
    struct counts sum = {table + s * h + 2 * h, 2 * s * table, 0};
    for (const char *at = letters; *at; at++) {
        const struct counts one = of_letter(workload, *at);
        sum.parameters += one.parameters;
        sum.forward_flop += one.forward_flop;
    }
    return sum;
}

/* Blocks of GPT, two of which attend to 32 other tokens as well, with a norm and four matrices with biases; a last norm
 * of either half. */
static inline struct counts of_translator(const json_t *workload)
{
    const double h = width_of(workload), s = key_of(workload, "seq", 1), e = key_of(workload, "encoder_seq", 1);
    const double encoding = key_of(workload, "encoder_layers", 0), decoding = key_of(workload, "layers", 0);
    const double table = count_table(workload), block = 12 * h * h + 13 * h, crossing = 4 * h * h + 6 * h;
    const double encoded = e * 24 * h * h + 4 * e * e * h, decoded = s * 24 * h * h + 4 * s * s * h;
    const double crossed = s * 4 * h * h + e * 4 * h * h + 4 * s * e * h;
    return (struct counts){table + e * h + (encoding + decoding) * block + decoding * crossing + 4 * h,
                           encoding * encoded + decoding * (decoded + crossed) + 2 * s * table, 0};
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
             {"transformer", HYBRID, of_hybrid},
             {"transformer", TRANSLATOR, of_translator},
             {"mlp", MLP, of_written},
             {"convnet", CONVNET, of_convnet}};

static const struct {
    const char *model, *device, *precision;
} models[] = {{"cpu", "xeon-core", "fp32"},      {"dataflow", "sn40l", "bf16"},  {"gpu", "h100", "bf16"},
              {"gpu", "mi250x-gcd", "bf16"},     {"systolic", "tpu-v4", "bf16"}, {"wafer", "wse-2", "fp16"},
              {"roofline", IDEAL_DEVICE, "fp16"}};

#endif
