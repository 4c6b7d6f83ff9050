/* validation_rows.c - every row of a validation on a line, in the order in which they were given. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/units.h"
#include "sim/report/validation.h"

static const char *told(const struct dl_compared *row, double x, char text[DL_QUANTITY])
{
    if (isnan(x)) return "-";
    if (row->quantity != DL_SPEEDUP) return dl_format_seconds(x, text);
    snprintf(text, DL_QUANTITY, "%.3f x", x);
    return text;
}

static void print_row(const struct dl_compared *row, const char *family, int id_width)
{
    char measured[DL_QUANTITY], predicted[DL_QUANTITY], error[DL_QUANTITY] = "-";
    const double e = row->failure ? NAN : dl_compared_error(row);
    if (!isnan(e)) snprintf(error, sizeof error, "%+.1f %%", 100 * e);
    printf("  %-*s  %10s  %10s  %9s  %-6s  %s\n", id_width, row->id, told(row, row->measured_s, measured),
           row->failure ? "failed" : told(row, row->predicted_s, predicted), error,
           row->failure ? "-"
           : row->fits  ? "yes"
                        : "no",
           family);
}

void dl_validation_rows_text(const struct dl_validation *v)
{
    int id_width = (int)strlen("id");
    for (size_t i = 0; i < v->n_rows; i++)
        if ((int)strlen(v->rows[i].id) > id_width) id_width = (int)strlen(v->rows[i].id);
    printf("  %-*s  %10s  %10s  %9s  %-6s  %s\n", id_width, "id", "measured", "predicted", "error", "fits", "family");
    for (size_t i = 0; i < v->n_rows; i++) print_row(&v->rows[i], v->families[v->family_of[i]].name, id_width);
}
