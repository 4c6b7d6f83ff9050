#include "sim/report/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Half-widths, relative, where a file says none. They are assumptions about figures of a kind, not about one. */
static const double usual_half_width[DL_N_GRADES] = {
    [DL_MEASURED] = 0.05,  /* machines of one type, and runs on different days, differ about so much */
    [DL_PUBLISHED] = 0.02, /* data sheets: what is achieved of them is another figure */
    [DL_DERIVED] = 0.10,   /* from figures of other kinds, or from a device that is alike */
    [DL_FITTED] = 0.10,    /* by times of other kernels, or of whole steps */
    [DL_ASSUMED] = 0.30,   /* the right order of magnitude */
};

/* Below this an effect is left out of the text, or out of the list. */
static const double least_shown = 5e-3, least_listed = 1e-4;

void dl_effect_set_usual_interval(struct dl_effect *e)
{
    const double half_width = usual_half_width[e->grade] * fabs(e->value);
    e->by_grade = true;
    e->low = e->value - half_width;
    e->high = e->value + half_width;
}

/* ---- combining ---- */

static double size_of(const struct dl_effect *e) { return fmax(fabs(e->below), fabs(e->above)); }

static int compare(const void *a, const void *b)
{
    const struct dl_effect *const x = *(struct dl_effect *const *)a, *const y = *(struct dl_effect *const *)b;
    const double apart = fabs(y->elasticity) - fabs(x->elasticity);
    return apart > 0 ? 1 : apart < 0 ? -1 : x < y ? -1 : 1; /* effects alike: in the order of the files */
}

static void sort(struct dl_effect *effects, size_t n)
{
    const struct dl_effect **const order = dl_alloc(n * sizeof *order);
    struct dl_effect *const sorted = dl_alloc(n * sizeof *sorted);
    for (size_t i = 0; i < n; i++) order[i] = &effects[i];
    qsort(order, n, sizeof *order, compare);
    for (size_t i = 0; i < n; i++) sorted[i] = *order[i];
    for (size_t i = 0; i < n; i++) effects[i] = sorted[i];
    dl_free(order);
    dl_free(sorted);
}

/* Shares of the step by which the constant may make it longer, or shorter (negative). */
static double longer(const struct dl_effect *e)
{
    return fmax(e->elasticity * (e->high - e->value), e->elasticity * (e->low - e->value)) / e->value;
}

static double shorter(const struct dl_effect *e)
{
    return fmin(e->elasticity * (e->high - e->value), e->elasticity * (e->low - e->value)) / e->value;
}

struct dl_sensitivity dl_sensitivity_of(double step_s, struct dl_effect *effects, size_t n)
{
    struct dl_sensitivity s = {.items = effects, .step_s = step_s};
    double up = 0, down = 0, by_grade = 0;
    sort(effects, n);
    for (size_t i = 0; i < n; i++) {
        const struct dl_effect *const e = &effects[i];
        up += longer(e) * longer(e);
        down += shorter(e) * shorter(e);
        if (e->by_grade) by_grade += longer(e) * longer(e) + shorter(e) * shorter(e);
        if (e->dimension != DL_FACTOR) s.sum += e->dimension == DL_TIME ? e->elasticity : -e->elasticity;
        if (size_of(e) >= least_listed) effects[s.n++] = *e;
    }
    s.step_s_high = s.constants_s_high = step_s * (1 + sqrt(up));
    s.step_s_low = s.constants_s_low = step_s * fmax(1 - sqrt(down), 0);
    s.by_grade_share = up + down > 0 ? by_grade / (up + down) : 0;
    return s;
}

void dl_sensitivity_cover(struct dl_sensitivity *s, struct dl_open model)
{
    s->step_s_low = fmin(s->constants_s_low, s->step_s * exp(model.low));
    s->step_s_high = fmax(s->constants_s_high, s->step_s * exp(model.high));
}

void dl_sensitivity_widen(struct dl_sensitivity *s, struct dl_open model)
{
    if (!(s->step_s > 0)) return;
    const double shorter_by = hypot(log(s->constants_s_low / s->step_s), model.middle - model.low); /* 0 stays 0 */
    const double longer_by = hypot(log(s->constants_s_high / s->step_s), model.high - model.middle);
    s->step_s_low = s->step_s * exp(model.middle - shorter_by);
    s->step_s_high = s->step_s * exp(model.middle + longer_by);
}

/* ---- telling ---- */

/* Whether a little less and a little more do not have opposite effects alike. */
static bool turns(const struct dl_effect *e)
{
    const double least_share = 0.2;
    return fabs(e->above - e->below) > fmax(least_share * size_of(e), least_shown);
}

static void print_effect(const struct dl_effect *e)
{
    printf("    %+7.3f  %s%s%s%s %.4g (%.4g to %.4g, %s)", e->elasticity, e->path, e->of ? " [" : "",
           e->of ? e->of : "", e->of ? "]" : "", e->value, e->low, e->high, dl_grade_name(e->grade));
    if (turns(e)) printf("; %+.3f if less, %+.3f if more", e->below, e->above);
    putchar('\n');
}

static void print_model(const struct dl_sensitivity *s)
{
    const struct dl_discrepancy *const m = &s->model;
    const struct dl_open open = dl_discrepancy_open(m);
    if (!m->families) return;
    printf("    model: %+.1f to %+.1f %%, about %+.1f, from %lld families of measured steps%s; ", 100 * expm1(open.low),
           100 * expm1(open.high), 100 * expm1(open.middle), (long long)m->families,
           m->by_blind ? " that were predicted blind" : "");
    if (m->own.rows)
        printf("%lld steps took %+.1f %%, give or take %.1f,", (long long)m->own.rows, 100 * expm1(m->own.bias),
               100 * m->own.spread);
    else
        printf("none is");
    printf(" of %s%s on %s", m->of.experts ? "experts in " : "", m->own_software, m->of.system);
    printf("; constants: %+.1f to %+.1f %%\n", 100 * (s->constants_s_low / s->step_s - 1),
           100 * (s->constants_s_high / s->step_s - 1));
}

void dl_sensitivity_print(const struct dl_sensitivity *s)
{
    size_t n_small = 0;
    puts("  percent of the step for one percent more of each constant (its value, and the interval that holds it)");
    for (size_t i = 0; i < s->n; i++)
        if (size_of(&s->items[i]) >= least_shown)
            print_effect(&s->items[i]);
        else
            n_small++;
    printf("    %zu more below %g, %zu without effect", n_small, least_shown, s->n_unfelt);
    if (s->n_fixed) printf(", %zu could not be changed", s->n_fixed);
    putchar('\n');
    print_model(s);
    printf("    times less rates sum to %.3f (1 if nothing turns)\n", s->sum);
    printf("    %.0f %% of what constants leave open (squared) from widths that no file says: measured %g %%, "
           "published %g %%, derived %g %%, fitted %g %%, assumed %g %%\n",
           100 * s->by_grade_share, 100 * usual_half_width[DL_MEASURED], 100 * usual_half_width[DL_PUBLISHED],
           100 * usual_half_width[DL_DERIVED], 100 * usual_half_width[DL_FITTED], 100 * usual_half_width[DL_ASSUMED]);
}

static json_t *effect_json(const struct dl_effect *e)
{
    static const char *const dimensions[] = {[DL_TIME] = "time", [DL_RATE] = "rate", [DL_FACTOR] = "factor"};
    return dl_json_pack("{s:s, s:s?, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:b}", "path", e->path, "of", e->of,
                        "dimension", dimensions[e->dimension], "value", e->value, "elasticity", e->elasticity,
                        "if_less", e->below, "if_more", e->above, "low", e->low, "high", e->high, "grade",
                        dl_grade_name(e->grade), "by_grade", e->by_grade);
}

void dl_sensitivity_add_json(const struct dl_sensitivity *s, json_t *report)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < s->n; i++) json_array_append_new(list, effect_json(&s->items[i]));
    json_object_set_new(report, "step_s_low", dl_json_real(s->step_s_low));
    json_object_set_new(report, "step_s_high", dl_json_real(s->step_s_high));
    json_object_set_new(report, "constants_s_low", dl_json_real(s->constants_s_low));
    json_object_set_new(report, "constants_s_high", dl_json_real(s->constants_s_high));
    if (s->model.families) json_object_set_new(report, "discrepancy", dl_discrepancy_json(&s->model));
    json_object_set_new(report, "sensitivity", list);
    json_object_set_new(report, "sensitivity_sum", dl_json_real(s->sum));
    json_object_set_new(report, "interval_by_grade_share", dl_json_real(s->by_grade_share));
}
