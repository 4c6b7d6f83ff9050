/* search_space.c - the points of a search are those that a strategy file could say, each once, and memory's floor is
 * one. */
#include <check.h>
#include <string.h>

#include "sim/memory/memory_floor.h"
#include "sim/study/search_point.h"
#include "tests/unit/suite.h"

#define MODEL(more)                                                                                                    \
    "{\"schema\":\"dlsim/workload/1\",\"kind\":\"transformer\",\"layers\":6,\"hidden\":256,\"heads\":4,"               \
    "\"kv_heads\":2,\"seq\":64,\"vocab\":512" more "}"

/* Spaces small enough to try every combination. */
static const struct {
    const char *model, *software;
    uint64_t devices, batch;
    const char *fixed, *also;
} spaces[] = {
    {MODEL(""), "ideal", 4, 4, NULL, NULL},
    {MODEL(""), "deepspeed-2021", 8, 6, "stack.pipeline.schedule=\"1f1b\"", NULL},
    {MODEL(",\"experts\":4,\"top_k\":2"), "megatron-core", 8, 8, "stack.pipeline.schedule=\"interleaved\"", NULL},
    {MODEL(""), "megatron-core", 8, 8, "stack.pipeline.schedule=\"1f1b\"", "order"},
    {MODEL(""), "ideal", 4, 4, "stack.pipeline.schedule=\"1f1b\"", "offload"},
};

static struct dl_search search;
static struct dl_error err;

static void open_space(int i)
{
    struct dl_search_wanted wanted = {.session = {.topo = {.name = "dgx-h100"},
                                                  .workload = {.name = "own.json", .text = spaces[i].model},
                                                  .software = {.name = spaces[i].software},
                                                  .devices = spaces[i].devices},
                                      .global_batch = spaces[i].batch,
                                      .fixes = {.items = {"recompute=full"}, .n = 1}}; /* no rule is about it */
    if (spaces[i].fixed) wanted.fixes.items[wanted.fixes.n++] = spaces[i].fixed;
    if (spaces[i].also) wanted.also = (struct dl_texts){.items = {spaces[i].also}, .n = 1};
    err = (struct dl_error){0};
    ck_assert_msg(!dl_search_open(&search, &wanted, &err), "%s", err.text);
}

/* What reads strategies and models refuses more than rules can, or as much; these it does not, on purpose. */
static bool is_beyond_readers(const char *reason)
{
    static const char *const beyond[] = {"the same as another point", "stages x chunks do not divide the blocks",
                                         "more pipeline stages than blocks", "the software has no such ZeRO stage",
                                         "the software has no sequence parallelism"};
    for (size_t i = 0; i < DL_COUNT(beyond); i++)
        if (strcmp(beyond[i], reason) == 0) return true;
    return false;
}

static bool is_read(const struct dl_space_point *p, struct dl_arena *arena)
{
    struct dl_error refusal = {0};
    struct dl_job job;
    json_t *const doc = dl_search_strategy(search.document, p, &search.fixes, arena, &refusal);
    const bool ok = !dl_job_read((struct dl_json){.value = doc, .where = "x"}, 0, arena, &job, &refusal);
    if (ok) {
        const struct dl_model *const model = dl_search_model(&search, &job);
        dl_job_suit(&job, &search.base.software, model);
        dl_job_check(&job, model, arena, &refusal);
    }
    json_decref(doc);
    return !refusal.status;
}

START_TEST(points_are_what_strategy_files_can_say)
{
    uint64_t n = 0, n_refused = 0;
    open_space(_i);
    const struct dl_space *const s = &search.space;
    for (uint64_t number = 0; number < s->n_combinations; number++) {
        const struct dl_space_point p = dl_space_point(s, number);
        const char *const reason = dl_space_refuse(s, &p);
        struct dl_arena *const arena = dl_arena_new();
        if (!reason || !is_beyond_readers(reason))
            ck_assert_msg(is_read(&p, arena) == !reason, "%s: %s", dl_search_words(&p, arena), reason);
        if (!reason) ck_assert_uint_eq(s->points[n++], number);
        dl_arena_free(arena);
    }
    ck_assert_uint_eq(n, s->n_points);
    for (size_t i = 0; i < s->refused.n; i++) n_refused += s->refused.items[i].n;
    ck_assert_uint_eq(n + n_refused, s->n_combinations);
    ck_assert_uint_gt(n, 10);
    dl_search_close(&search);
}
END_TEST

/* Modules are of selective recomputation, groups of blocks of full; who says the mode, too, has it as said. */
START_TEST(what_is_fixed_of_recomputation_has_its_mode)
{
    static const struct {
        struct dl_texts fixes;
        const char *mode;
    } cases[] = {
        {{.items = {"stack.recompute.modules=[\"mlp\"]"}, .n = 1}, "selective"},
        {{.items = {"stack.recompute.every=2"}, .n = 1}, "full"},
        {{.items = {"stack.recompute.every=2", "stack.recompute.mode=\"none\""}, .n = 2}, "none"},
    };
    struct dl_arena *const arena = dl_arena_new();
    json_t *const base = json_object();
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        const struct dl_space_point p = {.of = {[DL_SPACE_MICROBATCH] = 1}};
        err = (struct dl_error){0};
        json_t *const doc = dl_search_strategy(base, &p, &cases[i].fixes, arena, &err);
        ck_assert_msg(!err.status, "%s", err.text);
        const json_t *const entry = json_array_get(json_object_get(doc, "stack"), 0);
        ck_assert_str_eq(json_string_value(json_object_get(entry, "mode")), cases[i].mode);
        ck_assert_uint_eq(json_object_size(entry), 3); /* with its name and what is fixed */
        json_decref(doc);
    }
    json_decref(base);
    dl_arena_free(arena);
}
END_TEST

/* Every eleventh, which meets all values of all axes. */
START_TEST(floor_of_memory_is_below_its_peak)
{
    open_space(_i);
    search.engine = "analytic";
    for (size_t i = 0; i < search.space.n_points; i += 11) {
        const uint64_t number = search.space.points[i];
        struct dl_arena *const arena = dl_arena_new();
        json_t *const doc = dl_search_document(&search, number, arena, &err);
        char *const text = json_dumps(doc, 0);
        struct dl_session_request q = search.base.request;
        struct dl_session s;
        q.strategy = (struct dl_input){.name = "point", .text = text};
        q.machines = search.machines;
        ck_assert_msg(!dl_session_open(&s, &q), "%s", s.err.text);
        double peak = 0;
        for (uint32_t k = 0; k < s.job.setting.ways[DL_AXIS_PIPELINE]; k++)
            if (s.memory[k].peak > peak) peak = s.memory[k].peak;
        const double floor = dl_memory_floor(&s.job, dl_search_model(&search, &s.job));
        ck_assert_msg(floor > 0 && floor <= peak * (1 + 1e-12), "%s: %g > %g", text, floor, peak);
        dl_session_close(&s);
        free(text);
        json_decref(doc);
        dl_arena_free(arena);
    }
    dl_search_close(&search);
}
END_TEST

/* Its model built for it alone. */
static double step_of_session(uint64_t point)
{
    json_t *const doc = dl_search_document(&search, point, search.arena, &err);
    char *const text = json_dumps(doc, 0);
    const struct dl_session_request q = dl_search_request(&search, point, text);
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &q) && !dl_session_run(&s), "%s", s.err.text);
    const double step_s = s.report.result.step_s;
    dl_session_close(&s);
    free(text);
    json_decref(doc);
    return step_s;
}

/* Four heads, two of keys: copies of these, or parts that are gathered. */
START_TEST(more_tensor_ways_than_heads_of_keys_are_points)
{
    const char *const software[] = {"ideal", "megatron-core"};
    struct dl_search_wanted wanted = {.session = {.topo = {.name = "dgx-h100"},
                                                  .workload = {.name = "own.json", .text = MODEL("")},
                                                  .software = {.name = software[_i]},
                                                  .devices = 4},
                                      .global_batch = 4,
                                      .fixes = {.items = {"stack.tensor.ways=4"}, .n = 1}};
    ck_assert_msg(!dl_search_open(&search, &wanted, &err), "%s", err.text);
    search.engine = "analytic";
    ck_assert_uint_gt(search.space.n_points, 0);
    void *const opened = dl_search_open_point(&search, search.space.points[0]);
    json_t *const result = dl_search_run_point(opened);
    ck_assert_double_eq(json_number_value(json_object_get(result, "step_s")), step_of_session(search.space.points[0]));
    json_decref(result);
    dl_search_close_point(opened);
    dl_search_close(&search);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("search_space");
    TCase *const points = tcase_create("points");
    tcase_add_loop_test(points, points_are_what_strategy_files_can_say, 0, (int)DL_COUNT(spaces));
    tcase_add_test(points, what_is_fixed_of_recomputation_has_its_mode);
    tcase_add_loop_test(points, floor_of_memory_is_below_its_peak, 0, (int)DL_COUNT(spaces));
    tcase_add_loop_test(points, more_tensor_ways_than_heads_of_keys_are_points, 0, 2);
    suite_add_tcase(suite, points);
    return run_suite(suite);
}
