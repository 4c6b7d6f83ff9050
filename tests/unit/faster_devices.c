/* faster_devices.c - a device that is better in one figure never makes a step slower, whether its kernels were timed or
 * not. */
#include <check.h>
#include <string.h>

#include "sim/core/inherit.h"
#include "sim/study/figures.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

static const char **device_names;
static const double rounding = 1e-9;

static const struct {
    const char *workload, *software;
} steps[] = {{"gpt2-355m", "pytorch-eager"}, {"resnet50", "pytorch-eager"}};

/* The one that training would use. */
static const char *precision_of(const struct dl_device *d)
{
    return dl_device_supports(d, DL_BF16) ? "bf16" : dl_device_supports(d, DL_FP16) ? "fp16" : "fp32";
}

static void open_step(struct dl_session *s, size_t step, const char *device, const char *precision, const char *change)
{
    struct dl_session_request request = {.topo.name = "h200",
                                         .strategy.name = "single",
                                         .workload.name = steps[step].workload,
                                         .software.name = steps[step].software,
                                         .device.name = device,
                                         .engine = "analytic"};
    char set[64];
    snprintf(set, sizeof set, "precision=\"%s\"", precision);
    request.set.items[request.set.n++] = set;
    if (change) request.set.items[request.set.n++] = change;
    dl_session_open(s, &request);
    ck_assert_msg(!s->err.status, "%s: %s", device, s->err.text);
}

static double step_s(size_t step, const char *device, const char *precision, const char *change)
{
    struct dl_session s;
    open_step(&s, step, device, precision, change);
    dl_session_run(&s);
    ck_assert_msg(!s.err.status, "%s: %s", device, s.err.text);
    const double seconds = s.report.result.step_s;
    dl_session_close(&s);
    return seconds;
}

static const char *precision_on(const char *device)
{
    const char *path;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_json doc = {0};
    struct dl_device d;
    ck_assert(!dl_find_file(DL_DEVICES, "device", device, arena, &path, &err) &&
              !dl_json_load(path, arena, &doc, &err) && !dl_json_inherit(doc, DL_DEVICES, "device", arena, &err) &&
              !dl_device_read(doc, arena, &d, &err));
    const char *const precision = precision_of(&d);
    json_decref(doc.value);
    dl_arena_free(arena);
    return precision;
}

static bool is_of_device(const struct dl_figure *c)
{
    static const char of_device[] = "device.", of_power[] = "device.power."; /* what it draws is no rate of work */
    return !c->tables && !strncmp(c->effect.path, of_device, strlen(of_device)) &&
           strncmp(c->effect.path, of_power, strlen(of_power)) && c->effect.dimension != DL_FACTOR;
}

/* Every rate of the device made larger, every time of it shorter. */
START_TEST(a_better_figure_never_makes_a_step_slower)
{
    const double factor = 2;
    const char *const device = device_names[_i], *const precision = precision_on(device);
    for (size_t step = 0; step < DL_COUNT(steps); step++) {
        const double usual_s = step_s(step, device, precision, NULL);
        struct dl_session s;
        struct dl_figures all = {0};
        open_step(&s, step, device, precision, NULL);
        dl_figures_find(&s, &all);
        size_t n_changed = 0;
        for (size_t i = 0; i < all.n; i++) {
            const struct dl_figure *const c = &all.items[i];
            if (!is_of_device(c)) continue;
            const char *const change =
                dl_figure_changed(c, c->effect.dimension == DL_TIME ? 1 / factor : factor, s.arena);
            const double better_s = step_s(step, device, precision, change);
            ck_assert_msg(better_s <= usual_s * (1 + rounding), "%s, %s: %.12g s, %.12g s with %s", device,
                          steps[step].workload, usual_s, better_s, change);
            n_changed++;
        }
        ck_assert_uint_gt(n_changed, 0);
        dl_free(all.items);
        dl_session_close(&s);
    }
}
END_TEST

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    const int n_devices = (int)dl_list_folder(DL_DEVICES, arena, &device_names);
    TCase *const tests = tcase_create("faster_devices");
    tcase_add_loop_test(tests, a_better_figure_never_makes_a_step_slower, 0, n_devices);
    Suite *const suite = suite_create("faster_devices");
    suite_add_tcase(suite, tests);
    const int failed = run_suite(suite);
    dl_arena_free(arena);
    return failed;
}
