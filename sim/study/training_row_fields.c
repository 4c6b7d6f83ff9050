/* training_row_fields.c - what a training row may say, what it must, and what a file says in its place. */
#include "sim/study/training_row_fields.h"

#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"

#define AT(member) offsetof(struct dl_training_row, member)
#define MOST 9007199254740992.0 /* 2^53 */
#define MOST_WAYS 65536.0       /* products of them are far from overflowing */

static const char *const stage_rules[] = {"even", "uneven", "embedding+head count as a layer each", "by weights",
                                          NULL};                           /* as enum dl_stage_rule */
static const char *const ends[] = {"unknown", "yes", "oom", NULL};         /* as enum dl_row_end */
static const char *const reserved_on[] = {"fullest", "first_stage", NULL}; /* as enum dl_reserved_on */
static const char *const styles[] = {"by_sizes", "gpt", "llama", NULL};    /* as enum dl_row_style */

const struct dl_field dl_training_row_fields[] = {
    {"id", DL_TEXT, AT(id), 0, 0, false, NULL, NULL},
    {"topo", DL_TEXT, AT(topo), 0, 0, false, NULL, NULL},
    {"devices", DL_INT, AT(devices), 1, 2147483647.0, true, NULL, NULL},
    {"model", DL_TEXT, AT(model), 0, 0, true, NULL, NULL},
    {"layers", DL_INT, AT(layers), 1, MOST, true, NULL, NULL},
    {"hidden", DL_INT, AT(hidden), 1, MOST, true, NULL, NULL},
    {"ffn", DL_INT, AT(ffn), 1, MOST, true, NULL, NULL},
    {"heads", DL_INT, AT(heads), 1, MOST, true, NULL, NULL},
    {"kv_heads", DL_INT, AT(kv_heads), 1, MOST, true, NULL, NULL},
    {"seq", DL_INT, AT(seq), 1, MOST, true, NULL, NULL},
    {"vocab", DL_INT, AT(vocab), 1, MOST, true, NULL, NULL},
    {"global_batch", DL_INT, AT(global_batch), 1, MOST, true, NULL, NULL},
    {"microbatch", DL_INT, AT(microbatch), 1, MOST, true, NULL, NULL},
    {"tp", DL_INT, AT(tp), 1, MOST_WAYS, true, NULL, NULL},
    {"pp", DL_INT, AT(pp), 1, MOST_WAYS, true, NULL, NULL},
    {"dp", DL_INT, AT(dp), 1, MOST_WAYS, true, NULL, NULL},
    {"cp", DL_INT, AT(cp), 1, MOST_WAYS, true, NULL, NULL},
    {"ep", DL_INT, AT(ep), 1, MOST_WAYS, true, NULL, NULL},
    {"vpp", DL_INT, AT(vpp), 1, MOST, true, NULL, NULL},
    {"schedule", DL_TEXT, AT(schedule), 0, 0, true, NULL, NULL},
    {"sp", DL_INT, AT(sp), 0, 1, true, NULL, NULL},
    {"zero", DL_INT, AT(zero), 0, 3, true, NULL, NULL},
    {"recompute", DL_TEXT, AT(recompute), 0, 0, true, NULL, NULL},
    {"precision", DL_TEXT, AT(precision), 0, 0, true, NULL, NULL},
    {"attention", DL_TEXT, AT(attention), 0, 0, true, NULL, NULL},
    {"software", DL_TEXT, AT(software), 0, 0, true, NULL, NULL},
    {"stage_rule", DL_CHOICE, AT(stage_rule), 0, 0, true, stage_rules, NULL},
    {"assumed", DL_TEXT, AT(assumed), 0, 0, true, NULL, NULL},
    {"step_s", DL_NUMBER, AT(step_s), 1e-9, 1e9, true, NULL, NULL},
    {"source", DL_TEXT, AT(source), 0, 0, true, NULL, NULL},
    /* Columns that a file need not have. */
    {"experts", DL_INT, AT(experts), 2, MOST, true, NULL, NULL},
    {"top_k", DL_INT, AT(top_k), 1, MOST, true, NULL, NULL},
    {"expert_ffn", DL_INT, AT(expert_ffn), 1, MOST, true, NULL, NULL},
    {"style", DL_CHOICE, AT(style), 0, 0, true, styles, NULL},
    {"workload", DL_TEXT, AT(workload), 0, 0, true, NULL, NULL},
    {"strategy", DL_TEXT, AT(strategy), 0, 0, true, NULL, NULL},
    {"optimizer", DL_TEXT, AT(optimizer), 0, 0, true, NULL, NULL},
    {"wide_first_blocks", DL_INT, AT(wide_first_blocks), 0, MOST, true, NULL, NULL},
    {"wide_last_blocks", DL_INT, AT(wide_last_blocks), 0, MOST, true, NULL, NULL},
    {"stack", DL_LIST, AT(stack), 0, 0, true, NULL, NULL},
    {"mfu", DL_NUMBER, AT(mfu), 1e-9, 1, true, NULL, NULL},
    {"hfu", DL_NUMBER, AT(hfu), 1e-9, 1, true, NULL, NULL},
    {"attention_flop", DL_CHOICE, AT(attention_flop), 0, 0, true, dl_flop_counts, NULL},
    {"note", DL_TEXT, AT(note), 0, 0, true, NULL, NULL},
    {"ran", DL_CHOICE, AT(ran), 0, 0, true, ends, NULL},
    {"tied_embedding", DL_INT, AT(tied_embedding), 0, 1, true, NULL, NULL},
    {"tested_bytes", DL_NUMBER, AT(tested.bytes), 1, MOST, true, NULL, NULL},
    {"tested_allgather_bytes_per_s", DL_NUMBER, AT(tested.allgather_bytes_per_s), 1, 1e18, true, NULL, NULL},
    {"tested_allreduce_bytes_per_s", DL_NUMBER, AT(tested.allreduce_bytes_per_s), 1, 1e18, true, NULL, NULL},
    {"tokens_per_s_per_device", DL_NUMBER, AT(tokens_per_s), 1e-9, 1e15, true, NULL, NULL},
    {"samples_per_s", DL_NUMBER, AT(samples_per_s), 1e-9, 1e15, true, NULL, NULL},
    {"reserved_bytes", DL_NUMBER, AT(reserved_bytes), 1, 1e15, true, NULL, NULL},
    {"reserved_on", DL_CHOICE, AT(reserved_on), 0, 0, true, reserved_on, NULL},
};

/* ---- keys that go together ---- */

/* What a row must say unless the file of a strategy does, and the sizes unless that of a workload does. */
static const char *const needed[] = {"devices", "model", "global_batch", "software"};
static const char *const sizes[] = {"layers", "hidden", "heads", "seq", "vocab"};
/* All that a row may say beside the file of a strategy, two of them in place of what it names; and what it must not
 * beside that of a workload: only how many layers, if it was not the whole model, and how long samples are. */
static const char *const of_study[] = {"id",  "topo", "strategy",       "source", "assumed",  "step_s",
                                       "mfu", "hfu",  "attention_flop", "note",   "workload", "software"};
static const char *const of_workload[] = {"hidden",  "ffn",   "heads",      "kv_heads", "vocab",
                                          "experts", "top_k", "expert_ffn", "style",    "tied_embedding"};

static bool is_among(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}
#define IS_AMONG(key, keys) is_among(key, keys, DL_COUNT(keys))

static bool has(struct dl_json row, const char *key) { return json_object_get(row.value, key) != NULL; }

/* For lack of memory: there is no time then. */
static bool ran_out(struct dl_json row)
{
    const char *const ran = json_string_value(json_object_get(row.value, "ran"));
    return ran && strcmp(ran, ends[DL_RAN_OUT_OF_MEMORY]) == 0;
}

/* The time of a step, or what it follows from. */
static bool says_time(struct dl_json row)
{
    return has(row, "step_s") || has(row, "mfu") || has(row, "tokens_per_s_per_device") || has(row, "samples_per_s");
}

/* A study without a published time is simulated all the same. */
static bool must_say(struct dl_json row, const char *key, enum dl_quantity quantity)
{
    if (has(row, "strategy")) return false;
    if (strcmp(key, "step_s") == 0) return quantity == DL_STEP && !ran_out(row) && !says_time(row);
    return IS_AMONG(key, needed) || (IS_AMONG(key, sizes) && !has(row, "workload"));
}

/* The kind of file that the row names and that says it. */
static const char *said_by(struct dl_json row, const char *key)
{
    if (has(row, "strategy") && !IS_AMONG(key, of_study)) return "strategy";
    return has(row, "workload") && IS_AMONG(key, of_workload) ? "workload" : NULL;
}

static enum dl_status check_key(struct dl_json row, const char *key, enum dl_quantity quantity, struct dl_arena *arena,
                                struct dl_error *err)
{
    if (!has(row, key)) {
        if (!must_say(row, key, quantity)) return DL_OK;
        return dl_fail(err, DL_KEY, row.where, "needs the key '%s'", key);
    }
    const char *const place = dl_json_member(row, key, arena).where, *const file = said_by(row, key);
    if (file) return dl_fail(err, DL_KEY, place, "is what the file of the %s says; leave it out", file);
    if (quantity != DL_STEP && strcmp(key, "step_s") == 0)
        return dl_fail(err, DL_KEY, place, "has no place in a pair; say what is published of both");
    return DL_OK;
}

void dl_training_row_use_workload(json_t *row, const char *workload)
{
    for (size_t i = 0; i < DL_COUNT(of_workload); i++) json_object_del(row, of_workload[i]);
    json_object_del(row, "layers");
    json_object_set_new(row, "workload", json_string(workload));
}

/* ---- a row ---- */

/* Hops are found by the all-gather, and then rates by the all-reduce. */
static enum dl_status check_tested(const struct dl_training_row *row, struct dl_error *err)
{
    const struct dl_tested_network *const t = &row->tested;
    if (t->allreduce_bytes_per_s > 0 && !(t->allgather_bytes_per_s > 0))
        return dl_fail(err, DL_KEY, row->where,
                       "needs the key 'tested_allgather_bytes_per_s' beside 'tested_allreduce_bytes_per_s'");
    if (t->allgather_bytes_per_s > 0 && !(t->bytes > 0))
        return dl_fail(err, DL_KEY, row->where, "needs the key 'tested_bytes' beside 'tested_allgather_bytes_per_s'");
    return DL_OK;
}

static bool has_sizes_of_llama(const struct dl_training_row *row)
{
    return (row->kv_heads && row->kv_heads < row->heads) || (row->ffn && row->ffn != 4 * row->hidden);
}

static void find_style(struct dl_training_row *row, struct dl_arena *arena)
{
    if (row->style != DL_STYLE_BY_SIZES || row->strategy || row->workload) return;
    row->style = has_sizes_of_llama(row) ? DL_STYLE_LLAMA : DL_STYLE_GPT;
    if (row->style == DL_STYLE_LLAMA)
        row->assumed = dl_arena_format(arena, "%s%sstyle", row->assumed, *row->assumed ? " " : "");
}

/* Where a source has rates only. */
static void find_step(struct dl_training_row *row)
{
    const double samples = (double)row->global_batch;
    if (row->step_s > 0) return;
    if (row->tokens_per_s > 0)
        row->step_s = samples * (double)row->seq / ((double)row->devices * row->tokens_per_s);
    else if (row->samples_per_s > 0)
        row->step_s = samples / row->samples_per_s;
}

static void fill_in(struct dl_training_row *row, struct dl_arena *arena)
{
    find_step(row);
    int64_t *const ways[] = {&row->tp, &row->pp, &row->cp, &row->ep, &row->vpp};
    for (size_t i = 0; i < DL_COUNT(ways); i++)
        if (!*ways[i]) *ways[i] = 1;
    if (!row->assumed) row->assumed = "";
    if (!row->source) row->source = row->file ? dl_base_name(row->file) : ""; /* a family is the rows of a source */
    find_style(row, arena);
    if (row->strategy) row->model = row->strategy;
    if (!row->stack.value) return;
    char *const text = json_dumps(row->stack.value, JSON_REAL_PRECISION(17)); /* the row outlives its document */
    row->stack_text = dl_arena_string(arena, text);
    row->stack.value = NULL;
    free(text);
}

enum dl_status dl_training_row_add(struct dl_json object, enum dl_quantity quantity, struct dl_arena *arena,
                                   struct dl_training_rows *rows, struct dl_error *err)
{
    struct dl_training_row row = {.where = object.where,
                                  .file = object.file,
                                  .quantity = quantity,
                                  .attention_flop = DL_FLOP_FULL,
                                  .tied_embedding = -1};
    const size_t told = err->n_told;
    if (dl_read(object, dl_training_row_fields, DL_ROW_FIELDS, &row, arena, err) && !dl_go_on(err)) return err->status;
    for (size_t i = 0; i < DL_ROW_FIELDS; i++)
        if (check_key(object, dl_training_row_fields[i].key, quantity, arena, err) && !dl_go_on(err))
            return err->status;
    if (dl_stop_if_told(err, told)) return err->status;
    if (row.tokens_per_s > 0 && !row.seq) return dl_fail(err, DL_KEY, row.where, "needs the key 'seq'");
    if (check_tested(&row, err)) return err->status;
    fill_in(&row, arena);
    DL_GROW(rows->items, rows->n, rows->capacity);
    rows->items[rows->n++] = row;
    return DL_OK;
}
