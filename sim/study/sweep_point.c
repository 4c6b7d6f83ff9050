#include "sim/study/sweep_point.h"

#include <stdlib.h>
#include <string.h>

#include "sim/sweep/store.h"

enum kind { OPTION_FILE, OPTION_TEXT, OPTION_PATH, OPTION_COUNT };

struct option {
    const char *name;
    enum kind kind;
    size_t offset;
    bool required;
};

#define AT(member) offsetof(struct dl_session_request, member)
static const struct option options[] = {
    {"topo", OPTION_FILE, AT(topo), true},
    {"strategy", OPTION_FILE, AT(strategy), true},
    {"workload", OPTION_FILE, AT(workload), false},
    {"software", OPTION_FILE, AT(software), false},
    {"scenario", OPTION_PATH, AT(scenario), false},
    {"transport", OPTION_TEXT, AT(transport), false},
    {"placement", OPTION_TEXT, AT(placement), false},
    {"engine", OPTION_TEXT, AT(engine), false},
    {"fidelity", OPTION_TEXT, AT(fidelity), false},
    {"devices", OPTION_COUNT, AT(devices), false},
    {"seed", OPTION_COUNT, AT(seed), false},
    {"iterations", OPTION_COUNT, AT(iterations), false},
};
#undef AT

static const struct option *find_option(const char *path)
{
    for (size_t i = 0; i < DL_COUNT(options); i++)
        if (strcmp(options[i].name, path) == 0) return &options[i];
    return NULL;
}

/* "-stack.zero" removes an entry where its value is true. */
static bool removes(const char *path) { return path[0] == '-'; }

/* ---- checks before anything runs ---- */

static enum dl_status check_choice(const char *where, const char *value, const char *const *names, struct dl_error *err)
{
    size_t n = 0;
    char hint[DL_HINT];
    for (; names[n]; n++)
        if (strcmp(names[n], value) == 0) return DL_OK;
    return dl_fail(err, DL_RANGE, where, "no such name: '%.60s'%s", value, dl_hint(value, names, n, hint));
}

static enum dl_status check_value(const struct dl_sweep_column *column, const struct option *option,
                                  const json_t *value, struct dl_error *err)
{
    static const struct {
        const char *name;
        const char *const *choices;
    } closed[] = {{"engine", dl_engine_names}, {"fidelity", dl_fidelities}};
    if (option->kind == OPTION_COUNT) {
        if (json_is_integer(value) && json_integer_value(value) >= 0) return DL_OK;
        return dl_fail(err, DL_TYPE, column->where, "'%s' takes whole numbers", column->path);
    }
    if (!json_is_string(value) || !json_string_length(value))
        return dl_fail(err, DL_TYPE, column->where, "'%s' takes names, as strings", column->path);
    for (size_t i = 0; i < DL_COUNT(closed); i++)
        if (strcmp(closed[i].name, option->name) == 0 &&
            check_choice(column->where, json_string_value(value), closed[i].choices, err))
            return err->status;
    return DL_OK;
}

static enum dl_status check_removal(const struct dl_sweep_column *column, const json_t *value, struct dl_error *err)
{
    if (!removes(column->path) || json_is_boolean(value)) return DL_OK;
    return dl_fail(err, DL_TYPE, column->where, "'%s' takes true, where it is removed, and false", column->path);
}

static enum dl_status check_axis(const struct dl_sweep *s, const struct dl_sweep_axis *axis, struct dl_error *err)
{
    for (size_t k = 0; k < axis->n_columns; k++) {
        const struct dl_sweep_column *const column = &s->columns[axis->first_column + k];
        const struct option *const option = find_option(column->path);
        for (size_t i = 0; i < axis->n_values; i++) {
            const json_t *const value = axis->values[i * axis->n_columns + k];
            if (option ? check_value(column, option, value, err) : check_removal(column, value, err))
                return err->status;
        }
    }
    return DL_OK;
}

static bool has_column(const struct dl_sweep *s, const char *path)
{
    for (size_t i = 0; i < s->n_columns; i++)
        if (strcmp(s->columns[i].path, path) == 0) return true;
    return false;
}

static enum dl_status check_number_of_sets(const struct dl_sweep *s, struct dl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_columns; i++) n += !find_option(s->columns[i].path);
    if (n <= DL_MAX_TEXTS) return DL_OK;
    return dl_fail(err, DL_RANGE, s->doc.where, "sets %zu paths; a run takes at most %d", n, DL_MAX_TEXTS);
}

enum dl_status dl_sweep_check_options(const struct dl_sweep *s, struct dl_error *err)
{
    for (size_t i = 0; i < DL_COUNT(options); i++)
        if (options[i].required && !has_column(s, options[i].name))
            return dl_fail(err, DL_KEY, s->doc.where, "needs '%s' in base or as the path of an axis", options[i].name);
    for (size_t i = 0; i < s->n_axes; i++)
        if (check_axis(s, &s->axes[i], err)) return err->status;
    return check_number_of_sets(s, err);
}

/* ---- a point as a request ---- */

/* A path in the sweep file is relative to it. */
static const char *path_from(const char *file, const char *path, struct dl_arena *arena)
{
    const char *const slash = file ? strrchr(file, '/') : NULL;
    if (path[0] == '/' || !slash) return path;
    return dl_arena_format(arena, "%.*s/%s", (int)(slash - file), file, path);
}

static void put_option(struct dl_session_request *q, const struct option *option, const json_t *value, const char *file,
                       struct dl_arena *arena)
{
    void *const place = (char *)q + option->offset;
    const char *const text = json_string_value(value);
    switch (option->kind) {
    case OPTION_FILE: *(struct dl_input *)place = (struct dl_input){.name = text, .file = file}; break;
    case OPTION_TEXT: *(const char **)place = text; break;
    case OPTION_PATH: *(const char **)place = path_from(file, text, arena); break;
    case OPTION_COUNT: *(uint64_t *)place = (uint64_t)json_integer_value(value); break;
    }
}

static const char *assignment(const char *path, const json_t *value, struct dl_arena *arena)
{
    if (removes(path)) return path;
    char *const text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const char *const all = dl_arena_format(arena, "%s=%s", path, text);
    free(text);
    return all;
}

void dl_sweep_request(const struct dl_sweep *s, uint64_t point, struct dl_arena *arena, struct dl_session_request *out)
{
    const json_t **const values = dl_arena_alloc(arena, (s->n_columns + 1) * sizeof *values);
    *out = (struct dl_session_request){0};
    dl_sweep_point(s, point, values);
    for (size_t i = 0; i < s->n_columns; i++) {
        const struct option *const option = find_option(s->columns[i].path);
        if (option)
            put_option(out, option, values[i], s->doc.file, arena);
        else if (!removes(s->columns[i].path) || json_is_true(values[i]))
            out->set.items[out->set.n++] = assignment(s->columns[i].path, values[i], arena);
    }
}

/* ---- running it ---- */

static void note_file(void *user, const char *path, const char *text, size_t bytes)
{
    char sha256[DL_SHA256_HEX];
    dl_sha256_of(text, bytes, sha256);
    json_object_set_new(user, path, json_string(sha256));
}

static const char *status_of(struct dl_session *s)
{
    if (s->err.status) return s->err.status == DL_STALLED ? "failed" : "refused";
    return dl_run_fits(&s->report) ? "done" : "does-not-fit";
}

/* What has a column of its own: numbers of the answer, and the memory of the fullest stage. */
static json_t *figures_of(const struct dl_session *s, const json_t *answer)
{
    json_t *const figures = json_object();
    for (const char *const *name = dl_point_figures; *name; name++) {
        json_t *const value = json_object_get(answer, *name);
        if (value) json_object_set(figures, *name, value);
    }
    const double peak = s->memory[dl_run_fullest_stage(&s->report)].peak;
    json_object_set_new(figures, "peak_bytes", json_real(peak));
    return figures;
}

struct opened {
    struct dl_arena *arena; /* of the request */
    struct dl_session session;
    json_t *files;
};

void *dl_sweep_open(const struct dl_sweep *s, uint64_t point, const struct dl_sweep_means *means)
{
    struct opened *const p = dl_alloc(sizeof *p);
    struct dl_session_request q;
    p->arena = dl_arena_new();
    p->files = json_object();
    dl_sweep_request(s, point, p->arena, &q);
    q.machines = means->machines;
    q.memory_bytes = means->memory_bytes;
    dl_json_watch(note_file, p->files);
    dl_session_open(&p->session, &q);
    dl_json_watch(NULL, NULL);
    return p;
}

bool dl_sweep_stands_alone(const void *opened)
{
    const struct dl_session *const s = &((const struct opened *)opened)->session;
    return !s->err.status && !dl_session_engine(s)->alone;
}

static bool has_simulating(const struct dl_sweep_axis *axis, size_t column)
{
    for (size_t i = 0; i < axis->n_values; i++)
        if (!dl_engine_find(json_string_value(axis->values[i * axis->n_columns + column]))->alone) return true;
    return false;
}

bool dl_sweep_simulates(const struct dl_sweep *s)
{
    for (size_t i = 0; i < s->n_axes; i++)
        for (size_t k = 0; k < s->axes[i].n_columns; k++) {
            const struct option *const option = find_option(s->columns[s->axes[i].first_column + k].path);
            if (option && option->offset == offsetof(struct dl_session_request, engine))
                return has_simulating(&s->axes[i], k);
        }
    return true;
}

json_t *dl_sweep_run(void *opened)
{
    struct opened *const p = opened;
    struct dl_session *const s = &p->session;
    json_t *answer = NULL, *figures = NULL;
    if (!dl_session_run(s)) answer = dl_session_answer(s);
    if (answer) figures = figures_of(s, answer);
    char *const text = answer ? json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_t *const result =
        json_pack("{ss ss? sO so* ss*}", "status", status_of(s), "reason", s->err.status ? s->err.text : NULL, "files",
                  p->files, "figures", figures, "answer", text);
    free(text);
    json_decref(answer);
    return result;
}

void dl_sweep_close_point(void *opened)
{
    struct opened *const p = opened;
    dl_session_close(&p->session);
    json_decref(p->files);
    dl_arena_free(p->arena);
    dl_free(p);
}
