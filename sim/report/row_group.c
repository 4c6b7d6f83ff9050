/* row_group.c - rows that have something in common and are predicted worst. */
#include <math.h>
#include <string.h>

#include "sim/report/validation.h"

static struct dl_row_group group_of(const struct dl_row_family *f, size_t trait, const char *text)
{
    struct dl_row_group g = {.trait = text};
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct dl_compared *const row = f->rows[i];
        if (row->failure || isnan(row->measured_s) || !row->traits || strcmp(row->traits[trait], text)) continue;
        g.n++;
        g.mape += fabs(dl_compared_error(row));
        g.bias += dl_compared_error(row);
    }
    g.mape /= (double)g.n;
    g.bias /= (double)g.n;
    return g;
}

struct dl_row_group dl_worst_group(const struct dl_row_family *f)
{
    enum { fewest = 4 };
    const double notably = 1.25; /* times the mean of the family */
    const struct dl_errors all = dl_sum_errors(f->rows, f->n_rows);
    struct dl_row_group worst = {.mape = notably * all.mape};
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct dl_compared *const row = f->rows[i];
        for (size_t trait = 0; !row->failure && row->traits && row->traits[trait]; trait++) {
            const struct dl_row_group g = group_of(f, trait, row->traits[trait]);
            if (g.n >= fewest && 2 * g.n <= all.n && g.mape > worst.mape) worst = g;
        }
    }
    return worst;
}
