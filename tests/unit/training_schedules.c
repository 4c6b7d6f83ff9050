/* training_schedules.c - pipelines played by the engine against the closed forms of their schedules, on an ideal
 * machine.
 *
 * Stages are equal: blocks so wide, of one token and one word, that embedding, head and attention's scores are less
 * than 1e-7 of the work. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <math.h>

#include "strategies/schedule.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define WIDE_BLOCKS_WITH(layers, words)                                                                                \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':" layers                             \
    ",'hidden':8388608,'heads':1,'seq':1,'vocab':" words ",'positions':'none','dropout':false,'tied_embedding':false}"
#define WIDE_BLOCKS(layers) WIDE_BLOCKS_WITH(layers, "1")
#define UNLIMITED_BYTES_PER_S "1e18"
#define BYTES_PER_S 1e18 /* the same, as a number */
#define LATENCY_S 1e-2   /* about a tenth of a forward through a block */

static const double exactly = 1e-6;

static const struct size {
    uint32_t stages, micros, group; /* the group where the schedule has any; 0: as many as stages */
} sizes[] = {{2, 4, 0}, {4, 8, 0}, {4, 16, 0}, {8, 8, 0}, {3, 12, 0}, {4, 9, 5}, {3, 11, 4}, {4, 7, 7}};

struct pipeline {
    struct dl_session training;
    struct dl_schedule_request request; /* what the schedule is made of, from the programs */
    struct dl_training_result result;
    double schedule_bubble_s;
    double items_s; /* the step without what ends it on every stage: the sum of copies, the optimizer */
};

/* Deep pipelines have more of them where the schedule can. */
static uint32_t chunks_of(const struct dl_schedule_kind *kind, struct size size)
{
    const uint32_t more = 2 * kind->min_chunks;
    return size.stages >= 4 && more <= kind->max_chunks ? more : kind->min_chunks;
}

static void measure_items(struct pipeline *p)
{
    const struct dl_lowered *const l = &p->training.lowered;
    const struct dl_template *const items = l->positions[l->n_positions / 2].items;
    p->request.forward_s = items[DL_ITEM_F].total.seconds;
    p->request.backward_s = items[DL_ITEM_B].total.seconds;
    p->request.weight_s = items[DL_ITEM_W].total.seconds;
}

/* Who holds the model twice sums its gradients in the end: each stage sends all that it has to another one. */
static double copies_s(const struct pipeline *p)
{
    double sum = 0;
    const struct dl_template *const end = &p->training.lowered.programs[0].end;
    for (size_t i = 0; i < end->n_instructions; i++)
        if (end->instructions[i].kind == DL_START)
            sum += p->request.transfer_s + p->training.lowered.calls[end->instructions[i].call].bytes / BYTES_PER_S;
    ck_assert_int_eq(sum > 0, p->training.lowered.schedule.n_paths > 1);
    return sum;
}

/* False: the schedule refuses this size. */
static bool play(struct pipeline *p, const struct dl_schedule_kind *kind, struct size size, const char *system,
                 double transfer_s)
{
    char strategy[600], workload[400], group[30] = "";
    const uint32_t chunks = chunks_of(kind, size), n_blocks = size.stages * chunks;
    if (size.group && kind->has_groups) snprintf(group, sizeof group, ",'group':%u", size.group);
    snprintf(workload, sizeof workload, WIDE_BLOCKS("%u"), n_blocks);
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':%u,'stack':"
             "[{'name':'pipeline','ways':%u,'chunks':%u,'schedule':'%s'%s}]}",
             size.micros, size.stages, chunks, kind->name, group);
    const struct training_inputs inputs = {
        .system = system, .device = IDEAL_DEVICE, .software = "ideal", .workload = workload, .strategy = strategy};
    *p = (struct pipeline){
        .request = {.stages = size.stages, .micros = size.micros, .chunks = chunks, .transfer_s = transfer_s}};
    if (training_open(&p->training, &inputs)) {
        ck_assert_int_eq(p->training.err.status, DL_IMPOSSIBLE);
        return false;
    }
    measure_items(p);
    const struct training_outcome outcome = training_simulate(&p->training, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s: %s", kind->name, outcome.err.text);
    p->result = outcome.result;
    p->schedule_bubble_s = outcome.schedule_bubble_s;
    p->items_s = p->result.step_s - p->result.elapsed_s[DL_PHASE_END] - copies_s(p);
    return true;
}

static void check_close(const char *what, const char *schedule, struct size size, double is, double should)
{
    ck_assert_msg(fabs(is - should) <= exactly * fabs(should), "%s, %u stages, %u micro-batches: %s is %.9g, not %.9g",
                  schedule, size.stages, size.micros, what, is, should);
}

/* The work of a stage: they are equal. A model that is held twice has every chunk see half of the micro-batches. */
static double ideal_s(const struct pipeline *p)
{
    const struct dl_schedule *const s = &p->training.lowered.schedule;
    const double passes = (double)s->micros * s->n_positions / s->stages;
    return passes * (p->request.forward_s + p->request.backward_s + p->request.weight_s);
}

START_TEST(step_is_the_longest_path_of_the_schedule)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i);
    const struct {
        const char *system;
        double transfer_s;
    } networks[] = {{IDEAL_SYSTEM(UNLIMITED_BYTES_PER_S, "0"), 0},
                    {IDEAL_SYSTEM(UNLIMITED_BYTES_PER_S, "5e-3"), LATENCY_S}}; /* two links */
    for (size_t i = 0; i < DL_COUNT(sizes); i++)
        for (size_t n = 0; n < DL_COUNT(networks); n++) {
            struct pipeline p;
            if (play(&p, kind, sizes[i], networks[n].system, networks[n].transfer_s)) {
                const double length_s = dl_schedule_length_s(&p.training.lowered.schedule, &p.request, NULL);
                check_close("step", kind->name, sizes[i], p.items_s, length_s);
            }
            dl_session_close(&p.training);
        }
}
END_TEST

/* `bubble` speaks of the longest stay of a stage; where that is the whole step, all stages wait for as long. */
START_TEST(bubble_is_that_of_the_formula)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i);
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        struct pipeline p;
        if (play(&p, kind, sizes[i], IDEAL_SYSTEM(UNLIMITED_BYTES_PER_S, "0"), 0)) {
            const struct dl_schedule *const s = &p.training.lowered.schedule;
            const double length_s = dl_schedule_length_s(s, &p.request, NULL),
                         span_s = dl_schedule_span_s(s, &p.request);
            const double bubble_s = p.result.exposed_s[DL_CAUSE_BUBBLE];
            check_close("bubble and work", kind->name, sizes[i], bubble_s + ideal_s(&p), p.items_s);
            ck_assert_double_ge(p.schedule_bubble_s, bubble_s * (1 - exactly)); /* all of it: stages are equal */
            struct dl_schedule_request equal = p.request; /* formulas of split backwards are for equal parts */
            if (s->splits_backward) equal.backward_s = equal.weight_s = equal.forward_s;
            const double formula = kind->bubble(&equal);
            if (formula >= 0 && fabs(length_s - span_s) <= exactly * span_s)
                check_close("bubble", kind->name, sizes[i], 1 + bubble_s / ideal_s(&p), 1 + formula);
        }
        dl_session_close(&p.training);
    }
}
END_TEST

/* By hand: the first micro-batch goes down, all follow it, gradients come back. */
START_TEST(gpipe_and_1f1b_are_those_of_the_textbook)
{
    static const char *const names[] = {"gpipe", "1f1b"};
    for (size_t i = 0; i < dl_schedule_count(); i++) {
        const struct dl_schedule_kind *const kind = dl_schedule_get(i);
        if (strcmp(kind->name, names[_i])) continue;
        for (size_t k = 0; k < DL_COUNT(sizes); k++) {
            struct pipeline p;
            const struct size size = sizes[k];
            ck_assert(play(&p, kind, size, IDEAL_SYSTEM(UNLIMITED_BYTES_PER_S, "0"), 0));
            const double both_s = p.request.forward_s + p.request.backward_s;
            check_close("step", kind->name, size, p.items_s, (size.micros + size.stages - 1) * both_s);
            check_close("bubble", kind->name, size, p.result.exposed_s[DL_CAUSE_BUBBLE], (size.stages - 1) * both_s);
            ck_assert_uint_eq(p.result.n_sends, 2 * (size.stages - 1) * size.micros);
            dl_session_close(&p.training);
        }
    }
}
END_TEST

static double item_s(const struct dl_session *s, uint32_t stage)
{
    struct dl_template *const *const blocks = s->lowered.programs[stage].items;
    return blocks[DL_ITEM_F]->total.seconds + blocks[DL_ITEM_B]->total.seconds;
}

/* A head makes the last stage the slowest: all others wait for it m times, while equal stages would wait for p - 1 mean
 * items. */
START_TEST(what_uneven_stages_add_is_told_apart)
{
    static const struct size size = {4, 64, 0};
    struct dl_session s;
    training_open(&s, &(struct training_inputs){
                          .system = IDEAL_SYSTEM(UNLIMITED_BYTES_PER_S, "0"),
                          .device = IDEAL_DEVICE,
                          .software = "ideal",
                          .workload = WIDE_BLOCKS_WITH("8", "16777216"),
                          .strategy = "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':"
                                      "64,'stack':[{'name':'pipeline','ways':4,'schedule':'1f1b'}]}"});
    const struct training_outcome outcome = training_simulate(&s, "simgrid");
    ck_assert_msg(!outcome.err.status, "%s", outcome.err.text);
    const struct dl_training_result *const r = &outcome.result;
    double mean_s = 0, length_s = size.micros * item_s(&s, 3) + s.lowered.programs[0].end.total.seconds;
    for (uint32_t stage = 0; stage < size.stages; stage++) mean_s += item_s(&s, stage) / size.stages;
    for (uint32_t stage = 0; stage + 1 < size.stages; stage++) length_s += item_s(&s, stage);
    ck_assert_double_gt(item_s(&s, 3), 1.05 * item_s(&s, 1));
    check_close("step", "1f1b", size, r->step_s, length_s);
    check_close("bubble", "1f1b", size, r->exposed_s[DL_CAUSE_BUBBLE],
                length_s - size.micros * mean_s - r->exposed_s[DL_CAUSE_OPTIMIZER]);
    check_close("schedule", "1f1b", size, outcome.schedule_bubble_s, (size.stages - 1) * mean_s);
    dl_session_close(&s);
}
END_TEST

/* All wait for the way there and back of the messages, and for nothing else that was not there without it. */
START_TEST(latency_of_gpipe_is_paid_once_each_way)
{
    for (size_t k = 0; k < DL_COUNT(sizes); k++) {
        struct pipeline p;
        const struct size size = sizes[k];
        ck_assert(play(&p, dl_schedule_get(0), size, IDEAL_SYSTEM(UNLIMITED_BYTES_PER_S, "5e-3"), LATENCY_S));
        const double both_s = p.request.forward_s + p.request.backward_s;
        check_close("step", "gpipe", size, p.items_s,
                    (size.micros + size.stages - 1) * both_s + 2 * (size.stages - 1) * LATENCY_S);
        dl_session_close(&p.training);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_schedules");
    tcase_add_loop_test(tests, step_is_the_longest_path_of_the_schedule, 0, (int)dl_schedule_count());
    tcase_add_loop_test(tests, bubble_is_that_of_the_formula, 0, (int)dl_schedule_count());
    tcase_add_loop_test(tests, gpipe_and_1f1b_are_those_of_the_textbook, 0, 2);
    tcase_add_test(tests, what_uneven_stages_add_is_told_apart);
    tcase_add_test(tests, latency_of_gpipe_is_paid_once_each_way);
    Suite *const suite = suite_create("training_schedules");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
