/* memory_curve_slow.c - memory over the step: its highest point is the peak of the report, for every preset, and a
 * stage that waits for its first micro-batch holds no activations. */
#define _GNU_SOURCE /* fork */
#include "sim/report/memory_curve.h"

#include <math.h>

#include "sim/session/session.h"
#include "tests/unit/suite.h"

static json_t *presets;

struct played {
    struct dl_session session;
    struct dl_memory_curve *curves;
    uint32_t n_stages;
    double from_s, to_s;
};

static struct played play(size_t preset)
{
    struct played p;
    const json_t *const entry = json_array_get(presets, preset);
    const struct dl_session_request request = {
        .topo = {.name = json_string_value(json_object_get(entry, "system"))},
        .strategy = {.name = json_string_value(json_object_get(entry, "preset"))},
        .engine = "analytic",
        .timeline = true};
    dl_session_open(&p.session, &request);
    ck_assert_msg(!dl_session_run(&p.session), "%s", p.session.err.text);
    p.n_stages = p.session.job.setting.ways[DL_AXIS_PIPELINE];
    p.to_s = p.session.report.result.end_s;
    p.from_s = p.to_s - p.session.report.result.step_s;
    p.curves = dl_memory_curves(p.session.timeline, p.from_s, p.to_s);
    return p;
}

static void release(struct played *p)
{
    dl_memory_curves_free(p->curves, p->n_stages);
    dl_session_close(&p->session);
}

static double highest(const struct dl_memory_curve *c)
{
    double bytes = 0;
    for (size_t i = 0; i < c->n; i++) bytes = fmax(bytes, c->spans[i].use.peak);
    return bytes;
}

static void check_covers_step(const struct played *p, const struct dl_memory_curve *c)
{
    double at_s = p->from_s;
    for (size_t i = 0; i < c->n; i++) {
        ck_assert_double_eq(c->spans[i].from_s, at_s);
        ck_assert_double_ge(c->spans[i].to_s, at_s);
        at_s = c->spans[i].to_s;
    }
    ck_assert_double_eq(at_s, p->to_s);
}

START_TEST(the_highest_point_is_the_peak_and_there_are_no_gaps)
{
    struct played p = play((size_t)_i);
    for (uint32_t stage = 0; stage < p.n_stages; stage++) {
        const double peak = p.session.memory[stage].peak;
        ck_assert_double_eq_tol(highest(&p.curves[stage]), peak, 1e-12 * peak);
        ck_assert_double_eq(p.curves[stage].spans[0].use.activations, 0);
        check_covers_step(&p, &p.curves[stage]);
    }
    release(&p);
}
END_TEST

int main(void)
{
    json_t *const file = json_load_file(dl_shipped("validation/published/presets.json", dl_arena_new()), 0, NULL);
    presets = json_object_get(file, "presets");
    const int n = (int)json_array_size(presets);
    Suite *const suite = suite_create("memory_curve");
    TCase *const tests = tcase_create("memory_curve");
    tcase_add_loop_test(tests, the_highest_point_is_the_peak_and_there_are_no_gaps, 0, n);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
