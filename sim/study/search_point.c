#include "sim/study/search_point.h"

#include <stdlib.h>
#include <string.h>

#include "sim/memory/memory_floor.h"

/* ---- what points share ---- */

static const char name_of_document[] = "search";

/* A strategy that every machine and model has: its reader wants one before anything is known of the model. */
static json_t *plain_strategy(const struct dl_search *s, uint64_t devices, struct dl_error *err)
{
    const struct dl_json doc = {.value = json_deep_copy(s->document), .where = name_of_document};
    json_object_set_new(doc.value, "global_batch", json_integer((json_int_t)devices));
    json_object_set_new(doc.value, "stack", json_pack("[{ss}]", "name", "data"));
    for (size_t i = 0; i < s->fixes.n && !err->status; i++)
        if (!dl_search_fixes_spread(s->fixes.items[i])) dl_search_apply(doc, s->fixes.items[i], s->arena, err);
    return doc.value;
}

/* Twice, because a machine that is kept has one user at a time: here, and so that workers find it built. */
static enum dl_status read_base(struct dl_search *s, struct dl_session_request q, struct dl_error *err)
{
    json_t *const doc = plain_strategy(s, q.devices, err);
    char *const text = json_dumps(doc, 0);
    struct dl_session kept;
    q.strategy = (struct dl_input){.name = name_of_document, .text = text};
    q.engine = "analytic";
    if (dl_session_read(&s->base, &q)) dl_fail(err, s->base.err.status, NULL, "%s", s->base.err.text);
    q.machines = s->machines;
    q.like = &s->base;
    q.model = &s->base.model;
    if (!err->status) {
        dl_session_read(&kept, &q);
        dl_session_close(&kept);
    }
    free(text);
    json_decref(doc);
    return err->status;
}

/* For each micro-batch. */
static enum dl_status build_models(struct dl_search *s, uint32_t head_ways, struct dl_error *err)
{
    struct dl_model_code code = dl_job_model_code(&s->base.job, s->base.software.code);
    code.head_ways = head_ways;
    for (size_t i = 0; i < s->space.n_values[DL_SPACE_MICROBATCH]; i++) {
        const double samples = (double)s->space.values[DL_SPACE_MICROBATCH][i];
        struct dl_search_model *const m = &s->models[s->n_models++];
        m->head_ways = head_ways;
        if (dl_workload_read(s->base.workload_doc, samples, code, s->arena, &m->model, err)) return err->status;
    }
    return DL_OK;
}

/* One for all tensor ways, but for those that share heads of keys: these have models with copies. */
static enum dl_status build_all_models(struct dl_search *s, struct dl_error *err)
{
    const size_t n_tensor = s->space.n_values[DL_SPACE_TENSOR], n_micro = s->space.n_values[DL_SPACE_MICROBATCH];
    s->models = dl_arena_alloc(s->arena, (1 + n_tensor) * n_micro * sizeof *s->models);
    if (build_models(s, 1, err)) return err->status;
    for (size_t i = 0; i < n_tensor; i++) {
        const uint32_t ways = (uint32_t)s->space.values[DL_SPACE_TENSOR][i];
        if (dl_space_shares_keys(&s->space, ways) && build_models(s, ways, err)) return err->status;
    }
    return DL_OK;
}

const struct dl_model *dl_search_model(const struct dl_search *s, const struct dl_job *job)
{
    const uint32_t asked = dl_job_model_code(job, s->base.software.code).head_ways,
                   ways = dl_space_shares_keys(&s->space, asked) ? asked : 1;
    size_t i = 0;
    while (s->models[i].head_ways != ways || s->models[i].model.samples != job->setting.microbatch) i++;
    return &s->models[i].model;
}

/* Values of axes apart from the others, which every strategy has. */
static enum dl_status sort_fixes(struct dl_search *s, const struct dl_texts *fixes, struct dl_texts *of_axes,
                                 struct dl_error *err)
{
    if (dl_search_check_fixes(fixes, err)) return err->status;
    for (size_t i = 0; i < fixes->n; i++) {
        struct dl_texts *const among = dl_space_has_axis(fixes->items[i]) ? of_axes : &s->fixes;
        among->items[among->n++] = dl_search_with_json(fixes->items[i], s->arena);
    }
    return DL_OK;
}

/* What is searched is not fixed too. */
static enum dl_status check_also(const struct dl_texts *fixes, const char *key, struct dl_error *err)
{
    for (size_t i = 0; i < fixes->n; i++)
        if (dl_search_fixes_key(fixes->items[i], key))
            return dl_fail(err, DL_IMPOSSIBLE, "--also", "%s is fixed by --fix %.100s", key, fixes->items[i]);
    return DL_OK;
}

static enum dl_status open_space(struct dl_search *s, const struct dl_search_wanted *w, const struct dl_texts *of_axes,
                                 struct dl_error *err)
{
    struct dl_space_request q = {.devices = w->session.devices,
                                 .devices_per_node = s->base.machine.topology->node.n_devices,
                                 .global_batch = w->global_batch,
                                 .model = &s->base.model,
                                 .software = &s->base.software};
    for (size_t i = 0; i < w->also.n; i++)
        if (dl_space_also(w->also.items[i], &q.also, err) || check_also(&w->fixes, w->also.items[i], err))
            return err->status;
    dl_space_init(&s->space, &q);
    for (size_t i = 0; i < of_axes->n; i++)
        if (dl_space_fix(&s->space, of_axes->items[i], err)) return err->status;
    return build_all_models(s, err) ? err->status : dl_space_list(&s->space, err);
}

static double given_or(double given, double otherwise) { return given > 0 ? given : otherwise; }

static struct dl_facility site_of(const struct dl_facility *of_system, const struct dl_facility *given)
{
    return (struct dl_facility){.pue = given_or(given->pue, of_system->pue),
                                .usd_per_kwh = given_or(given->usd_per_kwh, of_system->usd_per_kwh),
                                .usd_per_device_hour =
                                    given_or(given->usd_per_device_hour, of_system->usd_per_device_hour)};
}

enum dl_status dl_search_open(struct dl_search *s, const struct dl_search_wanted *wanted, struct dl_error *err)
{
    const struct dl_session_request *const q = &wanted->session;
    struct dl_texts of_axes = {0};
    *s = (struct dl_search){.arena = dl_arena_new(), .machines = dl_machines_new()};
    s->document = json_pack("{ss ss sI sI}", "schema", "dlsim/strategy/1", "workload", q->workload.name, "devices",
                            (json_int_t)q->devices, "global_batch", (json_int_t)wanted->global_batch);
    if (q->software.name) json_object_set_new(s->document, "software", json_string(q->software.name));
    if (sort_fixes(s, &wanted->fixes, &of_axes, err) || read_base(s, *q, err)) return err->status;
    s->site = site_of(&s->base.machine.topology->site, &wanted->site);
    s->device_bytes = s->base.device.memory_bytes * (1 - wanted->headroom);
    return open_space(s, wanted, &of_axes, err);
}

void dl_search_close(struct dl_search *s)
{
    dl_space_release(&s->space);
    if (s->base.arena) dl_session_close(&s->base); /* it was read */
    dl_machines_free(s->machines);
    json_decref(s->document);
    dl_arena_free(s->arena);
}

json_t *dl_search_document(const struct dl_search *s, uint64_t point, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_space_point p = dl_space_point(&s->space, point);
    return dl_search_strategy(s->document, &p, &s->fixes, arena, err);
}

/* ---- a point ---- */

struct opened {
    struct dl_arena *arena;
    struct dl_error err; /* a refusal */
    bool is_unfit;
    bool has_session;
    const struct dl_search *search;
    const struct dl_model *model; /* of the search, for this point */
    struct dl_session session;
};

/* Without programs: whether it can be, and whether it could fit. */
static void look_at(const struct dl_search *s, const json_t *doc, struct opened *o)
{
    struct dl_job job;
    if (dl_job_read((struct dl_json){.value = (json_t *)doc, .where = name_of_document}, 0, o->arena, &job, &o->err))
        return;
    const struct dl_model *const model = o->model = dl_search_model(s, &job);
    dl_job_suit_machine(&job, &s->base.device, s->base.machine.topology);
    dl_job_suit(&job, &s->base.software, model);
    if (dl_job_check(&job, model, o->arena, &o->err)) return;
    const double floor = dl_memory_floor(&job, model) + s->base.software.outside_bytes;
    o->is_unfit = floor > s->device_bytes;
}

static bool fits(const struct dl_session *s, double device_bytes)
{
    struct dl_device device = s->device;
    device.memory_bytes = device_bytes;
    const struct dl_run_report r = {
        .topology = s->machine.topology, .job = &s->job, .model = &s->model, .device = &device, .memory = s->memory};
    return dl_run_fits(&r);
}

struct dl_session_request dl_search_request(const struct dl_search *s, uint64_t point, const char *strategy)
{
    const struct dl_space_point p = dl_space_point(&s->space, point);
    struct dl_session_request q = s->base.request;
    q.strategy = (struct dl_input){.name = name_of_document, .text = strategy};
    q.engine = s->engine;
    q.placement = dl_search_placement(&p); /* the base has chosen its own */
    q.fidelity = NULL;
    q.iterations = 0;
    q.memory_bytes = s->memory_bytes;
    return q;
}

static void open_session(const struct dl_search *s, uint64_t point, const json_t *doc, struct opened *o)
{
    char *const text = json_dumps(doc, JSON_COMPACT);
    struct dl_session_request q = dl_search_request(s, point, text);
    q.machines = s->machines;
    q.like = &s->base;
    q.model = o->model;
    o->has_session = true;
    if (dl_session_open(&o->session, &q))
        o->err = o->session.err;
    else
        o->is_unfit = !fits(&o->session, s->device_bytes);
    free(text);
}

void *dl_search_open_point(const struct dl_search *s, uint64_t point)
{
    const struct dl_space_point p = dl_space_point(&s->space, point);
    struct opened *const o = dl_alloc(sizeof *o);
    o->arena = dl_arena_new();
    o->search = s;
    json_t *const doc = dl_search_strategy(s->document, &p, &s->fixes, o->arena, &o->err);
    if (!o->err.status) look_at(s, doc, o);
    if (!o->err.status && !o->is_unfit) open_session(s, point, doc, o);
    json_decref(doc);
    return o;
}

bool dl_search_stands_alone(const void *opened)
{
    const struct opened *const o = opened;
    return !o->err.status && !o->is_unfit && !dl_session_engine(&o->session)->alone;
}

/* Without a PUE it is the machine that counts, not what cools it. */
static struct dl_footprint footprint_of(const struct dl_session *s, const struct dl_search *search)
{
    const struct dl_facility *const site = &search->site;
    if (!search->counts_energy) return (struct dl_footprint){0};
    struct dl_energy energy = dl_session_energy(s);
    energy.site_w = energy.machine_w * given_or(site->pue, 1);
    return dl_footprint_of(&energy, site, s->report.result.step_s, s->job.n_devices);
}

static json_t *step_json(const struct dl_session *s, const struct dl_search *search)
{
    const struct dl_run_report *const r = &s->report;
    const struct dl_footprint footprint = footprint_of(s, search);
    const double samples_per_s = s->job.setting.global_batch / r->result.step_s;
    json_t *const causes = json_array();
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        json_array_append_new(causes, json_real(r->result.exposed_s[cause]));
    return json_pack("{sf sf sf sf sf sf sf so}", "step_s", r->result.step_s, "mfu", dl_run_mfu(r, DL_FLOP_CAUSAL),
                     "tokens_per_s", samples_per_s * s->model.tokens_per_sample, "peak_bytes",
                     s->memory[dl_run_fullest_stage(r)].peak, "left_fraction",
                     dl_run_headroom_bytes(r) / r->device->memory_bytes, "energy_j", footprint.joules, "cost_usd",
                     footprint.usd_of_devices + footprint.usd_of_energy, "exposed_s", causes);
}

json_t *dl_search_run_point(void *opened)
{
    struct opened *const o = opened;
    if (!o->err.status && o->is_unfit) return json_object();
    if (!o->err.status && dl_session_run(&o->session)) o->err = o->session.err;
    if (!o->err.status) return step_json(&o->session, o->search);
    return json_pack("{ss}", o->err.status == DL_STALLED ? "reason" : "refused", o->err.text);
}

void dl_search_close_point(void *opened)
{
    struct opened *const o = opened;
    if (o->has_session) dl_session_close(&o->session);
    dl_arena_free(o->arena);
    dl_free(o);
}
