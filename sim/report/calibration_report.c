#include "sim/report/calibration_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/units.h"

static const double percent = 100;

static size_t count_runs(const struct dl_calibration *c, bool kept_out)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_runs; i++) n += c->runs[i].kept_out == kept_out;
    return n;
}

static void print_errors(const struct dl_calibration *c, const char *what, bool kept_out)
{
    const size_t n = count_runs(c, kept_out);
    if (n)
        printf("  %-10s %4zu rows   %7.2f %%   %7.2f %%\n", what, n, percent * dl_calibration_error(c, kept_out, false),
               percent * dl_calibration_error(c, kept_out, true));
}

static json_t *errors_json(const struct dl_calibration *c, bool kept_out)
{
    const size_t n = count_runs(c, kept_out);
    if (!n) return json_null();
    return dl_json_pack("{s:I, s:f, s:f}", "n", (json_int_t)n, "mape_before", dl_calibration_error(c, kept_out, false),
                        "mape_after", dl_calibration_error(c, kept_out, true));
}

/* What was measured several times is one row, with the mean of the times. */
static void print_rows(const struct dl_calibration *c)
{
    printf("%-32s %10s %10s %10s   %s\n", "rows", "measured", "before", "after", "by");
    for (size_t i = 0, n; i < c->n_runs; i += n) {
        const struct dl_timed_run *const run = &c->runs[i];
        char what[64], bytes[DL_QUANTITY], times[3][DL_QUANTITY];
        double sum_s = 0;
        for (n = 0; i + n < c->n_runs && dl_same_timed_run(run, run + n); n++) sum_s += run[n].time_s;
        snprintf(what, sizeof what, "%s of %s over %u", dl_op_name(run->op), dl_format_bytes(run->bytes, bytes),
                 run->group->n);
        printf("  %-30s %10s %10s %10s   %s %s%s\n", what, dl_format_seconds(sum_s / (double)n, times[0]),
               dl_format_seconds(run->before_s, times[1]), dl_format_seconds(run->after_s, times[2]), run->algorithm,
               run->protocol, run->kept_out ? ", kept out" : "");
    }
}

/* ---- collectives ---- */

static void print_not_told(const struct dl_calibration *c)
{
    const size_t n = dl_calibration_count(c, DL_FIT_NOT_TOLD);
    if (!n) return;
    printf("%zu stay as they were, for the rows do not tell them, or not from others:\n", n);
    for (size_t i = 0; i < c->constants.n; i++)
        if (c->fitted[i].state == DL_FIT_NOT_TOLD) printf("  %s\n", c->constants.items[i].name);
}

static void print_told(const struct dl_calibration *c)
{
    static const char *const notes[] = {
        [DL_FIT_AGREES] = " (agrees)", [DL_FIT_AT_LIMIT] = " (the most that can be)", [DL_FIT_DONE] = ""};
    if (dl_calibration_count(c, DL_FIT_NO_EFFECT) + dl_calibration_count(c, DL_FIT_NOT_TOLD) == c->constants.n) {
        puts("these rows determine no constant: nothing changes, and nothing is written; more sizes, or tables of "
             "other "
             "groups, tell more");
        return;
    }
    printf("%-50s %10s %10s   %s\n", "constants that the rows tell", "base", "now", "95 %");
    for (size_t i = 0; i < c->constants.n; i++) {
        const struct dl_fitted_constant *const f = &c->fitted[i];
        const struct dl_tunable *const k = &c->constants.items[i];
        if (f->state < DL_FIT_AGREES) continue;
        printf("  %-48s %10.4g %10.4g  ", k->name, k->base, f->value);
        if (f->state != DL_FIT_AT_LIMIT) printf(" %.4g to %.4g", f->low, f->high);
        puts(notes[f->state]);
    }
}

/* Which algorithm and protocol the transport would now take for the runs of a group: where they change. */
static void print_switches(const struct dl_calibration *c)
{
    const struct dl_timed_run *last = NULL;
    for (size_t i = 0; i < c->n_runs; i++) {
        const struct dl_timed_run *const run = &c->runs[i];
        char bytes[DL_QUANTITY];
        if (!last || last->group != run->group)
            printf("%s%s of %u:", last ? "\n" : "", dl_op_name(run->op), run->group->n);
        else if (strcmp(last->protocol, run->protocol) == 0 && last->algorithm == run->algorithm)
            continue;
        printf("  %s %s from %s", run->algorithm, run->protocol, dl_format_bytes(run->bytes, bytes));
        last = run;
    }
    putchar('\n');
}

void dl_calibration_text(const struct dl_calibration *c)
{
    print_rows(c);
    printf("mean error of times            before      after\n");
    print_errors(c, "fitted", false);
    print_errors(c, "kept out", true);
    print_told(c);
    print_not_told(c);
    printf("%zu stay as they were, for no row depends on them (all of them: --json -)\n",
           dl_calibration_count(c, DL_FIT_NO_EFFECT));
    print_switches(c);
}

static json_t *constant_json(const struct dl_tunable *k, const struct dl_fitted_constant *f)
{
    static const char *const states[] = {"no effect", "not told", "agrees", "at limit", "fitted"};
    json_t *const out = dl_json_pack("{s:s, s:s, s:f}", "name", k->name, "state", states[f->state], "base", k->base);
    if (f->state >= DL_FIT_AGREES) json_object_set_new(out, "value", dl_json_real(f->value));
    if (f->state == DL_FIT_AGREES || f->state == DL_FIT_DONE) {
        json_object_set_new(out, "low", dl_json_real(f->low));
        json_object_set_new(out, "high", dl_json_real(f->high));
    }
    return out;
}

static json_t *runs_json(const struct dl_calibration *c)
{
    json_t *const rows = json_array();
    for (size_t i = 0; i < c->n_runs; i++) {
        const struct dl_timed_run *const r = &c->runs[i];
        json_array_append_new(rows,
                              dl_json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:b, s:s, s:s}", "op", dl_op_name(r->op),
                                           "devices", (int)r->group->n, "bytes", r->bytes, "measured_s", r->time_s,
                                           "before_s", r->before_s, "after_s", r->after_s, "kept_out", r->kept_out,
                                           "algorithm", r->algorithm, "protocol", r->protocol));
    }
    return rows;
}

json_t *dl_calibration_json(const struct dl_calibration *c)
{
    json_t *const constants = json_array();
    for (size_t i = 0; i < c->constants.n; i++)
        json_array_append_new(constants, constant_json(&c->constants.items[i], &c->fitted[i]));
    return dl_json_pack("{s:o, s:o, s:o, s:o}", "constants", constants, "fitted", errors_json(c, false), "kept_out",
                        errors_json(c, true), "rows", runs_json(c));
}

/* ---- messages ---- */

static void print_line(const char *what, const struct dl_line *l)
{
    printf("  %-20s %.4g s (%.4g to %.4g) + bytes / %.4g bytes/s (%.4g to %.4g)\n", what, l->intercept,
           l->intercept - l->intercept_pm, l->intercept + l->intercept_pm, 1 / l->slope, 1 / (l->slope + l->slope_pm),
           1 / (l->slope - l->slope_pm));
}

void dl_message_calibration_text(const struct dl_message_calibration *m, const struct dl_calibration *c)
{
    char bytes[DL_QUANTITY];
    printf("messages, with intervals of 95 %%\n");
    if (m->messages.n && m->fit.two_ways) {
        print_line("small", &m->fit.small);
        print_line("large", &m->fit.large);
        printf("  the ways part at %s\n", dl_format_bytes(m->fit.small_until_bytes, bytes));
    } else if (m->messages.n) {
        print_line("all", &m->fit.small);
    }
    printf("  achieved of %s links %.4g bytes/s (%.4g to %.4g), in the %s\n", m->link, m->bytes_per_s,
           m->bytes_per_s_low, m->bytes_per_s_high,
           m->wire_is_replaced ? "system file: its bandwidth was assumed" : "transport's efficiency");
    if (!c->n_runs) return;
    print_rows(c);
    printf("mean error of times            before      after\n");
    print_errors(c, "fitted", false);
}

static json_t *line_json(const struct dl_line *l)
{
    return dl_json_pack("{s:f, s:f, s:f, s:f}", "latency_s", l->intercept, "latency_s_pm", l->intercept_pm,
                        "s_per_byte", l->slope, "s_per_byte_pm", l->slope_pm);
}

json_t *dl_message_calibration_json(const struct dl_message_calibration *m, const struct dl_calibration *c)
{
    json_t *const out = dl_json_pack("{s:s, s:f, s:f, s:f, s:o, s:o}", "link", m->link, "bytes_per_s", m->bytes_per_s,
                                     "low", m->bytes_per_s_low, "high", m->bytes_per_s_high, "fitted",
                                     errors_json(c, false), "rows", runs_json(c));
    if (m->messages.n) json_object_set_new(out, "small", line_json(&m->fit.small));
    if (m->messages.n && m->fit.two_ways) {
        json_object_set_new(out, "large", line_json(&m->fit.large));
        json_object_set_new(out, "small_until_bytes", dl_json_real(m->fit.small_until_bytes));
    }
    return out;
}
