/* row_request.c - a measured training step as the documents of a session. */
#include "sim/study/training_row.h"

#include <stdlib.h>
#include <string.h>

struct dl_input dl_row_input(const struct dl_training_row *row, const char *name)
{
    return (struct dl_input){.name = name, .file = row->file};
}

static struct dl_input text_or_file(const struct dl_training_row *row, const char *name, const char *text)
{
    if (!name) return (struct dl_input){0};
    return (struct dl_input){.name = name, .text = text, .file = row->file};
}

static struct dl_input made(json_t *value, const struct dl_training_row *row, struct dl_arena *arena)
{
    char *const text = json_dumps(value, JSON_REAL_PRECISION(17));
    const struct dl_input input = {.name = row->where, .text = dl_arena_string(arena, text), .file = row->file};
    free(text);
    json_decref(value);
    return input;
}

static void set_if(json_t *object, const char *key, int64_t value)
{
    if (value) json_object_set_new(object, key, json_integer(value));
}

/* ---- the model ---- */

static struct dl_input make_workload(const struct dl_training_row *row, struct dl_arena *arena)
{
    json_t *const w =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "schema", "dlsim/workload/1", "source", row->source,
                  "kind", "transformer", "layers", (json_int_t)row->layers, "hidden", (json_int_t)row->hidden, "heads",
                  (json_int_t)row->heads, "seq", (json_int_t)row->seq, "vocab", (json_int_t)row->vocab);
    set_if(w, "ffn", row->ffn);
    set_if(w, "kv_heads", row->kv_heads);
    set_if(w, "experts", row->experts);
    set_if(w, "top_k", row->top_k);
    set_if(w, "expert_ffn", row->expert_ffn);
    if (row->style == DL_STYLE_LLAMA) {
        json_t *const style = json_pack("{s:s, s:s, s:s, s:b, s:b, s:b}", "norm", "rmsnorm", "activation", "swiglu",
                                        "positions", "rotary", "bias", 0, "dropout", 0, "tied_embedding", 0);
        json_object_update(w, style);
        json_decref(style);
    }
    if (row->tied_embedding >= 0) json_object_set_new(w, "tied_embedding", json_boolean(row->tied_embedding));
    return made(w, row, arena);
}

/* ---- how it is spread ---- */

/* Names of the papers for schedules that have another here; ZB-1p is ZB-H1 with its order searched for. */
static const struct {
    const char *published, *here;
} schedules[] = {{"zb-1p", "zb-h1"}};

static const char *schedule_of(const struct dl_training_row *row)
{
    if (!row->schedule) return row->vpp > 1 ? "interleaved" : "1f1b";
    for (size_t i = 0; i < DL_COUNT(schedules); i++)
        if (strcmp(schedules[i].published, row->schedule) == 0) return schedules[i].here;
    return row->schedule;
}

static json_t *make_pipeline(const struct dl_training_row *row)
{
    json_t *const entry = json_pack("{s:s, s:I, s:s, s:I}", "name", "pipeline", "ways", (json_int_t)row->pp, "schedule",
                                    schedule_of(row), "chunks", (json_int_t)row->vpp);
    if (row->stage_rule == DL_STAGES_COUNT_ENDS) json_object_set_new(entry, "split", json_string("count_ends"));
    if (row->stage_rule == DL_STAGES_BY_WEIGHTS) json_object_set_new(entry, "split", json_string("by_weights"));
    return entry;
}

/* As Megatron-LM counts them, context ranks before those of data (megatron/core/parallel_state.py). */
static json_t *make_expert(const struct dl_training_row *row)
{
    json_t *const entry = json_pack("{s:s, s:I}", "name", "expert", "ways", (json_int_t)row->ep);
    if (row->cp > 1 && row->ep % row->cp == 0) json_object_set_new(entry, "over_context", json_true());
    return entry;
}

/* Context parallelism is Megatron's: keys go round, each rank has a part from the front and one from the back. Who cuts
 * gradients over replicas sums them as backward goes on, others at the end. */
static json_t *make_columns(const struct dl_training_row *row)
{
    json_t *const stack = json_array();
    if (row->pp > 1 || row->vpp > 1) json_array_append_new(stack, make_pipeline(row));
    if (row->tp > 1)
        json_array_append_new(stack, json_pack("{s:s, s:I, s:b}", "name", "tensor", "ways", (json_int_t)row->tp,
                                               "sequence", row->sp != 0));
    if (row->cp > 1)
        json_array_append_new(
            stack, json_pack("{s:s, s:I, s:b}", "name", "context", "ways", (json_int_t)row->cp, "zigzag", 1));
    if (row->ep > 1) json_array_append_new(stack, make_expert(row));
    json_array_append_new(stack, json_pack("{s:s, s:b}", "name", "data", "overlap", row->zero >= 2));
    if (row->zero)
        json_array_append_new(stack, json_pack("{s:s, s:I}", "name", "zero", "stage", (json_int_t)row->zero));
    return stack;
}

/* Into the one of its name, or beside the others. */
static void put_entry(json_t *stack, json_t *entry)
{
    const char *const name = json_string_value(json_object_get(entry, "name"));
    for (size_t i = 0; name && i < json_array_size(stack); i++) {
        const char *const other = json_string_value(json_object_get(json_array_get(stack, i), "name"));
        if (!other || strcmp(other, name)) continue;
        json_object_update(json_array_get(stack, i), entry);
        return;
    }
    json_array_append(stack, entry);
}

static json_t *make_stack(const struct dl_training_row *row)
{
    json_t *const stack = make_columns(row), *const said =
                                                 row->stack_text ? json_loads(row->stack_text, 0, NULL) : NULL;
    for (size_t i = 0; i < json_array_size(said); i++) put_entry(stack, json_array_get(said, i));
    json_decref(said);
    return stack;
}

static struct dl_input make_strategy(const struct dl_training_row *row, int64_t microbatch, struct dl_arena *arena)
{
    json_t *const s = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "schema", "dlsim/strategy/1", "source",
                                row->source, "workload", row->model, "software", row->software, "devices",
                                (json_int_t)row->devices, "global_batch", (json_int_t)row->global_batch, "microbatch",
                                (json_int_t)microbatch, "stack", make_stack(row));
    if (row->precision) json_object_set_new(s, "precision", json_string(row->precision));
    if (row->wide_first_blocks)
        json_object_set_new(s, "wide_first_blocks", json_integer((json_int_t)row->wide_first_blocks));
    if (row->wide_last_blocks)
        json_object_set_new(s, "wide_last_blocks", json_integer((json_int_t)row->wide_last_blocks));
    if (row->recompute) json_object_set_new(s, "recompute", json_string(row->recompute));
    if (row->optimizer) json_object_set_new(s, "optimizer", json_string(row->optimizer));
    return made(s, row, arena);
}

/* ---- together ---- */

int64_t dl_training_row_batch(const struct dl_training_row *row)
{
    if (row->strategy) return 0;
    const int64_t others = row->tp * row->pp * row->cp, replicas = row->devices / others;
    const bool fits_together = row->devices % others == 0 && (!row->dp || row->dp == replicas);
    return fits_together && row->global_batch % replicas == 0 ? row->global_batch / replicas : 0;
}

static enum dl_status check(const struct dl_training_row *row, struct dl_error *err)
{
    if (dl_training_row_batch(row)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, row->where,
                   "tp x pp x cp x dp must be devices, and global_batch a multiple of dp");
}

static enum dl_status set(struct dl_session_request *out, const char *assignment, struct dl_error *err)
{
    if (out->set.n == DL_COUNT(out->set.items))
        return dl_fail(err, DL_RANGE, "--set", "fewer are possible here, for what the row sets");
    out->set.items[out->set.n++] = assignment;
    return DL_OK;
}

static void override_size(struct dl_session_request *out, const char *key, int64_t size, struct dl_arena *arena,
                          struct dl_error *err)
{
    if (size && !err->status) set(out, dl_arena_format(arena, "workload.%s=%lld", key, (long long)size), err);
}

enum dl_status dl_training_row_request(const struct dl_training_row *row, int64_t microbatch, struct dl_arena *arena,
                                       struct dl_session_request *out, struct dl_error *err)
{
    out->topo = dl_row_input(row, row->topo);
    if (row->strategy) {
        out->strategy = text_or_file(row, row->strategy, row->strategy_text);
        out->workload = text_or_file(row, row->workload, row->workload_text);
        out->software = text_or_file(row, row->software, row->software_text);
        return DL_OK;
    }
    if (check(row, err)) return err->status;
    out->strategy = make_strategy(row, microbatch, arena);
    out->workload = row->workload ? dl_row_input(row, row->workload) : make_workload(row, arena);
    if (row->attention) set(out, dl_arena_format(arena, "software.attention=\"%s\"", row->attention), err);
    if (row->workload) override_size(out, "seq", row->seq, arena, err);
    if (row->workload) override_size(out, "layers", row->layers, arena, err);
    return err->status;
}
