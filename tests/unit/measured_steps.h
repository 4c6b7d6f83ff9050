/* measured_steps.h - rows of a file of validation/measured, in columns. */
#ifndef DL_TESTS_MEASURED_STEPS_H
#define DL_TESTS_MEASURED_STEPS_H

#include <math.h>
#include <stdlib.h>

#include "sim/core/files.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_json measured;

static inline void open_measured_file(const char *name)
{
    struct dl_error err = {0};
    const char *path;
    arena = dl_arena_new();
    ck_assert(!dl_find_file("validation/measured", "file", name, arena, &path, &err) &&
              !dl_json_load(path, arena, &measured, &err));
}

static inline void close_measured(void)
{
    json_decref(measured.value);
    dl_arena_free(arena);
}

static inline double number(const json_t *row, int column)
{
    return json_number_value(json_array_get(row, (size_t)column));
}
static inline const char *text(const json_t *row, int column)
{
    return json_string_value(json_array_get(row, (size_t)column));
}

/* Of a file that has models of its own, beside its rows. */
static inline json_t *measured_model(const char *name)
{
    json_t *const model = json_object_get(json_object_get(measured.value, "workloads"), name);
    ck_assert_msg(json_is_object(model), "there is no workload %s", name);
    return model;
}

/* As a document of its own. */
static inline const char *measured_workload(const char *name)
{
    json_t *const doc = json_copy(measured_model(name));
    json_object_set_new(doc, "schema", json_string("dlsim/workload/1"));
    char *const dumped = json_dumps(doc, JSON_COMPACT);
    const char *const out = dl_arena_string(arena, dumped);
    free(dumped);
    json_decref(doc);
    return out;
}

static inline double error_of(double got, double wanted) { return fabs(got / wanted - 1); }

/* Of errors, whatever their signs. */
struct mean {
    double sum, n;
};

static inline void add_error(struct mean *m, double got, double wanted)
{
    m->sum += error_of(got, wanted);
    m->n++;
}

static inline double mean_of(const struct mean *m) { return m->sum / m->n; }

#endif
