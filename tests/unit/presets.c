/* presets.c - every shipped preset runs on the machine that its source ran on, as its source says, at a share of peak
 * that a real run may have. */
#define _GNU_SOURCE /* fork, pipe */
#include <string.h>

#include "sim/core/files.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

/* A strategy file has no key for a machine. Replicas are alike: where there are many, fewer of them tell the same. */
static const struct {
    const char *preset, *system;
    uint32_t fewer; /* so many times fewer devices and samples */
} runs[] = {
    {"3d", "frontier", 1},
    {"axonn-160b", "frontier", 16},
    {"axonn-40b", "perlmutter", 4},
    {"dash-175b", "frontier", 1},
    {"dash-22b", "frontier", 1},
    {"deepspeed-175b", "azure-ndm-a100", 1},
    {"forge-1.44b", "frontier", 1},
    {"karma-17b", "summit", 1},
    {"korthikanti-175b", "selene", 1},
    {"llama3-405b", "meta-h100-roce", 1},
    {"llama3-405b-cp", "meta-h100-roce", 1},
    {"maxtext-v5e-32b", "tpu-v5e", 1},
    {"megascale-175b", "megascale-a100", 1},
    {"mixtral-ep", "dgx-h100", 1},
    {"mpt-30b", "dgx-h100", 1},
    {"mt-nlg-530b", "selene", 1},
    {"multislice-v5e-32b", "tpu-v5e-multislice", 4},
    {"sc21-1t", "selene", 1},
    {"simumax-b200-llama3-70b", "dgx-b200", 1},
    {"single", "selene", 1},
    {"super-3b", "summit", 1},
    {"vtrain-175b", "dgx-a100-hdr4", 1},
    {"zero-bubble-28.3b", "dgx-a100-roce", 1},
};
static const double least_share = 0.05, most_share = 0.75; /* of peak */
static const double memory_tolerance = 0.05;               /* all of them ran, so this far off is the model's error */

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

START_TEST(every_preset_has_a_machine)
{
    const char **names;
    ck_assert_uint_eq(dl_list_folder(DL_STRATEGIES, arena, &names), DL_COUNT(runs));
    for (size_t i = 0; i < DL_COUNT(runs); i++) ck_assert_str_eq(names[i], runs[i].preset);
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
    if (strcmp(runs[_i].preset, "single") == 0) return; /* nobody's run */
    const struct dl_json doc = load(runs[_i].preset);
    const char *const source = json_string_value(json_object_get(doc.value, "source"));
    const char *const topo = dl_arena_format(arena, "--topo %s", runs[_i].system);
    ck_assert_msg(strstr(source, "Published: ") && strstr(source, topo), "%s", source);
    json_decref(doc.value);
}
END_TEST

static struct dl_session_request request_of(size_t run)
{
    const struct dl_json doc = load(runs[run].preset);
    const uint32_t fewer = runs[run].fewer;
    struct dl_session_request request = {.topo = {runs[run].system, NULL},
                                         .strategy = {runs[run].preset, NULL},
                                         .engine = "analytic",
                                         .devices = (uint64_t)number(doc, "devices") / fewer,
                                         .set = {.n = 1}};
    request.set.items[0] = dl_arena_format(arena, "global_batch=%jd", (intmax_t)(number(doc, "global_batch") / fewer));
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

START_TEST(a_preset_runs_at_a_sane_share_of_peak)
{
    struct dl_session s;
    const struct dl_session_request request = request_of((size_t)_i);
    dl_session_open(&s, &request);
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    json_t *const answer = dl_run_report_json(&s.report);
    const double share = json_number_value(json_object_get(answer, "mfu"));
    ck_assert_msg(share > least_share && share < most_share, "%s has %g %% of peak", runs[_i].preset, 100 * share);
    check_memory(answer, &s, runs[_i].preset);
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
    Suite *const suite = suite_create("presets");
    TCase *const tests = tcase_create("presets");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_preset_has_a_machine);
    tcase_add_test(tests, a_run_lists_what_its_preset_assumes);
    tcase_add_test(tests, a_run_on_one_device_assumes_nothing_of_messages);
    tcase_add_loop_test(tests, a_preset_says_what_was_published_and_where_it_ran, 0, (int)DL_COUNT(runs));
    tcase_add_loop_test(tests, a_preset_runs_at_a_sane_share_of_peak, 0, (int)DL_COUNT(runs));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
