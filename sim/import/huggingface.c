/* huggingface.c - a config.json of Hugging Face as a workload, by the table of its model type (hf_models.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/import/formats.h"
#include "sim/import/hf_models.h"

static bool recognises(const char *text, size_t bytes)
{
    json_t *const config = json_loadb(text, bytes, 0, NULL);
    const bool is_one = json_object_get(config, "model_type") || json_object_get(config, "architectures");
    json_decref(config);
    return is_one;
}

/* ---- keys ---- */

struct dl_json dl_hf_get(const struct dl_hf *hf, const char *key)
{
    struct dl_json member = dl_json_member(hf->config, key, hf->arena);
    if (json_is_null(member.value)) member.value = NULL;
    return member;
}

int64_t dl_hf_count(const struct dl_hf *hf, const char *workload_key)
{
    return json_integer_value(json_object_get(hf->out->workload, workload_key));
}

enum dl_status dl_hf_need_count(const struct dl_hf *hf, const char *key, int64_t *count, struct dl_error *err)
{
    const int64_t most = 1000000000; /* so that the product of two is a number, too */
    const struct dl_json from = dl_hf_get(hf, key);
    if (!from.value) return dl_hf_refuse(hf, key, err, "must be there, a whole number");
    if (!json_is_integer(from.value)) return dl_wrong_type(from, "a whole number", err);
    *count = json_integer_value(from.value);
    if (*count >= 0 && *count <= most) return DL_OK;
    return dl_hf_refuse(hf, key, err, "must be in [0, %lld], got %lld", (long long)most, (long long)*count);
}

enum dl_status dl_hf_flag(const struct dl_hf *hf, const char *key, bool *value, struct dl_error *err)
{
    const struct dl_json from = dl_hf_get(hf, key);
    if (from.value && !json_is_boolean(from.value)) return dl_wrong_type(from, "true or false", err);
    if (from.value) *value = json_is_true(from.value);
    return DL_OK;
}

enum dl_status dl_hf_set_shared_experts(struct dl_hf *hf, const char *width_key, int64_t n, struct dl_error *err)
{
    const int64_t each = dl_hf_count(hf, "expert_ffn");
    int64_t width;
    if (dl_hf_need_count(hf, width_key, &width, err)) return err->status;
    const bool are_alike = each > 0 && width * n % each == 0; /* as so many others */
    json_object_set_new(hf->out->workload, "shared_experts", json_integer(are_alike ? width * n / each : n));
    if (!are_alike) json_object_set_new(hf->out->workload, "shared_ffn", json_integer(width));
    return DL_OK;
}

static void list(struct dl_hf *hf, const char *key, const json_t *value, bool matters, const char *why)
{
    const struct dl_left_out left = {.key = dl_arena_format(hf->arena, "/%s", key),
                                     .value = dl_shown_value(value, hf->arena),
                                     .why = why,
                                     .matters = matters};
    dl_leave_out(hf->out, left, hf->arena);
}

void dl_hf_leave_out(struct dl_hf *hf, const char *key, bool matters, const char *why)
{
    const struct dl_json member = dl_hf_get(hf, key);
    if (member.value) list(hf, key, member.value, matters, why);
}

enum dl_status dl_hf_refuse(const struct dl_hf *hf, const char *key, struct dl_error *err, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(hf->config, key, hf->arena).where, "%s", text);
}

static const struct dl_hf_key *find_in(const struct dl_hf_keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->n; i++)
        if (strcmp(keys->items[i].key, key) == 0) return &keys->items[i];
    return NULL;
}

/* By how special they are; the first that has a key says what it means. */
enum { n_tables = 3 };
static const struct dl_hf_keys *get_table(const struct dl_hf_model *model, size_t index)
{
    static const struct dl_hf_keys none = {NULL, 0};
    const struct dl_hf_keys *const shared = model->shared ? model->shared : &none;
    return index == 0 ? &model->keys : index == 1 ? shared : &dl_hf_common;
}

static const struct dl_hf_key *find_key(const struct dl_hf_model *model, const char *key)
{
    const struct dl_hf_key *found = NULL;
    for (size_t i = 0; i < n_tables && !found; i++) found = find_in(get_table(model, i), key);
    return found;
}

static enum dl_status refuse_unknown(const struct dl_hf *hf, const char *key, struct dl_error *err)
{
    const char **names = NULL;
    size_t n = 0, capacity = 0;
    char hint[DL_HINT];
    for (size_t table = 0; table < n_tables; table++)
        for (size_t i = 0; i < get_table(hf->model, table)->n; i++) {
            DL_GROW(names, n, capacity);
            names[n++] = get_table(hf->model, table)->items[i].key;
        }
    dl_fail(err, DL_KEY, dl_json_member(hf->config, key, hf->arena).where,
            "is no key of the model type %s that dlsim knows, and it may change the model%s", hf->model->model_type,
            dl_suggestion(key, names, n, hint));
    dl_free(names);
    return err->status;
}

static enum dl_status check_known(const struct dl_hf *hf, struct dl_error *err)
{
    static const char *const read_before[] = {"model_type", "architectures"};
    const size_t told = err->n_told;
    const char *key;
    json_t *value;
    json_object_foreach(hf->config.value, key, value)
    {
        bool is_known = find_key(hf->model, key) != NULL;
        for (size_t i = 0; i < DL_COUNT(read_before); i++) is_known |= strcmp(key, read_before[i]) == 0;
        if (!is_known && refuse_unknown(hf, key, err) && !dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}

static enum dl_status take_word(struct dl_hf *hf, const struct dl_hf_key *k, struct dl_json from, struct dl_error *err)
{
    const char *const word = json_string_value(from.value), *all = "";
    if (!word) return dl_wrong_type(from, "a string", err);
    for (const struct dl_hf_word *w = k->words; w->word; w++) {
        if (strcmp(w->word, word) == 0) {
            json_object_set_new(hf->out->workload, k->to, json_string(w->here));
            return DL_OK;
        }
        all = dl_arena_format(hf->arena, "%s%s%s", all, *all ? ", " : "", w->word);
    }
    return dl_fail(err, DL_RANGE, from.where, "must be one of %s, got '%.60s'", all, word);
}

/* 0 and 0.0 are one number. */
static bool is_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static bool is_text(const json_t *value, const char *text)
{
    json_t *const wanted = json_loads(text, JSON_DECODE_ANY, NULL);
    const bool is_so = is_equal(value, wanted);
    json_decref(wanted);
    return is_so;
}

static enum dl_status check_is(const struct dl_hf *hf, const struct dl_hf_key *k, struct dl_json from,
                               struct dl_error *err)
{
    if (is_text(from.value, k->absent)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, from.where, "must be %s, got %s: %s", k->absent,
                   dl_shown_value(from.value, hf->arena), k->why);
}

/* A workload has dropout everywhere or nowhere. */
static enum dl_status take_dropout(struct dl_hf *hf, const struct dl_hf_key *k, struct dl_json from,
                                   struct dl_error *err)
{
    json_t *const before = json_object_get(hf->out->workload, "dropout");
    if (!json_is_number(from.value)) return dl_wrong_type(from, "a number", err);
    const bool drops = json_number_value(from.value) > 0;
    if (before && json_is_true(before) != drops)
        return dl_fail(err, DL_IMPOSSIBLE, from.where,
                       "must be %s, as others are: there is dropout everywhere or nowhere", drops ? "0" : "above 0");
    json_object_set_new(hf->out->workload, "dropout", json_boolean(drops));
    if (drops) dl_hf_leave_out(hf, k->key, false, "there is dropout; how much of it costs the same");
    return DL_OK;
}

static enum dl_status take_scores(struct dl_hf *hf, const struct dl_hf_key *k, struct dl_json from,
                                  struct dl_error *err)
{
    if (!json_is_number(from.value)) return dl_wrong_type(from, "a number", err);
    const bool drops = json_number_value(from.value) > 0;
    json_object_set_new(hf->out->workload, "attention_dropout", json_boolean(drops));
    if (drops) dl_hf_leave_out(hf, k->key, false, "there is dropout; how much of it costs the same");
    return DL_OK;
}

/* Scores have dropout as all has, unless the workload says otherwise. */
static void leave_out_usual(struct dl_hf *hf)
{
    const json_t *const scores = json_object_get(hf->out->workload, "attention_dropout");
    const json_t *const all = json_object_get(hf->out->workload, "dropout");
    if (scores && json_is_true(scores) == !json_is_false(all)) json_object_del(hf->out->workload, "attention_dropout");
}

static enum dl_status take(struct dl_hf *hf, const struct dl_hf_key *k, struct dl_json from, struct dl_error *err)
{
    static const char longest[] = "sequences are taken to be as long as the model allows; those of a training may be "
                                  "shorter (--set workload.seq=N)";
    switch (k->meaning) {
    case DL_HF_LENGTH: dl_hf_leave_out(hf, k->key, true, longest); /* fall through */
    case DL_HF_COUNT:
        if (!json_is_integer(from.value)) return dl_wrong_type(from, "a whole number", err);
        json_object_set(hf->out->workload, k->to, from.value);
        break;
    case DL_HF_FLAG:
        if (!json_is_boolean(from.value)) return dl_wrong_type(from, "true or false", err);
        json_object_set(hf->out->workload, k->to, from.value);
        break;
    case DL_HF_WORD: return take_word(hf, k, from, err);
    case DL_HF_IS: return check_is(hf, k, from, err);
    case DL_HF_DIFFERS:
        if (!is_text(from.value, k->same)) list(hf, k->key, from.value, true, k->why);
        break;
    case DL_HF_DROPOUT: return take_dropout(hf, k, from, err);
    case DL_HF_SCORES: return take_scores(hf, k, from, err);
    case DL_HF_FINISHED: break;
    case DL_HF_LEFT_OUT: dl_hf_leave_out(hf, k->key, false, k->why); break;
    }
    return DL_OK;
}

static enum dl_status take_absent(struct dl_hf *hf, const struct dl_hf_key *k, struct dl_json at, struct dl_error *err)
{
    if (k->meaning == DL_HF_LEFT_OUT || k->meaning == DL_HF_FINISHED || k->meaning == DL_HF_IS) return DL_OK;
    if (!k->absent)
        return dl_fail(err, DL_KEY, at.where, "must be there: the model type %s needs it", hf->model->model_type);
    if (!*k->absent) return DL_OK;
    at.value = json_loads(k->absent, JSON_DECODE_ANY, NULL);
    take(hf, k, at, err);
    json_decref(at.value);
    return err->status;
}

static enum dl_status take_table(struct dl_hf *hf, const struct dl_hf_keys *keys, struct dl_error *err)
{
    const size_t told = err->n_told;
    for (size_t i = 0; i < keys->n; i++) {
        const struct dl_hf_key *const k = &keys->items[i];
        if (find_key(hf->model, k->key) != k) continue; /* its own table says something else */
        const struct dl_json from = dl_hf_get(hf, k->key);
        if ((from.value ? take(hf, k, from, err) : take_absent(hf, k, from, err)) && !dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}

/* ---- the whole ---- */

static enum dl_status find_model(struct dl_hf *hf, struct dl_error *err)
{
    const struct dl_json type = dl_hf_get(hf, "model_type");
    const char **names;
    const size_t n = dl_hf_model_names(&names, hf->arena);
    char hint[DL_HINT];
    if (!json_is_string(type.value))
        return dl_fail(err, DL_KEY, type.where, "must say the model type: %s", dl_joined(names, n, hint));
    hf->model = dl_hf_model_find(json_string_value(type.value));
    if (hf->model) return DL_OK;
    return dl_fail(err, DL_NOT_FOUND, type.where, "'%.60s' is no model type that dlsim knows%s",
                   json_string_value(type.value), dl_hint(json_string_value(type.value), names, n, hint));
}

/* The class says which head there is. Without one it is the first. */
static enum dl_status check_architecture(const struct dl_hf *hf, struct dl_error *err)
{
    const struct dl_json list = dl_hf_get(hf, "architectures");
    const char *const *const known = hf->model->architectures;
    size_t n = 0;
    char all[DL_HINT];
    while (known[n]) n++;
    if (!list.value) return DL_OK;
    const struct dl_json first = dl_json_element(list, 0, hf->arena);
    if (json_array_size(list.value) != 1 || !json_is_string(first.value))
        return dl_fail(err, DL_TYPE, list.where, "must be a list of one name: %s", dl_joined(known, n, all));
    for (size_t i = 0; i < n; i++)
        if (strcmp(known[i], json_string_value(first.value)) == 0) return DL_OK;
    return dl_fail(err, DL_NOT_FOUND, first.where, "'%.60s' has another head than dlsim builds; must be one of %s",
                   json_string_value(first.value), dl_joined(known, n, all));
}

static void begin_workload(struct dl_hf *hf, const char *where)
{
    const char *const type = hf->model->model_type;
    json_t *const always = json_loads(hf->model->always, 0, NULL);
    hf->out->what = dl_arena_format(hf->arena, "a Hugging Face configuration of the model type %s", type);
    hf->out->workload = json_pack("{ss ss ss}", "schema", "dlsim/workload/1", "source",
                                  dl_arena_format(hf->arena, "%s, %s", where, hf->out->what), "kind", "transformer");
    json_object_update(hf->out->workload, always);
    json_decref(always);
}

/* The file says how long a sequence may be, not how long those of the training are. */
static void add_facts(struct dl_hf *hf)
{
    static const char longest[] = "assumed: the longest that the model takes; training may use shorter ones";
    json_t *const facts =
        json_pack("{ss}", "*",
                  dl_arena_format(hf->arena, "published: the configuration, and what %s models have in common",
                                  hf->model->model_type));
    const char *const seq = hf->model->seq_fact;
    json_object_set_new(facts, "seq", json_string(seq ? seq : longest));
    json_object_set_new(hf->out->workload, "facts", facts);
}

static enum dl_status read_config(struct dl_hf *hf, const char *where, struct dl_error *err)
{
    if (!json_is_object(hf->config.value)) return dl_wrong_type(hf->config, "an object", err);
    if (find_model(hf, err) || check_architecture(hf, err) || check_known(hf, err)) return err->status;
    begin_workload(hf, where);
    static const size_t order[n_tables] = {1, 0, 2}; /* sizes that all have are read first */
    for (size_t i = 0; i < n_tables; i++)
        if (take_table(hf, get_table(hf->model, order[i]), err)) return err->status;
    if (hf->model->finish && hf->model->finish(hf, err)) return err->status;
    leave_out_usual(hf);
    add_facts(hf);
    return DL_OK;
}

static enum dl_status read(const char *text, const char *where, struct dl_arena *arena, struct dl_imported *out,
                           struct dl_error *err)
{
    struct dl_hf hf = {.out = out, .arena = arena};
    if (dl_json_parse(text, strlen(text), where, arena, &hf.config, err)) return err->status;
    read_config(&hf, where, err);
    json_decref(hf.config.value);
    return err->status;
}

const struct dl_import_format dl_import_huggingface = {
    .name = "huggingface",
    .doc = "a config.json of Hugging Face, as a workload",
    .recognises = recognises,
    .read = read,
};
