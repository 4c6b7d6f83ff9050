/* training_memory_rows.c - memory of a stage against published and measured figures. */
#define _GNU_SOURCE /* fork, pipe */
#include "strategies/saved.h"
#include "tests/unit/training_memory.h"

/* ---- published figures ---- */

struct row {
    const char *id, *source;
    int64_t quantity;
    double bytes, share;
    struct dl_json strategy;
};
static const char *const quantities[] = {"activations", "states", "block_share", NULL};
enum { activations, states, block_share };
static const struct dl_field row_fields[] = {
    {"id", DL_TEXT, offsetof(struct row, id), 0, 0, false, NULL, NULL},
    {"source", DL_TEXT, offsetof(struct row, source), 0, 0, false, NULL, NULL},
    {"quantity", DL_CHOICE, offsetof(struct row, quantity), 0, 0, false, quantities, NULL},
    {"bytes", DL_NUMBER, offsetof(struct row, bytes), 0, 1e15, true, NULL, NULL},
    {"share", DL_NUMBER, offsetof(struct row, share), 0, 1, true, NULL, NULL},
    {"strategy", DL_OBJECT, offsetof(struct row, strategy), 0, 0, false, NULL, NULL},
};

/* What tensor parallelism alone would keep of it: none of these rows divides anything else. */
static double share_of_block(void)
{
    const struct dl_setting *const s = &training.job.setting;
    const struct dl_saves all = dl_saves_of(s, &training.model.layers[1]);
    return saved_bytes(&training, 1) / (all.outside_bytes + (all.inside_bytes + all.scores_bytes) / s->parts.inside);
}

/* Relative error of what dlsim says. */
static double error_of(const struct row *row)
{
    json_object_set_new(row->strategy.value, "schema", json_string("dlsim/strategy/1"));
    json_object_set_new(row->strategy.value, "source", json_string("a row"));
    char *const strategy = json_dumps(row->strategy.value, 0);
    const struct training_inputs inputs = {
        .system = SYSTEM,
        .device = IDEAL_DEVICE,
        .software = json_string_value(json_object_get(row->strategy.value, "software")),
        .workload = json_string_value(json_object_get(row->strategy.value, "workload")),
        .strategy = strategy};
    ck_assert_msg(!training_open(&training, &inputs), "%s: %s", row->id, training.err.text);
    const struct dl_memory_use *const first = &training.memory[0];
    const double is = row->quantity == activations ? first->activations
                      : row->quantity == states    ? states_of(first)
                                                   : share_of_block();
    dl_session_close(&training);
    free(strategy);
    return is / (row->quantity == block_share ? row->share : row->bytes) - 1;
}

START_TEST(published_figures_are_met)
{
    const double most_mean = 0.05, most = 0.12;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_json doc = {0};
    const char *path;
    ck_assert(!dl_find_file("validation/published", "file", "memory", arena, &path, &err) &&
              !dl_json_load(path, arena, &doc, &err));
    const struct dl_json rows = dl_json_member(doc, "rows", arena);
    const size_t n = json_array_size(rows.value);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct row row = {0};
        dl_read(dl_json_element(rows, i, arena), row_fields, DL_COUNT(row_fields), &row, arena, &err);
        ck_assert_msg(!err.status, "%s", err.text);
        const double error = error_of(&row);
        ck_assert_msg(fabs(error) <= most, "%s: off by %.1f %%", row.id, 100 * error);
        sum += fabs(error);
    }
    ck_assert_double_le(sum / (double)n, most_mean);
    json_decref(doc.value);
    dl_arena_free(arena);
}
END_TEST

/* ---- measured steps ---- */

struct measured_step {
    const char *workload, *precision;
    double samples, allocated_bytes, reserved_bytes;
};
static const struct dl_field step_fields[] = {
    {"workload", DL_TEXT, offsetof(struct measured_step, workload), 0, 0, false, NULL, NULL},
    {"samples", DL_NUMBER, offsetof(struct measured_step, samples), 1, 1e6, false, NULL, NULL},
    {"precision", DL_TEXT, offsetof(struct measured_step, precision), 0, 0, false, NULL, NULL},
    {"allocated_bytes", DL_NUMBER, offsetof(struct measured_step, allocated_bytes), 1, 1e15, false, NULL, NULL},
    {"reserved_bytes", DL_NUMBER, offsetof(struct measured_step, reserved_bytes), 1, 1e15, false, NULL, NULL},
};

static double error_of_step(const struct measured_step *step)
{
    char strategy[400];
    snprintf(strategy, sizeof strategy,
             "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a "
             "row\",\"workload\":\"none\",\"precision\":\"%s\",\"optimizer\":\"adam\","
             "\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":[]}",
             step->precision, step->samples, step->samples);
    const struct dl_session_request autocast = {.topo = {"h200", NULL},
                                                .strategy = {"row.json", strategy},
                                                .workload = {step->workload, NULL},
                                                .software = {"pytorch-eager", NULL},
                                                .engine = "analytic",
                                                .set = {.items = {"software.pure=\"none\""}, .n = 1}};
    ck_assert_msg(!dl_session_open(&training, &autocast), "%s: %s", step->workload, training.err.text);
    const double peak = training.memory[0].peak;
    dl_session_close(&training);
    return peak / step->allocated_bytes - 1;
}

START_TEST(the_peak_is_what_pytorch_allocates_at_most)
{
    const double most_mean = 0.03, most = 0.1;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_json doc = {0};
    const char *path;
    ck_assert(!dl_find_file("validation/measured", "file", "memory", arena, &path, &err) &&
              !dl_json_load(path, arena, &doc, &err));
    const struct dl_json rows = dl_json_member(doc, "rows", arena);
    const size_t n = json_array_size(rows.value);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct measured_step step = {0};
        dl_read(dl_json_element(rows, i, arena), step_fields, DL_COUNT(step_fields), &step, arena, &err);
        ck_assert_msg(!err.status, "%s", err.text);
        const double error = error_of_step(&step);
        ck_assert_msg(fabs(error) <= most, "%s of %g: off by %.1f %%", step.workload, step.samples, 100 * error);
        sum += fabs(error);
    }
    ck_assert_double_le(sum / (double)n, most_mean);
    json_decref(doc.value);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_memory_rows");
    tcase_add_test(tests, published_figures_are_met);
    tcase_add_test(tests, the_peak_is_what_pytorch_allocates_at_most);
    Suite *const suite = suite_create("training_memory_rows");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
