/* ideal_software_long.c - `ideal`, the software of a strategy that names none, is a lower bound on every other one. */
#include "sim/core/files.h"
#include "tests/unit/analytic_run.h"

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

#define HEAD(devices, batch) "\"devices\":" devices ",\"global_batch\":" batch ","
#define FP16 "\"precision\":\"fp16\","
#define FP32 "\"precision\":\"fp32\","
#define FP8 "\"precision\":\"fp8\","
#define FULL "\"recompute\":\"full\","
#define DATA "{\"name\":\"data\"}"
#define OVERLAP "{\"name\":\"data\",\"overlap\":true}"
#define ZERO(stage) ",{\"name\":\"zero\",\"stage\":" stage "}"
#define TENSOR(ways) "{\"name\":\"tensor\",\"ways\":" ways "},"
#define SEQUENCE(ways) "{\"name\":\"tensor\",\"ways\":" ways ",\"sequence\":true},"
#define PIPELINE(ways) "{\"name\":\"pipeline\",\"ways\":" ways "},"
#define EXPERT(ways) ",{\"name\":\"expert\",\"ways\":" ways "}"
#define LAYERS(n) "workload.layers=" n

/* One device of every kind, then each strategy within a node and across nodes. */
static const struct analytic_run steps[] = {
    {"dgx-h100", "llama3-8b", NULL, HEAD("1", "8"), "", {LAYERS("4")}}, /* fsdp was 1.4 times as fast */
    {"dgx-h100", "llama3-8b", NULL, HEAD("1", "1"), "", {LAYERS("2"), "workload.seq=65536"}},
    {"dgx-h100", "gpt2-125m", NULL, HEAD("1", "4"), "", {LAYERS("2"), "workload.seq=32"}},
    {"h200", "gpt2-355m", NULL, HEAD("1", "8"), "", {LAYERS("4")}},
    {"h200", "llama3-8b", NULL, HEAD("1", "1"), "", {LAYERS("4")}}, /* jax-gpu was faster, by SwiGLU and rotations */
    {"h200", "llama3-8b", NULL, FULL HEAD("1", "1"), "", {LAYERS("4")}},
    {"h200", "bert-large", NULL, FP32 HEAD("1", "8"), "", {LAYERS("2")}},
    {"h200", "resnet50", NULL, HEAD("1", "64"), "", {NULL}},
    {"h200", "vgg16", NULL, FP32 HEAD("1", "32"), "", {NULL}},
    {"dgx-b200", "llama3-8b", NULL, FP8 HEAD("1", "4"), "", {LAYERS("2")}},
    {"selene", "densenet121", NULL, HEAD("1", "32"), "", {NULL}},
    {"selene", "gpt2-355m", NULL, "\"optimizer\":\"sgd\"," HEAD("1", "4"), "", {LAYERS("2")}},
    {"selene", "gpt2-355m", NULL, "\"optimizer\":\"momentum\"," HEAD("1", "4"), "", {LAYERS("2")}},
    {"selene", "gpt2-355m", NULL, "\"optimizer\":\"lamb\"," HEAD("1", "4"), "", {LAYERS("2")}},
    {"v100-40gbe", "gpt2-355m", NULL, FP16 FULL HEAD("1", "4"), "", {LAYERS("4")}},
    {"frontier", "gpt-1.7b", NULL, HEAD("1", "4"), "", {LAYERS("2")}},
    {"tpu-v4", "llama3-8b", NULL, HEAD("1", "4"), "", {LAYERS("2")}},
    {"aurora", "llama3-8b", NULL, HEAD("1", "4"), "", {LAYERS("2")}},
    {"cs2", "gpt2-355m", NULL, HEAD("1", "4"), "", {LAYERS("2")}},
    {"sn40l", "llama3-8b", NULL, HEAD("1", "4"), "", {LAYERS("2")}},
    {"fugaku", "resnet50", NULL, FP32 HEAD("1", "4"), "", {NULL}},
    {"localhost", "gpt2-125m", NULL, FP32 HEAD("1", "1"), "", {LAYERS("2")}},
    {"dgx-h100", "llama3-8b", NULL, HEAD("8", "16"), OVERLAP, {LAYERS("2")}},
    {"dgx-h100", "mixtral-8x7b", NULL, HEAD("8", "16"), DATA EXPERT("8"), {LAYERS("2")}},
    {"dgx-b200", "llama3-8b", NULL, FP8 HEAD("8", "16"), SEQUENCE("4") DATA ZERO("1"), {LAYERS("2")}},
    {"p5", "resnet50", NULL, HEAD("16", "512"), OVERLAP, {NULL}},
    {"p5", "llama3-8b", NULL, HEAD("16", "64"), DATA ZERO("3"), {LAYERS("4")}},
    {"p5", "llama3-8b", NULL, HEAD("16", "64"), OVERLAP ZERO("2"), {LAYERS("4")}},
    {"p5", "deepseek-v3", NULL, HEAD("64", "128"), DATA EXPERT("64"), {LAYERS("4")}},
    {"p5", "deepseek-v3", NULL, FP8 HEAD("64", "128"), PIPELINE("2") DATA EXPERT("32"), {LAYERS("4")}},
    {"selene", "gpt-1.7b", NULL, FULL HEAD("16", "32"), PIPELINE("2") TENSOR("8") DATA, {LAYERS("4")}},
    {"selene", "gpt-1.7b", NULL, HEAD("32", "128"), PIPELINE("4") TENSOR("2") DATA ZERO("1"), {LAYERS("4")}},
    {"frontier", "gpt-1.7b", NULL, HEAD("16", "32"), PIPELINE("2") SEQUENCE("4") DATA ZERO("1"), {LAYERS("4")}},
};

static double step_s(struct analytic_run step, const char *software, struct dl_error *err)
{
    struct dl_session s;
    step.software = software;
    const double seconds = analytic_run(&step, arena, &s) ? s.report.result.step_s : 0;
    *err = s.err;
    dl_session_close(&s);
    return seconds;
}

START_TEST(no_software_is_faster_than_ideal)
{
    const double rounding = 1e-9;
    const size_t at_least = 3; /* ideal itself, and some others */
    size_t n_compared = 0;
    const char **software;
    struct dl_error err;
    const size_t n = dl_list_folder("strategies/software", arena, &software);
    const double ideal_s = step_s(steps[_i], "ideal", &err);
    ck_assert_msg(ideal_s > 0, "%s", err.text);
    ck_assert_double_eq(step_s(steps[_i], NULL, &err), ideal_s);
    for (size_t i = 0; i < n; i++) {
        const double other_s = step_s(steps[_i], software[i], &err);
        const bool is_not_priced = err.status == DL_IMPOSSIBLE && strstr(err.text, "/precision: software");
        if (is_not_priced) continue; /* what says nothing of fp8 is refused */
        ck_assert_msg(other_s > 0, "%s: %s", software[i], err.text);
        ck_assert_msg(other_s >= ideal_s * (1 - rounding), "%s, %s, %s: %.9g s with %s, %.9g with ideal",
                      steps[_i].topo, steps[_i].workload, steps[_i].stack, other_s, software[i], ideal_s);
        n_compared++;
    }
    ck_assert_uint_ge(n_compared, at_least);
}
END_TEST

START_TEST(a_strategy_that_names_no_software_says_what_it_got)
{
    const char *const given[] = {NULL, "ideal", "fsdp"};
    for (size_t i = 0; i < DL_COUNT(given); i++) {
        struct analytic_run step = steps[0];
        step.software = given[i];
        struct dl_session s;
        ck_assert(analytic_run(&step, arena, &s));
        json_t *const report = dl_run_report_json(&s.report);
        ck_assert_str_eq(json_string_value(json_object_get(report, "software")), given[i] ? given[i] : "ideal");
        ck_assert_int_eq(json_is_true(json_object_get(report, "software_is_default")), !given[i]);
        json_decref(report);
        dl_session_close(&s);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("ideal_software");
    TCase *const tests = tcase_create("bounds");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, no_software_is_faster_than_ideal, 0, (int)DL_COUNT(steps));
    tcase_add_test(tests, a_strategy_that_names_no_software_says_what_it_got);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
