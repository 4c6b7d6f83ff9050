/* blind_steps.c - steps of models that were predicted before they were timed on an H200, in seven rounds
 * (validation/measured/blind_steps.json, which has these models). */
#include <stdlib.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/measured_steps.h"

enum column {
    WORKLOAD,
    SAMPLES,
    PRECISION,
    SOFTWARE,
    PURE,
    FUSED,
    RECOMPUTED,
    STEP_S,
    HOST_S,
    FORWARD_S,
    BACKWARD_S,
    OPTIMIZER_S,
    ALLOCATED,
    ROUND,
    LORA,
    OPTIMIZER /* adam for language models and momentum for others if absent */
};

static void open_measured(void) { open_measured_file("blind_steps"); }

static bool is_true(const json_t *row, enum column column) { return json_is_true(json_array_get(row, column)); }

static json_t *stack_of(const json_t *row)
{
    json_t *const stack = json_array(), *const adapters = json_array_get(row, LORA);
    if (json_is_object(adapters)) {
        json_t *const entry = json_copy(adapters);
        json_object_set_new(entry, "name", json_string("lora"));
        json_array_append_new(stack, entry);
    }
    if (is_true(row, RECOMPUTED))
        json_array_append_new(stack, json_pack("{ss ss}", "name", "recompute", "mode", "full"));
    return stack;
}

static const char *optimizer_of(const json_t *row)
{
    const char *const name = json_string_value(json_array_get(row, OPTIMIZER));
    return name ? dl_arena_format(arena, "\"optimizer\":\"%s\",", name) : "";
}

static const char *strategy_of(const json_t *row)
{
    json_t *const stack = stack_of(row);
    char *const dumped = json_dumps(stack, JSON_COMPACT);
    const char *const out =
        dl_arena_format(arena,
                        "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\","
                        "%s\"precision\":\"%s\",\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":%s}",
                        optimizer_of(row), text(row, PRECISION), number(row, SAMPLES), number(row, SAMPLES), dumped);
    free(dumped);
    json_decref(stack);
    return out;
}

/* Only transformers may be cast as a whole. */
static struct dl_texts changes_for(const json_t *row)
{
    struct dl_texts set = {0};
    const bool is_network = json_object_get(measured_model(text(row, WORKLOAD)), "input") != NULL;
    if (!is_network && !is_true(row, PURE)) set.items[set.n++] = "software.pure=\"none\"";
    if (is_true(row, FUSED)) set.items[set.n++] = "software.fused_optimizer=true";
    return set;
}

struct figures {
    double step_s, allocated_bytes;
};

static struct figures predicted(const json_t *row)
{
    const struct dl_session_request request = {.topo = {"h200", NULL},
                                               .strategy = {"row.json", strategy_of(row)},
                                               .workload = {"model.json", measured_workload(text(row, WORKLOAD))},
                                               .software = {text(row, SOFTWARE), NULL},
                                               .engine = "analytic",
                                               .set = changes_for(row)};
    struct dl_session s;
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s: %s", text(row, WORKLOAD), s.err.text);
    const struct figures out = {s.report.result.step_s, s.memory[0].peak};
    dl_session_close(&s);
    return out;
}

/* Predicted once they were 5.6, 7.2, 4.9, 3.5, 6.2, 5.9 and 5.8 % off: groups of RegNets had not been timed, and
 * compiled models of transformers build masks, but for DINOv2. Where the host sets the pace only memory is compared. */
START_TEST(each_round_takes_what_was_measured)
{
    static const struct {
        const char *round;
        double least_steps, most_mean, most_memory;
    } wanted[] = {{"first", 40, 0.032, 0.011},  {"second", 18, 0.048, 0.013}, {"third", 40, 0.05, 0.017},
                  {"fourth", 45, 0.037, 0.022}, {"fifth", 27, 0.03, 0.006},   {"sixth", 27, 0.03, 0.014},
                  {"seventh", 26, 0.031, 0.012}};
    const double host_sets_the_pace = 0.9;
    const json_t *const rows = json_object_get(measured.value, "rows");
    struct mean step = {0}, memory = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        if (strcmp(text(row, ROUND), wanted[_i].round)) continue;
        const struct figures got = predicted(row);
        add_error(&memory, got.allocated_bytes, number(row, ALLOCATED));
        if (number(row, HOST_S) < host_sets_the_pace * number(row, STEP_S))
            add_error(&step, got.step_s, number(row, STEP_S));
    }
    ck_assert_double_ge(step.n, wanted[_i].least_steps);
    ck_assert_double_le(mean_of(&step), wanted[_i].most_mean);
    ck_assert_double_le(mean_of(&memory), wanted[_i].most_memory);
}
END_TEST

int main(void)
{
    enum { n_rounds = 7 };
    TCase *const tests = tcase_create("blind_steps");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_loop_test(tests, each_round_takes_what_was_measured, 0, n_rounds);
    Suite *const suite = suite_create("blind_steps");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
