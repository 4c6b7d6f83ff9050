/* training_readers.c - the readers of the training half. What they accept must have finite sizes and prices, and a
 * strategy that fits a small machine must become programs there. */
#define _POSIX_C_SOURCE 200809L /* fmemopen */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/engine/scenario.h"
#include "sim/import/log.h"
#include "sim/study/training_row.h"
#include "strategies/lower.h"
#include "topologies/placement.h"

#include "tests/fuzz/readers.h"

static const char small_workload[] =
    "{\"schema\": \"dlsim/workload/1\", \"source\": \"made up\", \"kind\": \"transformer\", \"layers\": 8,"
    " \"hidden\": 64, \"heads\": 8, \"seq\": 32, \"vocab\": 128, \"experts\": 4, \"top_k\": 2}";

static const char small_device[] =
    "{\"schema\": \"dlsim/device/1\", \"source\": \"made up\", \"model\": \"roofline\","
    " \"peak_flop_per_s\": {\"fp32\": 1e12, \"tf32\": 1e12, \"fp16\": 1e12, \"bf16\": 1e12, \"fp8\": 1e12},"
    " \"memory_bytes\": 1e9, \"memory_bytes_per_s\": 1e11, \"launch_s\": 1e-6,"
    " \"figures\": {\"compute_fraction\": 1, \"bandwidth_fraction\": 1}}";

static const char small_transport[] = "{\"schema\": \"dlsim/transport/1\", \"source\": \"made up\","
                                      " \"protocols\": [{\"name\": \"one\", \"peer\": {}, \"tree\": {}}]}";

static bool parse(struct input *in, struct dl_json *doc)
{
    return dl_json_parse(in->text, in->bytes, "input.json", in->arena, doc, &in->err) == DL_OK;
}

static struct dl_json own(struct input *in, const char *text)
{
    struct dl_json doc;
    const enum dl_status status = dl_json_parse(text, strlen(text), "own.json", in->arena, &doc, &in->err);
    assert(!status);
    (void)status;
    return doc;
}

static void use_model(const struct dl_model *m, const struct dl_device *d)
{
    assert(m->n_layers > 0 && isfinite(dl_model_parameters(m)) && dl_model_parameters(m) > 0);
    assert(isfinite(m->model_flop_per_sample[DL_FLOP_FULL]) && m->model_flop_per_sample[DL_FLOP_CAUSAL] > 0);
    for (size_t i = 0; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_forward; j++) {
            const struct dl_work *const work = &m->layers[i].forward[j];
            const double seconds = dl_price(d, &work->kernel, DL_FP32).seconds;
            assert(isfinite(seconds) && seconds >= 0);
        }
}

static void open_device(struct input *in, struct dl_device *out)
{
    const struct dl_json doc = own(in, small_device);
    const enum dl_status status = dl_device_read(doc, in->arena, out, &in->err);
    assert(!status);
    (void)status;
    json_decref(doc.value);
}

void read_workload(struct input *in)
{
    static const char *const attentions[] = {"unfused", "flash"};
    struct dl_json doc;
    struct dl_model model;
    struct dl_device device;
    open_device(in, &device);
    for (size_t i = 0; i < DL_COUNT(attentions) && !in->err.status && parse(in, &doc); i++) {
        if (!dl_workload_read(
                doc, 1,
                (struct dl_model_code){
                    attentions[i], i % 2 == 0, i % 2 == 1, i % 2 == 0, i % 2 == 1, 4, {i % 2 ? 8 : 0, ~0u, true}, 1, 2},
                in->arena, &model, &in->err))
            use_model(&model, &device);
        json_decref(doc.value);
    }
}

/* Any size of product that a model may have. */
static void use_device(const struct dl_device *d)
{
    for (double size = 1; size <= 1e6; size *= 10)
        for (int p = 0; p < DL_N_PRECISIONS; p++) {
            const struct dl_kernel k = {.kind = DL_KERNEL_GEMM, .name = "any", .batch = 1, .m = size, .n = 8, .k = 64};
            if (!dl_device_supports(d, (enum dl_precision)p)) continue;
            const double seconds = dl_price(d, &k, (enum dl_precision)p).seconds;
            assert(isfinite(seconds) && seconds > 0);
        }
}

void read_device(struct input *in)
{
    struct dl_json doc;
    struct dl_device device;
    if (!parse(in, &doc)) return;
    const enum dl_status status = dl_device_read(doc, in->arena, &device, &in->err);
    json_decref(doc.value);
    if (!status) use_device(&device);
}

void read_software(struct input *in)
{
    struct dl_json doc;
    struct dl_software software;
    if (!parse(in, &doc)) return;
    if (!dl_software_read(doc, in->arena, &software, &in->err))
        assert(software.host_s_per_launch >= 0 && software.launches_per_kernel >= 0 && software.gradient_bytes > 0);
    json_decref(doc.value);
}

void read_scenario(struct input *in)
{
    struct dl_json small, doc;
    struct dl_scenario scenario;
    struct dl_topology *const t = open_small_system(in, &small);
    const struct dl_scenario_scope scope = {.topology = t, .n_stages = 2, .n_replicas = 2};
    if (parse(in, &doc)) {
        dl_scenario_read(doc, NULL, in->arena, &scenario, &in->err);
        if (!in->err.status && !dl_scenario_read(doc, &scope, in->arena, &scenario, &in->err))
            for (size_t i = 0; i < scenario.n_changes; i++) assert(scenario.changes[i].link < t->n_links);
        json_decref(doc.value);
    }
    dl_topology_free(t);
    json_decref(small.value);
}

/* What a row stands for is two documents, or a refusal. */
static void use_rows(struct input *in, struct dl_training_rows *rows)
{
    for (size_t i = 0; i < rows->n && !in->err.status; i++) {
        struct dl_session_request made = {0};
        assert(rows->items[i].step_s > 0 && rows->items[i].tp >= 1 && rows->items[i].where);
        if (dl_training_row_request(&rows->items[i], 1, in->arena, &made, &in->err)) break;
        json_decref(own(in, made.strategy.text).value);
        json_decref(own(in, made.workload.text).value);
    }
    dl_training_rows_release(rows);
}

void read_rows(struct input *in)
{
    struct dl_training_rows rows = {0};
    dl_training_rows_parse(in->text, in->bytes, "input.csv", in->arena, &rows, &in->err);
    use_rows(in, &rows);
}

void read_steps(struct input *in)
{
    struct dl_training_rows rows = {0};
    struct dl_json doc;
    if (!parse(in, &doc)) return;
    dl_training_rows_add(doc, in->arena, &rows, &in->err);
    json_decref(doc.value);
    use_rows(in, &rows);
}

static void lower(struct input *in, struct dl_job *job, const struct dl_topology *t)
{
    const struct dl_json workload = own(in, small_workload), transport_file = own(in, small_transport);
    const struct dl_software software = {.name = "none", .launches_per_kernel = 1, .gradient_bytes = 4};
    struct dl_model model;
    struct dl_device device;
    struct dl_transport transport;
    struct dl_estimator estimator;
    struct dl_lowered lowered = {0};
    double *const bytes_per_s = dl_arena_alloc(in->arena, t->n_links * sizeof *bytes_per_s);
    uint32_t *const device_of_rank = dl_arena_alloc(in->arena, t->n_devices * sizeof *device_of_rank);
    for (size_t i = 0; i < t->n_links; i++) bytes_per_s[i] = t->links[i].bandwidth_bytes_per_s;
    open_device(in, &device);
    job->setting.software = &software;
    const bool ready = !dl_workload_read(workload, job->setting.microbatch,
                                         (struct dl_model_code){.attention = "flash"}, in->arena, &model, &in->err) &&
                       !dl_transport_read(transport_file, t, t->n_nodes, in->arena, &transport, &in->err) &&
                       !dl_place(t, "packed", 1, job->n_devices, device_of_rank, &in->err);
    assert(ready);
    (void)ready;
    dl_estimator_init(&estimator, t, &transport, bytes_per_s);
    const struct dl_lower_request request = {
        .job = job, .model = &model, .device = &device, .estimator = &estimator, .device_of_rank = device_of_rank};
    if (!dl_lower(&request, in->arena, &lowered, &in->err)) assert(isfinite(lowered.by_ground[DL_GROUND_MODELLED]));
    dl_lowered_release(&lowered, job->setting.ways[DL_AXIS_PIPELINE]);
    dl_estimator_release(&estimator);
    json_decref(workload.value);
    json_decref(transport_file.value);
}

void read_strategy(struct input *in)
{
    enum { quick_micros = 64 }; /* more are valid, but slow to try */
    struct dl_json small, doc;
    struct dl_job job;
    if (!parse(in, &doc)) return;
    struct dl_topology *const t = open_small_system(in, &small);
    if (!dl_job_read(doc, 0, in->arena, &job, &in->err) && job.n_devices <= t->n_devices &&
        job.setting.micros <= quick_micros)
        lower(in, &job, t);
    dl_topology_free(t);
    json_decref(small.value);
    json_decref(doc.value);
}

/* A log is not refused: what it does not say is asked for later. */
void read_log(struct input *in)
{
    const struct dl_log_sizes sizes = {.devices = 8, .global_batch = 64, .tokens_per_sample = 2048};
    FILE *const stream = in->bytes ? fmemopen((void *)in->text, in->bytes, "rb") : NULL;
    struct dl_log log;
    if (!stream) return;
    dl_log_read_stream(stream, in->arena, &log);
    fclose(stream);
    if (log.format) {
        const struct dl_log_summary s = dl_log_summarise(&log, &sizes, DL_LOG_WARMUP);
        assert(s.n_used + s.n_warmup + s.n_other_batch == s.n_steps && s.n_used && log.software);
        const double rounding = 1e-12 * s.median_s;
        if (isfinite(rounding) && isfinite(s.high_s))
            assert(s.low_s <= s.median_s + rounding && s.median_s <= s.high_s + rounding && s.low_s >= 0);
        for (size_t i = 0; i < log.n_timers; i++) dl_log_timer_s(&log.timers[i], DL_LOG_WARMUP);
    }
    dl_log_release(&log);
}
