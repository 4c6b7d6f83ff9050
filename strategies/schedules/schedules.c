/* schedules.c - the only list of schedules; a new one is one file and one line here. */
#include "strategies/schedules/schedules.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct dl_schedule_kind *const kinds[] = {
    &dl_schedule_gpipe,    &dl_schedule_1f1b,          &dl_schedule_interleaved, &dl_schedule_zb_h1,
    &dl_schedule_zb_2p,    &dl_schedule_zbv,           &dl_schedule_v_half,      &dl_schedule_v_min,
    &dl_schedule_dualpipe, &dl_schedule_breadth_first,
};

size_t dl_schedule_count(void) { return DL_COUNT(kinds); }

const struct dl_schedule_kind *dl_schedule_get(size_t index) { return kinds[index]; }

const struct dl_schedule_kind *dl_schedule_named(const char *name)
{
    for (size_t i = 0; i < DL_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

const struct dl_schedule_kind *dl_schedule_usual(void) { return &dl_schedule_1f1b; }

static const char *where(const struct dl_schedule_request *request, const char *key, char *text, size_t size)
{
    const char *const batch = request->batch_where, *const pipeline = request->pipeline_where;
    if (strcmp(key, "global_batch") == 0) return batch ? batch : key;
    snprintf(text, size, "%s/%s", pipeline ? pipeline : "pipeline", key);
    return text;
}

enum dl_status dl_schedule_refuse(const struct dl_schedule_request *request, const char *key, struct dl_error *err,
                                  const char *format, ...)
{
    char place[256], text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return dl_fail(err, DL_IMPOSSIBLE, where(request, key, place, sizeof place), "%s", text);
}

static enum dl_status find(const char *name, const struct dl_schedule_request *request,
                           const struct dl_schedule_kind **out, struct dl_error *err)
{
    char hint[DL_HINT];
    const char *names[DL_COUNT(kinds)];
    *out = dl_schedule_named(name);
    if (*out) return DL_OK;
    for (size_t i = 0; i < DL_COUNT(kinds); i++) names[i] = kinds[i]->name;
    if (*dl_suggestion(name, names, DL_COUNT(kinds), hint))
        return dl_schedule_refuse(request, "schedule", err, "no schedule '%.60s'%s", name, hint);
    return dl_schedule_refuse(request, "schedule", err, "no schedule '%.60s'; there is %s", name,
                              dl_joined(names, DL_COUNT(kinds), hint));
}

static enum dl_status check_counts(const struct dl_schedule_kind *kind, const struct dl_schedule_request *request,
                                   struct dl_error *err)
{
    const uint64_t most_items = UINT64_C(1) << 26; /* of one kind; keeps the order of a step below a few GiB */
    assert(request->stages && request->micros && request->chunks);
    if (request->chunks < kind->min_chunks || request->chunks > kind->max_chunks)
        return dl_schedule_refuse(request, "chunks", err, "%s needs %s %u, got %u; nearest: %u", kind->name,
                                  kind->min_chunks == kind->max_chunks ? "exactly" : "at least", kind->min_chunks,
                                  request->chunks, kind->min_chunks);
    if (request->group && !kind->has_groups)
        return dl_schedule_refuse(request, "group", err, "means nothing with %s: only interleaved deals in groups",
                                  kind->name);
    const uint64_t n_places = (uint64_t)request->stages * request->chunks, most_micros = most_items / n_places;
    if (!most_micros)
        return dl_schedule_refuse(request, "chunks", err, "%u on %u stages (pipeline/ways) are too many; nearest: %ju",
                                  request->chunks, request->stages, (uintmax_t)(most_items / request->stages));
    if (request->micros > most_micros)
        return dl_schedule_refuse(request, "global_batch", err,
                                  "gives %u micro-batches; at most %ju can be scheduled; nearest: %ju", request->micros,
                                  (uintmax_t)most_micros, (uintmax_t)most_micros);
    return DL_OK;
}

static enum dl_status check_live(const char *name, const struct dl_schedule *s,
                                 const struct dl_schedule_request *request, struct dl_error *err)
{
    uint32_t most = 0, stage_of_most = 0;
    if (!request->max_live) return DL_OK;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        const uint32_t live = dl_schedule_live(s, stage);
        if (live <= most) continue;
        most = live;
        stage_of_most = stage;
    }
    if (most <= request->max_live) return DL_OK;
    return dl_schedule_refuse(
        request, "max_live", err,
        "%s holds the activations of %u micro-batches x chunks on stage %u, above the limit of %u; nearest: %u", name,
        most, stage_of_most, request->max_live, most);
}

static enum dl_status check(const char *name, const struct dl_schedule_request *request,
                            const struct dl_schedule_kind **kind, struct dl_error *err)
{
    if (find(name, request, kind, err) || check_counts(*kind, request, err)) return err->status;
    return (*kind)->check ? (*kind)->check(request, err) : DL_OK;
}

enum dl_status dl_schedule_check(const char *name, const struct dl_schedule_request *request, struct dl_error *err)
{
    const struct dl_schedule_kind *kind;
    return check(name, request, &kind, err);
}

enum dl_status dl_schedule_make(const char *name, const struct dl_schedule_request *request, struct dl_arena *arena,
                                struct dl_schedule *out, struct dl_error *err)
{
    const struct dl_schedule_kind *kind;
    if (check(name, request, &kind, err)) return err->status;
    kind->make(request, arena, out);
    out->ends_skewed = kind->ends_skewed;
    out->uses_times = kind->uses_times;
    return check_live(name, out, request, err);
}

void dl_schedule_init(struct dl_schedule *s, const struct dl_schedule_request *request, bool splits_backward,
                      struct dl_arena *arena)
{
    const uint32_t n_places = request->stages * request->chunks;
    const size_t n_items = (size_t)request->micros * request->chunks * (splits_backward ? 3 : 2);
    *s = (struct dl_schedule){.stages = request->stages,
                              .micros = request->micros,
                              .chunks = request->chunks,
                              .n_positions = n_places,
                              .n_paths = 1,
                              .splits_backward = splits_backward};
    s->items = dl_arena_alloc(arena, request->stages * sizeof *s->items);
    s->n_items = dl_arena_alloc(arena, request->stages * sizeof *s->n_items);
    s->stage_of = dl_arena_alloc(arena, n_places * sizeof *s->stage_of);
    s->chunk_of = dl_arena_alloc(arena, n_places * sizeof *s->chunk_of);
    s->position_of = dl_arena_alloc(arena, n_places * sizeof *s->position_of);
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        s->items[stage] = dl_arena_alloc(arena, n_items * sizeof *s->items[stage]);
        for (uint32_t chunk = 0; chunk < request->chunks; chunk++)
            dl_schedule_place(s, 0, chunk * request->stages + stage, stage, chunk);
    }
}

void dl_schedule_place(struct dl_schedule *s, uint32_t path, uint32_t position, uint32_t stage, uint32_t chunk)
{
    s->stage_of[path * s->n_positions + position] = stage;
    s->chunk_of[path * s->n_positions + position] = chunk;
    s->position_of[stage * s->chunks + chunk] = position;
}

void dl_schedule_append(struct dl_schedule *s, uint32_t stage, enum dl_item_kind kind, uint32_t micro, uint32_t chunk)
{
    s->items[stage][s->n_items[stage]++] = (struct dl_item){.kind = kind, .micro = micro, .chunk = chunk};
}

uint32_t dl_schedule_live(const struct dl_schedule *s, uint32_t stage)
{
    uint32_t live = 0, most = 0;
    for (uint32_t i = 0; i < s->n_items[stage]; i++) {
        const enum dl_item_kind kind = s->items[stage][i].kind;
        if (kind == DL_ITEM_F && ++live > most) most = live;
        if (kind == (s->splits_backward ? DL_ITEM_W : DL_ITEM_B)) live--;
    }
    return most;
}

void dl_schedule_completing(const struct dl_schedule *s, uint32_t stage, bool by_runs, bool *completing)
{
    const enum dl_item_kind kind = s->splits_backward ? DL_ITEM_W : DL_ITEM_B;
    bool *const comes_again = dl_alloc(s->chunks * sizeof *comes_again);
    uint32_t next_chunk = UINT32_MAX;
    for (uint32_t i = s->n_items[stage]; i-- > 0;) {
        const struct dl_item *const item = &s->items[stage][i];
        completing[i] = false;
        if (item->kind != kind) continue;
        completing[i] = by_runs ? item->chunk != next_chunk : !comes_again[item->chunk];
        comes_again[item->chunk] = true;
        next_chunk = item->chunk;
    }
    dl_free(comes_again);
}

bool dl_schedule_is_first_forward(const struct dl_schedule *s, uint32_t stage, uint32_t item)
{
    const struct dl_item *const items = s->items[stage];
    if (items[item].kind != DL_ITEM_F) return false;
    for (uint32_t i = 0; i < item; i++)
        if (items[i].kind == DL_ITEM_F && items[i].chunk == items[item].chunk) return false;
    return true;
}

bool dl_schedule_times_are_equal(const struct dl_schedule_request *request)
{
    return request->forward_s == request->backward_s && request->forward_s == request->weight_s &&
           request->transfer_s == 0;
}
