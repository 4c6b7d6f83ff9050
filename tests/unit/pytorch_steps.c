/* pytorch_steps.c - steps on one GPU against those that PyTorch took on an H200 (validation/measured). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

struct step {
    const char *workload, *precision, *software;
    const char *half;          /* where mechanisms were looked for, kept out, or predicted before it was timed
                                  ("blind"); NULL: timed before there were halves */
    double samples, runs, seq; /* the last 0: as the workload has it */
    bool pure, dropout, fused;
    double step_s, busy_s, allocated_bytes;
    double phase_s[DL_N_PHASES]; /* forward, backward, optimizer; 0: not measured */
};

static struct dl_arena *arena;
static struct step *steps;
static size_t n_steps;

/* NULL: the row ends before. */
static const json_t *cell(const json_t *row, const json_t *columns, const char *column)
{
    for (size_t i = 0; i < json_array_size(columns); i++)
        if (strcmp(json_string_value(json_array_get(columns, i)), column) == 0) return json_array_get(row, i);
    ck_abort_msg("there is no column %s", column);
    return NULL;
}

static double number(const json_t *row, const json_t *columns, const char *column)
{
    return json_number_value(cell(row, columns, column));
}

static void open_steps(void)
{
    struct dl_error err = {0};
    struct dl_json doc = {0};
    const char *path;
    arena = dl_arena_new();
    ck_assert(!dl_find_file("validation/measured", "file", "pytorch_steps", arena, &path, &err) &&
              !dl_json_load(path, arena, &doc, &err));
    const json_t *const columns = json_object_get(doc.value, "columns"), *const rows =
                                                                             json_object_get(doc.value, "rows");
    n_steps = json_array_size(rows);
    steps = dl_arena_alloc(arena, n_steps * sizeof *steps);
    for (size_t i = 0; i < n_steps; i++) {
        const json_t *const row = json_array_get(rows, i);
        const char *const software = json_string_value(cell(row, columns, "software"));
        const char *const half = json_string_value(cell(row, columns, "half"));
        steps[i] = (struct step){.software = dl_arena_string(arena, software ? software : "pytorch-eager"),
                                 .half = half ? dl_arena_string(arena, half) : NULL,
                                 .fused = json_is_true(cell(row, columns, "fused")),
                                 .seq = number(row, columns, "seq"),
                                 .runs = number(row, columns, "runs"),
                                 .workload = dl_arena_string(arena, json_string_value(json_array_get(row, 0))),
                                 .precision = dl_arena_string(arena, json_string_value(json_array_get(row, 2))),
                                 .pure = json_is_true(json_array_get(row, 3)),
                                 .dropout = json_is_true(json_array_get(row, 4)),
                                 .samples = number(row, columns, "samples"),
                                 .step_s = number(row, columns, "step_s"),
                                 .busy_s = number(row, columns, "busy_s"),
                                 .allocated_bytes = number(row, columns, "allocated_bytes"),
                                 .phase_s = {number(row, columns, "forward_s"), number(row, columns, "backward_s"),
                                             number(row, columns, "optimizer_s")}};
    }
    json_decref(doc.value);
}

static void close_steps(void) { dl_arena_free(arena); }

/* Only these have dropout and sequences, and may be cast as a whole. */
static bool is_transformer(const char *workload)
{
    struct dl_error err = {0};
    struct dl_json doc = {0};
    const char *path;
    ck_assert(!dl_find_file("workloads/models", "workload", workload, arena, &path, &err) &&
              !dl_json_load(path, arena, &doc, &err) &&
              !dl_json_inherit(doc, "workloads/models", "workload", arena, &err));
    const bool is = strcmp(json_string_value(json_object_get(doc.value, "kind")), "transformer") == 0;
    json_decref(doc.value);
    return is;
}

static struct dl_texts changes_for(const struct step *of)
{
    struct dl_texts set = {0};
    if (is_transformer(of->workload)) {
        if (!of->dropout) set.items[set.n++] = "workload.dropout=false";
        if (!of->pure) set.items[set.n++] = "software.pure=\"none\"";
        if (of->seq > 0) set.items[set.n++] = dl_arena_format(arena, "workload.seq=%.0f", of->seq);
    }
    if (of->fused) set.items[set.n++] = "software.fused_optimizer=true";
    return set;
}

/* What dlsim says of the same. */
static struct step predicted(const struct step *of)
{
    char strategy[400];
    snprintf(strategy, sizeof strategy,
             "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a row\",\"workload\":\"none\",\"precision\":\"%s\","
             "\"global_batch\":%.0f,\"microbatch\":%.0f,\"stack\":[]}",
             of->precision, of->samples, of->samples);
    struct dl_session s;
    const struct dl_session_request request = {.topo = {"h200", NULL},
                                               .strategy = {"row.json", strategy},
                                               .workload = {of->workload, NULL},
                                               .software = {of->software, NULL},
                                               .engine = "analytic",
                                               .set = changes_for(of)};
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s: %s", of->workload, s.err.text);
    const struct dl_training_result *const r = &s.report.result;
    const struct step out = {
        .step_s = r->step_s,
        .busy_s = r->step_s - r->exposed_s[DL_CAUSE_HOST],
        .allocated_bytes = s.memory[0].peak,
        .phase_s = {r->elapsed_s[DL_PHASE_FORWARD], r->elapsed_s[DL_PHASE_BACKWARD], r->elapsed_s[DL_PHASE_END]}};
    dl_session_close(&s);
    return out;
}

struct errors {
    double sum, most;
    size_t n;
};

static void add_error(struct errors *e, double got, double wanted)
{
    const double error = fabs(got / wanted - 1);
    e->sum += error;
    e->most = fmax(e->most, error);
    e->n++;
}

static double sum_of_phases(const struct step *s)
{
    double sum = 0;
    for (int k = 0; k < DL_N_PHASES; k++) sum += s->phase_s[k];
    return sum;
}

/* The host of the measured steps was shared with others, so what it sets the pace of differs from run to run: where it
 * does so, kernels are compared for themselves, the step's phases, which are those of one run, are not, and the step
 * only if it is the median of several runs. */
static bool is_paced_by_device(const struct step *s)
{
    const double host_sets_the_pace = 0.9;
    return s->busy_s >= host_sets_the_pace * fmax(s->step_s, sum_of_phases(s));
}

START_TEST(steps_take_what_pytorch_takes)
{
    const double most_mean = 0.1, most = 0.25;
    struct errors step = {0}, phase = {0}, busy = {0}, memory = {0};
    size_t n_paced_by_device = 0;
    open_steps();
    for (size_t i = 0; i < n_steps; i++) {
        const struct step got = predicted(&steps[i]);
        const bool paced_by_device = is_paced_by_device(&steps[i]);
        if (paced_by_device || steps[i].runs > 1) add_error(&step, got.step_s, steps[i].step_s);
        if (steps[i].busy_s > 0) add_error(&busy, got.busy_s, steps[i].busy_s);
        add_error(&memory, got.allocated_bytes, steps[i].allocated_bytes);
        if (!paced_by_device) continue;
        n_paced_by_device++;
        for (int k = 0; k < DL_N_PHASES; k++)
            if (steps[i].phase_s[k] > 0) add_error(&phase, got.phase_s[k], steps[i].phase_s[k]);
    }
    close_steps();
    ck_assert_uint_ge(n_paced_by_device, 20);
    ck_assert_uint_ge(phase.n, 20 * DL_N_PHASES);
    ck_assert_double_le(phase.sum / (double)phase.n, most_mean);
    ck_assert_double_le(phase.most, most);
    ck_assert_double_le(step.sum / (double)step.n, most_mean);
    ck_assert_double_le(busy.sum / (double)busy.n, most_mean);
    ck_assert_double_le(memory.sum / (double)memory.n, most_mean);
    ck_assert_double_le(step.most, most);
    ck_assert_double_le(busy.most, most);
    ck_assert_double_le(memory.most, most);
}
END_TEST

/* Vision transformers, grouped and wide networks, experts in both halves, and shapes that were never timed before:
 * where the device sets the pace. */
START_TEST(each_half_takes_what_pytorch_takes)
{
    static const char *const halves[] = {"fit", "kept", "blind"};
    const size_t least[] = {20, 20, 10};
    const double most_mean = 0.035, most_memory = 0.015;
    open_steps();
    for (size_t h = 0; h < DL_COUNT(halves); h++) {
        struct errors step = {0}, memory = {0};
        for (size_t i = 0; i < n_steps; i++) {
            if (!steps[i].half || strcmp(steps[i].half, halves[h])) continue;
            const struct step got = predicted(&steps[i]);
            add_error(&memory, got.allocated_bytes, steps[i].allocated_bytes);
            if (is_paced_by_device(&steps[i])) add_error(&step, got.step_s, steps[i].step_s);
        }
        ck_assert_uint_ge(step.n, least[h]);
        ck_assert_double_le(step.sum / (double)step.n, most_mean);
        ck_assert_double_le(memory.sum / (double)memory.n, most_memory);
    }
    close_steps();
}
END_TEST

/* PyTorch gives batch norms of fp16 and fp32 to cuDNN and does those of bf16 itself, forward at a third of the rate. */
START_TEST(batch_norms_of_bf16_take_longer_than_those_of_fp16)
{
    struct step of = {.workload = "resnet50", .software = "pytorch-eager", .samples = 256, .precision = "fp16"};
    arena = dl_arena_new();
    const struct step by_library = predicted(&of);
    of.precision = "bf16";
    const struct step own = predicted(&of);
    const double forward_s = own.phase_s[DL_PHASE_FORWARD] - by_library.phase_s[DL_PHASE_FORWARD];
    ck_assert_double_ge(forward_s, 0.2 * own.phase_s[DL_PHASE_FORWARD]);
    ck_assert_double_ge(own.phase_s[DL_PHASE_BACKWARD], by_library.phase_s[DL_PHASE_BACKWARD]);
    close_steps();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("pytorch_steps");
    TCase *const tests = tcase_create("pytorch_steps");
    tcase_add_test(tests, each_half_takes_what_pytorch_takes);
    tcase_add_test(tests, batch_norms_of_bf16_take_longer_than_those_of_fp16);
    tcase_add_test(tests, steps_take_what_pytorch_takes);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
