/* presets.c - every shipped preset runs on the machine that its source ran on, as its source says, and takes as long as
 * was published, within the error that the model is known to have there. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/study/sensitivity_runs.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

/* A strategy file has no key for a machine, nor for what was measured: validation/published/presets.json has them. */
static json_t *presets;

struct preset {
    const char *name, *system;
    uint32_t fewer; /* so many times fewer devices and samples, as replicas are alike */
    double step_s;  /* published; 0: nothing is */
    double outside; /* published over predicted, of one that lies outside the interval, as one of twenty should; or 0 */
};

static struct preset preset_of(size_t i)
{
    const json_t *const p = json_array_get(presets, i), *const fewer = json_object_get(p, "fewer");
    return (struct preset){.name = json_string_value(json_object_get(p, "preset")),
                           .system = json_string_value(json_object_get(p, "system")),
                           .fewer = fewer ? (uint32_t)json_integer_value(fewer) : 1,
                           .step_s = json_number_value(json_object_get(p, "step_s")),
                           .outside = json_number_value(json_object_get(p, "outside"))};
}

START_TEST(no_more_are_outside_than_the_interval_promises)
{
    size_t n_published = 0, n_outside = 0;
    for (size_t i = 0; i < json_array_size(presets); i++) {
        n_published += preset_of(i).step_s > 0;
        n_outside += preset_of(i).outside > 0;
    }
    ck_assert_msg(20 * n_outside <= n_published, "%zu of %zu", n_outside, n_published);
}
END_TEST

static const double memory_tolerance = 0.05; /* all of them ran, so this far off is the model's error */

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

START_TEST(every_preset_has_a_machine)
{
    const char **names;
    ck_assert_uint_eq(dl_list_folder(DL_STRATEGIES, arena, &names), json_array_size(presets));
    for (size_t i = 0; i < json_array_size(presets); i++) ck_assert_str_eq(names[i], preset_of(i).name);
}
END_TEST

static int64_t number(struct dl_json doc, const char *key)
{
    const json_t *const value = json_object_get(doc.value, key);
    ck_assert_msg(json_is_integer(value), "%s says no %s", doc.where, key);
    return json_integer_value(value);
}

static struct dl_json load(const char *preset)
{
    struct dl_json doc;
    struct dl_error err = {0};
    const char *path;
    ck_assert_msg(!dl_find_file(DL_STRATEGIES, "strategy", preset, arena, &path, &err), "%s", err.text);
    ck_assert_msg(!dl_json_load(path, arena, &doc, &err), "%s", err.text);
    return doc;
}

START_TEST(a_preset_says_what_was_published_and_where_it_ran)
{
    const struct preset p = preset_of((size_t)_i);
    if (strcmp(p.name, "single") == 0) return; /* nobody's run */
    const struct dl_json doc = load(p.name);
    const char *const source = json_string_value(json_object_get(doc.value, "source"));
    const char *const topo = dl_arena_format(arena, "--topo %s", p.system);
    ck_assert_msg(strstr(source, "Published: ") && strstr(source, topo), "%s", source);
    json_decref(doc.value);
}
END_TEST

static struct dl_session_request request_of(const struct preset *p)
{
    const struct dl_json doc = load(p->name);
    struct dl_session_request request = {.topo = {p->system, NULL},
                                         .strategy = {p->name, NULL},
                                         .engine = "analytic",
                                         .devices = (uint64_t)number(doc, "devices") / p->fewer,
                                         .set = {.n = 1}};
    request.set.items[0] =
        dl_arena_format(arena, "global_batch=%jd", (intmax_t)(number(doc, "global_batch") / p->fewer));
    json_decref(doc.value);
    return request;
}

/* It fits, or says what is too large, and not by much. */
static void check_memory(const json_t *answer, const struct dl_session *s, const char *preset)
{
    const json_t *const verdict = json_object_get(answer, "verdict");
    const double headroom = json_number_value(json_object_get(verdict, "headroom_bytes"));
    ck_assert_int_eq(dl_run_fits(&s->report), headroom >= 0);
    ck_assert_msg(headroom > -memory_tolerance * s->device.memory_bytes, "%s lacks %g bytes", preset, -headroom);
    if (headroom < 0) ck_assert_uint_gt(json_array_size(json_object_get(verdict, "largest")), 0);
}

/* ---- what was published ---- */

/* As far as the model is known to be from measured steps of this software on this system, with 95 %; from those of all
 * families where fewer than five are known. */
static void check_published(const struct dl_session *s, const struct preset *p)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct dl_discrepancy known;
    ck_assert_msg(!dl_discrepancy_load(arena, &doc, &err) && !dl_discrepancy_of(doc, s, NULL, &known, &err), "%s",
                  err.text);
    const int64_t enough = 5;
    const double half_digit = 0.005;
    const struct dl_open open = known.own.rows < enough ? dl_discrepancy_open(&known) : dl_discrepancy_own(&known);
    const double error = log(p->step_s / s->report.result.step_s);
    ck_assert_double_gt(open.high, open.low);
    if (p->outside > 0)
        ck_assert_msg(fabs(exp(error) - p->outside) < half_digit, "%s: a factor of %.3f", p->name, exp(error));
    ck_assert_msg((open.low <= error && error <= open.high) == !(p->outside > 0),
                  "%s: %g s, published are %g: a factor of %.3f, known are %.3f to %.3f", p->name,
                  s->report.result.step_s, p->step_s, exp(error), exp(open.low), exp(open.high));
    json_decref(doc.value);
}

/* ---- what formulas say of the others, which are transformers cut by tensor and data alone ---- */

/* Of what kernels and wires do at best, the least that all of them together reach in a step: unfused attention and
 * element-wise kernels, and rings over nodes that hold an uneven number of ranks. */
static const double least_of_peak = 0.25, least_of_wires = 0.5;

static double of(struct dl_json doc, const char *key) { return json_number_value(json_object_get(doc.value, key)); }

static double in_stack(struct dl_json strategy, const char *name, const char *key, double otherwise)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(strategy.value, "stack"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0 && json_object_get(entry, key))
            return json_number_value(json_object_get(entry, key));
    }
    return otherwise;
}

struct bounds {
    double least_s, most_s;
};

/* Of all adapters of a node, or of the links behind them. */
static double node_bytes_per_s(const struct dl_session *s)
{
    const json_t *const system = s->machine.system_doc.value, *const network = json_object_get(system, "network");
    const json_t *const nics = json_object_get(json_object_get(system, "node"), "nics");
    const double each = fmin(json_number_value(json_object_get(nics, "bandwidth_bytes_per_s")),
                             json_number_value(json_object_get(network, "bandwidth_bytes_per_s")));
    return each * json_number_value(json_object_get(nics, "count"));
}

/* Flop of a step (Narayanan et al., SC21, equation 3, less what is recomputed) at the peak; parameters and gradients
 * that have to go over the adapters of every node; the sums of tensor ranks, four a layer and two more if recomputed.
 */
static struct bounds bounds_of(const struct dl_session *s)
{
    const struct dl_json w = s->workload_doc, job = s->strategy_doc;
    const double layers = of(w, "layers"), hidden = of(w, "hidden"), seq = of(w, "seq"), vocab = of(w, "vocab");
    const double samples = of(job, "global_batch"), devices = of(job, "devices");
    const double parameters = 12 * layers * hidden * hidden + vocab * hidden, tokens = samples * seq;
    const double tensor = in_stack(job, "tensor", "ways", 1), stage = in_stack(job, "zero", "stage", 0);
    const bool recomputes = strcmp(json_string_value(json_object_get(job.value, "recompute")), "full") == 0;
    const double peak = devices * s->device.peak_flop_per_s[s->job.setting.precision], parameter_bytes = 2;
    const double flop = 6 * parameters * tokens, attention_flop = 12 * layers * hidden * seq * tokens;
    const double gathers = stage == 3 ? 2 : 1, replicas = devices / tensor;
    const double bytes = parameters * (of(s->software_doc, "gradient_bytes") + gathers * parameter_bytes);
    const double data_s = replicas > 1 ? bytes / node_bytes_per_s(s) : 0;
    const double sums = tensor > 1 ? layers * (recomputes ? 6 : 4) : 0;
    const double sum_bytes = samples / replicas * seq * hidden * parameter_bytes * 2 * (tensor - 1) / tensor;
    const double tensor_s = sums * sum_bytes / node_bytes_per_s(s);

    return (struct bounds){.least_s = fmax((flop + attention_flop / 2) / peak, data_s),
                           .most_s = (recomputes ? 4. / 3 : 1) * (flop + attention_flop) / (least_of_peak * peak) +
                                     (data_s + tensor_s) / least_of_wires};
}

START_TEST(a_preset_takes_as_long_as_was_published_or_as_formulas_allow)
{
    struct dl_session s;
    const struct preset p = preset_of((size_t)_i);
    const struct dl_session_request request = request_of(&p);
    dl_session_open(&s, &request);
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    json_t *const answer = dl_run_report_json(&s.report);
    check_memory(answer, &s, p.name);
    if (p.step_s > 0) {
        check_published(&s, &p);
    } else {
        const struct bounds b = bounds_of(&s);
        ck_assert_msg(b.least_s <= s.report.result.step_s && s.report.result.step_s <= b.most_s,
                      "%s: %g s, not in [%g, %g]", p.name, s.report.result.step_s, b.least_s, b.most_s);
    }
    json_decref(answer);
    dl_session_close(&s);
}
END_TEST

static size_t count_assumed(const char *preset, const char *file)
{
    const char *const place = dl_arena_format(arena, "%s.json:", file);
    const struct dl_session_request request = {.topo = {"frontier", NULL}, .strategy = {preset, NULL}};
    struct dl_session s;
    size_t n = 0;
    dl_session_open(&s, &request);
    ck_assert_msg(!s.err.status, "%s", s.err.text);
    dl_session_list_assumptions(&s);
    for (size_t i = 0; i < s.report.assumptions.n; i++)
        n += strncmp(s.report.assumptions.items[i].where, place, strlen(place)) == 0;
    dl_session_close(&s);
    return n;
}

/* devices, global_batch, microbatch, and the ways or stage of three entries. */
START_TEST(a_run_lists_what_its_preset_assumes)
{
    ck_assert_uint_eq(count_assumed("dash-22b", "dash-22b"), 6);
    ck_assert_uint_eq(count_assumed("single", "single"), 0); /* what someone wants needs no source */
}
END_TEST

START_TEST(a_run_on_one_device_assumes_nothing_of_messages)
{
    ck_assert_uint_gt(count_assumed("dash-22b", "rccl"), 0);
    ck_assert_uint_eq(count_assumed("single", "rccl"), 0);
}
END_TEST

int main(void)
{
    json_t *const file = json_load_file(dl_shipped("validation/published/presets.json", dl_arena_new()), 0, NULL);
    presets = json_object_get(file, "presets");
    const int n = (int)json_array_size(presets);
    Suite *const suite = suite_create("presets");
    TCase *const tests = tcase_create("presets");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_preset_has_a_machine);
    tcase_add_test(tests, no_more_are_outside_than_the_interval_promises);
    tcase_add_test(tests, a_run_lists_what_its_preset_assumes);
    tcase_add_test(tests, a_run_on_one_device_assumes_nothing_of_messages);
    tcase_add_loop_test(tests, a_preset_says_what_was_published_and_where_it_ran, 0, n);
    tcase_add_loop_test(tests, a_preset_takes_as_long_as_was_published_or_as_formulas_allow, 0, n);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
