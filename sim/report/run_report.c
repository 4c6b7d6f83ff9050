#include "sim/report/run_report.h"

#include <stdio.h>

#include "sim/report/bar.h"
#include "sim/report/campaign_report.h"
#include "sim/report/choice_report.h"
#include "sim/report/causes_report.h"
#include "sim/report/failing_report.h"
#include "sim/report/host.h"
#include "sim/report/slice_report.h"
#include "sim/report/shared_nics.h"
#include "sim/report/timed_alone.h"
#include "sim/report/units.h"
#include "sim/report/verdict.h"

static uint32_t n_stages(const struct dl_run_report *r) { return dl_n_stages(&r->job->setting); }

uint32_t dl_run_fullest_stage(const struct dl_run_report *r)
{
    uint32_t fullest = 0;
    for (uint32_t i = 1; i < n_stages(r); i++)
        if (r->memory[i].peak + r->memory[i].beside > r->memory[fullest].peak + r->memory[fullest].beside) fullest = i;
    return fullest;
}

double dl_run_headroom_bytes(const struct dl_run_report *r)
{
    const struct dl_memory_use *const m = &r->memory[dl_run_fullest_stage(r)];
    return r->device->memory_bytes - m->peak - m->beside;
}

bool dl_run_fits(const struct dl_run_report *r)
{
    const struct dl_memory_use *const m = &r->memory[dl_run_fullest_stage(r)];
    return m->peak + m->beside <= r->device->memory_bytes && dl_memory_fits_host(r->topology, r->job, r->memory) &&
           dl_memory_fits_outside(r->topology, &r->job->setting, r->model);
}

static double samples_per_s(const struct dl_run_report *r) { return r->job->setting.global_batch / r->result.step_s; }

static double flop_per_device_s(const struct dl_run_report *r, enum dl_flop_count count)
{
    return r->lowered->model_flop[count] / r->result.step_s / r->job->n_devices;
}

static double peak_flop_per_s(const struct dl_run_report *r)
{
    return r->device->peak_flop_per_s[r->job->setting.precision];
}

/* All flop that devices spend on the model, recomputation included. */
static double hardware_flop(const struct dl_run_report *r, enum dl_flop_count count)
{
    double flop = 0;
    for (uint32_t i = 0; i < r->lowered->n_positions; i++)
        for (int kind = 0; kind <= DL_ITEM_W; kind++)
            flop += r->lowered->positions[i].items[kind].total.counted_flop[count];
    return flop * r->job->setting.micros * r->job->n_devices / n_stages(r);
}

double dl_run_mfu(const struct dl_run_report *r, enum dl_flop_count count)
{
    return flop_per_device_s(r, count) / peak_flop_per_s(r);
}

double dl_run_hfu(const struct dl_run_report *r, enum dl_flop_count count)
{
    return hardware_flop(r, count) / r->result.step_s / r->job->n_devices / peak_flop_per_s(r);
}

/* How often replicas reduce the gradients of a chunk in a step; 0: there is one replica. */
static uint32_t gradient_sums(const struct dl_run_report *r)
{
    const struct dl_setting *const s = &r->job->setting;
    const struct dl_schedule *const schedule = &r->lowered->schedule;
    const enum dl_accumulates what = dl_accumulated(s);
    uint32_t runs = 0;
    if (dl_copies(s, false) == 1) return 0;
    if (what != DL_ACCUMULATES_CHUNK)
        return what == DL_ACCUMULATES_SHARDS || s->sums_when == DL_WHEN_MICRO ? s->micros : 1;
    bool *const completing = dl_alloc(schedule->n_items[0] * sizeof *completing);
    dl_schedule_completing(schedule, 0, true, completing);
    for (uint32_t i = 0; i < schedule->n_items[0]; i++) runs += completing[i] && !schedule->items[0][i].chunk;
    dl_free(completing);
    return runs;
}

/* What stages 2 and 3 of ZeRO accumulate costs memory or time, so it is said. */
static void print_gradients(const struct dl_run_report *r)
{
    static const char *const what[] = {[DL_ACCUMULATES_SHARDS] = "shards accumulate",
                                       [DL_ACCUMULATES_CHUNK] = "whole gradients of one chunk accumulate",
                                       [DL_ACCUMULATES_WHOLE] = "whole gradients accumulate"};
    const struct dl_setting *const s = &r->job->setting;
    const uint32_t sums = gradient_sums(r);
    if (s->zero_stage < 2 || s->micros == 1 || !sums) return;
    printf("  gradients      %s: %u reduce-scatter%s for %u micro-batches\n", what[dl_accumulated(s)], sums,
           sums == 1 ? "" : "s", s->micros);
}

/* A schedule may promise what the software does not let it keep. */
static void print_barrier(const struct dl_run_report *r)
{
    const struct dl_setting *const s = &r->job->setting;
    if (dl_n_stages(s) == 1 || !r->lowered->schedule.ends_skewed || !s->software->step_barrier) return;
    printf("  schedule       stages of %s end one after the other, but %s has a barrier between steps, where all wait\n"
           "                 for the last; without it (software.step_barrier false) there would be no such bubble\n",
           s->schedule, s->software->name);
}

static void print_memory(const struct dl_run_report *r)
{
    const uint32_t stage = dl_run_fullest_stage(r);
    const struct dl_memory_use *const m = &r->memory[stage];
    const struct {
        const char *name;
        double bytes;
    } parts[] = {{"parameters", m->parameters},   {"gradients", m->gradients}, {"optimizer", m->optimizer},
                 {"activations", m->activations}, {"buffers", m->buffers},     {"workspace", m->workspace}};
    char a[DL_QUANTITY], b[DL_QUANTITY];
    if (m->peak == 0) {
        puts("  memory: not known, the program allocates nothing");
        return;
    }
    printf("  memory of the fullest stage (%u): %s of %s\n", stage, dl_format_bytes(m->peak, a),
           dl_format_bytes(r->device->memory_bytes, b));
    for (size_t i = 0; i < DL_COUNT(parts); i++)
        dl_print_bar(parts[i].name, dl_format_bytes(parts[i].bytes, a), parts[i].bytes / m->peak);
    print_gradients(r);
    dl_verdict_print(r);
}

static json_t *gradients_json(const struct dl_run_report *r)
{
    static const char *const what[] = {
        [DL_ACCUMULATES_SHARDS] = "shards", [DL_ACCUMULATES_CHUNK] = "chunk", [DL_ACCUMULATES_WHOLE] = "whole"};
    const uint32_t sums = gradient_sums(r);
    const enum dl_accumulates accumulated = sums ? dl_accumulated(&r->job->setting) : DL_ACCUMULATES_WHOLE;
    return dl_json_pack("{s:s, s:I}", "accumulated", what[accumulated], "sums", (json_int_t)sums);
}

/* Of the seconds of kernels. */
static double ground_share(const struct dl_run_report *r, enum dl_ground ground)
{
    double all_s = 0;
    for (int i = DL_GROUND_MEASURED; i < DL_N_GROUNDS; i++) all_s += r->lowered->by_ground[i];
    return all_s > 0 ? r->lowered->by_ground[ground] / all_s : 0;
}

static double measured_share(const struct dl_run_report *r)
{
    return ground_share(r, DL_GROUND_MEASURED) + ground_share(r, DL_GROUND_INTERPOLATED);
}

static json_t *grounds_json(const struct dl_run_report *r)
{
    json_t *const grounds = json_object();
    for (int i = DL_GROUND_MEASURED; i < DL_N_GROUNDS; i++)
        json_object_set_new(grounds, dl_ground_name((enum dl_ground)i),
                            dl_json_real(ground_share(r, (enum dl_ground)i)));
    json_object_set_new(grounds, "device", json_string(r->device->name));
    json_object_set_new(grounds, "model", json_string(r->device->model->name));
    if (r->lowered->clock > 0) json_object_set_new(grounds, "clock_fraction", dl_json_real(r->lowered->clock));
    return grounds;
}

static void print_step(const struct dl_run_report *r)
{
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("  step           %s", dl_format_seconds(r->result.step_s, a));
    if (r->sensitivity)
        printf(" (%s to %s with 95 %%, by what constants and the model leave open)",
               dl_format_seconds(r->sensitivity->step_s_low, a), dl_format_seconds(r->sensitivity->step_s_high, b));
    putchar('\n');
}

/* Seconds of a day, and tokens that people count training by. */
static const double day_s = 86400, trillion = 1e12;

static double tokens_per_s(const struct dl_run_report *r) { return samples_per_s(r) * r->model->tokens_per_sample; }

static void print_throughput(const struct dl_run_report *r)
{
    const double tokens = tokens_per_s(r), n = r->job->n_devices;
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY];
    printf("  throughput     %s samples/s", dl_format_number(samples_per_s(r), a));
    if (tokens > 0) printf(", %s tokens/s", dl_format_count(tokens, b));
    if (n > 1)
        printf(": %s %s/s a device", dl_format_number((tokens > 0 ? tokens : samples_per_s(r)) / n, c),
               tokens > 0 ? "tokens" : "samples");
    printf("\n                 %s PFLOP/s of the model",
           dl_format_number(flop_per_device_s(r, DL_FLOP_CAUSAL) * n * 1e-15, a));
    if (tokens > 0) printf(", %s days for a trillion tokens", dl_format_number(trillion / tokens / day_s, b));
    putchar('\n');
}

static void add_throughput(const struct dl_run_report *r, json_t *report)
{
    const double tokens = tokens_per_s(r), n = r->job->n_devices;
    const bool has_tokens = tokens > 0;
    json_t *const more =
        dl_json_pack("{s:f, s:o, s:f, s:o}", "samples_per_device_s", samples_per_s(r) / n, "tokens_per_device_s",
                     has_tokens ? dl_json_real(tokens / n) : json_null(), "model_flop_per_s",
                     flop_per_device_s(r, DL_FLOP_CAUSAL) * n, "days_per_trillion_tokens",
                     has_tokens ? dl_json_real(trillion / tokens / day_s) : json_null());
    json_object_update(report, more);
    json_decref(more);
}

static void print_shares(const struct dl_run_report *r)
{
    const double mfu = dl_run_mfu(r, DL_FLOP_CAUSAL), full = dl_run_mfu(r, DL_FLOP_FULL);
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("  share of peak  MFU %.1f %%, HFU %.1f %%: %s of %s TFLOP/s a device (dense %s)", 100 * mfu,
           100 * dl_run_hfu(r, DL_FLOP_CAUSAL), dl_format_number(flop_per_device_s(r, DL_FLOP_CAUSAL) * 1e-12, a),
           dl_format_number(peak_flop_per_s(r) * 1e-12, b), dl_precision_name(r->job->setting.precision));
    puts(full > mfu ? ", causal attention" : "");
    if (full > mfu)
        printf("                 MFU %.1f %%, HFU %.1f %% by full attention, as Megatron-LM and PaLM count it\n",
               100 * full, 100 * dl_run_hfu(r, DL_FLOP_FULL));
}

void dl_run_report_text(const struct dl_run_report *r, bool links)
{
    const char *const libraries = dl_device_libraries(r->device);
    char a[DL_QUANTITY];
    dl_run_head_print(r);
    dl_slice_print(r->topology, r->job->n_devices);
    print_step(r);
    print_throughput(r);
    if (r->campaign) dl_campaign_print(r->campaign);
    if (r->failing) dl_failing_print(r->failing, r->topology, &r->failing_sources);
    if (r->campaign) dl_campaign_print_power(r->campaign);
    if (r->failing) dl_failing_print_footprint(r->failing);
    print_shares(r);
    dl_causes_print(r);
    print_barrier(r);
    if (links) dl_links_print(&r->links);
    print_memory(r);
    printf("  kernels        ");
    for (int ground = DL_GROUND_MEASURED; ground < DL_N_GROUNDS; ground++)
        printf("%.0f %% %s, ", 100 * ground_share(r, (enum dl_ground)ground), dl_ground_name((enum dl_ground)ground));
    printf("by %s (model %s%s%s)", r->device->name, r->device->model->name, *libraries ? ", times of " : "", libraries);
    if (r->lowered->clock > 0) printf(", at %.0f %% of the highest clock", 100 * r->lowered->clock);
    putchar('\n');
    printf("  engine %s, %s, %s events\n", r->engine, r->fidelity, dl_format_count((double)r->n_events, a));
    dl_timed_alone_print(r);
    dl_shared_nics_print(r);
    dl_files_read_print(&r->files);
    dl_tuner_note_print(&r->tuner_note, r->transport->tuner);
    if (r->sensitivity) dl_sensitivity_print(r->sensitivity);
    if (r->power_sources.n) {
        puts("  power rests on");
        dl_sources_print(&r->power_sources);
    }
    dl_assumptions_print(&r->assumptions);
    if (r->explanation) dl_explanation_print(r->explanation);
}

static json_t *memory_json(const struct dl_run_report *r)
{
    json_t *const list = json_array();
    for (uint32_t i = 0; i < n_stages(r); i++) {
        const struct dl_memory_use *const m = &r->memory[i];
        json_array_append_new(list, dl_json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "stage",
                                                 (json_int_t)i, "parameters", m->parameters, "gradients", m->gradients,
                                                 "optimizer", m->optimizer, "activations", m->activations, "buffers",
                                                 m->buffers, "workspace", m->workspace, "fragmentation",
                                                 m->fragmentation, "peak", m->peak));
    }
    return list;
}

/* What `mfu` and `hfu` refer to, and both in the other convention. */
static void add_shares(const struct dl_run_report *r, json_t *report)
{
    json_t *const shares = dl_json_pack("{s:s, s:f, s:s, s:f, s:f, s:f}", "mfu_convention", "causal_attention",
                                        "peak_flop_per_s", peak_flop_per_s(r), "peak_precision",
                                        dl_precision_name(r->job->setting.precision), "mfu_full_attention",
                                        dl_run_mfu(r, DL_FLOP_FULL), "hfu_full_attention", dl_run_hfu(r, DL_FLOP_FULL),
                                        "model_flop_per_device_s_full_attention", flop_per_device_s(r, DL_FLOP_FULL));
    json_object_update(report, shares);
    json_decref(shares);
}

static json_t *whole_run_json(const struct dl_run_report *r)
{
    json_t *const whole = dl_campaign_json(r->campaign, &r->power_sources);
    json_object_set_new(whole, "failures", dl_failing_json(r->failing, &r->failing_sources));
    return whole;
}

json_t *dl_run_report_json(const struct dl_run_report *r)
{
    const struct dl_host host = dl_host_now();
    json_t *const report = dl_json_pack(
        "{s:f, s:I, s:f, s:o, s:f, s:f, s:f, s:b, s:o, s:o, s:f, s:f, s:f, s:f, s:o, s:o, s:s, s:s, s:I, "
        "s:f, s:o, s:o}",
        "step_s", r->result.step_s, "devices", (json_int_t)r->job->n_devices, "samples_per_s", samples_per_s(r),
        "tokens_per_s", tokens_per_s(r) > 0 ? dl_json_real(tokens_per_s(r)) : json_null(), "model_flop_per_device_s",
        flop_per_device_s(r, DL_FLOP_CAUSAL), "mfu", dl_run_mfu(r, DL_FLOP_CAUSAL), "hfu",
        dl_run_hfu(r, DL_FLOP_CAUSAL), "fits", dl_run_fits(r), "memory_bytes", memory_json(r), "causes",
        dl_causes_json(r), "forward_s", r->result.elapsed_s[DL_PHASE_FORWARD], "backward_s",
        r->result.elapsed_s[DL_PHASE_BACKWARD], "optimizer_s", r->result.elapsed_s[DL_PHASE_END], "measured_share",
        measured_share(r), "kernels", grounds_json(r), "assumptions", dl_assumptions_json(&r->assumptions), "engine",
        r->engine, "fidelity", r->fidelity, "events", (json_int_t)r->n_events, "timed_alone", dl_n_timed_alone(r),
        "verdict", dl_verdict_json(r), "host", dl_host_json(&host));
    json_object_set_new(report, "files", dl_files_read_json(&r->files));
    json_object_set_new(report, "causes_by_stage", dl_causes_by_stage_json(r->stages, n_stages(r)));
    json_object_set_new(report, "software", json_string(r->job->setting.software->name));
    json_object_set_new(report, "software_is_default", json_boolean(!r->names_software));
    add_throughput(r, report);
    add_shares(r, report);
    if (dl_n_timed_alone(r) > 0) json_object_set_new(report, "timed_alone_kinds", dl_timed_alone_json(r));
    json_object_set_new(report, "shared_nics_s", dl_json_real(dl_shared_nics_s(r)));
    json_object_set_new(report, "tuner", dl_tuner_note_json(&r->tuner_note));
    json_object_set_new(report, "slice", dl_slice_json(r->topology));
    json_object_set_new(report, "gradients", gradients_json(r));
    json_object_set_new(report, "links", dl_links_json(&r->links));
    if (r->sensitivity) dl_sensitivity_add_json(r->sensitivity, report);
    if (r->campaign) json_object_set_new(report, "whole_run", whole_run_json(r));
    if (r->explanation) json_object_set_new(report, "explain", dl_explanation_json(r->explanation));
    return report;
}
