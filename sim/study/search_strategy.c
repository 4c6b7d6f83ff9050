#include "sim/study/search_strategy.h"

#include <inttypes.h>
#include <string.h>

static const char *schedule_of(const struct dl_space_point *p)
{
    return dl_schedule_get((size_t)p->of[DL_SPACE_SCHEDULE])->name;
}

static const char *recompute_of(const struct dl_space_point *p)
{
    return dl_recompute_name((enum dl_recompute)p->of[DL_SPACE_RECOMPUTE]);
}

/* ---- the entries of a point ---- */

static void add(json_t *stack, const char *name, const char *key, int64_t value)
{
    json_array_append_new(stack, json_pack("{ss sI}", "name", name, key, (json_int_t)value));
}

static json_t *last(json_t *stack) { return json_array_get(stack, json_array_size(stack) - 1); }

static void add_pipeline(const struct dl_space_point *p, json_t *stack)
{
    add(stack, "pipeline", "ways", p->of[DL_SPACE_PIPELINE]);
    json_object_set_new(last(stack), "schedule", json_string(schedule_of(p)));
    json_object_set_new(last(stack), "chunks", json_integer(p->of[DL_SPACE_CHUNKS]));
}

static void add_tensor(const struct dl_space_point *p, json_t *stack)
{
    add(stack, "tensor", "ways", p->of[DL_SPACE_TENSOR]);
    if (p->of[DL_SPACE_SEQUENCE]) json_object_set_new(last(stack), "sequence", json_true());
}

/* Zigzag: else the rank with the last tokens would have most of the work of a causal mask. */
static void add_context(const struct dl_space_point *p, json_t *stack)
{
    add(stack, "context", "ways", p->of[DL_SPACE_CONTEXT]);
    json_object_set_new(last(stack), "zigzag", json_true());
}

static json_t *stack_of(const struct dl_space_point *p)
{
    json_t *const stack = json_array();
    if (p->of[DL_SPACE_PIPELINE] > 1) add_pipeline(p, stack);
    if (p->of[DL_SPACE_TENSOR] > 1) add_tensor(p, stack);
    if (p->of[DL_SPACE_CONTEXT] > 1) add_context(p, stack);
    if (p->of[DL_SPACE_EXPERT] > 1) add(stack, "expert", "ways", p->of[DL_SPACE_EXPERT]);
    if (p->data * (uint64_t)p->of[DL_SPACE_CONTEXT] > 1)
        json_array_append_new(stack, json_pack("{ss}", "name", "data"));
    if (p->of[DL_SPACE_ZERO]) add(stack, "zero", "stage", p->of[DL_SPACE_ZERO]);
    return stack;
}

/* ---- what is searched if asked for ---- */

static json_t *order_of(const struct dl_space_point *p)
{
    enum dl_axis axes[DL_N_AXES];
    json_t *const order = json_array();
    const size_t n = dl_space_ordered(p, p->of[DL_SPACE_ORDER], axes);
    for (size_t i = 0; i < n; i++) json_array_append_new(order, json_string(dl_usual_axis_name(axes[i])));
    return order;
}

static void add_offload(const struct dl_space_point *p, json_t *stack)
{
    json_array_append_new(stack, json_pack("{ss}", "name", "offload"));
    for (size_t i = 0; dl_space_offloads[i]; i++)
        if (p->of[DL_SPACE_OFFLOAD] & (int64_t)1 << i)
            json_object_set_new(last(stack), dl_space_offloads[i], json_integer(1));
}

const char *dl_search_placement(const struct dl_space_point *p)
{
    return p->of[DL_SPACE_PLACEMENT] ? dl_space_placements[p->of[DL_SPACE_PLACEMENT]] : NULL;
}

/* ---- what is fixed beside the axes ---- */

static const char in_stack[] = "stack.";
enum { most_name = 64 };

/* The word after "stack."; false: there is none. */
static bool entry_name(const char *fix, char name[most_name], const char **rest)
{
    const size_t prefix = strlen(in_stack);
    if (strncmp(fix, in_stack, prefix)) return false;
    const size_t length = strcspn(fix + prefix, ".=");
    if (length >= most_name || fix[prefix + length] != '.') return false;
    memcpy(name, fix + prefix, length);
    name[length] = '\0';
    *rest = fix + prefix + length + 1;
    return true;
}

/* NULL: there is none. */
static const struct dl_strategy *strategy_named(const char *name)
{
    for (size_t i = 0; i < dl_strategy_count(); i++)
        if (strcmp(dl_strategy_get(i)->name, name) == 0) return dl_strategy_get(i);
    return NULL;
}

bool dl_search_fixes_spread(const char *fix)
{
    char name[most_name];
    const char *rest;
    if (!entry_name(fix, name, &rest)) return false;
    const struct dl_strategy *const s = strategy_named(name);
    return !s || !s->builds_model;
}

bool dl_search_fixes_key(const char *fix, const char *key)
{
    char name[most_name];
    const char *rest;
    if (entry_name(fix, name, &rest)) return strcmp(name, key) == 0;
    return strncmp(fix, key, strlen(key)) == 0 && fix[strlen(key)] == '=';
}

const char *dl_search_with_json(const char *fix, struct dl_arena *arena)
{
    const char *const value = strchr(fix, '=') + 1;
    json_t *const read = json_loads(value, JSON_DECODE_ANY, NULL);
    json_decref(read);
    return read ? fix : dl_arena_format(arena, "%.*s\"%s\"", (int)(value - fix), fix, value);
}

static bool has_key(const struct dl_field *fields, size_t n, const char *text)
{
    const size_t length = strcspn(text, ".=");
    for (size_t i = 0; i < n; i++)
        if (strncmp(fields[i].key, text, length) == 0 && !fields[i].key[length]) return true;
    return false;
}

static bool is_known(const char *fix)
{
    char name[most_name];
    const char *rest;
    size_t n_fields;
    const struct dl_field *const of_file = dl_job_fields(&n_fields);
    if (!entry_name(fix, name, &rest)) return has_key(of_file, n_fields, fix) && strncmp(fix, "stack", 5);
    const struct dl_strategy *const s = strategy_named(name);
    return s && has_key(s->fields, s->n_fields, rest);
}

enum dl_status dl_search_check_fixes(const struct dl_texts *fixes, struct dl_error *err)
{
    static const struct {
        const char *key, *option;
    } own[] = {{"devices=", "--devices"},
               {"global_batch=", "--global-batch"},
               {"workload=", "--workload"},
               {"software=", "--software"}};
    for (size_t i = 0; i < fixes->n; i++) {
        const char *const fix = fixes->items[i];
        for (size_t k = 0; k < DL_COUNT(own); k++)
            if (strncmp(fix, own[k].key, strlen(own[k].key)) == 0)
                return dl_fail(err, DL_KEY, "--fix", "'%.100s' has an option of its own; use %s", fix, own[k].option);
        if (!is_known(fix) || !strchr(fix, '='))
            return dl_fail(err, DL_KEY, "--fix",
                           "'%.100s' must be KEY=JSON with a key of a strategy file, such as stack.tensor.ways=8", fix);
    }
    return DL_OK;
}

static bool has_entry(const json_t *stack, const char *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach(stack, i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return true;
    }
    return false;
}

/* Keys that only one value of another has: who fixes them means that, too. */
static const struct {
    const char *key, *needs;
} needs[] = {{"stack.recompute.modules=", "+stack.recompute.mode=\"selective\""},
             {"stack.recompute.layers=", "+stack.recompute.mode=\"full\""},
             {"stack.recompute.every=", "+stack.recompute.mode=\"full\""},
             {"stack.recompute.keeps=", "+stack.recompute.mode=\"full\""},
             {"stack.recompute.kept_results=", "+stack.recompute.mode=\"full\""}};

/* NULL: nothing. */
static const char *needed_by(const char *fix)
{
    for (size_t i = 0; i < DL_COUNT(needs); i++)
        if (strncmp(fix, needs[i].key, strlen(needs[i].key)) == 0) return needs[i].needs;
    return NULL;
}

/* Entries that the search itself puts in or leaves out are not added for what is fixed in them; others are. */
enum dl_status dl_search_apply(struct dl_json doc, const char *fix, struct dl_arena *arena, struct dl_error *err)
{
    static const char *const searched[] = {"pipeline", "tensor", "context", "expert", "data", "zero"};
    char name[most_name];
    const char *rest;
    if (!entry_name(fix, name, &rest) || has_entry(json_object_get(doc.value, "stack"), name))
        return dl_json_set(doc, fix, arena, err);
    for (size_t i = 0; i < DL_COUNT(searched); i++)
        if (strcmp(searched[i], name) == 0) return DL_OK;
    const char *const needed = needed_by(fix);
    if (needed && dl_json_set(doc, needed, arena, err)) return err->status;
    return dl_json_set(doc, needed ? fix : dl_arena_format(arena, "+%s", fix), arena, err);
}

json_t *dl_search_strategy(const json_t *base, const struct dl_space_point *p, const struct dl_texts *fixes,
                           struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json doc = {.value = json_deep_copy(base), .where = "search"};
    json_object_set_new(doc.value, "microbatch", json_integer(p->of[DL_SPACE_MICROBATCH]));
    if (p->of[DL_SPACE_RECOMPUTE]) json_object_set_new(doc.value, "recompute", json_string(recompute_of(p)));
    json_object_set_new(doc.value, "stack", stack_of(p));
    if (p->of[DL_SPACE_OFFLOAD]) add_offload(p, json_object_get(doc.value, "stack"));
    if (p->of[DL_SPACE_ORDER]) json_object_set_new(doc.value, "order", order_of(p));
    for (size_t i = 0; i < fixes->n && !dl_search_apply(doc, fixes->items[i], arena, err); i++) continue;
    return doc.value;
}

/* ---- in words ---- */

static const char *order_words(const struct dl_space_point *p, const char *words, struct dl_arena *arena)
{
    enum dl_axis axes[DL_N_AXES];
    const size_t n = dl_space_ordered(p, p->of[DL_SPACE_ORDER], axes);
    words = dl_arena_format(arena, "%s, order", words);
    for (size_t i = 0; i < n; i++) words = dl_arena_format(arena, "%s %s", words, dl_usual_axis_name(axes[i]));
    return words;
}

static const char *offload_words(const struct dl_space_point *p, const char *words, struct dl_arena *arena)
{
    words = dl_arena_format(arena, "%s, offload", words);
    for (size_t i = 0; dl_space_offloads[i]; i++)
        if (p->of[DL_SPACE_OFFLOAD] & (int64_t)1 << i)
            words = dl_arena_format(arena, "%s %s", words, dl_space_offloads[i]);
    return words;
}

static const char *asked_words(const struct dl_space_point *p, const char *words, struct dl_arena *arena)
{
    if (p->of[DL_SPACE_ORDER]) words = order_words(p, words, arena);
    if (p->of[DL_SPACE_OFFLOAD]) words = offload_words(p, words, arena);
    return dl_search_placement(p) ? dl_arena_format(arena, "%s, placement %s", words, dl_search_placement(p)) : words;
}

const char *dl_search_words(const struct dl_space_point *p, struct dl_arena *arena)
{
    const int64_t *const of = p->of;
    const char *words = "";
    if (of[DL_SPACE_TENSOR] > 1)
        words = dl_arena_format(arena, "tensor %" PRId64 "%s, ", of[DL_SPACE_TENSOR],
                                of[DL_SPACE_SEQUENCE] ? " with sequence" : "");
    if (of[DL_SPACE_CONTEXT] > 1)
        words = dl_arena_format(arena, "%scontext %" PRId64 ", ", words, of[DL_SPACE_CONTEXT]);
    if (of[DL_SPACE_PIPELINE] > 1)
        words = dl_arena_format(arena, "%spipeline %" PRId64 " %s", words, of[DL_SPACE_PIPELINE], schedule_of(p));
    if (of[DL_SPACE_CHUNKS] > 1) words = dl_arena_format(arena, "%s x %" PRId64, words, of[DL_SPACE_CHUNKS]);
    if (of[DL_SPACE_PIPELINE] > 1) words = dl_arena_format(arena, "%s, ", words);
    if (of[DL_SPACE_EXPERT] > 1) words = dl_arena_format(arena, "%sexpert %" PRId64 ", ", words, of[DL_SPACE_EXPERT]);
    if (p->data > 1) words = dl_arena_format(arena, "%sdata %" PRIu64 ", ", words, p->data);
    if (of[DL_SPACE_ZERO]) words = dl_arena_format(arena, "%szero %" PRId64 ", ", words, of[DL_SPACE_ZERO]);
    if (of[DL_SPACE_RECOMPUTE]) words = dl_arena_format(arena, "%srecompute %s, ", words, recompute_of(p));
    words = dl_arena_format(arena, "%smicro-batch %" PRId64, words, of[DL_SPACE_MICROBATCH]);
    return asked_words(p, words, arena);
}
