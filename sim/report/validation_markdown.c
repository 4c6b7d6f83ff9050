/* validation_markdown.c - a validation as the tables of a README. */
#include <math.h>
#include <stdio.h>

#include "sim/report/budget.h"

static void print_cell(double fraction)
{
    if (isnan(fraction))
        printf(" | -");
    else
        printf(" | %.1f", 100 * fraction);
}

static void print_errors(const char *name, const struct dl_errors *e)
{
    printf("| %s | %zu", name, e->n);
    print_cell(e->mape);
    print_cell(e->bias);
    print_cell(e->max);
    print_cell(e->n_pairs ? (double)e->n_ordered / (double)e->n_pairs : NAN);
}

static void print_family(const struct dl_row_family *f)
{
    const struct dl_errors all = dl_sum_errors(f->rows, f->n_rows);
    print_errors(f->name, &all);
    print_cell(dl_half_errors(f, false).mape);
    print_cell(dl_half_errors(f, true).mape);
    printf(" | %zu |", f->constants.n);
    const struct dl_row_group g = dl_worst_group(f);
    if (g.trait) printf(" %s: %.1f (%zu)", g.trait, 100 * g.mape, g.n);
    puts(" |");
}

static void print_budget(const struct dl_row_family *f)
{
    const struct dl_budget b = dl_budget_of(f->rows, f->n_rows);
    if (!b.n) return;
    printf("| %s | %.1f", f->name, 100 * b.mape);
    for (int i = 0; i < DL_N_PARTS; i++) {
        const struct dl_part_budget *const p = &b.parts[i];
        printf(" | %.0f", 100 * p->added);
        if (p->share > 0) printf(", x %.2f: %.0f", p->factor_together, 100 * p->share);
    }
    printf(" | %.0f | %.1f |\n", 100 * b.unexplained, 100 * b.left_mape);
}

static void print_budgets(const struct dl_validation *v)
{
    printf("\n| family | mean");
    for (int i = 0; i < DL_N_PARTS; i++) printf(" | %s", dl_step_part_name((enum dl_step_part)i));
    printf(" | unexplained | mean then |\n|---|--:");
    for (int i = 0; i < DL_N_PARTS; i++) printf("|--:");
    puts("|--:|--:|");
    for (size_t i = 0; i < v->n_families; i++) print_budget(&v->families[i]);
}

void dl_validation_markdown(const struct dl_validation *v)
{
    const struct dl_errors all = dl_validation_summary(v);
    puts("| family | rows | mean | bias | worst | ordered | fit | kept out | fitted | worst group |");
    puts("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    for (size_t i = 0; i < v->n_families; i++) print_family(&v->families[i]);
    print_errors("all", &all);
    printf(" | | | %zu | |\n", v->constants.n);
    if (all.n_failed) printf("\n%zu rows failed.\n", all.n_failed);
    if (v->has_budget) print_budgets(v);
}
