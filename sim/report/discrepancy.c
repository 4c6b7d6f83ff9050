#include "sim/report/discrepancy.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

static const double most_spread = 10; /* a factor of twenty thousand; more is no prediction */
static const double most_rows = 1e9;

static const struct dl_field fields[] = {
    {"software", DL_TEXT, offsetof(struct dl_discrepancy, of.software), 0, 0, true, NULL, NULL},
    {"system", DL_TEXT, offsetof(struct dl_discrepancy, of.system), 0, 0, true, NULL, NULL},
    {"experts", DL_BOOL, offsetof(struct dl_discrepancy, of.experts), 0, 0, true, NULL, NULL},
    {"rows", DL_INT, offsetof(struct dl_discrepancy, rows), 1, most_rows, false, NULL, NULL},
    {"spread", DL_NUMBER, offsetof(struct dl_discrepancy, spread), 0, most_spread, false, NULL, NULL},
    {"ratio_rows", DL_INT, offsetof(struct dl_discrepancy, ratio_rows), 1, most_rows, true, NULL, NULL},
    {"ratio_spread", DL_NUMBER, offsetof(struct dl_discrepancy, ratio_spread), 0, most_spread, true, NULL, NULL},
};

struct file {
    struct dl_json measured, elsewhere;
};

static const struct dl_field file_fields[] = {
    {"measured", DL_LIST, offsetof(struct file, measured), 0, 0, false, NULL, NULL},
    {"elsewhere", DL_OBJECT, offsetof(struct file, elsewhere), 0, 0, false, NULL, NULL},
};

static enum dl_status read_one(struct dl_json from, struct dl_arena *arena, struct dl_discrepancy *out,
                               struct dl_error *err)
{
    *out = (struct dl_discrepancy){0};
    return dl_read(from, fields, DL_COUNT(fields), out, arena, err);
}

static enum dl_status read_measured(struct dl_json from, struct dl_arena *arena, struct dl_discrepancy *out,
                                    struct dl_error *err)
{
    if (read_one(from, arena, out, err)) return err->status;
    if (out->of.software && out->of.system) return DL_OK;
    return dl_fail(err, DL_KEY, from.where, "needs both 'software' and 'system'");
}

bool dl_is_same_setup(const struct dl_setup *a, const struct dl_setup *b)
{
    return strcmp(a->software, b->software) == 0 && strcmp(a->system, b->system) == 0 && a->experts == b->experts;
}

enum dl_status dl_discrepancy_read(struct dl_json doc, const struct dl_setup *of, struct dl_arena *arena,
                                   struct dl_discrepancy *out, struct dl_error *err)
{
    struct file file = {{0}, {0}};
    struct dl_discrepancy found;
    const size_t told = err->n_told;
    if ((dl_read_document(doc, "discrepancy", file_fields, DL_COUNT(file_fields), &file, arena, err) &&
         !dl_go_on(err)) ||
        (file.elsewhere.value && read_one(file.elsewhere, arena, out, err) && !dl_go_on(err)))
        return err->status;
    out->of = *of;
    out->elsewhere = true;
    for (size_t i = 0; i < json_array_size(file.measured.value); i++) {
        if (read_measured(dl_json_element(file.measured, i, arena), arena, &found, err)) {
            if (dl_go_on(err)) continue;
            return err->status;
        }
        if (!dl_is_same_setup(&found.of, of)) continue;
        *out = found;
        out->of = *of; /* texts of the document may be gone before the answer is told */
    }
    return dl_stop_if_told(err, told);
}

static double half_width(double spread, int64_t rows)
{
    const double upper = 0.975; /* of 95 % in the middle */
    return rows > 0 ? spread * gsl_cdf_tdist_Pinv(upper, (double)rows) : 0;
}

double dl_discrepancy_half_width(const struct dl_discrepancy *d) { return half_width(d->spread, d->rows); }

double dl_discrepancy_ratio_half_width(const struct dl_discrepancy *d)
{
    return d->ratio_rows ? half_width(d->ratio_spread, d->ratio_rows) : sqrt(2) * half_width(d->spread, d->rows);
}

json_t *dl_discrepancy_json(const struct dl_discrepancy *d)
{
    return dl_json_pack("{s:s, s:s, s:b, s:b, s:I, s:f, s:f, s:f}", "software", d->of.software, "system", d->of.system,
                        "experts", d->of.experts, "elsewhere", d->elsewhere, "rows", (json_int_t)d->rows, "spread",
                        d->spread, "half_width", dl_discrepancy_half_width(d), "ratio_half_width",
                        dl_discrepancy_ratio_half_width(d));
}
