#include "sim/memory/remedies.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory/held.h"
#include "strategies/strategies.h"
#include "topologies/placement.h"

/* A strategy document on the way to one that fits. */
struct attempt {
    json_t *strategy;
    uint32_t n_devices;
    struct dl_setting setting; /* of the document */
    uint32_t features;         /* bits 1 << enum dl_feature: what it asks of the software */
    const char *change;
    uint32_t used; /* bit by change: none comes twice */
    double peak;   /* negative: it is refused, or does not fit into the host */
};

/* A strategy, or for NULL smaller micro-batches, which belong to none. */
struct change {
    const struct dl_strategy *strategy;
    uint32_t rank, n_steps;
};

struct search {
    const struct dl_remedy_request *request;
    struct change changes[32]; /* as `used` has bits */
    size_t n_changes;
    struct dl_arena *arena;
    uint32_t lacked;     /* features that neither the software nor the run has */
    struct attempt best; /* so far, in this round */
};

/* ---- the memory of a changed job ---- */

static double fullest_peak(const struct dl_topology *t, const struct dl_job *job, const struct dl_lowered *lowered,
                           double memory_bytes)
{
    const uint32_t n_stages = dl_n_stages(&job->setting);
    struct dl_memory_use *const use = dl_alloc(n_stages * sizeof *use);
    double peak = 0;
    dl_memory_with_held(&(struct dl_held_request){lowered->programs, lowered->calls, &job->setting, memory_bytes}, use);
    for (uint32_t i = 0; i < n_stages; i++) peak = fmax(peak, use[i].peak + use[i].beside);
    if (!dl_memory_fits_host(t, job, use)) peak = -1;
    dl_free(use);
    return peak;
}

static void lower_and_count(const struct search *s, struct dl_job *job, struct dl_estimator *estimator,
                            struct attempt *a, struct dl_error *err)
{
    const struct dl_remedy_request *const r = s->request;
    const struct dl_places places = {job->n_devices, job->setting.servers};
    uint32_t *const device_of_rank = dl_alloc((places.ranks + places.servers) * sizeof *device_of_rank);
    struct dl_arena *const arena = dl_arena_new(); /* schedules are large, and attempts are many */
    struct dl_model model;
    struct dl_lowered lowered = {0};
    const struct dl_lower_request request = {
        .job = job, .model = &model, .device = r->device, .estimator = estimator, .device_of_rank = device_of_rank};
    if (!dl_place_with_servers(estimator->topology, r->placement, r->seed, places, device_of_rank, err) &&
        !dl_workload_read(r->workload, job->setting.microbatch, dl_job_model_code(job, r->software->code), arena,
                          &model, err)) {
        dl_job_suit_machine(job, r->device, estimator->topology);
        dl_job_suit(job, r->software, &model);
        if (dl_memory_fits_outside(estimator->topology, &job->setting, &model) &&
            !dl_lower(&request, arena, &lowered, err))
            a->peak = fullest_peak(estimator->topology, job, &lowered, r->device->memory_bytes);
    }
    dl_lowered_release(&lowered, dl_n_stages(&job->setting));
    dl_arena_free(arena);
    dl_free(device_of_rank);
}

/* More devices may be another slice of the machine. */
static void lower_on_slice(const struct search *s, struct dl_job *job, struct attempt *a, struct dl_error *err)
{
    struct dl_estimator *const usual = s->request->estimator;
    struct dl_topology *slice = NULL;
    if (!dl_placement_is_list(s->request->placement) &&
        dl_topology_slice(usual->topology, job->n_devices + job->setting.servers, &slice, err))
        return;
    if (!slice) {
        lower_and_count(s, job, usual, a, err);
        return;
    }
    struct dl_estimator estimator;
    double *const bytes_per_s = dl_transport_rates(usual->transport, slice);
    dl_estimator_init(&estimator, slice, usual->transport, bytes_per_s);
    lower_and_count(s, job, &estimator, a, err);
    dl_estimator_release(&estimator);
    dl_free(bytes_per_s);
    dl_topology_free(slice);
}

/* The entry of a strategy in the stack; NULL: there is none. */
static json_t *find_entry(const json_t *strategy, const char *name)
{
    const json_t *const stack = json_object_get(strategy, "stack");
    for (size_t i = 0; i < json_array_size(stack); i++) {
        json_t *const found = json_array_get(stack, i);
        const char *const its = json_string_value(json_object_get(found, "name"));
        if (its && strcmp(its, name) == 0) return found;
    }
    return NULL;
}

/* Of those that changes ask for. */
static uint32_t features_of(const struct dl_setting *s, const json_t *strategy)
{
    const bool asks[DL_N_FEATURES] = {[DL_FEATURE_TENSOR] = s->ways[DL_AXIS_TENSOR] > 1,
                                      [DL_FEATURE_PIPELINE] = dl_n_stages(s) > 1,
                                      [DL_FEATURE_ZERO_1] = s->zero_asked == 1,
                                      [DL_FEATURE_ZERO_2] = s->zero_asked == 2,
                                      [DL_FEATURE_ZERO_3] = s->zero_asked == 3,
                                      [DL_FEATURE_SELECTIVE] = s->recompute == DL_RECOMPUTE_SELECTIVE,
                                      [DL_FEATURE_OFFLOAD] = find_entry(strategy, dl_strategy_offload.name) != NULL};
    uint32_t features = 0;
    for (uint32_t i = 0; i < DL_N_FEATURES; i++) features |= (uint32_t)asks[i] << i;
    return features;
}

/* A job that cannot be is no remedy: its error is forgotten. */
static void weigh(const struct search *s, struct attempt *a)
{
    struct dl_error err = {0};
    struct dl_job job;
    const struct dl_json doc = {.value = a->strategy, .where = s->request->strategy.where};
    a->peak = -1;
    if (a->n_devices > s->request->estimator->topology->n_whole_devices ||
        dl_job_read(doc, a->n_devices, s->arena, &job, &err) ||
        (s->request->has_room && !s->request->has_room(s->request->user, &job)))
        return;
    a->setting = job.setting;
    a->features = features_of(&job.setting, a->strategy);
    if (!(a->features & s->lacked)) lower_on_slice(s, &job, a, &err);
}

/* ---- changes ---- */

/* The same, made if it is not there: then a key of the file that is short for it goes. */
static json_t *entry(json_t *strategy, const char *name)
{
    json_t *const stack = json_object_get(strategy, "stack"), *const found = find_entry(strategy, name);
    if (found) return found;
    json_object_del(strategy, name);
    json_object_del(json_object_get(strategy, "facts"), name); /* of no key */
    json_array_append_new(stack, json_pack("{s:s}", "name", name));
    return json_array_get(stack, json_array_size(stack) - 1);
}

/* From the replicas, if there are as many; else on more devices. */
static const char *widen(struct attempt *a, const struct dl_strategy *wide, uint32_t step, struct dl_arena *arena)
{
    const uint32_t factor = 2u << step, ways = a->setting.ways[wide->relief->axis] * factor;
    const bool takes_replicas = dl_n_replicas(&a->setting) % factor == 0;
    if (ways > 65536 || (!takes_replicas && a->n_devices > UINT32_MAX / factor)) return NULL;
    json_object_set_new(entry(a->strategy, wide->name), "ways", json_integer(ways));
    json_object_del(a->strategy, "order"); /* may not name the axis */
    if (!takes_replicas) a->n_devices *= factor;
    if (takes_replicas) return dl_arena_format(arena, "%s %u ways", wide->name, ways);
    return dl_arena_format(arena, "%s %u ways on %u devices", wide->name, ways, a->n_devices);
}

static const struct change smaller_microbatch = {.rank = 3, .n_steps = 3};

static const char *shrink_microbatch(struct attempt *a, uint32_t step, struct dl_arena *arena)
{
    const json_int_t samples = (json_int_t)a->setting.microbatch >> (step + 1);
    if (samples < 1) return NULL;
    json_object_set_new(a->strategy, "microbatch", json_integer(samples));
    return dl_arena_format(arena, "microbatch %lld", (long long)samples);
}

/* What it has changed in words, or NULL where there is nothing to change. `step` counts from 0. */
static const char *make(const struct change *c, struct attempt *a, uint32_t step, struct dl_arena *arena)
{
    const struct dl_strategy *const s = c->strategy;
    if (!s) return shrink_microbatch(a, step, arena);
    if (!s->relief->change) return widen(a, s, step, arena);
    return s->relief->change(entry(a->strategy, s->name), &a->setting, step, arena);
}

static int by_rank(const void *a, const void *b)
{
    const struct change *const x = a, *const y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* From cheap to costly. */
static void list_changes(struct search *s)
{
    s->changes[s->n_changes++] = smaller_microbatch;
    for (size_t i = 0; i < dl_strategy_count(); i++) {
        const struct dl_strategy *const strategy = dl_strategy_get(i);
        if (!strategy->relief) continue;
        assert(s->n_changes < DL_COUNT(s->changes));
        s->changes[s->n_changes++] = (struct change){strategy, strategy->relief->rank, strategy->relief->n_steps};
    }
    qsort(s->changes, s->n_changes, sizeof *s->changes, by_rank);
}

/* ---- the search ---- */

static void add(struct dl_remedies *out, const struct attempt *a, double memory_bytes)
{
    DL_GROW(out->items, out->n, out->capacity);
    out->items[out->n++] = (struct dl_remedy){.change = a->change, .peak = a->peak, .fits = a->peak <= memory_bytes};
}

static void keep(struct search *s, struct attempt *a)
{
    const bool better = a->peak >= 0 && (s->best.peak < 0 || a->peak < s->best.peak);
    json_decref(better ? s->best.strategy : a->strategy);
    if (better) s->best = *a;
}

/* The first step of a change that fits is enough of it. */
static void try_change(struct search *s, size_t which, const struct attempt *from, struct dl_remedies *out)
{
    const double memory_bytes = s->request->device->memory_bytes;
    bool fits = from->used >> which & 1;
    for (uint32_t step = 0; step < s->changes[which].n_steps && !fits; step++) {
        struct attempt a = *from;
        a.strategy = json_deep_copy(from->strategy);
        const char *const change = make(&s->changes[which], &a, step, s->arena);
        a.change = !change || !from->change ? change : dl_arena_format(s->arena, "%s and %s", from->change, change);
        a.used |= 1u << which;
        a.peak = -1;
        if (change) weigh(s, &a);
        fits = a.peak >= 0 && a.peak <= memory_bytes;
        if (fits) add(out, &a, memory_bytes);
        keep(s, &a);
    }
}

void dl_remedies_find(const struct dl_remedy_request *request, struct dl_arena *arena, struct dl_remedies *out)
{
    enum { most_rounds = 4 };
    struct search s = {.request = request, .arena = arena};
    struct attempt from = {.strategy = json_deep_copy(request->strategy.value), .n_devices = request->n_devices};
    *out = (struct dl_remedies){0};
    list_changes(&s);
    weigh(&s, &from);
    s.lacked = request->software->lacks.features & ~from.features;
    for (int round = 0; round < most_rounds && !out->n; round++) {
        s.best = (struct attempt){.peak = -1};
        for (size_t i = 0; i < s.n_changes; i++) try_change(&s, i, &from, out);
        if (s.best.peak < 0 || s.best.peak >= from.peak) break;
        json_decref(from.strategy);
        from = s.best;
        s.best.strategy = NULL;
    }
    if (!out->n && from.change) add(out, &from, request->device->memory_bytes);
    json_decref(s.best.strategy);
    json_decref(from.strategy);
}

void dl_remedies_release(struct dl_remedies *r)
{
    dl_free(r->items);
    *r = (struct dl_remedies){0};
}
