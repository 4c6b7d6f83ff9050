#include "strategies/operand_rules.h"

#include <math.h>
#include <stddef.h>

#define AT(member) offsetof(struct dl_operand_rule, member)

static const struct dl_field fields[] = {
    {"precision", DL_CHOICE, AT(precision), 0, 0, false, dl_precision_names, "that operands are quantised to"},
    {"moves", DL_NUMBER, AT(moves), 0, 1000, false, NULL, "elements moved per element of an operand"},
    {"launches", DL_NUMBER, AT(launches), 0, 1000, false, NULL,
     "kernel launches per operand, of experts for each expert"},
    {"gathered", DL_BOOL, AT(gathered), 0, 0, true, NULL,
     "where sequence parallelism gathers an operand, it is quantised first; false if absent"},
    {"saved", DL_BOOL, AT(saved), 0, 0, true, NULL,
     "what a linear layer is given is kept for its backward in that precision; false if absent"},
    {"weight_copies", DL_INT, AT(weight_copies), 0, 8, true, NULL,
     "copies of the weights of blocks in that precision, kept beside these; 0 if absent"},
    {"pads", DL_BOOL, AT(pads), 0, 0, true, NULL,
     "rows that an all-to-all brings to experts are padded before their products and cut after them, by passes of "
     "their own; false if absent"},
};

const struct dl_field *dl_operand_rule_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

enum dl_status dl_operand_rules_read(struct dl_json list, struct dl_arena *arena, struct dl_operand_rules *out,
                                     struct dl_error *err)
{
    out->n = json_array_size(list.value);
    out->rules = dl_arena_alloc(arena, (out->n + 1) * sizeof *out->rules);
    const size_t told = err->n_told;
    for (size_t i = 0; i < out->n; i++) {
        out->rules[i] = (struct dl_operand_rule){0};
        if (dl_read(dl_json_element(list, i, arena), fields, DL_COUNT(fields), &out->rules[i], arena, err) &&
            !dl_go_on(err))
            break;
    }
    return dl_stop_if_told(err, told);
}

const struct dl_operand_rule *dl_operand_rule_for(const struct dl_operand_rules *rules, enum dl_precision precision)
{
    for (size_t i = 0; i < rules->n; i++)
        if (rules->rules[i].precision == (int64_t)precision) return &rules->rules[i];
    return NULL;
}

struct dl_kernel dl_kernel_quantising(const struct dl_operand_rule *rule, const struct dl_kernel *k)
{
    const enum dl_precision precision = (enum dl_precision)rule->precision;
    /* The copy for the gradient of weights, which nobody makes where they are frozen. */
    const double copy_moves = dl_precision_operand_bytes(precision) / dl_precision_bytes(precision);
    const double moves = k->frozen ? fmax(rule->moves - copy_moves, 0) : rule->moves;
    const double operand = dl_kernel_is_product(k) && k->pass != DL_PASS_WEIGHT_GRADIENT ? k->batch * k->m * k->k : 0;
    return (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                              .name = "narrow_operands",
                              .pass = k->pass,
                              .elements = moves * operand,
                              .by.elements = dl_kernel_all_dimensions(k) & DL_BY_EXPERT};
}
