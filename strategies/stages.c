#include "strategies/stages.h"

#include <string.h>

/* Layers before the blocks, blocks, and layers after them. */
struct shape {
    size_t before, blocks, after;
};

static struct shape shape_of(const struct dl_model *m)
{
    struct shape s = {0};
    for (size_t i = 0; i < m->n_layers; i++) {
        if (m->layers[i].is_block)
            s.blocks++;
        else if (s.blocks)
            s.after++;
        else
            s.before++;
    }
    return s;
}

static enum dl_status refuse(const struct dl_deal *d, const char *key, const char *text, struct dl_error *err)
{
    const struct dl_json entry = {.where = d->setting->pipeline_where};
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(entry, key, d->arena).where, "%s", text);
}

/* ---- as listed ---- */

static enum dl_status check_list(const struct dl_deal *d, struct shape shape, struct dl_error *err)
{
    const struct dl_int_list *const list = &d->setting->blocks_at;
    int64_t sum = 0;
    const char *text = NULL;
    for (size_t i = 0; i < list->n; i++) sum += list->items[i];
    if (list->n != d->n_positions)
        text = dl_arena_format(d->arena, "must have a number for each of the %u parts of the model, got %zu",
                               d->n_positions, list->n);
    else if (sum != (int64_t)shape.blocks)
        text = dl_arena_format(d->arena, "must sum to the blocks of %s, %zu, got %jd", d->model->name, shape.blocks,
                               (intmax_t)sum);
    for (size_t i = 0; i < list->n && !text; i++)
        if (list->items[i] == 0 && !(i == 0 && shape.before) && !(i + 1 == list->n && shape.after))
            text = dl_arena_format(d->arena, "part %zu is empty; 0 is for an embedding or a head by itself", i);
    return text ? refuse(d, "layers_per_stage", text, err) : DL_OK;
}

static enum dl_status deal_listed(const struct dl_deal *d, struct shape shape, size_t *ends, struct dl_error *err)
{
    if (check_list(d, shape, err)) return err->status;
    size_t at = shape.before;
    for (uint32_t i = 0; i < d->n_positions; i++) ends[i] = at += (size_t)d->setting->blocks_at.items[i];
    ends[d->n_positions - 1] = d->model->n_layers;
    return DL_OK;
}

/* ---- by a rule ---- */

/* What is dealt: layers first..end to so many positions, in units. Unit 0 is what comes before the blocks if that
 * counts, the last one what comes after them if that counts. */
struct rest {
    size_t first, end, n_units, unit_of_first_block;
    uint32_t n_positions;
};

static enum dl_status leave_ends_out(const struct dl_deal *d, struct shape shape, struct rest *out,
                                     struct dl_error *err)
{
    const struct dl_setting *const s = d->setting;
    if (s->embedding_alone && !shape.before) return refuse(d, "embedding", "the model has none", err);
    if (s->head_alone && !shape.after) return refuse(d, "head", "the model has none", err);
    const bool counts = s->split == DL_SPLIT_COUNT_ENDS;
    const uint32_t n_alone = (uint32_t)s->embedding_alone + s->head_alone;
    *out = (struct rest){.first = s->embedding_alone ? shape.before : 0,
                         .end = d->model->n_layers - (s->head_alone ? shape.after : 0),
                         .unit_of_first_block = counts && shape.before && !s->embedding_alone,
                         .n_positions = d->n_positions > n_alone ? d->n_positions - n_alone : 0};
    out->n_units = s->split == DL_SPLIT_BY_COST || s->split == DL_SPLIT_BY_WEIGHTS
                       ? out->end - out->first
                       : shape.blocks + out->unit_of_first_block + (counts && shape.after && !s->head_alone);
    return DL_OK;
}

static enum dl_status check_rest(const struct dl_deal *d, const struct rest *rest, struct dl_error *err)
{
    if (!rest->n_positions)
        return refuse(d, "ways", "leaves no part for the blocks beside the embedding and the head", err);
    if (rest->n_positions == 1 || rest->n_units >= rest->n_positions) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, d->setting->pipeline_where,
                   "ways x chunks = %u parts, but %s has only %zu %s%s to deal out%s", d->n_positions, d->model->name,
                   rest->n_units, d->setting->split == DL_SPLIT_EVEN ? "block" : "layer", rest->n_units == 1 ? "" : "s",
                   rest->n_positions < d->n_positions ? " beside what is alone" : "");
}

/* As even as can be, the larger parts first. */
static void deal_evenly(const struct rest *rest, struct shape shape, size_t *ends)
{
    size_t unit = 0;
    for (uint32_t i = 0; i < rest->n_positions; i++) {
        unit += rest->n_units / rest->n_positions + (i < rest->n_units % rest->n_positions);
        ends[i] = shape.before + unit - rest->unit_of_first_block;
    }
    ends[rest->n_positions - 1] = rest->end;
}

/* Of the products of a layer; a tied table counts where it is multiplied with, not where it is looked up. */
static double weights_of(const struct dl_model *m, size_t layer)
{
    const bool is_block = m->layers[layer].is_block, is_head = layer + 1 == m->n_layers;
    if (!is_block && !is_head) return 0;
    const struct dl_layer *const holder = &m->layers[is_head && m->tied_embedding ? 0 : layer];
    return holder->parameters_inside + holder->frozen_inside;
}

/* A part is complete with the layer that reaches its share; none is left empty, and the head stays with the last. */
static void deal_by_weights(const struct dl_model *m, const struct rest *rest, size_t *ends)
{
    double sum = 0, passed = 0;
    uint32_t part = 0;
    for (size_t i = rest->first; i < rest->end; i++) sum += weights_of(m, i);
    for (uint32_t i = 0; i < rest->n_positions; i++) ends[i] = rest->end;
    for (size_t i = rest->first; i < rest->end; i++) {
        passed += weights_of(m, i);
        if (passed >= sum * (part + 1) / rest->n_positions && part + 1 < rest->n_positions) ends[part++] = i + 1;
    }
    for (uint32_t i = rest->n_positions - 1; i-- > 0;)
        if (ends[i] >= ends[i + 1]) ends[i] = ends[i + 1] - 1;
}

static enum dl_status deal_by_rule(const struct dl_deal *d, struct shape shape, size_t *ends, struct dl_error *err)
{
    struct rest rest = {0};
    if (leave_ends_out(d, shape, &rest, err) || check_rest(d, &rest, err)) return err->status;
    size_t *const inner = ends + d->setting->embedding_alone;
    if (d->setting->split == DL_SPLIT_BY_COST) {
        dl_split_by_cost(d->layer_s + rest.first, rest.end - rest.first, rest.n_positions, inner);
        for (uint32_t i = 0; i < rest.n_positions; i++) inner[i] += rest.first;
    } else if (d->setting->split == DL_SPLIT_BY_WEIGHTS) {
        deal_by_weights(d->model, &rest, inner);
    } else {
        deal_evenly(&rest, shape, inner);
    }
    if (d->setting->embedding_alone) ends[0] = shape.before;
    ends[d->n_positions - 1] = d->model->n_layers;
    return DL_OK;
}

static void count_blocks(const struct dl_model *m, struct dl_position *p)
{
    p->first_block = p->first_layer;
    while (p->first_block < p->end_layer && !m->layers[p->first_block].is_block) p->first_block++;
    while (p->first_block + p->n_blocks < p->end_layer && m->layers[p->first_block + p->n_blocks].is_block)
        p->n_blocks++;
}

enum dl_status dl_deal_layers(const struct dl_deal *d, struct dl_position *positions, struct dl_error *err)
{
    const struct shape shape = shape_of(d->model);
    size_t *const ends = dl_alloc(d->n_positions * sizeof *ends);
    const bool listed = d->setting->blocks_at.n > 0;
    if (!(listed ? deal_listed(d, shape, ends, err) : deal_by_rule(d, shape, ends, err)))
        for (uint32_t i = 0; i < d->n_positions; i++) {
            positions[i].first_layer = i ? ends[i - 1] : 0;
            positions[i].end_layer = ends[i];
            count_blocks(d->model, &positions[i]);
        }
    dl_free(ends);
    return err->status;
}

/* ---- what stages hold in common ---- */

static bool table_is_twice(const struct dl_model *m, const struct dl_schedule *s)
{
    return m->tied_embedding && s->n_paths == 1 && s->stage_of[0] != s->stage_of[s->n_positions - 1];
}

const struct dl_layer *dl_dealt_layers(const struct dl_model *m, const struct dl_schedule *s, struct dl_arena *arena)
{
    if (!table_is_twice(m, s)) return m->layers;
    struct dl_layer *const layers = dl_arena_alloc(arena, m->n_layers * sizeof *layers);
    memcpy(layers, m->layers, m->n_layers * sizeof *layers);
    layers[m->n_layers - 1].parameters_inside += layers[0].parameters_inside;
    layers[m->n_layers - 1].frozen_inside += layers[0].frozen_inside;
    return layers;
}

bool dl_stage_shares(const struct dl_model *m, const struct dl_schedule *s, uint32_t stage, const struct dl_event *all,
                     struct dl_shared *out)
{
    const uint32_t first = s->stage_of[0], last = s->stage_of[s->n_positions - 1];
    if (s->n_paths > 1) { /* the same positions, as other chunks */
        const uint32_t position = s->position_of[stage * s->chunks], holder = s->stage_of[position];
        const uint32_t other = holder == stage ? s->stage_of[s->n_positions + position] : holder;
        *out = (struct dl_shared){.stages = {stage < other ? stage : other, stage < other ? other : stage},
                                  .parameters_inside = all->parameters_inside,
                                  .parameters_outside = all->parameters_outside,
                                  .parameters_expert = all->parameters_expert};
        return true;
    }
    if (m->layers[0].parameters_inside == 0) return false; /* frozen */
    if (!table_is_twice(m, s) || (stage != first && stage != last)) return false;
    *out = (struct dl_shared){.stages = {first < last ? first : last, first < last ? last : first},
                              .parameters_inside = m->layers[0].parameters_inside};
    return true;
}
