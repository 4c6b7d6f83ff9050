#include "sim/report/discrepancy.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

static const double most_spread = 10; /* a factor of twenty thousand; more is no prediction */
static const double most_rows = 1e9;
enum { enough_families = 3 }; /* of one software on one system, or that nothing was fitted to, to be trusted alone */

const char *const dl_domains[] = {"tokens", "images", "files", NULL};

/* Of one family, software and system. */
struct entry {
    struct dl_setup of;
    bool in_sight, blind, strange;
    double bias, spread, ratio_spread;
    int64_t rows, ratio_rows;
};

static const struct dl_field fields[] = {
    {"family", DL_TEXT, offsetof(struct entry, of.family), 0, 0, false, NULL, NULL},
    {"software", DL_TEXT, offsetof(struct entry, of.software), 0, 0, false, NULL, NULL},
    {"system", DL_TEXT, offsetof(struct entry, of.system), 0, 0, false, NULL, NULL},
    {"experts", DL_BOOL, offsetof(struct entry, of.experts), 0, 0, true, NULL, NULL},
    {"domain", DL_CHOICE, offsetof(struct entry, of.domain), 0, 0, true, dl_domains, NULL},
    {"in_sight", DL_BOOL, offsetof(struct entry, in_sight), 0, 0, true, NULL, NULL},
    {"blind", DL_BOOL, offsetof(struct entry, blind), 0, 0, true, NULL, NULL},
    {"strange", DL_BOOL, offsetof(struct entry, strange), 0, 0, true, NULL, NULL},
    {"rows", DL_INT, offsetof(struct entry, rows), 1, most_rows, false, NULL, NULL},
    {"bias", DL_NUMBER, offsetof(struct entry, bias), -most_spread, most_spread, false, NULL, NULL},
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
    return strcmp(a->software, b->software) == 0 && strcmp(a->system, b->system) == 0 && a->experts == b->experts &&
           a->domain == b->domain;
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

/* ---- families ---- */

static bool is_first_of_family(const struct entries *all, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (is_family(&all->items[j], all->items[i].of.family)) return false;
    return true;
}

/* Errors as they are now, or as they were first predicted, before anybody had looked. */
enum predicted { PREDICTED_NOW, PREDICTED_BLIND, PREDICTED_EITHER };

/* Which entries count. */
struct among {
    const struct dl_setup *of;  /* of this software on this system; NULL: all */
    const struct dl_setup *kin; /* of its domain; NULL: of all */
    bool unseen;                /* that nothing was fitted to */
    enum predicted predicted;
};

static bool is_among(const struct entry *e, struct among among)
{
    return (!among.of || dl_is_same_setup(&e->of, among.of)) && (!among.kin || e->of.domain == among.kin->domain) &&
           !(among.unseen && e->in_sight) &&
           (among.predicted == PREDICTED_EITHER ? !e->strange : e->blind == (among.predicted == PREDICTED_BLIND));
}

/* Errors of rows: how many, their sum, and the sum of their squares. */
struct errors {
    int64_t rows;
    double sum, squares;
};

static void add_entry(struct errors *to, const struct entry *e)
{
    const double n = (double)e->rows;
    to->rows += e->rows;
    to->sum += n * e->bias;
    to->squares += n * (e->spread * e->spread + e->bias * e->bias);
}

static struct errors of_family(const struct entries *all, const char *family, struct among among)
{
    struct errors errors = {0};
    for (size_t i = 0; i < all->n; i++)
        if ((!family || is_family(&all->items[i], family)) && is_among(&all->items[i], among))
            add_entry(&errors, &all->items[i]);
    return errors;
}

static double mean_of(const struct errors *e) { return e->sum / (double)e->rows; }

/* The mean square of the distance of the rows from a place. */
static double square_about(const struct errors *e, double place)
{
    return e->squares / (double)e->rows - 2 * place * mean_of(e) + place * place;
}

/* What families tell of a row of one more. */
struct families {
    int64_t n, n_several; /* of these, with more rows than one */
    double bias, spread, degrees;
    double between, within; /* sums over families, of squares: of their means about the mean of all, of rows in each */
};

static void sum_families(const struct entries *all, struct among among, bool about_bias, struct families *f)
{
    double sum = 0;
    f->n = f->n_several = 0;
    f->between = f->within = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (!is_first_of_family(all, i)) continue;
        const struct errors errors = of_family(all, all->items[i].of.family, among);
        if (!errors.rows) continue;
        const double mean = mean_of(&errors), apart = mean - f->bias;
        f->n++;
        f->n_several += errors.rows > 1;
        f->between += apart * apart;
        f->within += fmax(square_about(&errors, mean), 0);
        sum += mean;
    }
    if (!about_bias && f->n > 1) f->bias = sum / (double)f->n;
}

/* Its effect is as far from the mean of all as those of the others, which has n - 1 degrees of freedom; that mean is
 * not known exactly either, which adds 1/n; and the row is as far from its family as those of the others. The degrees
 * of both together are Satterthwaite's (Biometrics Bulletin 2, 1946). One family alone tells no bias. */
static struct families over_families(const struct entries *all, struct among among)
{
    struct families f = {0};
    sum_families(all, among, false, &f);
    sum_families(all, among, true, &f);
    if (!f.n) return f;
    const double n = (double)f.n, free_effects = f.n > 1 ? n - 1 : 1;
    const double of_effect = f.between / free_effects * (f.n > 1 ? 1 + 1 / n : 1), of_row = f.within / n;
    const double square = of_effect + of_row;
    const double doubt =
        of_effect * of_effect / free_effects + (of_row > 0 ? of_row * of_row / (double)f.n_several : 0);
    f.spread = sqrt(square);
    f.degrees = doubt > 0 ? square * square / doubt : free_effects;
    return f;
}

/* ---- ratios ---- */

struct ratios {
    int64_t rows;
    double squares;
};

static void add_ratio(struct ratios *to, double square, int64_t rows)
{
    to->squares += square * (double)rows;
    to->rows += rows;
}

static struct ratios ratios_of(const struct entries *all, const char *family, struct among among)
{
    struct ratios r = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct entry *const e = &all->items[i];
        if ((!family || is_family(e, family)) && is_among(e, among))
            add_ratio(&r, e->ratio_spread * e->ratio_spread, e->ratio_rows);
    }
    return r;
}

/* Each family once. */
static struct ratios ratios_of_families(const struct entries *all)
{
    struct ratios r = {0};
    for (size_t i = 0; i < all->n; i++) {
        if (!is_first_of_family(all, i)) continue;
        const struct ratios family = ratios_of(all, all->items[i].of.family, (struct among){0});
        if (family.rows) add_ratio(&r, family.squares / (double)family.rows, 1);
    }
    return r;
}

/* ---- what is known ---- */

static struct dl_row_errors rows_among(const struct entries *all, struct among among)
{
    const struct errors e = of_family(all, NULL, among);
    if (!e.rows) return (struct dl_row_errors){0};
    const double bias = mean_of(&e);
    return (struct dl_row_errors){.bias = bias, .spread = sqrt(fmax(square_about(&e, bias), 0)), .rows = e.rows};
}

/* Those that nothing was fitted to, of its domain if there are enough, as they are and as they were first predicted:
 * a run of one's own is one more family that nobody has looked at. Where there are not, its rows are kin. */
static struct families of_strangers(const struct entries *all, const struct dl_setup *of, struct dl_discrepancy *out)
{
    const struct families blind = over_families(all, (struct among){.kin = of, .predicted = PREDICTED_BLIND});
    out->by_blind = !out->own.rows && blind.n >= enough_families;
    if (out->by_blind) return blind;
    const struct families akin =
        over_families(all, (struct among){.kin = of, .unseen = true, .predicted = PREDICTED_EITHER});
    if (akin.n >= enough_families) return akin;
    out->kin = rows_among(all, (struct among){.kin = of});
    const struct families unseen = over_families(all, (struct among){.unseen = true});
    return unseen.n >= enough_families ? unseen : over_families(all, (struct among){0});
}

static void find_own_rows(const struct entries *all, const struct dl_lineage *like, struct dl_discrepancy *out)
{
    struct dl_setup of = out->of;
    out->own = rows_among(all, (struct among){.of = &of});
    for (int i = 0; i < like->n && !out->own.rows; i++) {
        of.software = like->names[i];
        out->own = rows_among(all, (struct among){.of = &of});
        if (out->own.rows) out->own_software = of.software;
    }
}

enum dl_status dl_discrepancy_read(struct dl_json doc, const struct dl_setup *of, struct dl_arena *arena,
                                   struct dl_discrepancy *out, struct dl_error *err)
{
    return dl_discrepancy_read_like(doc, of, &(struct dl_lineage){0}, arena, out, err);
}

enum dl_status dl_discrepancy_read_like(struct dl_json doc, const struct dl_setup *of, const struct dl_lineage *like,
                                        struct dl_arena *arena, struct dl_discrepancy *out, struct dl_error *err)
{
    struct entries all = {0};
    *out = (struct dl_discrepancy){.of = *of, .own_software = of->software};
    if (read_entries(doc, of->family, arena, &all, err)) return err->status;
    const struct families own = over_families(&all, (struct among){.of = of});
    out->by_own = own.n >= enough_families;
    find_own_rows(&all, like, out);
    const struct families told = out->by_own ? own : of_strangers(&all, of, out);
    struct ratios ratios = ratios_of(&all, NULL, (struct among){.of = of});
    if (!ratios.rows) ratios = ratios_of_families(&all);
    out->bias = told.bias;
    out->spread = told.spread;
    out->degrees = told.degrees;
    out->families = told.n;
    out->ratio_rows = ratios.rows;
    out->ratio_spread = ratios.rows ? sqrt(ratios.squares / (double)ratios.rows) : 0;
    return DL_OK;
}

/* ---- intervals ---- */

/* Of the middle 95 %, by Student's t. */
static double half_width(double spread, double degrees)
{
    const double upper = 0.975;
    return degrees > 0 ? spread * gsl_cdf_tdist_Pinv(upper, degrees) : 0;
}

static struct dl_open of_rows(const struct dl_row_errors *e)
{
    const double half = half_width(e->spread, (double)e->rows);
    return (struct dl_open){e->bias, e->bias - half, e->bias + half};
}

struct dl_open dl_discrepancy_own(const struct dl_discrepancy *d) { return of_rows(&d->own); }

/* To the side of rows that lie outside. */
static void widen(struct dl_open *open, const struct dl_row_errors *e)
{
    if (!e->rows) return;
    const struct dl_open rows = of_rows(e);
    open->low = fmin(open->low, rows.low);
    open->high = fmax(open->high, rows.high);
}

struct dl_open dl_discrepancy_open(const struct dl_discrepancy *d)
{
    const double half = half_width(d->spread, d->degrees);
    struct dl_open open = {d->bias, d->bias - half, d->bias + half};
    if (!d->by_own) {
        widen(&open, &d->own);
        widen(&open, &d->kin);
    }
    return open;
}

double dl_discrepancy_half_width(const struct dl_discrepancy *d)
{
    const struct dl_open open = dl_discrepancy_open(d);
    return (open.high - open.low) / 2;
}

double dl_discrepancy_ratio_half_width(const struct dl_discrepancy *d)
{
    return d->ratio_rows ? half_width(d->ratio_spread, (double)d->ratio_rows) : sqrt(2) * dl_discrepancy_half_width(d);
}

json_t *dl_discrepancy_json(const struct dl_discrepancy *d)
{
    const struct dl_open open = dl_discrepancy_open(d);
    return dl_json_pack("{s:s, s:s, s:b, s:s, s:I, s:b, s:f, s:f, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "software",
                        d->of.software, "system", d->of.system, "experts", d->of.experts, "domain",
                        dl_domains[d->of.domain], "families", (json_int_t)d->families, "blind", d->by_blind, "bias",
                        d->bias, "spread", d->spread, "own_software", d->own_software, "own_rows",
                        (json_int_t)d->own.rows, "own_bias", d->own.bias, "own_spread", d->own.spread, "low", open.low,
                        "high", open.high, "half_width", dl_discrepancy_half_width(d), "ratio_half_width",
                        dl_discrepancy_ratio_half_width(d));
}
