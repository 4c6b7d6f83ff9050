/* kernel_rules.h - how a framework executes a kernel of the workload: how many launches, how many more bytes moved.
 *
 * A software file has "kernels": [{"operation": "layernorm", "pass": "forward", "launches": 2, "moves": 3.5}, ...],
 * with the names of dl_kernel_operation, or a kernel's own name ("qkv"). The first entry that fits counts. A kernel
 * that none fits moves what the workload says, in launches_per_kernel launches. */
#ifndef DL_STRATEGIES_KERNEL_RULES_H
#define DL_STRATEGIES_KERNEL_RULES_H

#include "sim/cost/device.h"

struct dl_kernel_rule {
    const char *operation;
    int64_t pass;           /* enum dl_kernel_pass, or DL_EVERY_PASS */
    double launches;        /* of an optimizer, gradient_sum and bucket: for each tensor */
    double tensor_s;        /* of the device, for each tensor that these go through */
    double moves;           /* elements, over those that the workload counts; 0: it is part of another kernel */
    bool is_wide;           /* these are of fp32 */
    const char *as;         /* a kernel that is bound by memory: as which the device does it; NULL: as what it is */
    bool is_of_each_expert; /* launches are those for one of the experts of a rank */
    bool is_of_all_experts; /* of a product of experts: the host launches once for all of them */
    double expert_moves;    /* elements moved additionally for each of them, over those of the tokens */
    double beside_moves;    /* elements moved beside it, over those that the workload counts */
    const char *beside;     /* what it is that moves these and those of the next two: "cast" if NULL */
    double unit_s;          /* of a unit of the device, for each element that the workload counts: its least time; of a
                               product for each activation on the side of its result: of what goes beside it */
    double weight_moves;    /* elements moved beside it for each of its weights: casts, sums of gradients in fp32 */
    double result_moves;    /* elements moved beside a product or attention for each of its results */
    double operand_moves;   /* and beside a product for each element of its input */
    double saved_bytes;     /* of a forward: kept for backward beyond what the workload counts, or below 0 less; see
                               dl_kernel_saves */
    double working_bytes;   /* of a backward that is bound by memory: held while it runs, per element moved */
    struct dl_int_list head_sizes; /* of attention: for which there are kernels, from narrow to wide; none: for all */
    double rate;                   /* over that of the device's figures: of an older library */
    bool is_older;                 /* on the newest devices, their older_kernels_fraction of that rate */
    double unless_multiple_of;     /* only for so many matrices that this does not divide them; 0: any */
    bool is_windowed;              /* only for attention in windows, and convolutions with those of more than a pixel */
    bool ignores_windows;          /* of attention: what lies outside of them is computed, and masked */
    bool is_by_whole_heads;        /* of attention: a unit of the device takes all of a head, not blocks of its rows */
    double widest;                 /* only for rows of at most so many elements; 0: any */
    bool needs_dropout;            /* only for kernels that dropout is part of */
    bool needs_parts;              /* only for rotations of parts of a tensor, and attention behind them */
    bool needs_experts;            /* only for what is done for the tokens of experts */
    bool needs_bias;               /* only for products with a bias */
    bool drains;                   /* the host waits for all before it, to copy a number to the device */
    bool needs_groups;             /* only for attention with fewer heads of keys and values than of queries */
    bool is_fused;   /* only where the software's optimizer is fused; others are left out when it is read */
    int64_t numbers; /* enum dl_rule_numbers */
};
/* Where a rule holds: everywhere, where products are narrower than parameters, where these are as narrow, and where
 * products are in bf16, in fp32 and not by tensor cores, in fp8, in mxfp8 or in nvfp4. */
enum dl_rule_numbers {
    DL_FOR_MIXED,
    DL_FOR_PURE,
    DL_FOR_BF16,
    DL_FOR_FP32,
    DL_FOR_FP8,
    DL_FOR_MXFP8,
    DL_FOR_NVFP4,
    DL_FOR_ALL
};
enum { DL_EVERY_PASS = DL_PASS_WEIGHT_GRADIENT + 1 };

struct dl_kernel_rules {
    struct dl_kernel_rule *rules;
    size_t n;
    bool any_saves; /* one of them has saved_bytes */
    bool any_works; /* one of them has working_bytes */
};

/* Fused: rules that say so are kept, too. */
enum dl_status dl_kernel_rules_read(struct dl_json list, bool fused, struct dl_arena *arena,
                                    struct dl_kernel_rules *out, struct dl_error *err);

/* Whether one of them makes a kernel, or what goes beside it, one that only PyTorch has. */
bool dl_kernel_rules_are_pytorchs(const struct dl_kernel_rules *rules);

/* The keys of a rule, for `dlsim list`. */
const struct dl_field *dl_kernel_rule_fields(size_t *n_fields);

/* How wide the heads of attention are for its kernels. */
double dl_kernel_head_size(const struct dl_kernel_rule *rule, const struct dl_kernel *k);

/* NULL: there is none. Mixed: products are narrower than parameters; pure: these are as narrow, and not fp32. */
enum dl_widths { DL_WIDTHS_FP32, DL_WIDTHS_MIXED, DL_WIDTHS_PURE };
struct dl_numbers {
    enum dl_widths widths;
    enum dl_precision precision;
};
const struct dl_kernel_rule *dl_kernel_rule_for(const struct dl_kernel_rules *rules, const struct dl_kernel *k,
                                                struct dl_numbers numbers);

/* On a rank with so many experts of a layer; of an optimizer, gradient_sum and bucket for each tensor. */
double dl_kernel_launches(const struct dl_kernel_rule *rule, double experts);

/* What the framework does instead of k, which is bound by memory or by its own instructions, on a rank with so many
 * experts of a layer. */
struct dl_kernel dl_kernel_instead(const struct dl_kernel_rule *rule, const struct dl_kernel *k, double experts);

/* Bytes that k keeps for backward beyond what the workload counts: saved_bytes for each element that it moves, of a
 * product for each element of its input, of attention for each result. */
double dl_kernel_saves(const struct dl_kernel_rule *rule, const struct dl_kernel *k);

/* The kernel that moves what the rule says beside k; its elements may be 0. */
struct dl_kernel dl_kernel_beside(const struct dl_kernel_rule *rule, const struct dl_kernel *k);

/* What is bound by instructions beside a product; its unit_s may be 0. */
struct dl_kernel dl_kernel_issued(const struct dl_kernel_rule *rule, const struct dl_kernel *k);

#endif
