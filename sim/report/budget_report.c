/* budget_report.c - an error budget for people and for programs. */
#include <stdio.h>

#include "sim/report/budget.h"

const char *dl_step_part_name(enum dl_step_part part)
{
    static const char *const names[] = {"compute", "network", "host", "schedule"};
    return names[part];
}

static void print_family(const struct dl_row_family *f)
{
    const struct dl_budget b = dl_budget_of(f->rows, f->n_rows);
    if (!b.n) return;
    for (int i = 0; i < DL_N_PARTS; i++) {
        const struct dl_part_budget *const p = &b.parts[i];
        printf("  %-16.16s %-12s%9.1f%9.1f%9.2f%9.1f%9.2f%9.1f\n", i ? "" : f->name,
               dl_step_part_name((enum dl_step_part)i), 100 * p->added, 100 * p->ideal_mape, p->factor, 100 * p->mape,
               p->factor_together, 100 * p->share);
    }
    printf("  %-16s %-12s%36s%9.1f%9.1f  (%zu rows)\n", "", "unexplained", "", 100 * b.left_mape, 100 * b.unexplained,
           b.n);
}

void dl_budget_text(const struct dl_validation *v)
{
    puts("error budget, in percent: what a part adds to the predicted step, and the mean error with the part at its");
    puts("best; the factor on it that suits the family best, and the mean error then; the factors, together, of parts");
    puts("that explain more than chance would, and their shares of the squared error; what is left, also as a mean");
    printf("  %-16s %-12s%9s%9s%9s%9s%9s%9s\n", "family", "part", "adds", "at best", "alone", "mean", "together",
           "share");
    for (size_t i = 0; i < v->n_families; i++) print_family(&v->families[i]);
}

json_t *dl_budget_json(const struct dl_budget *b)
{
    json_t *const json = dl_json_pack("{s:I, s:f, s:f}", "n", (json_int_t)b->n, "left_mape", b->left_mape,
                                      "unexplained", b->unexplained);
    for (int i = 0; i < DL_N_PARTS; i++) {
        const struct dl_part_budget *const p = &b->parts[i];
        json_object_set_new(json, dl_step_part_name((enum dl_step_part)i),
                            dl_json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "added", p->added, "ideal_mape",
                                         p->ideal_mape, "factor", p->factor, "mape", p->mape, "factor_together",
                                         p->factor_together, "share", p->share));
    }
    return json;
}
