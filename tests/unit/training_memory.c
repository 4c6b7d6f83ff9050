/* training_memory.c - memory of a stage against the formulas of the papers, and against published figures. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/core/files.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define SYSTEM IDEAL_SYSTEM("1e9", "0")

static struct dl_session training;

static void open_strategy(const char *workload, const char *software, const char *head, const char *stack)
{
    const struct training_inputs inputs = {
        .system = SYSTEM, .device = IDEAL_DEVICE, .software = software, .workload = workload};
    ck_assert_msg(!training_open_stack(&training, inputs, head, stack), "%s", training.err.text);
}

static void check_equal(const char *what, double is, double should)
{
    ck_assert_msg(fabs(is - should) <= 1e-12 * should, "%s: %.17g, not %.17g", what, is, should);
}

/* ---- Korthikanti et al., MLSys 2023 ---- */

struct gpt {
    double s, b, h, a, layers, v;
};

/* sbh and 5as/h of the model in the paper's equations. */
#define SMALL_GPT                                                                                                      \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':24,'hidden':1024,'heads':16,"        \
    "'seq':512,'vocab':4096}"
static const struct gpt small = {.s = 512, .b = 2, .h = 1024, .a = 16, .layers = 24, .v = 4096};

static const struct block_case {
    const char *stack;
    double outside, inside, scores; /* factors of 10, 24 and 5as/h */
    double input;                   /* of 2: what full recomputation keeps instead */
} block_cases[] = {
    {"", 1, 1, 1, 0},                                                                         /* equation 1 */
    {"{'name':'tensor','ways':8}", 1, 1 / 8.0, 1 / 8.0, 0},                                   /* 2 */
    {"{'name':'tensor','ways':8,'sequence':true}", 1 / 8.0, 1 / 8.0, 1 / 8.0, 0},             /* 4 */
    {"{'name':'tensor','ways':8},{'name':'recompute','mode':'selective'}", 1, 1 / 8.0, 0, 0}, /* table 2 */
    {"{'name':'tensor','ways':8,'sequence':true},{'name':'recompute','mode':'selective'}", 1 / 8.0, 1 / 8.0, 0,
     0},                                                                           /* 6 */
    {"{'name':'tensor','ways':8},{'name':'recompute','mode':'full'}", 0, 0, 0, 1}, /* table 2 */
    {"{'name':'tensor','ways':8,'sequence':true},{'name':'recompute','mode':'full'}", 0, 0, 0, 1 / 8.0},
};

static double block_bytes(const struct block_case *c)
{
    return small.s * small.b * small.h *
           (10 * c->outside + 24 * c->inside + 5 * small.a * small.s / small.h * c->scores + 2 * c->input);
}

START_TEST(a_block_keeps_what_the_equations_say)
{
    const struct block_case *const c = &block_cases[_i];
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':2,'microbatch':2", c->stack);
    check_equal(c->stack, dl_saved_bytes(&training.job.setting, &training.model.layers[1], 0), block_bytes(c));
    dl_session_close(&training);
}
END_TEST

/* Gradients while a block goes backward: of the scores and what they are multiplied with, or on the two sides of a
 * linear layer; and of the block's output, which waits on the residual way. */
static double at_work_bytes(const struct block_case *all)
{
    const double sbh = small.s * small.b * small.h, scores = small.a * small.s * small.s * small.b;
    return 2 * (fmax((scores + sbh) * all->inside, 4 * sbh * all->inside + sbh * all->outside) + sbh * all->outside);
}

/* Whoever computes again what it dropped has it again for a while. */
START_TEST(recomputation_needs_what_one_block_dropped)
{
    const struct block_case *const c = &block_cases[_i];
    const bool sequence = strstr(c->stack, "sequence") != NULL, tensor = strstr(c->stack, "tensor") != NULL;
    const struct block_case *const all = &block_cases[sequence ? 2 : tensor ? 1 : 0];
    char stack[300];
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':2}%s%s", *c->stack ? "," : "", c->stack);
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':4,'microbatch':2", stack);
    check_equal(c->stack, training.memory[0].workspace, block_bytes(all) - block_bytes(c) + at_work_bytes(all));
    dl_session_close(&training);
}
END_TEST

/* ---- Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, table 1 ---- */

START_TEST(weight_gradients_need_what_the_table_says)
{
    const double sbh = small.s * small.b * small.h;
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':2,'microbatch':2", "");
    check_equal("M_W", dl_layer_needs(&training.job.setting, &training.lowered.layers[1], 0).for_weights, 32 * sbh);
    dl_session_close(&training);
}
END_TEST

/* Equation 5 and section 4.2.3: the first stage keeps L layers, and with chunks L (1 + (p - 1) / (p v)); to which the
 * mask of the embedding comes for each micro-batch under way: p, and with chunks 2p, as the first one is freed last. */
START_TEST(the_first_stage_keeps_all_layers_once)
{
    static const struct {
        const char *stack;
        double stages, chunks, embeddings;
    } cases[] = {
        {"{'name':'pipeline','ways':4}", 4, 1, 4},
        {"{'name':'pipeline','ways':8}", 8, 1, 8},
        {"{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':2}", 4, 2, 8},
        {"{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':3}", 4, 3, 8},
        {"{'name':'pipeline','ways':8,'schedule':'interleaved','chunks':3}", 8, 3, 16},
    };
    const double p = cases[_i].stages, v = cases[_i].chunks, sbh = small.s * small.b * small.h;
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':64,'microbatch':2", cases[_i].stack);
    const double more = v > 1 ? 1 + (p - 1) / (p * v) : 1;
    check_equal(cases[_i].stack, training.memory[0].activations,
                small.layers * more * block_bytes(&block_cases[0]) + cases[_i].embeddings * sbh);
    dl_session_close(&training);
}
END_TEST

/* Section 4.3: one micro-batch at the end, with the input of norm and logits, and the logits in fp32. */
START_TEST(the_last_stage_keeps_the_logits)
{
    const double sbh = small.s * small.b * small.h;
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':64,'microbatch':2", "{'name':'pipeline','ways':4}");
    check_equal("last stage", training.memory[3].activations,
                small.layers / 4 * block_bytes(&block_cases[0]) + 4 * sbh * (1 + small.v / small.h));
    dl_session_close(&training);
}
END_TEST

/* Those of an MLP are whole on every tensor rank, unless these divide the samples. */
START_TEST(whole_logits_are_kept_by_each_tensor_rank)
{
    static const struct {
        const char *stack;
        double parts;
    } cases[] = {{"", 1}, {"{'name':'tensor','ways':4}", 1}, {"{'name':'tensor','ways':4,'sequence':true}", 4}};
    const double samples = 8, logits = samples * 12, saved_each = 4, workspace_each = 6, loss_each = 2;
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        open_strategy("{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[16,32,12],"
                      "'loss':'cross_entropy'}",
                      "{'schema':'dlsim/software/1','source':'a test','logit_workspace_bytes':6}",
                      "'global_batch':8,'microbatch':8,'precision':'bf16'", cases[i].stack);
        const struct dl_layer_needs n = dl_layer_needs(&training.job.setting, &training.lowered.layers[1], 0);
        check_equal("saved", n.saved, saved_each * logits / cases[i].parts);
        check_equal("at work", n.at_work, (workspace_each * logits + loss_each * samples) / cases[i].parts);
        dl_session_close(&training);
    }
}
END_TEST

START_TEST(fp32_doubles_what_is_kept)
{
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'precision':'fp32','global_batch':2,'microbatch':2", "");
    check_equal("fp32", dl_saved_bytes(&training.job.setting, &training.model.layers[1], 0),
                2 * block_bytes(&block_cases[0]));
    dl_session_close(&training);
}
END_TEST

/* ---- ZeRO (Rajbhandari et al., SC20), figure 1 ---- */

static const struct zero_case {
    const char *stack;
    double whole, cut; /* bytes a parameter, of 16 */
    double printed_gb; /* for 7.5e9 parameters on 64 devices */
} zero_cases[] = {
    {"{'name':'data'}", 16, 0, 120},
    {"{'name':'data'},{'name':'zero','stage':1}", 4, 12, 31.4},
    {"{'name':'data'},{'name':'zero','stage':2}", 2, 14, 16.6},
    {"{'name':'data'},{'name':'zero','stage':3}", 0, 16, 1.88},
};

static double states_of(const struct dl_memory_use *u) { return u->parameters + u->gradients + u->optimizer; }

START_TEST(states_are_those_of_zeros_table)
{
    const struct zero_case *const c = &zero_cases[_i];
    const double devices = 64, psi = 7.5e9;
    open_strategy("gpt-7.5b", "ideal", "'devices':64,'global_batch':64", c->stack);
    const double states = states_of(&training.memory[0]), parameters = dl_model_parameters(&training.model);
    check_equal(c->stack, states, (c->whole + c->cut / devices) * parameters);
    ck_assert_double_eq_tol(states / parameters * psi / 1e9, c->printed_gb, 0.05); /* one digit is printed */
    dl_session_close(&training);
}
END_TEST

#define PURE_SOFTWARE "{'schema':'dlsim/software/1','source':'a test','gradient_bytes':4,'pure':'language_models'}"

/* Parameters, gradients, and what the optimizer keeps: a master copy unless they are one, and moments. */
START_TEST(states_are_those_of_precision_and_optimizer)
{
    static const struct {
        const char *head, *software;
        double bytes;
    } cases[] = {
        {"'precision':'fp32','optimizer':'sgd'", "ideal", 4 + 4},
        {"'precision':'fp32','optimizer':'momentum'", "ideal", 4 + 4 + 4},
        {"'precision':'fp32','optimizer':'adam'", "ideal", 4 + 4 + 8},
        {"'precision':'bf16','optimizer':'sgd'", "ideal", 2 + 2 + 4},
        {"'precision':'bf16','optimizer':'momentum'", "ideal", 2 + 2 + 4 + 4},
        {"'precision':'bf16','optimizer':'adam'", "ideal", 2 + 2 + 4 + 8},
        {"'precision':'bf16','optimizer':'adam'", PURE_SOFTWARE, 2 + 2 + 4},
        {"'precision':'bf16','optimizer':'momentum'", PURE_SOFTWARE, 2 + 2 + 2},
        {"'precision':'fp32','optimizer':'adam'", PURE_SOFTWARE, 4 + 4 + 8},
        {"'precision':'fp32'", "ideal", 4 + 4 + 8}, /* adam, for a language model */
    };
    char head[200];
    snprintf(head, sizeof head, "%s,'global_batch':1", cases[_i].head);
    open_strategy(SMALL_GPT, cases[_i].software, head, "");
    check_equal(head, states_of(&training.memory[0]), cases[_i].bytes * dl_model_parameters(&training.model));
    dl_session_close(&training);
}
END_TEST

START_TEST(the_usual_optimizer_of_images_is_momentum)
{
    open_strategy("lenet-5", "ideal", "'precision':'fp32','global_batch':1", "");
    check_equal("states", states_of(&training.memory[0]), (4 + 4 + 4) * dl_model_parameters(&training.model));
    dl_session_close(&training);
}
END_TEST

/* ---- a second way: count anew at every item ---- */

/* What a chunk holds of a micro-batch when items [0, end) are done. */
static double held_of(const struct dl_schedule *schedule, uint32_t stage, uint32_t end, const struct dl_item *of)
{
    const struct dl_position *const p =
        &training.lowered.positions[schedule->position_of[stage * schedule->chunks + of->chunk]];
    bool done[DL_ITEM_W + 1] = {false};
    double saved = 0, for_weights = 0;
    for (uint32_t i = 0; i < end; i++) {
        const struct dl_item *const item = &schedule->items[stage][i];
        if (item->micro == of->micro && item->chunk == of->chunk) done[item->kind] = true;
    }
    for (size_t i = p->first_layer; i < p->end_layer; i++) {
        const struct dl_layer_needs n = dl_layer_needs(&training.job.setting, &training.lowered.layers[i], 0);
        saved += n.saved;
        for_weights += n.for_weights;
    }
    const bool splits = schedule->splits_backward;
    return !done[DL_ITEM_F] ? 0 : !done[DL_ITEM_B] ? saved : splits && !done[DL_ITEM_W] ? for_weights : 0;
}

/* The most that is held between two items. */
static double most_between_items(uint32_t stage)
{
    const struct dl_schedule *const schedule = &training.lowered.schedule;
    double most = 0;
    for (uint32_t end = 0; end <= schedule->n_items[stage]; end++) {
        double sum = 0;
        for (uint32_t i = 0; i < schedule->n_items[stage]; i++)
            if (schedule->items[stage][i].kind == DL_ITEM_F)
                sum += held_of(schedule, stage, end, &schedule->items[stage][i]);
        most = fmax(most, sum);
    }
    return most;
}

/* The fullest moment is inside an item: it has all that is held before it, and the work of one layer. */
START_TEST(every_schedule_holds_what_a_recount_says)
{
    static const char *const recomputes[] = {"none", "selective", "full"};
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i / 3);
    char stack[200], head[100];
    snprintf(head, sizeof head, "'global_batch':16,'microbatch':2,'recompute':'%s'", recomputes[_i % 3]);
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':4,'schedule':'%s','chunks':%u}", kind->name,
             kind->min_chunks);
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, head, stack);
    double most_work = 0;
    for (size_t i = 0; i < training.model.n_layers; i++) {
        const struct dl_layer_needs n = dl_layer_needs(&training.job.setting, &training.lowered.layers[i], 0);
        most_work = fmax(most_work, n.recomputed + n.at_work);
    }
    for (uint32_t stage = 0; stage < 4; stage++) {
        const struct dl_memory_use *const u = &training.memory[stage];
        const double most = most_between_items(stage), moving = u->activations + u->workspace;
        ck_assert_msg(moving >= most * (1 - 1e-12) && moving <= (most + most_work) * (1 + 1e-12),
                      "%s, stage %u: %g bytes come and go, but between items %g, and a layer needs %g", kind->name,
                      stage, moving, most, most_work);
    }
    dl_session_close(&training);
}
END_TEST

/* Of one micro-batch: from layer to layer there are more gradients and fewer activations. */
START_TEST(gradients_that_come_and_go_spare_memory)
{
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':2,'microbatch':2", "");
    const struct dl_memory_use persist = training.memory[0];
    training.software.gradients_persist = false;
    dl_memory_of_stages(&training.job.setting, &training.lowered, training.memory);
    double kept = 0, gradients = 0, most = 0;
    for (size_t i = 0; i < training.model.n_layers; i++)
        kept += dl_layer_needs(&training.job.setting, &training.lowered.layers[i], 0).saved;
    for (size_t i = training.model.n_layers; i-- > 0;) {
        const struct dl_layer_needs n = dl_layer_needs(&training.job.setting, &training.lowered.layers[i], 0);
        gradients += n.gradients;
        most = fmax(most, kept + gradients + n.at_work);
        kept -= n.saved;
    }
    check_equal("gradients", persist.gradients, 2 * dl_model_parameters(&training.model));
    check_equal("peak", training.memory[0].peak, persist.parameters + persist.optimizer + most);
    dl_session_close(&training);
}
END_TEST

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

static double share_of_block(void)
{
    struct dl_setting plain = training.job.setting;
    plain.parts.outside = 1;
    plain.recompute = DL_RECOMPUTE_NOTHING;
    const struct dl_layer *const block = &training.model.layers[1];
    return dl_saved_bytes(&training.job.setting, block, 0) / dl_saved_bytes(&plain, block, 0);
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
    TCase *const tests = tcase_create("training_memory");
    tcase_add_loop_test(tests, a_block_keeps_what_the_equations_say, 0, (int)DL_COUNT(block_cases));
    tcase_add_loop_test(tests, recomputation_needs_what_one_block_dropped, 0, (int)DL_COUNT(block_cases));
    tcase_add_loop_test(tests, the_first_stage_keeps_all_layers_once, 0, 5);
    tcase_add_test(tests, the_last_stage_keeps_the_logits);
    tcase_add_test(tests, whole_logits_are_kept_by_each_tensor_rank);
    tcase_add_test(tests, fp32_doubles_what_is_kept);
    tcase_add_test(tests, weight_gradients_need_what_the_table_says);
    tcase_add_loop_test(tests, every_schedule_holds_what_a_recount_says, 0, 3 * (int)dl_schedule_count());
    tcase_add_test(tests, gradients_that_come_and_go_spare_memory);
    tcase_add_loop_test(tests, states_are_those_of_zeros_table, 0, (int)DL_COUNT(zero_cases));
    tcase_add_loop_test(tests, states_are_those_of_precision_and_optimizer, 0, 10);
    tcase_add_test(tests, the_usual_optimizer_of_images_is_momentum);
    tcase_add_test(tests, published_figures_are_met);
    tcase_add_test(tests, the_peak_is_what_pytorch_allocates_at_most);
    Suite *const suite = suite_create("training_memory");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
