#include "sim/report/log_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/core/json.h"
#include "sim/report/units.h"

/* Below it a cause is no more than rounding. */
static double rounding_s(const struct dl_logged *log) { return 1e-12 * log->predicted.step_s; }

double dl_logged_factor(const struct dl_compared *row, enum dl_cause cause)
{
    const double exposed_s = row->log->predicted.exposed_s[cause], difference_s = row->measured_s - row->predicted_s;
    const double factor = 1 + difference_s / exposed_s;
    return exposed_s > rounding_s(row->log) && factor >= 0 ? factor : NAN;
}

/* ---- text ---- */

static void print_compared(const char *name, const char *measured, const char *predicted, double error)
{
    printf("  %-24s %12s %12s %+9.1f %%\n", name, measured, predicted, 100 * error);
}

static void print_seconds(const char *name, double measured_s, double predicted_s)
{
    char a[DL_QUANTITY], b[DL_QUANTITY];
    print_compared(name, dl_format_seconds(measured_s, a), dl_format_seconds(predicted_s, b),
                   (predicted_s - measured_s) / measured_s);
}

static void print_memory(const struct dl_compared *row)
{
    char a[DL_QUANTITY], b[DL_QUANTITY], name[80];
    if (!(row->log->peak_bytes > 0)) return;
    snprintf(name, sizeof name, "memory, %s", row->log->peak);
    print_compared(name, dl_format_bytes(row->log->peak_bytes, a), dl_format_bytes(row->peak_bytes, b),
                   (row->peak_bytes - row->log->peak_bytes) / row->log->peak_bytes);
}

static void print_interval(const struct dl_compared *row)
{
    char a[DL_QUANTITY], b[DL_QUANTITY];
    if (!(row->high_s > 0)) return;
    const bool is_within = row->measured_s >= row->low_s && row->measured_s <= row->high_s;
    printf("  interval of the predicted step (95 %%): %s to %s; the measured step lies %s\n",
           dl_format_seconds(row->low_s, a), dl_format_seconds(row->high_s, b), is_within ? "within" : "outside");
}

static void print_cause(const struct dl_compared *row, enum dl_cause cause)
{
    const double s = row->log->predicted.exposed_s[cause], factor = dl_logged_factor(row, cause);
    char a[DL_QUANTITY], times[DL_QUANTITY] = "-";
    if (!isnan(factor)) snprintf(times, sizeof times, "%.2f x", factor);
    if (s > rounding_s(row->log))
        printf("    %-14s %9s %5.1f %% %12s\n", dl_cause_name(cause), dl_format_seconds(s, a),
               100 * s / row->log->predicted.step_s, times);
}

static void print_causes(const struct dl_compared *row)
{
    puts("  where the predicted time goes, and the factor on this cause alone that would give the measured step");
    for (int cause = 0; cause < DL_N_CAUSES; cause++) print_cause(row, (enum dl_cause)cause);
}

static void print_steps(const struct dl_logged *log)
{
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("%s: %s, median of %zu of %zu steps (10 to 90 %%: %s to %s)", log->file, log->program, log->n_used,
           log->n_steps, dl_format_seconds(log->low_s, a), dl_format_seconds(log->high_s, b));
    if (log->n_warmup) printf("; the first %zu left out", log->n_warmup);
    if (log->n_other_batch) printf("; %zu with another global batch left out", log->n_other_batch);
    if (log->n_runs_before) printf("; only the last of %zu runs in it", log->n_runs_before + 1);
    putchar('\n');
}

void dl_logged_text(const struct dl_compared *row, const char *engine)
{
    const struct dl_logged *const log = row->log;
    print_steps(log);
    printf("  run: %s\n", log->said);
    if (log->left_out) printf("  in the log, not in the prediction: %s\n", log->left_out);
    if (log->software) printf("  assumed: software %s, the nearest to the program\n", log->software);
    if (row->failure) {
        printf("  no prediction: %s\n", row->failure);
        return;
    }
    if (row->microbatch)
        printf("  assumed: micro-batches of %lld, %s\n", (long long)row->microbatch,
               row->fits ? "the fastest that fit" : "the smallest: none fits");
    printf("  engine %-17s %12s %12s %11s\n", engine, "measured", "predicted", "error");
    print_seconds("step", row->measured_s, row->predicted_s);
    for (size_t i = 0; i < log->n_phases; i++)
        print_seconds(log->phases[i].name, log->phases[i].measured_s, log->phases[i].predicted_s);
    print_memory(row);
    if (!row->fits) puts("  it is predicted not to fit into memory");
    print_interval(row);
    print_causes(row);
}

/* ---- JSON ---- */

static json_t *phases_json(const struct dl_logged *log)
{
    json_t *const phases = json_object();
    for (size_t i = 0; i < log->n_phases; i++)
        json_object_set_new(phases, log->phases[i].name,
                            dl_json_pack("{s:f, s:f}", "measured_s", log->phases[i].measured_s, "predicted_s",
                                         log->phases[i].predicted_s));
    return phases;
}

static json_t *causes_json(const struct dl_compared *row)
{
    json_t *const causes = json_object();
    for (int i = 0; i < DL_N_CAUSES; i++) {
        const double factor = dl_logged_factor(row, (enum dl_cause)i);
        json_object_set_new(causes, dl_cause_name((enum dl_cause)i),
                            dl_json_pack("{s:f, s:o}", "exposed_s", row->log->predicted.exposed_s[i], "factor",
                                         isnan(factor) ? json_null() : dl_json_real(factor)));
    }
    return causes;
}

json_t *dl_logged_json(const struct dl_compared *row)
{
    const struct dl_logged *const log = row->log;
    json_t *const json = dl_json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:s?, s:o, s:o}", "program", log->program, "run", log->said,
        "steps", (json_int_t)log->n_steps, "used", (json_int_t)log->n_used, "warmup", (json_int_t)log->n_warmup,
        "other_batch", (json_int_t)log->n_other_batch, "runs_before", (json_int_t)log->n_runs_before, "measured_s_low",
        log->low_s, "measured_s_high", log->high_s, "measured_peak_bytes",
        log->peak_bytes > 0 ? dl_json_real(log->peak_bytes) : json_null(), "left_out", log->left_out, "phases",
        phases_json(log), "causes", row->failure ? json_null() : causes_json(row));
    return json;
}
