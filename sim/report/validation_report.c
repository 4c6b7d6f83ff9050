/* validation_report.c - a validation for people and for programs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/budget.h"
#include "sim/report/host.h"
#include "sim/report/log_report.h"
#include "sim/report/ranking.h"

/* ---- text ---- */

static void print_percent(double fraction, bool with_sign)
{
    if (isnan(fraction))
        printf("%9s", "-");
    else
        printf(with_sign ? "%+9.1f" : "%9.1f", 100 * fraction);
}

static void print_ordered(const struct dl_errors *e)
{
    if (e->n_pairs)
        printf("%9.1f", 100 * (double)e->n_ordered / (double)e->n_pairs);
    else
        printf("%9s", "-");
}

static void print_errors(const char *name, const struct dl_errors *e)
{
    printf("  %-16.16s %5zu %6zu", name, e->n, e->n_failed);
    print_percent(e->mape, false);
    print_percent(e->bias, true);
    print_ordered(e);
}

static void print_family(const struct dl_row_family *f)
{
    const struct dl_errors all = dl_sum_errors(f->rows, f->n_rows);
    print_errors(f->name, &all);
    print_percent(dl_half_errors(f, false).mape, false);
    print_percent(dl_half_errors(f, true).mape, false);
    printf("%7zu", f->constants.n);
    print_percent(all.worst ? dl_compared_error(all.worst) : NAN, true);
    printf("  %s\n", all.worst ? all.worst->id : "");
}

static void print_failures(const struct dl_validation *v)
{
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->rows[i].failure) printf("  %s failed: %s\n", v->rows[i].id, v->rows[i].failure);
}

static void print_worst_group(const struct dl_row_family *f)
{
    const struct dl_row_group g = dl_worst_group(f);
    if (!g.trait) return;
    printf("  %s: worst with %s, mean %.1f, bias %+.1f in %zu rows\n", f->name, g.trait, 100 * g.mape, 100 * g.bias,
           g.n);
}

static void print_assumed(const struct dl_row_family *f)
{
    for (size_t i = 0; i < f->n_rows; i++) {
        const char *const assumed = f->rows[i]->assumed;
        size_t n = 0, n_before = 0;
        for (size_t j = 0; j < f->n_rows; j++) {
            const bool same = strcmp(f->rows[j]->assumed, assumed) == 0;
            n += same;
            n_before += same && j < i;
        }
        if (*assumed && !n_before) printf("  %s: %s assumed in %zu of %zu rows\n", f->name, assumed, n, f->n_rows);
    }
}

/* Steps within their intervals, of those that have one; and the sum of the widths of these. */
struct within {
    size_t n[2], of[2]; /* by half: fit, kept out */
    double width;
};

static void add_within(const struct dl_row_family *f, struct within *to)
{
    for (int half = 0; half < 2; half++) {
        const struct dl_errors e = dl_half_errors(f, half);
        to->n[half] += e.n_within;
        to->of[half] += e.n_bounded;
        to->width += e.width * (double)e.n_bounded;
    }
}

static void print_within(const char *name, const struct within *w)
{
    const size_t of = w->of[0] + w->of[1];
    if (of)
        printf("  %-16.16s %5zu of %zu fit, %zu of %zu kept out, %.1f %%; they are %.0f %% of the step wide\n", name,
               w->n[0], w->of[0], w->n[1], w->of[1], 100 * (double)(w->n[0] + w->n[1]) / (double)of,
               100 * w->width / (double)of);
}

static void print_all_within(const struct dl_validation *v)
{
    struct within all = {0};
    for (size_t i = 0; i < v->n_families; i++) add_within(&v->families[i], &all);
    if (!(all.of[0] + all.of[1])) return;
    puts("  measured steps within the intervals of the predicted, which should hold 95 %");
    for (size_t i = 0; i < v->n_families; i++) {
        struct within of_family = {0};
        add_within(&v->families[i], &of_family);
        print_within(v->families[i].name, &of_family);
    }
    print_within("all", &all);
}

static void print_chosen(const struct dl_validation *v)
{
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->rows[i].microbatch && !v->rows[i].failure)
            printf("  %s: micro-batches of %lld assumed, %s\n", v->rows[i].id, (long long)v->rows[i].microbatch,
                   v->rows[i].fits ? "the fastest that fit" : "the smallest: none fits");
}

void dl_validation_text(const struct dl_validation *v)
{
    const struct dl_errors all = dl_validation_summary(v);
    printf("predicted against measured steps, engine %s; errors in percent of the measured\n", v->engine);
    printf("  %-16s %5s %6s%9s%9s%9s%9s%9s%7s%9s\n", "family", "rows", "failed", "mean", "bias", "ordered", "fit",
           "kept out", "fitted", "worst");
    for (size_t i = 0; i < v->n_families; i++) print_family(&v->families[i]);
    print_errors("all", &all);
    printf("%18s%7zu\n", "", v->constants.n);
    print_failures(v);
    for (size_t i = 0; i < v->n_families; i++) print_worst_group(&v->families[i]);
    for (size_t i = 0; i < v->n_families; i++) print_assumed(&v->families[i]);
    for (size_t i = 0; i < v->left_out.n; i++)
        printf("  %zu rows left out: %s\n", v->left_out.items[i].n, v->left_out.items[i].why);
    print_chosen(v);
    if (v->constants.n_chosen)
        printf("  %zu of the %zu constants %s chosen with both halves in sight\n", v->constants.n_chosen,
               v->constants.n, v->constants.n_chosen == 1 ? "was" : "were");
    dl_promises_text(v);
    print_all_within(v);
    if (v->has_budget) dl_budget_text(v);
    dl_validation_notes_text(v);
}

/* ---- JSON ---- */

static json_t *number_or_null(double x) { return isnan(x) ? json_null() : dl_json_real(x); }

static json_t *errors_json(const struct dl_errors *e)
{
    const double ordered = e->n_pairs ? (double)e->n_ordered / (double)e->n_pairs : NAN;
    json_t *const json =
        dl_json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "n", (json_int_t)e->n, "failed", (json_int_t)e->n_failed,
                     "mape", number_or_null(e->mape), "bias", number_or_null(e->bias), "max", number_or_null(e->max),
                     "ordered", number_or_null(ordered), "pairs", (json_int_t)e->n_pairs);
    if (e->n_bounded) {
        json_object_set_new(json, "within", dl_json_real((double)e->n_within / (double)e->n_bounded));
        json_object_set_new(json, "interval_width", dl_json_real(e->width));
    }
    return json;
}

static json_t *family_json(const struct dl_row_family *f)
{
    const struct dl_errors all = dl_sum_errors(f->rows, f->n_rows), fit = dl_half_errors(f, false),
                           kept_out = dl_half_errors(f, true);
    const struct dl_budget b = dl_budget_of(f->rows, f->n_rows);
    const struct dl_row_group g = dl_worst_group(f);
    json_t *const json = errors_json(&all);
    json_object_set_new(json, "worst", all.worst ? json_string(all.worst->id) : json_null());
    json_object_set_new(json, "fit", errors_json(&fit));
    json_object_set_new(json, "kept_out", errors_json(&kept_out));
    json_object_set_new(json, "source", json_string(f->source));
    if (g.trait)
        json_object_set_new(json, "worst_group",
                            dl_json_pack("{s:s, s:I, s:f, s:f}", "trait", g.trait, "n", (json_int_t)g.n, "mape", g.mape,
                                         "bias", g.bias));
    dl_promises_add_json(f, json);
    json_object_set_new(json, "constants", dl_constants_json(&f->constants));
    if (b.n) json_object_set_new(json, "budget", dl_budget_json(&b));
    return json;
}

static void add_shares(json_t *json, const struct dl_compared *row)
{
    if (row->mfu > 0) json_object_set_new(json, "measured_mfu", dl_json_real(row->mfu));
    if (row->hfu > 0) json_object_set_new(json, "measured_hfu", dl_json_real(row->hfu));
    if (!row->failure && row->quantity == DL_STEP) {
        json_object_set_new(json, "predicted_mfu", dl_json_real(row->predicted_mfu));
        json_object_set_new(json, "predicted_hfu", dl_json_real(row->predicted_hfu));
        json_object_set_new(json, "attention_flop", json_string(row->attention_flop));
    }
    if (row->note) json_object_set_new(json, "note", json_string(row->note));
}

static void add_interval(json_t *json, const struct dl_compared *row)
{
    if (!(row->high_s > 0)) return;
    json_object_set_new(json, "step_s_low", dl_json_real(row->low_s));
    json_object_set_new(json, "step_s_high", dl_json_real(row->high_s));
    json_object_set_new(json, "constants_s_low", dl_json_real(row->constants_low_s));
    json_object_set_new(json, "constants_s_high", dl_json_real(row->constants_high_s));
}

static void add_files(json_t *json, const struct dl_compared *row)
{
    json_object_set_new(json, "model", json_string(row->model));
    if (!row->failure) json_object_set_new(json, "experts", json_boolean(row->experts));
    if (!row->failure) json_object_set_new(json, "domain", json_string(dl_domains[row->domain]));
    if (!row->failure) json_object_set_new(json, "predicted_peak_bytes", dl_json_real(row->peak_bytes));
    if (row->measured_reserved_bytes > 0) {
        json_object_set_new(json, "measured_reserved_bytes", dl_json_real(row->measured_reserved_bytes));
        if (!row->failure) json_object_set_new(json, "predicted_reserved_bytes", dl_json_real(row->reserved_bytes));
    }
    if (row->software) json_object_set_new(json, "software", json_string(row->software));
    if (row->system) json_object_set_new(json, "system", json_string(row->system));
}

static json_t *row_json(const struct dl_compared *row, const char *family)
{
    static const char *const names[][2] = {[DL_STEP] = {"measured_s", "predicted_s"},
                                           [DL_SPEEDUP] = {"measured_speedup", "predicted_speedup"},
                                           [DL_DIFFERENCE] = {"measured_difference_s", "predicted_difference_s"}};
    const bool failed = row->failure != NULL;
    json_t *const json = dl_json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", row->id, "family", family, "half",
                                      dl_is_kept_out(row->id) ? "kept_out" : "fit", names[row->quantity][0],
                                      number_or_null(row->measured_s), names[row->quantity][1],
                                      failed ? json_null() : dl_json_real(row->predicted_s), "error",
                                      failed ? json_null() : number_or_null(dl_compared_error(row)), "fits",
                                      failed ? json_null() : json_boolean(row->fits));
    add_files(json, row);
    add_interval(json, row);
    add_shares(json, row);
    if (row->ran != DL_END_NOT_SAID)
        json_object_set_new(json, "ran_out_of_memory", json_boolean(row->ran == DL_RAN_OUT_OF_MEMORY));
    if (failed)
        json_object_set_new(json, "failure", json_string(row->failure));
    else
        json_object_set_new(json, "sha256", json_string(row->sha256));
    if (*row->assumed) json_object_set_new(json, "assumed", json_string(row->assumed));
    if (row->microbatch) json_object_set_new(json, "assumed_microbatch", json_integer(row->microbatch));
    if (row->log) json_object_set_new(json, "log", dl_logged_json(row));
    return json;
}

static json_t *left_out_json(const struct dl_no_rows *left_out)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < left_out->n; i++)
        json_array_append_new(
            list, dl_json_pack("{s:I, s:s}", "rows", (json_int_t)left_out->items[i].n, "why", left_out->items[i].why));
    return list;
}

json_t *dl_validation_json(const struct dl_validation *v)
{
    const struct dl_host host = dl_host_now();
    const struct dl_errors all = dl_validation_summary(v);
    json_t *const rows = json_array(), *const families = json_object();
    for (size_t i = 0; i < v->n_rows; i++)
        json_array_append_new(rows, row_json(&v->rows[i], v->families[v->family_of[i]].name));
    for (size_t i = 0; i < v->n_families; i++)
        json_object_set_new(families, v->families[i].name, family_json(&v->families[i]));
    return dl_json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "engine", v->engine, "rows", rows, "families", families,
                        "left_out", left_out_json(&v->left_out), "summary", errors_json(&all), "host",
                        dl_host_json(&host));
}
