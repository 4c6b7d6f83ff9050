/* megatron_pipeline.c - how Megatron-LM divides a model into stages, as an entry of a strategy's stack. */
#include <string.h>

#include "sim/import/megatron.h"

static int64_t stages_of(const struct dl_megatron *m) { return m->pipeline ? m->pipeline : 1; }

/* Layers that are dealt, with those that count as layers. */
static int64_t dealt_layers(const struct dl_megatron *m) { return m->layers + m->counts_embedding + m->counts_loss; }

static enum dl_status check_divides(const struct dl_megatron_reading *r, const char *flag, int64_t parts, int64_t of,
                                    struct dl_error *err)
{
    if (parts && of % parts == 0) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, flag),
                   "must divide the layers of a stage evenly: %lld do not "
                   "divide by %lld",
                   (long long)of, (long long)parts);
}

static enum dl_status count_chunks(const struct dl_megatron_reading *r, int64_t *chunks, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    static const int64_t most = 64; /* as of a strategy file */
    if (m->virtual_stages > most)
        return dl_fail(err, DL_RANGE, dl_megatron_place(r, "num-virtual-stages-per-pipeline-rank"),
                       "must be at most %lld, got %lld", (long long)most, (long long)m->virtual_stages);
    *chunks = m->virtual_stages ? m->virtual_stages : 1;
    if (!m->virtual_layers) return DL_OK;
    const int64_t stages = stages_of(m), layers = dealt_layers(m);
    if (check_divides(r, "pipeline-model-parallel-size", stages, layers, err) ||
        check_divides(r, "num-layers-per-virtual-pipeline-stage", m->virtual_layers, layers / stages, err))
        return err->status;
    *chunks = layers / stages / m->virtual_layers;
    if (*chunks <= most) return DL_OK;
    return dl_fail(err, DL_RANGE, dl_megatron_place(r, "num-layers-per-virtual-pipeline-stage"),
                   "must leave at most %lld parts of a stage, got %lld", (long long)most, (long long)*chunks);
}

/* By the strategy's key: blocks of each part in the order of the model. */
static json_t *equal_parts(int64_t parts, int64_t blocks)
{
    json_t *const list = json_array();
    for (int64_t i = 0; i < parts; i++) json_array_append_new(list, json_integer(blocks));
    return list;
}

static void add_to(json_t *list, size_t index, int64_t more)
{
    const int64_t now = json_integer_value(json_array_get(list, index));
    json_array_set_new(list, index, json_integer(now + more));
}

/* As many layers on each part, of which an end may count as one. */
static enum dl_status deal_equally(const struct dl_megatron_reading *r, int64_t chunks, json_t **list,
                                   struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const int64_t parts = stages_of(m) * chunks;
    if (check_divides(r, "pipeline-model-parallel-size", parts, dealt_layers(m), err)) return err->status;
    *list = equal_parts(parts, dealt_layers(m) / parts);
    add_to(*list, 0, -m->counts_embedding);
    add_to(*list, (size_t)parts - 1, -m->counts_loss);
    return DL_OK;
}

/* The first and last stage have layers of their own number; with chunks each chunk of a stage has its share. */
static enum dl_status set_ends(const struct dl_megatron_reading *r, int64_t chunks, json_t **list, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const int64_t stages = stages_of(m), inner = stages - (m->first_layers > 0) - (m->last_layers > 0);
    const int64_t rest = m->layers - m->first_layers - m->last_layers;
    if (rest < 0 || (inner ? rest % (inner * chunks) : rest) || m->first_layers % chunks || m->last_layers % chunks)
        return dl_fail(err, DL_IMPOSSIBLE,
                       dl_megatron_place(r, m->first_layers ? "decoder-first-pipeline-num-layers"
                                                            : "decoder-last-pipeline-num-layers"),
                       "must leave layers that divide evenly: %lld layers on %lld other stages", (long long)rest,
                       (long long)inner);
    *list = equal_parts(stages * chunks, inner ? rest / inner / chunks : 0);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const size_t first = (size_t)(chunk * stages), last = (size_t)(chunk * stages + stages - 1);
        if (m->first_layers) json_array_set_new(*list, first, json_integer(m->first_layers / chunks));
        if (m->last_layers) json_array_set_new(*list, last, json_integer(m->last_layers / chunks));
    }
    return DL_OK;
}

/* ---- a layout ---- */

static enum dl_status refuse_layout(const struct dl_megatron_reading *r, const char *text, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "pipeline-model-parallel-layout"), "%s, got '%.100s'", text,
                   r->m->layout);
}

/* Megatron-Core has modules that predict further tokens together, on the last part of a stage. */
static enum dl_status check_further(const struct dl_megatron_reading *r, const struct dl_megatron_layout *layout,
                                    struct dl_error *err)
{
    const int64_t stages = stages_of(r->m), parts = (int64_t)json_array_size(layout->blocks);
    if (layout->n_further != r->m->mtp_layers)
        return refuse_layout(
            r, dl_arena_format(r->arena, "must have as many m as --mtp-num-layers, %lld", (long long)r->m->mtp_layers),
            err);
    if (layout->n_further == 0) return DL_OK;
    if (layout->first_further != layout->last_further) return refuse_layout(r, "must have all m in one part", err);
    if (layout->last_further >= parts - stages) return DL_OK;
    return refuse_layout(
        r, dl_arena_format(r->arena, "must have m in one of the last %lld parts, one a stage", (long long)stages), err);
}

static enum dl_status check_layout(const struct dl_megatron_reading *r, const struct dl_megatron_layout *layout,
                                   struct dl_error *err)
{
    const int64_t stages = stages_of(r->m), parts = (int64_t)json_array_size(layout->blocks);
    if (!layout->blocks || parts % stages)
        return refuse_layout(
            r,
            dl_arena_format(r->arena, "must be E, then t, then m, then L, with | between a multiple of %lld parts",
                            (long long)stages),
            err);
    if (r->m->layers && layout->n_layers != r->m->layers)
        return refuse_layout(
            r, dl_arena_format(r->arena, "must have as many t as --num-layers, %lld", (long long)r->m->layers), err);
    return check_further(r, layout, err);
}

/* States of all tokens that are predicted go on to the loss, if that is on another stage. */
static void leave_states(const struct dl_megatron_reading *r, const struct dl_megatron_layout *layout)
{
    const int64_t parts = (int64_t)json_array_size(layout->blocks);
    if (layout->n_further && layout->last_further + 1 < parts)
        dl_megatron_leave(r, "--pipeline-model-parallel-layout", "m before another part", true,
                          "Megatron-LM sends the states of further tokens from there to the loss, too; dlsim sends as "
                          "much as between all parts");
}

static enum dl_status set_layout(const struct dl_megatron_reading *r, int64_t *chunks, json_t **list,
                                 struct dl_error *err)
{
    const struct dl_megatron_layout layout = dl_megatron_layout_of(r->m->layout);
    *list = layout.blocks;
    if (check_layout(r, &layout, err)) return err->status;
    *chunks = (int64_t)json_array_size(*list) / stages_of(r->m);
    leave_states(r, &layout);
    return DL_OK;
}

/* Of layers alone: modules that predict further tokens are with the loss then (Megatron-Core,
 * transformer/multi_token_prediction.py). No list: as dlsim deals them. */
static enum dl_status deal_layers(const struct dl_megatron_reading *r, int64_t chunks, json_t **list,
                                  struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const bool counts_one = m->counts_embedding != m->counts_loss;
    if (m->first_layers || m->last_layers) {
        if (set_ends(r, chunks, list, err)) return err->status;
    } else if (counts_one || m->mtp_layers) {
        if (deal_equally(r, chunks, list, err)) return err->status;
    }
    if (*list) add_to(*list, json_array_size(*list) - 1, m->mtp_layers);
    return DL_OK;
}

/* A head that is tied to the embedding has its table there anyway. */
static void leave_embedding(const struct dl_megatron_reading *r)
{
    if (r->m->mtp_layers && r->m->untied)
        dl_megatron_leave(r, "--mtp-num-layers", NULL, true,
                          "their stage has a copy of the embedding in Megatron-LM, whose memory and sums dlsim leaves "
                          "out");
}

static enum dl_status divide(const struct dl_megatron_reading *r, int64_t *chunks, json_t **list, struct dl_error *err)
{
    leave_embedding(r);
    if (r->m->layout) return set_layout(r, chunks, list, err);
    return count_chunks(r, chunks, err) || deal_layers(r, *chunks, list, err) ? err->status : DL_OK;
}

/* As many as stages unless the flag says it. */
static void set_group(const struct dl_megatron_reading *r, int64_t chunks, json_t *entry)
{
    const struct dl_megatron *const m = r->m;
    if (m->virtual_group && chunks == 1)
        dl_megatron_leave(r, "--microbatch-group-size-per-virtual-pipeline-stage", NULL, false,
                          "it is read where a stage has several parts only");
    else if (m->virtual_group && m->virtual_group != stages_of(m))
        json_object_set_new(entry, "group", json_integer(m->virtual_group));
}

enum dl_status dl_megatron_pipeline(struct dl_megatron_reading *r, json_t *entry, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    json_t *list = NULL;
    int64_t chunks = 1;
    if (divide(r, &chunks, &list, err)) {
        json_decref(list);
        return err->status;
    }
    json_object_set_new(entry, "ways", json_integer(stages_of(m)));
    json_object_set_new(entry, "schedule", json_string(chunks > 1 ? "interleaved" : "1f1b"));
    if (chunks > 1) json_object_set_new(entry, "chunks", json_integer(chunks));
    set_group(r, chunks, entry);
    if (list)
        json_object_set_new(entry, "layers_per_stage", list);
    else if (m->counts_embedding)
        json_object_set_new(entry, "split", json_string("count_ends"));
    return DL_OK;
}
