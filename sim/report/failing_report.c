#include "sim/report/failing_report.h"

#include <stdio.h>

#include "sim/core/json.h"
#include "sim/report/campaign_report.h"
#include "sim/report/units.h"

static const double hour_s = 3600, day_s = 86400;

/* Why there is nothing to tell; NULL: there is. */
static const char *left_out(const struct dl_failing_run *f)
{
    static const char *const why[] = {
        [DL_FAILS] = NULL,
        [DL_NO_RELIABILITY] = "the system file does not say how often parts fail (reliability)",
        [DL_NO_STORAGE] = "the system file does not say how fast checkpoints are written (storage)",
        [DL_NO_WAY_TO_HOST] = "the system file does not say how devices reach their host",
        [DL_TOO_OFTEN] = "checkpoints would begin while others are being written",
        [DL_NEVER_ENDS] = "the run would fail more than a million times",
    };
    return why[f->status];
}

/* ---- text ---- */

static void print_kinds(const struct dl_failing_run *f)
{
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("  failures       one every %s:", dl_format_duration(f->restarts.mtbf_s, a));
    for (size_t i = 0; i < f->n_kinds; i++)
        printf("%s %s %s%s of %s%s", i ? "," : "", dl_format_count(f->kinds[i].n, a), f->kinds[i].what,
               f->kinds[i].n == 1 ? "" : "s", dl_format_count(f->kinds[i].mtbf_s / hour_s, b), i ? "" : " hours each");
    printf("\n                 recovery %s: detect %s", dl_format_duration(f->restarts.recovery_s, a),
           dl_format_duration(f->detect_s, b));
    printf(", restart %s, load %s\n", dl_format_duration(f->restart_s, a), dl_format_duration(f->load_s, b));
}

static void print_checkpoints(const struct dl_failing_run *f)
{
    const struct dl_restarts *const r = &f->restarts;
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY];
    printf("  checkpoints    %s in %s at %s", dl_format_bytes(f->checkpoint_bytes, a),
           dl_format_duration(f->write_s, b), dl_format_rate(f->write_bytes_per_s, c));
    if (f->asynchronous) printf(" while training goes on after %s", dl_format_duration(r->blocking_s, a));
    printf(", every %s step%s, %s%s\n", dl_format_count(f->steps.between, a), f->steps.between == 1 ? "" : "s",
           dl_format_duration(f->steps.between * f->steps.step_s, b), f->steps_given ? " as given" : ", which is best");
    printf("                 best interval %s exactly, %s by Daly, ", dl_format_duration(dl_restarts_best_s(r), a),
           dl_format_duration(dl_restarts_daly_s(r), b));
    printf("%s by Young\n", dl_format_duration(dl_restarts_young_s(r), a));
}

static void print_goodput(const struct dl_failing_run *f)
{
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY];
    printf("  with failures  %s, %s device hours, %s interruptions, goodput %.1f %%\n",
           dl_format_duration(f->seconds, a), dl_format_number(f->device_s / hour_s, b),
           dl_format_number(f->failures, c), 100 * f->goodput);
    printf("                 the rest: %.1f %% checkpoints, %.1f %% recovery, %.1f %% work done again\n",
           100 * f->checkpointing, 100 * f->recovering, 100 * f->lost);
    printf("                 simulated %ju times: %s in the mean, ", (uintmax_t)f->n_trials,
           dl_format_duration(f->simulated.seconds, a));
    printf("nine of ten in %s to ", dl_format_duration(f->simulated.low_s, a));
    printf("%s\n", dl_format_duration(f->simulated.high_s, a));
}

static void print_sources(const struct dl_topology *topology, const struct dl_sources *sources)
{
    printf("                 from figures of %s: ", topology->name);
    dl_sources_print_grades(sources);
    puts(" (sources: --json -)");
}

void dl_failing_print(const struct dl_failing_run *f, const struct dl_topology *topology,
                      const struct dl_sources *sources)
{
    if (left_out(f)) {
        printf("  failures       left out: %s\n", left_out(f));
        return;
    }
    print_kinds(f);
    print_checkpoints(f);
    print_goodput(f);
    print_sources(topology, sources);
}

void dl_failing_print_footprint(const struct dl_failing_run *f)
{
    if (!left_out(f)) dl_footprint_print("with failures", &f->footprint);
}

/* ---- JSON ---- */

static json_t *kinds_json(const struct dl_failing_run *f)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < f->n_kinds; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f, s:f, s:f, s:f}", "kind", f->kinds[i].what, "count",
                                                 f->kinds[i].n, "mtbf_hours", f->kinds[i].mtbf_s / hour_s,
                                                 "interruptions", f->seconds * f->kinds[i].n / f->kinds[i].mtbf_s,
                                                 "interruptions_simulated", f->simulated.failures[i]));
    return list;
}

static json_t *checkpoints_json(const struct dl_failing_run *f)
{
    const struct dl_restarts *const r = &f->restarts;
    return dl_json_pack("{s:f, s:f, s:f, s:f, s:b, s:f, s:f, s:b, s:f, s:f, s:f}", "bytes", f->checkpoint_bytes,
                        "write_bytes_per_s", f->write_bytes_per_s, "write_s", f->write_s, "blocking_s", r->blocking_s,
                        "asynchronous", f->asynchronous, "steps", f->steps.between, "interval_s",
                        f->steps.between * f->steps.step_s, "is_best", !f->steps_given, "best_interval_s",
                        dl_restarts_best_s(r), "daly_interval_s", dl_restarts_daly_s(r), "young_interval_s",
                        dl_restarts_young_s(r));
}

static json_t *simulated_json(const struct dl_failing_run *f)
{
    const struct dl_failures_simulated *const s = &f->simulated;
    return dl_json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "runs", (json_int_t)f->n_trials, "days",
                        s->seconds / day_s, "days_low", s->low_s / day_s, "days_high", s->high_s / day_s, "goodput",
                        f->steps.n * f->steps.step_s / s->seconds, "recovery_share", s->recovering_s / s->seconds,
                        "repeated_share", s->lost_s / s->seconds);
}

json_t *dl_failing_json(const struct dl_failing_run *f, const struct dl_sources *sources)
{
    if (left_out(f)) return dl_json_pack("{s:s}", "left_out", left_out(f));
    json_t *const failures = dl_json_pack(
        "{s:n, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o}", "left_out",
        "mtbf_hours", f->restarts.mtbf_s / hour_s, "detect_s", f->detect_s, "restart_s", f->restart_s, "load_s",
        f->load_s, "recovery_s", f->restarts.recovery_s, "days", f->seconds / day_s, "device_hours",
        f->device_s / hour_s, "interruptions", f->failures, "goodput", f->goodput, "checkpoint_share", f->checkpointing,
        "recovery_share", f->recovering, "repeated_share", f->lost, "parts", kinds_json(f), "checkpoints",
        checkpoints_json(f), "simulated", simulated_json(f), "sources", dl_sources_json(sources));
    dl_footprint_add_json(&f->footprint, failures);
    return failures;
}
