/* workload_counts.h - parameters and flop of the workloads that batteries draw, by closed forms of their keys: the
 * second way to what the builders of workloads write down kernel by kernel.
 *
 * Of a GPT block of width h: 12 h^2 weights of matrices, 13 h others (fewer with fewer heads of keys); of an
 * expert 8 h^2 + 5 h. A sample of s tokens
 * takes 2 flop for each weight and token, and 4 s^2 h in attention; half of that if it is fused, which leaves out what
 * the mask hides. Backward takes twice as much, fused attention 2.5 times (Dao et al. 2022: the scores once more). */
#ifndef DL_TESTS_WORKLOAD_COUNTS_H
#define DL_TESTS_WORKLOAD_COUNTS_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* Divided over tensor ranks, whole on each of them, and divided over expert ranks. */
struct parameter_counts {
    double inside, outside, experts;
};

/* Flop of the forward of one sample: a block's matrices that tensor ranks divide, those that each of them does, its
 * attention or scan; and what comes after the blocks. */
struct flop_counts {
    double divided, repeated, attention, head;
    double attention_backward; /* over that of the forward */
    double not_needed;         /* the gradient of the first layer's input, which is data */
};

static inline double key_of(const json_t *workload, const char *key, double otherwise)
{
    const json_t *const value = json_object_get(workload, key);
    return value ? json_number_value(value) : otherwise;
}

static inline bool is_kind(const json_t *workload, const char *kind)
{
    return strcmp(json_string_value(json_object_get(workload, "kind")), kind) == 0;
}

/* Pairs of layers of an MLP with one width; or the blocks of a transformer. */
static inline double count_blocks(const json_t *workload)
{
    if (!is_kind(workload, "mlp")) return key_of(workload, "layers", 0);
    return (double)(json_array_size(json_object_get(workload, "widths")) - 1) / 2;
}

static inline double width_of(const json_t *workload)
{
    return is_kind(workload, "mlp") ? json_number_value(json_array_get(json_object_get(workload, "widths"), 0))
                                    : key_of(workload, "hidden", 0);
}

/* Of keys, as many as of values. */
static inline double key_width(const json_t *workload)
{
    const double heads = key_of(workload, "heads", 1);
    return width_of(workload) * key_of(workload, "kv_heads", heads) / heads;
}

/* Of a block that is the mixer of a state space: what its heads make, and columns of z, x, B, C and dt. */
static inline bool is_mixer(const json_t *workload) { return json_object_get(workload, "pattern") != NULL; }

static inline double mixer_width(const json_t *workload)
{
    return key_of(workload, "state_heads", 0) * key_of(workload, "state_head_size", 0);
}

static inline double mixer_vectors(const json_t *workload)
{
    return key_of(workload, "state_groups", 1) * key_of(workload, "state_size", 0);
}

static inline double mixer_columns(const json_t *workload)
{
    return 2 * mixer_width(workload) + 2 * mixer_vectors(workload) + key_of(workload, "state_heads", 0);
}

/* Two linear layers with biases, filters of four and a bias, three numbers of a head and the gain of a norm. */
static inline struct parameter_counts count_mixer_parameters(const json_t *workload)
{
    const double h = width_of(workload), d = mixer_width(workload), columns = mixer_columns(workload);
    const double filters = 5 * (d + 2 * mixer_vectors(workload)), of_heads = 3 * key_of(workload, "state_heads", 0);
    return (struct parameter_counts){.inside = h * columns + columns + filters + of_heads + d + d * h,
                                     .outside = h + 2 * h};
}

static inline struct parameter_counts count_block_parameters(const json_t *workload)
{
    if (is_mixer(workload)) return count_mixer_parameters(workload);
    const double h = width_of(workload), experts = key_of(workload, "experts", 0), norm = 2 * h;
    if (is_kind(workload, "mlp")) return (struct parameter_counts){.inside = 2 * h * h + h, .outside = h};
    const double head = h / key_of(workload, "heads", 1), head_norms = 2 * 2 * head;
    const double norms = key_of(workload, "parallel_norms", 2);
    const double columns = h + 2 * key_width(workload); /* of queries, keys and values */
    struct parameter_counts p = {.inside = (columns + h) * h + columns, .outside = h + norms * norm};
    if (json_is_true(json_object_get(workload, "qk_norm"))) p.outside += head_norms;
    if (experts > 0) {
        p.experts = experts * (8 * h * h + 5 * h);
        p.outside += experts * h; /* the router */
    } else {
        p.inside += 8 * h * h + 4 * h;
        p.outside += h;
    }
    return p;
}

static inline double count_table(const json_t *workload)
{
    return is_kind(workload, "mlp") ? 0 : key_of(workload, "vocab", 0) * width_of(workload);
}

/* Of the whole model: an embedding with learned positions, blocks, a last norm; the head has the embedding's table or
 * one of its own. */
static inline struct parameter_counts count_parameters(const json_t *workload)
{
    const double blocks = count_blocks(workload), h = width_of(workload);
    struct parameter_counts p = count_block_parameters(workload);
    p = (struct parameter_counts){blocks * p.inside, blocks * p.outside, blocks * p.experts};
    if (is_kind(workload, "mlp")) return p;
    p.inside += (json_is_false(json_object_get(workload, "tied_embedding")) ? 2 : 1) * count_table(workload);
    p.outside += key_of(workload, "seq", 0) * h + 2 * h;
    return p;
}

static inline struct flop_counts count_mixer_flop(const json_t *workload)
{
    const double h = width_of(workload), s = key_of(workload, "seq", 1), d = mixer_width(workload);
    return (struct flop_counts){.divided = s * (2 * h * mixer_columns(workload) + 2 * d * h),
                                .attention = s * 7 * d * key_of(workload, "state_size", 0),
                                .head = 2 * s * count_table(workload),
                                .attention_backward = 2};
}

static inline struct flop_counts count_flop(const json_t *workload, bool is_fused)
{
    const double h = width_of(workload), s = key_of(workload, "seq", 1), experts = key_of(workload, "experts", 0);
    if (is_kind(workload, "mlp"))
        return (struct flop_counts){.divided = 2 * 2 * h * h, .attention_backward = 2, .not_needed = 2 * h * h};
    if (is_mixer(workload)) return count_mixer_flop(workload);
    const double met = 2 * h * (h + key_width(workload)) + (experts > 0 ? key_of(workload, "top_k", 1) : 1) * 8 * h * h;
    return (struct flop_counts){.divided = 2 * s * met,
                                .repeated = 2 * s * h * experts,
                                .attention = 4 * s * s * h / (is_fused ? 2 : 1),
                                .head = 2 * s * count_table(workload),
                                .attention_backward = is_fused ? 2.5 : 2};
}

#endif
