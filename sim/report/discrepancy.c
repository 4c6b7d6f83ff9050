#include "sim/report/discrepancy.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

static const double most_spread = 10; /* a factor of twenty thousand; more is no prediction */
static const double most_rows = 1e9;
enum { enough_families = 3 }; /* of one software on one system, to be trusted alone */

/* Of one family, software and system. */
struct entry {
    struct dl_setup of;
    double spread, ratio_spread;
    int64_t rows, ratio_rows;
};

static const struct dl_field fields[] = {
    {"family", DL_TEXT, offsetof(struct entry, of.family), 0, 0, false, NULL, NULL},
    {"software", DL_TEXT, offsetof(struct entry, of.software), 0, 0, false, NULL, NULL},
    {"system", DL_TEXT, offsetof(struct entry, of.system), 0, 0, false, NULL, NULL},
    {"experts", DL_BOOL, offsetof(struct entry, of.experts), 0, 0, true, NULL, NULL},
    {"rows", DL_INT, offsetof(struct entry, rows), 1, most_rows, false, NULL, NULL},
    {"spread", DL_NUMBER, offsetof(struct entry, spread), 0, most_spread, false, NULL, NULL},
    {"ratio_rows", DL_INT, offsetof(struct entry, ratio_rows), 1, most_rows, true, NULL, NULL},
    {"ratio_spread", DL_NUMBER, offsetof(struct entry, ratio_spread), 0, most_spread, true, NULL, NULL},
};

struct file {
    struct dl_json measured;
};

static const struct dl_field file_fields[] = {
    {"measured", DL_LIST, offsetof(struct file, measured), 0, 0, false, NULL, NULL},
};

struct entries {
    struct entry *items;
    size_t n;
};

bool dl_is_same_setup(const struct dl_setup *a, const struct dl_setup *b)
{
    return strcmp(a->software, b->software) == 0 && strcmp(a->system, b->system) == 0 && a->experts == b->experts;
}

static bool is_family(const struct entry *e, const char *family) { return strcmp(e->of.family, family) == 0; }

/* All but those of a family that shall not count. */
static enum dl_status read_entries(struct dl_json doc, const char *left_out, struct dl_arena *arena,
                                   struct entries *out, struct dl_error *err)
{
    struct file file = {{0}};
    const size_t told = err->n_told;
    if (dl_read_document(doc, "discrepancy", file_fields, DL_COUNT(file_fields), &file, arena, err) && !dl_go_on(err))
        return err->status;
    out->items = dl_arena_alloc(arena, json_array_size(file.measured.value) * sizeof *out->items);
    for (size_t i = 0; i < json_array_size(file.measured.value); i++) {
        struct entry *const e = &out->items[out->n];
        *e = (struct entry){0};
        if (dl_read(dl_json_element(file.measured, i, arena), fields, DL_COUNT(fields), e, arena, err)) {
            if (dl_go_on(err)) continue;
            return err->status;
        }
        if (!left_out || !is_family(e, left_out)) out->n++;
    }
    return dl_stop_if_told(err, told);
}

/* ---- spreads ---- */

/* Sums over entries, of steps or of ratios. */
struct sums {
    double squares; /* of spreads, by rows */
    int64_t rows, families;
};

static void add(struct sums *to, double spread, int64_t rows)
{
    to->squares += spread * spread * (double)rows;
    to->rows += rows;
}

static double root_mean(const struct sums *of) { return of->rows ? sqrt(of->squares / (double)of->rows) : 0; }

static bool is_first_of_family(const struct entries *all, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (is_family(&all->items[j], all->items[i].of.family)) return false;
    return true;
}

/* Each family once; with experts only those that have any. */
static struct sums over_families(const struct entries *all, bool experts_only, bool of_ratios)
{
    struct sums sums = {0};
    for (size_t i = 0; i < all->n; i++) {
        struct sums family = {0};
        if (!is_first_of_family(all, i)) continue;
        for (size_t j = i; j < all->n; j++) {
            const struct entry *const e = &all->items[j];
            if (!is_family(e, all->items[i].of.family) || (experts_only && !e->of.experts)) continue;
            add(&family, of_ratios ? e->ratio_spread : e->spread, of_ratios ? e->ratio_rows : e->rows);
        }
        if (family.rows) add(&sums, root_mean(&family), 1);
    }
    sums.families = sums.rows;
    return sums;
}

static struct sums own(const struct entries *all, const struct dl_setup *of, bool of_ratios)
{
    struct sums sums = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct entry *const e = &all->items[i];
        if (!dl_is_same_setup(&e->of, of)) continue;
        add(&sums, of_ratios ? e->ratio_spread : e->spread, of_ratios ? e->ratio_rows : e->rows);
        sums.families++;
    }
    return sums;
}

enum dl_status dl_discrepancy_read(struct dl_json doc, const struct dl_setup *of, struct dl_arena *arena,
                                   struct dl_discrepancy *out, struct dl_error *err)
{
    struct entries all = {0};
    *out = (struct dl_discrepancy){.of = *of};
    if (read_entries(doc, of->family, arena, &all, err)) return err->status;
    const struct sums families = over_families(&all, false, false), like = over_families(&all, of->experts, false);
    const struct sums mine = own(&all, of, false);
    struct sums ratios = own(&all, of, true);
    if (!ratios.rows) ratios = over_families(&all, false, true);
    const bool is_alone = mine.families >= enough_families;
    out->own_rows = mine.rows;
    out->own_spread = root_mean(&mine);
    out->spread = is_alone ? out->own_spread : fmax(out->own_spread, fmax(root_mean(&families), root_mean(&like)));
    out->families = is_alone ? mine.families : families.families;
    out->ratio_rows = ratios.rows;
    out->ratio_spread = root_mean(&ratios);
    return DL_OK;
}

/* ---- intervals ---- */

double dl_discrepancy_interval(double spread, int64_t n_independent)
{
    const double upper = 0.975; /* of 95 % in the middle */
    return n_independent > 0 ? spread * gsl_cdf_tdist_Pinv(upper, (double)n_independent) : 0;
}

double dl_discrepancy_half_width(const struct dl_discrepancy *d)
{
    return dl_discrepancy_interval(d->spread, d->families);
}

double dl_discrepancy_ratio_half_width(const struct dl_discrepancy *d)
{
    return d->ratio_rows ? dl_discrepancy_interval(d->ratio_spread, d->ratio_rows)
                         : sqrt(2) * dl_discrepancy_half_width(d);
}

json_t *dl_discrepancy_json(const struct dl_discrepancy *d)
{
    return dl_json_pack("{s:s, s:s, s:b, s:I, s:f, s:I, s:f, s:f, s:f}", "software", d->of.software, "system",
                        d->of.system, "experts", d->of.experts, "families", (json_int_t)d->families, "spread",
                        d->spread, "own_rows", (json_int_t)d->own_rows, "own_spread", d->own_spread, "half_width",
                        dl_discrepancy_half_width(d), "ratio_half_width", dl_discrepancy_ratio_half_width(d));
}
