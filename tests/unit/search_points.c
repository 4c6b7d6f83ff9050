/* search_points.c - the answer of a point of a search is the same alone, after others, and in whatever order they come.
 */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <stdlib.h>

#include "sim/engine/engines.h"
#include "sim/study/search_point.h"
#include "tests/unit/suite.h"

/* Hashed routes over nodes, pipelines and ZeRO; experts; adaptive routes; code of models that goes by precision;
 * adapters; collectives that software gives fewer units. */
static const struct {
    const char *system, *workload, *software;
    uint64_t devices, global_batch;
    const char *fixes[2];
} searches[] = {
    {"selene", "gpt-1.7b", NULL, 16, 32, {NULL}},
    {"dgx-h100", "switch-base", NULL, 8, 16, {NULL}},
    {"frontier", "gpt-1.7b", NULL, 16, 32, {NULL}},
    {"dgx-h100", "tinyllama-1.1b", "pytorch-eager", 8, 16, {NULL}},
    {"dgx-h100", "tinyllama-1.1b", "mlperf-megatron", 8, 16, {NULL}},
    {"dgx-h100", "tinyllama-1.1b", NULL, 8, 16, {"stack.lora.rank=8", "stack.lora.targets=[\"qkv\", \"fc2\"]"}}};
enum { n_points = 24 };

static void open_search(struct dl_search *search, int i)
{
    struct dl_error err = {0};
    const struct dl_search_wanted wanted = {
        .session = {.topo = {.name = searches[i].system},
                    .workload = {.name = searches[i].workload},
                    .software = {.name = searches[i].software},
                    .devices = searches[i].devices},
        .global_batch = searches[i].global_batch,
        .fixes = {.items = {searches[i].fixes[0], searches[i].fixes[1]}, .n = searches[i].fixes[0] ? 2 : 0}};
    ck_assert_msg(!dl_search_open(search, &wanted, &err), "%s", err.text);
    search->engine = dl_engine_alone.name;
}

static uint64_t point_at(const struct dl_search *search, size_t i)
{
    const size_t stride = 7919; /* a prime: points of all kinds */
    return search->space.points[i * stride % search->space.n_points];
}

static char *answer(const struct dl_search *search, uint64_t point)
{
    void *const opened = dl_search_open_point(search, point);
    json_t *const result = dl_search_run_point(opened);
    char *const text = json_dumps(result, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(result);
    dl_search_close_point(opened);
    return text;
}

static void compare(const struct dl_search *search, size_t i, const char *expected)
{
    char *const text = answer(search, point_at(search, i));
    ck_assert_str_eq(text, expected);
    free(text);
}

/* With all its files read for itself, on a machine of its own; NAN: it is refused. */
static double step_of_session(const struct dl_search *search, uint64_t point)
{
    struct dl_error err = {0};
    json_t *const doc = dl_search_document(search, point, search->arena, &err);
    char *const text = json_dumps(doc, JSON_COMPACT);
    const struct dl_session_request request = dl_search_request(search, point, text);
    struct dl_session s;
    const bool has_run = !dl_session_open(&s, &request) && !dl_session_run(&s);
    const double step_s = has_run ? s.report.result.step_s : NAN;
    dl_session_close(&s);
    free(text);
    json_decref(doc);
    return step_s;
}

START_TEST(a_point_has_one_answer)
{
    struct dl_search together, alone;
    char *answers[n_points];
    size_t n_steps = 0;
    open_search(&together, _i);
    for (size_t i = 0; i < n_points; i++) answers[i] = answer(&together, point_at(&together, i));
    for (size_t i = n_points; i-- > 0;) compare(&together, i, answers[i]);
    for (size_t i = 0; i < n_points; i += n_points / 4) {
        open_search(&alone, _i);
        compare(&alone, i, answers[i]);
        dl_search_close(&alone);
    }
    for (size_t i = 0; i < n_points; i++) {
        json_t *const result = json_loads(answers[i], 0, NULL);
        const json_t *const step_s = json_object_get(result, "step_s");
        if (step_s) ck_assert(json_real_value(step_s) == step_of_session(&together, point_at(&together, i)));
        n_steps += step_s != NULL;
        json_decref(result);
        free(answers[i]);
    }
    ck_assert_uint_gt(n_steps, n_points / 4);
    dl_search_close(&together);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("search_points");
    TCase *const tests = tcase_create("search_points");
    tcase_add_loop_test(tests, a_point_has_one_answer, 0, DL_COUNT(searches));
    suite_add_tcase(s, tests);
    return run_suite(s);
}
