#include "strategies/kernel_rules.h"

#include <math.h>
#include <string.h>

#include "sim/cost/operations.h"

static const char *const passes[] = {[DL_PASS_FORWARD] = "forward",
                                     [DL_PASS_INPUT_GRADIENT] = "input_gradient",
                                     [DL_PASS_WEIGHT_GRADIENT] = "weight_gradient",
                                     [DL_EVERY_PASS] = NULL};
static const char *const numbers_names[] = {
    [DL_FOR_MIXED] = "mixed", [DL_FOR_PURE] = "pure",   [DL_FOR_BF16] = "bf16",   [DL_FOR_FP32] = "fp32",
    [DL_FOR_FP8] = "fp8",     [DL_FOR_MXFP8] = "mxfp8", [DL_FOR_NVFP4] = "nvfp4", [DL_FOR_ALL] = NULL};

#define AT(member) offsetof(struct dl_kernel_rule, member)
static const struct dl_field fields[] = {
    {"operation", DL_TEXT, AT(operation), 0, 0, false, NULL, "gemm, attention, layernorm, ..., or one kernel: qkv"},
    {"pass", DL_CHOICE, AT(pass), 0, 0, true, passes, "which pass; all if absent"},
    {"launches", DL_NUMBER, AT(launches), 0, 1000, false, NULL,
     "kernel launches of the host, where calls that launch nothing count by their time; of an optimizer, gradient_sum "
     "and bucket per tensor"},
    {"tensor_s", DL_NUMBER, AT(tensor_s), 0, 1, true, NULL,
     "of an optimizer, gradient_sum and bucket: device time per tensor, beside what they move; 0 if absent"},
    {"moves", DL_NUMBER, AT(moves), 0, 1000, true, NULL, "elements moved, over those of the workload; 1 if absent"},
    {"wide", DL_BOOL, AT(is_wide), 0, 0, true, NULL, "computed in fp32, with fp32 elements; false if absent"},
    {"as", DL_TEXT, AT(as), 0, 0, true, NULL,
     "the operation under which measured times have it; its own name if absent"},
    {"each_expert", DL_BOOL, AT(is_of_each_expert), 0, 0, true, NULL,
     "of permute and unpermute: launches are those for one of the experts of a rank; false if absent"},
    {"all_experts", DL_BOOL, AT(is_of_all_experts), 0, 0, true, NULL,
     "of GEMMs of experts: launches of the host are those for all experts of a rank, not for each; what the device "
     "takes is that of a GEMM for each expert all the same, and so are launches that quantise operands; false if "
     "absent"},
    {"expert_moves", DL_NUMBER, AT(expert_moves), 0, 1000, true, NULL,
     "of permute and unpermute: elements moved additionally for each expert of a rank, over those of the layer's "
     "tokens; 0 if absent"},
    {"beside_moves", DL_NUMBER, AT(beside_moves), 0, 1000, true, NULL,
     "of memory-bound kernels: elements moved additionally, over those of the workload; 0 if absent"},
    {"weight_moves", DL_NUMBER, AT(weight_moves), 0, 1000, true, NULL,
     "elements moved additionally per weight; 0 if absent"},
    {"result_moves", DL_NUMBER, AT(result_moves), 0, 1000, true, NULL,
     "of GEMMs and attention: elements moved additionally per result; 0 if absent"},
    {"operand_moves", DL_NUMBER, AT(operand_moves), 0, 1000, true, NULL,
     "of GEMMs: elements moved additionally per input element; 0 if absent"},
    {"saved_bytes", DL_NUMBER, AT(saved_bytes), -1000, 1000, true, NULL,
     "of a forward: bytes kept for the backward beyond those of the workload (negative: fewer), per element that it "
     "moves, of a GEMM per input element, of attention per result; 0 if absent"},
    {"working_bytes", DL_NUMBER, AT(working_bytes), 0, 1000, true, NULL,
     "of a memory-bound backward: bytes of gradients and temporary results that are held while it runs, per element "
     "that it moves in the workload; 0 if absent"},
    {"unit_s", DL_NUMBER, AT(unit_s), 0, 1, true, NULL,
     "of kernels that are bound by their instructions: time of one unit (SM) of a GPU at 1.98 GHz per element of the "
     "workload; of "
     "GEMMs that of what goes beside them, per result, backward per gradient of it; 0 if absent"},
    {"beside", DL_TEXT, AT(beside), 0, 0, true, NULL,
     "the operation that moves the additional elements; cast if absent"},
    {"head_sizes", DL_INT_LIST, AT(head_sizes), 1, 1024, true, NULL,
     "of attention: widths of heads that there are kernels for, in ascending order; others are padded to the next; all "
     "widths if absent"},
    {"rate", DL_NUMBER, AT(rate), 0.01, 10, true, NULL, "over that of the device file; 1 if absent"},
    {"older", DL_BOOL, AT(is_older), 0, 0, true, NULL,
     "written before the newest devices, on which it has their older_kernels_fraction of that rate; false if absent"},
    {"unless_multiple_of", DL_NUMBER, AT(unless_multiple_of), 1, 1000, true, NULL,
     "only where samples times heads are not a multiple of this; everywhere if absent"},
    {"windowed", DL_BOOL, AT(is_windowed), 0, 0, true, NULL,
     "only attention in windows, and convolutions with those of more than one pixel: the others are GEMMs; false if "
     "absent"},
    {"ignores_windows", DL_BOOL, AT(ignores_windows), 0, 0, true, NULL,
     "of attention: it goes through all tokens before a query, those outside of its window too; false if absent"},
    {"whole_heads", DL_BOOL, AT(is_by_whole_heads), 0, 0, true, NULL,
     "of attention: a unit (SM) of a GPU takes all of a head of a sample, so that no more of them work than there are "
     "such heads; by the model `gpu` alone, without times of attention that were measured, and of no meaning for "
     "devices of other models; false if absent"},
    {"widest", DL_NUMBER, AT(widest), 1, 1e9, true, NULL,
     "only kernels whose rows have at most so many elements, of pools those whose inputs are in at most so many "
     "windows; all if absent"},
    {"dropout", DL_BOOL, AT(needs_dropout), 0, 0, true, NULL,
     "only residuals and attention with dropout; false if absent"},
    {"rotated_parts", DL_BOOL, AT(needs_parts), 0, 0, true, NULL,
     "only rotary kernels on queries and keys that are parts of one tensor with the values (projections joined), and "
     "attention behind them; false if absent"},
    {"experts", DL_BOOL, AT(needs_experts), 0, 0, true, NULL, "only kernels on the tokens of experts; false if absent"},
    {"bias", DL_BOOL, AT(needs_bias), 0, 0, true, NULL, "only GEMMs with a bias; false if absent"},
    {"drains", DL_BOOL, AT(drains), 0, 0, true, NULL,
     "the host waits for the device before it, unless a graph is replayed; false if absent"},
    {"grouped_queries", DL_BOOL, AT(needs_groups), 0, 0, true, NULL,
     "only attention with fewer key and value heads than query heads; false if absent"},
    {"fused", DL_BOOL, AT(is_fused), 0, 0, true, NULL, "only with fused_optimizer; false if absent"},
    {"numbers", DL_CHOICE, AT(numbers), 0, 0, true, numbers_names,
     "only where GEMMs are narrower than parameters, as narrow, in bf16, in fp32 without tensor cores, in fp8, in "
     "mxfp8, or in nvfp4; any if absent"},
};

static bool is_pytorchs(const char *operation)
{
    const struct dl_operation *const found = operation ? dl_operation_named(operation) : NULL;
    return found && found->is_pytorchs;
}

bool dl_kernel_rules_are_pytorchs(const struct dl_kernel_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        if (is_pytorchs(rules->rules[i].as) || is_pytorchs(rules->rules[i].beside)) return true;
    return false;
}

const struct dl_field *dl_kernel_rule_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

static enum dl_status check_sizes(const struct dl_int_list *sizes, struct dl_json at, struct dl_arena *arena,
                                  struct dl_error *err)
{
    for (size_t i = 1; i < sizes->n; i++)
        if (sizes->items[i] <= sizes->items[i - 1])
            return dl_fail(err, DL_RANGE, dl_json_member(at, "head_sizes", arena).where,
                           "must be in ascending order, but %lld follows %lld", (long long)sizes->items[i],
                           (long long)sizes->items[i - 1]);
    return DL_OK;
}

/* Names that no device could have times of. */
static enum dl_status check_names(const struct dl_kernel_rule *r, struct dl_json at, struct dl_arena *arena,
                                  struct dl_error *err)
{
    if (r->as && dl_operation_check(r->as, dl_json_member(at, "as", arena).where, err)) return err->status;
    return r->beside ? dl_operation_check(r->beside, dl_json_member(at, "beside", arena).where, err) : DL_OK;
}

/* Keys that only some operations have. */
static enum dl_status check_operation(const struct dl_kernel_rule *r, struct dl_json at, struct dl_arena *arena,
                                      struct dl_error *err)
{
    static const struct dl_operation other = {0}; /* one kernel, by its own name */
    const struct dl_operation *const named = dl_operation_named(r->operation), *const of = named ? named : &other;
    if ((r->is_of_each_expert || r->expert_moves > 0) && !of->copies_tokens)
        return dl_fail(err, DL_RANGE,
                       dl_json_member(at, r->is_of_each_expert ? "each_expert" : "expert_moves", arena).where,
                       "is for permute and unpermute, which copy tokens, not for %s", r->operation);
    const char *const of_attention = r->head_sizes.n > 0 ? "head_sizes" : r->is_by_whole_heads ? "whole_heads" : NULL;
    if (of_attention && of->kind != DL_KERNEL_ATTENTION)
        return dl_fail(err, DL_RANGE, dl_json_member(at, of_attention, arena).where, "is for attention, not for %s",
                       r->operation);
    if (r->is_of_all_experts && named && named->kind != DL_KERNEL_GEMM)
        return dl_fail(err, DL_RANGE, dl_json_member(at, "all_experts", arena).where,
                       "is for GEMMs of experts, not for %s", r->operation);
    if (r->working_bytes > 0 && ((named && named->kind != DL_KERNEL_MEMORY) || r->pass == DL_PASS_FORWARD))
        return dl_fail(err, DL_RANGE, dl_json_member(at, "working_bytes", arena).where,
                       "is for memory-bound kernels of the backward, not for %s%s", r->operation,
                       r->pass == DL_PASS_FORWARD ? " in the forward" : "");
    if (r->needs_parts && named && !named->rotates && named->kind != DL_KERNEL_ATTENTION)
        return dl_fail(err, DL_RANGE, dl_json_member(at, "rotated_parts", arena).where,
                       "is for rotary and attention, not for %s", r->operation);
    return DL_OK;
}

enum dl_status dl_kernel_rules_read(struct dl_json list, bool fused, struct dl_arena *arena,
                                    struct dl_kernel_rules *out, struct dl_error *err)
{
    const size_t n = json_array_size(list.value), told = err->n_told;
    *out = (struct dl_kernel_rules){.rules = dl_arena_alloc(arena, (n + 1) * sizeof *out->rules)};
    for (size_t i = 0; i < n; i++) {
        struct dl_kernel_rule *const rule = &out->rules[out->n];
        *rule = (struct dl_kernel_rule){.pass = DL_EVERY_PASS, .numbers = DL_FOR_ALL, .moves = 1, .rate = 1};
        const struct dl_json at = dl_json_element(list, i, arena);
        if (dl_read(at, fields, DL_COUNT(fields), rule, arena, err) || check_names(rule, at, arena, err) ||
            check_sizes(&rule->head_sizes, at, arena, err) || check_operation(rule, at, arena, err)) {
            if (dl_go_on(err)) continue;
            return err->status;
        }
        if (rule->is_fused && !fused) continue;
        out->n++;
        out->any_saves |= rule->saved_bytes != 0;
        out->any_works |= rule->working_bytes > 0;
    }
    return dl_stop_if_told(err, told);
}

/* Most differ in their first letter. */
static bool is_same(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

static bool is_meant(const struct dl_kernel_rule *r, const struct dl_kernel *k)
{
    if (r->is_windowed && !(k->window > 1)) return false;
    if (r->unless_multiple_of > 0 && fmod(k->batch, r->unless_multiple_of) == 0) return false;
    if (r->widest > 0 && k->n > r->widest) return false;
    if (r->needs_dropout && !k->drops) return false;
    if (r->needs_parts && !k->rotates_parts) return false;
    if (r->needs_experts && !dl_kernel_is_of_experts(k)) return false;
    if (r->needs_bias && !k->has_bias) return false;
    if (r->needs_groups && !(k->kv_share > 0 && k->kv_share < 1)) return false;
    return is_same(r->operation, dl_kernel_operation(k)) || (k->name && is_same(r->operation, k->name));
}

static bool fits(const struct dl_kernel_rule *r, struct dl_numbers numbers)
{
    switch ((enum dl_rule_numbers)r->numbers) {
    case DL_FOR_MIXED: return numbers.widths == DL_WIDTHS_MIXED;
    case DL_FOR_PURE: return numbers.widths == DL_WIDTHS_PURE;
    case DL_FOR_BF16: return numbers.precision == DL_BF16;
    case DL_FOR_FP32: return numbers.precision == DL_FP32;
    case DL_FOR_FP8: return numbers.precision == DL_FP8;
    case DL_FOR_MXFP8: return numbers.precision == DL_MXFP8;
    case DL_FOR_NVFP4: return numbers.precision == DL_NVFP4;
    case DL_FOR_ALL: return true;
    }
    return true;
}

const struct dl_kernel_rule *dl_kernel_rule_for(const struct dl_kernel_rules *rules, const struct dl_kernel *k,
                                                struct dl_numbers numbers)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct dl_kernel_rule *const r = &rules->rules[i];
        if ((r->pass == DL_EVERY_PASS || r->pass == (int64_t)k->pass) && fits(r, numbers) && is_meant(r, k)) return r;
    }
    return NULL;
}

double dl_kernel_head_size(const struct dl_kernel_rule *rule, const struct dl_kernel *k)
{
    const struct dl_int_list *const sizes = &rule->head_sizes;
    size_t i = 0;
    while (i < sizes->n && (double)sizes->items[i] < k->k) i++;
    return k->kind == DL_KERNEL_ATTENTION && i < sizes->n ? (double)sizes->items[i] : k->k;
}

/* Of a product y = x w, and of the gradients that it has: the weights are an operand, or what comes out. */
static double weights_of(const struct dl_kernel *k)
{
    if (!dl_kernel_is_product(k) || dl_kernel_is_core_attention(k)) return 0;
    return k->batch * k->n * (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->m : k->k);
}

/* In how many windows of a convolution a pixel is: the product counts it in each. */
static double windows_of(const struct dl_kernel *k)
{
    return k->window > k->stride && k->stride > 0 ? k->window * k->window / (k->stride * k->stride) : 1;
}

/* Of attention what its heads make of the values; backward the gradients of queries, keys and values. */
static double results_of(const struct dl_kernel *k)
{
    if (k->kind == DL_KERNEL_ATTENTION) return k->batch * k->k * (k->m + (k->backward ? 2 * k->kv_share * k->n : 0));
    const double windows = k->pass == DL_PASS_INPUT_GRADIENT ? windows_of(k) : 1;
    return dl_kernel_is_product(k) ? k->batch * k->m * k->n / windows : 0;
}

/* The activations that a forward product is given, or the gradient of its result. */
static double inputs_of(const struct dl_kernel *k)
{
    const double windows = k->pass == DL_PASS_INPUT_GRADIENT ? 1 : windows_of(k);
    return dl_kernel_is_product(k) ? k->batch * k->m * k->k / windows : 0;
}

double dl_kernel_saves(const struct dl_kernel_rule *rule, const struct dl_kernel *k)
{
    const double elements = dl_kernel_is_product(k)       ? inputs_of(k)
                            : k->kind == DL_KERNEL_MEMORY ? k->elements
                                                          : results_of(k);
    return rule->saved_bytes * elements;
}

double dl_kernel_launches(const struct dl_kernel_rule *rule, double experts)
{
    return rule->launches * (rule->is_of_each_expert ? experts : 1);
}

struct dl_kernel dl_kernel_instead(const struct dl_kernel_rule *rule, const struct dl_kernel *k, double experts)
{
    struct dl_kernel done = *k;
    done.elements *= rule->moves + rule->expert_moves * experts * k->tokens;
    done.flop_per_element *= done.elements > 0 ? k->elements / done.elements : 0;
    done.products_per_element *= done.elements > 0 ? k->elements / done.elements : 0;
    done.unit_s = rule->unit_s * k->elements;
    if (rule->as) done.operation = rule->as;
    return done;
}

struct dl_kernel dl_kernel_beside(const struct dl_kernel_rule *rule, const struct dl_kernel *k)
{
    const double of_memory = k->kind == DL_KERNEL_MEMORY ? rule->beside_moves * k->elements : 0;
    return (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                              .name = rule->beside ? rule->beside : "cast",
                              .pass = k->pass,
                              .elements = of_memory + rule->weight_moves * weights_of(k) +
                                          rule->result_moves * results_of(k) + rule->operand_moves * inputs_of(k),
                              .by.elements = dl_kernel_all_dimensions(k) & DL_BY_EXPERT};
}

struct dl_kernel dl_kernel_issued(const struct dl_kernel_rule *rule, const struct dl_kernel *k)
{
    const double made = !dl_kernel_is_product(k)            ? 0
                        : k->pass == DL_PASS_FORWARD        ? results_of(k)
                        : k->pass == DL_PASS_INPUT_GRADIENT ? inputs_of(k)
                                                            : 0;
    return (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                              .name = rule->beside ? rule->beside : "cast",
                              .pass = k->pass,
                              .unit_s = rule->unit_s * made,
                              .by.elements = dl_kernel_all_dimensions(k) & DL_BY_EXPERT};
}
