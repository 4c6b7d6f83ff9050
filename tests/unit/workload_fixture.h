/* workload_fixture.h - a workload that a test has opened: its document and the model built from it. */
#ifndef TESTS_UNIT_WORKLOAD_FIXTURE_H
#define TESTS_UNIT_WORKLOAD_FIXTURE_H

#include <check.h>
#include <float.h>
#include <math.h>

#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "tests/unit/suite.h"
#include "tests/unit/system_text.h"
#include "workloads/workload.h"

#define MODELS "workloads/models"

/* Keys of a transformer, and of its experts. */
#define SMALL                                                                                                          \
    "'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"    \
    "'vocab':100"
#define EXPERTS "'experts':8,'top_k':2,'expert_ffn':96"

static struct fixture f;
static struct dl_model model;

static inline void set_up(void)
{
    f = (struct fixture){.arena = dl_arena_new()};
    model = (struct dl_model){0};
}

static inline void close_document(void)
{
    json_decref(f.doc.value);
    f.doc.value = NULL;
}

static inline void tear_down(void)
{
    close_document();
    dl_arena_free(f.arena);
}

static inline void build(double samples, const char *attention)
{
    ck_assert_msg(
        !dl_workload_read(f.doc, samples, (struct dl_model_code){.attention = attention}, f.arena, &model, &f.err),
        "%s", f.err.text);
}

static inline void open_shipped(const char *name, double samples, const char *attention)
{
    const char *path;
    close_document();
    ck_assert_msg(!dl_find_file(MODELS, "workload", name, f.arena, &path, &f.err), "%s", f.err.text);
    ck_assert_msg(!dl_json_load(path, f.arena, &f.doc, &f.err) &&
                      !dl_json_inherit(f.doc, MODELS, "workload", f.arena, &f.err),
                  "%s", f.err.text);
    build(samples, attention);
}

static inline void open_text(const char *text)
{
    dl_arena_free(f.arena);
    close_document();
    fixture_open(&f, text);
}

static inline double number(const char *key) { return json_number_value(json_object_get(f.doc.value, key)); }

static inline double flop_of(const struct dl_work *work, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += dl_kernel_flop(&work[i].kernel);
    return sum;
}

static inline double forward_flop(void)
{
    double sum = 0;
    for (size_t i = 0; i < model.n_layers; i++) sum += flop_of(model.layers[i].forward, model.layers[i].n_forward);
    return sum;
}

static inline double saved_bytes(const struct dl_saved *s)
{
    return s->outside_bytes + s->inside_bytes + s->scores_bytes;
}

#define ck_assert_close(got, wanted) ck_assert_double_eq_tol(got, wanted, 1e-12 * fabs(wanted))

#endif
