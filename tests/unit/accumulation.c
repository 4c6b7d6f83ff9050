/* accumulation.c - what gradients cost over the micro-batches of a step: a rank that keeps shards of them has scattered
 * them in every micro-batch, and one that scatters them once has kept them whole. */
#define _GNU_SOURCE /* fork, pipe */
#include <string.h>

#include "sim/core/files.h"
#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

enum { REPLICAS = 4, LAST_STAGE = 1 }; /* of a pipeline of two */
static const double exactly = 1e-9;

/* ---- of a stage ---- */

static double scattered_in(const struct dl_session *t, const struct dl_template *template)
{
    double bytes = 0;
    for (size_t i = 0; i < template->n_instructions; i++) {
        if (template->instructions[i].kind != DL_START) continue;
        const struct dl_comm *const call = &t->lowered.calls[template->instructions[i].call];
        if (call->op == DL_REDUCESCATTER) bytes += call->bytes;
    }
    return bytes;
}

static double scattered(const struct dl_session *t, uint32_t stage)
{
    const struct dl_schedule *const s = &t->lowered.schedule;
    const struct dl_program *const p = &t->lowered.programs[stage];
    double bytes = scattered_in(t, &p->end);
    for (uint32_t i = 0; i < s->n_items[stage]; i++) {
        const bool last = t->job.setting.last_backward_differs && i + 1 == s->n_items[stage]; /* a backward ends it */
        bytes += scattered_in(t, p->items[last ? DL_TEMPLATE_LAST : (int)s->items[stage][i].kind]);
    }
    return bytes;
}

static double kept(const struct dl_session *t, uint32_t stage)
{
    const struct dl_position *const p = &t->lowered.positions[t->lowered.schedule.position_of[stage]];
    double bytes = 0;
    for (size_t i = p->first_layer; i < p->end_layer; i++) bytes += allocated(t, DL_TENSOR_GRADIENTS, i);
    return bytes;
}

/* Whole gradients of what the stage holds. */
static double whole(const struct dl_session *t, uint32_t stage)
{
    const struct dl_position *const p = &t->lowered.positions[t->lowered.schedule.position_of[stage]];
    double parameters = 0;
    for (size_t i = p->first_layer; i < p->end_layer; i++) parameters += dl_layer_parameters(&t->lowered.layers[i]);
    return parameters * dl_gradient_bytes(&t->job.setting);
}

/* ---- the law ---- */

struct law_case {
    const char *software, *when; /* NULL: as the software does */
    bool overlap;
    int stage, micros, stages;
};

/* Whether the step keeps shards; false too if the software refuses it. */
static bool check_law(const struct law_case *c)
{
    char head[100], stack[300];
    struct dl_session t;
    const bool is_end = c->when && strcmp(c->when, "end") == 0;
    snprintf(head, sizeof head, "'devices':%d,'global_batch':%d", REPLICAS * c->stages, REPLICAS * c->micros);
    snprintf(stack, sizeof stack, "{'name':'data','overlap':%s%s},{'name':'zero','stage':%d}%s",
             c->overlap ? "true" : "false",
             !c->when ? ""
             : is_end ? ",'when':'end'"
                      : ",'when':'micro'",
             c->stage, c->stages > 1 ? ",{'name':'pipeline','ways':2}" : "");
    try_step(&t, &(struct step){.software = c->software, .workload = FOUR_BLOCKS, .head = head, .stack = stack});
    const bool is_refused = strstr(t.err.text, "beside a pipeline with the software");
    ck_assert_msg(!t.err.status || is_refused, "%s: %s", c->software, t.err.text);
    const uint32_t stage = c->stages > 1 ? LAST_STAGE : 0;
    bool shards = false;
    if (!is_refused) {
        const double all = whole(&t, stage), sums = scattered(&t, stage) / all;
        shards = kept(&t, stage) < all;
        check_close(c->software, kept(&t, stage), shards ? all / REPLICAS : all, exactly);
        check_close(c->software, sums, shards ? c->micros : 1, exactly);
        if (c->when) ck_assert_int_eq(shards, !is_end);
    }
    dl_session_close(&t);
    return shards;
}

START_TEST(shards_are_scattered_in_every_micro_batch)
{
    static const char *const whens[] = {NULL, "end", "micro"};
    static const int micros[] = {1, 4, 16};
    struct dl_arena *const arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder("strategies/software", arena, &names);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++)
        for (int j = 0; j < (int)(2 * DL_COUNT(whens) * DL_COUNT(micros)); j++)
            check_law(&(struct law_case){.software = names[i],
                                         .when = whens[j / 2 % 3],
                                         .overlap = j % 2,
                                         .stage = _i / 2 + 2,
                                         .micros = micros[j / 6],
                                         .stages = _i % 2 + 1});
    dl_arena_free(arena);
}
END_TEST

/* As their sources have it. */
START_TEST(software_accumulates_what_it_does)
{
    static const struct {
        const char *software;
        int stages;
        bool shards;
    } cases[] = {{"deepspeed-2021", 1, true},
                 {"megatron-deepspeed", 1, true},
                 {"megatron-core", 1, true},
                 {"megatron-core", 2, true},
                 {"fsdp", 1, true},
                 {"fsdp", 2, false},
                 {"llama3", 2, false},
                 {"megascale", 2, false},
                 {"ideal", 1, true},
                 {"llm-foundry-fsdp", 1, true},
                 {"deepspeed-transformers", 1, true}};
    for (size_t i = 0; i < DL_COUNT(cases); i++)
        for (int stage = 2; stage <= 3; stage++) {
            const struct law_case c = {
                .software = cases[i].software, .stage = stage, .micros = 4, .stages = cases[i].stages};
            ck_assert_msg(check_law(&c) == cases[i].shards, "%s, %d stages", c.software, c.stages);
        }
}
END_TEST

#define ACCUMULATES(what) "{'schema':'dlsim/software/1','source':'a test','gradient_bytes':4,'accumulates':'" what "'}"
#define TWO_CHUNKS "{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'},"

/* Two chunks on each of two stages, which go backward in turns, two micro-batches each: whole gradients of the chunk at
 * work, scattered when its turn ends. */
START_TEST(a_chunk_is_scattered_when_its_turn_ends)
{
    enum { stages = 2, chunks = 2, micros = 6, turns = micros / stages };
    for (int stage = 2; stage <= 3; stage++) {
        struct dl_session t;
        char stack[200];
        snprintf(stack, sizeof stack, TWO_CHUNKS "{'name':'data'},{'name':'zero','stage':%d}", stage);
        open_step(&t, &(struct step){.software = ACCUMULATES("chunk"),
                                     .workload = FOUR_BLOCKS,
                                     .head = "'devices':8,'global_batch':24",
                                     .stack = stack});
        const struct dl_schedule *const s = &t.lowered.schedule;
        bool completing[2 * micros * chunks];
        ck_assert_uint_eq(s->n_items[0], DL_COUNT(completing));
        dl_schedule_completing(s, 0, true, completing);
        double bytes = scattered_in(&t, &t.lowered.programs[0].end), all = 0;
        for (uint32_t i = 0; i < s->n_items[0]; i++) {
            const struct dl_item *const at = &s->items[0][i];
            const int kind = completing[i] ? DL_TEMPLATE_LAST : (int)at->kind;
            bytes += scattered_in(&t, t.lowered.programs[0].items[at->chunk * DL_N_TEMPLATES + kind]);
        }
        for (uint32_t i = 0; i < chunks; i++) all += whole(&t, i);
        check_close(stack, bytes, turns * all, exactly);
        check_close(stack, t.memory[0].gradients, all / REPLICAS, exactly);
        ck_assert_double_ge(t.memory[0].buffers, fmax(whole(&t, 0), whole(&t, 1)));
        const struct training_outcome outcome = training_simulate(&t, "simgrid");
        ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
        dl_session_close(&t);
    }
}
END_TEST

START_TEST(the_report_says_what_accumulates)
{
    static const struct {
        const char *software, *stack, *accumulated;
        int sums;
    } cases[] = {
        {ACCUMULATES("shards"), "{'name':'data'},{'name':'zero','stage':2}", "shards", 12},
        {ACCUMULATES("whole"), "{'name':'data'},{'name':'zero','stage':2}", "whole", 1},
        {ACCUMULATES("whole"), "{'name':'data'}", "whole", 1},
        {ACCUMULATES("chunk"), "{'name':'data'},{'name':'zero','stage':3}", "whole", 1}, /* of one chunk */
        {ACCUMULATES("chunk"), TWO_CHUNKS "{'name':'data'},{'name':'zero','stage':3}", "chunk", 12},
        {ACCUMULATES("whole"), "{'name':'data','when':'micro'},{'name':'zero','stage':1}", "whole", 12},
    };
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.software = cases[i].software,
                                     .workload = FOUR_BLOCKS,
                                     .head = strstr(cases[i].stack, "pipeline") ? "'devices':4,'global_batch':48"
                                                                                : "'devices':2,'global_batch':24",
                                     .stack = cases[i].stack});
        t.request.engine = "analytic";
        ck_assert_msg(!dl_session_run(&t), "%s", t.err.text);
        json_t *const answer = dl_run_report_json(&t.report), *const gradients = json_object_get(answer, "gradients");
        ck_assert_str_eq(json_string_value(json_object_get(gradients, "accumulated")), cases[i].accumulated);
        ck_assert_int_eq(json_integer_value(json_object_get(gradients, "sums")), cases[i].sums);
        json_decref(answer);
        dl_session_close(&t);
    }
}
END_TEST

/* ---- time and memory ---- */

/* On a network that is slow enough the data's time is its bytes: each micro-batch more costs one more scatter. */
START_TEST(each_micro_batch_costs_a_scatter)
{
    double data_s[2];
    for (int i = 0; i < 2; i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                     .head = i ? "'devices':4,'global_batch':64" : "'devices':4,'global_batch':4",
                                     .stack = "{'name':'data'},{'name':'zero','stage':2}"});
        const struct training_outcome outcome = training_simulate(&t, "simgrid");
        ck_assert_msg(!outcome.err.status, "%s", outcome.err.text);
        data_s[i] = outcome.result.exposed_s[DL_CAUSE_DATA];
        if (i) {
            const double once = whole(&t, 0) * (REPLICAS - 1) / REPLICAS / SLOW_BYTES_PER_S;
            check_close("15 micro-batches more", data_s[1] - data_s[0], 15 * once, 1e-6);
        }
        dl_session_close(&t);
    }
}
END_TEST

/* While they wait in a bucket gradients are whole: of all layers where the bucket is larger than the model. */
START_TEST(buckets_of_whole_gradients_need_memory)
{
    static const struct {
        const char *data;
        double blocks; /* whose gradients are whole at once; -1: all layers but the embedding, which comes last and is
                          small */
    } cases[] = {{"{'name':'data'}", 1},
                 {"{'name':'data','overlap':true}", 2},
                 {"{'name':'data','bucket_bytes':1e9}", -1},
                 {"{'name':'data','overlap':true,'bucket_bytes':1e9}", -1}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char stack[200];
        struct dl_session t;
        double block = 0, layers = 0;
        snprintf(stack, sizeof stack, "%s,{'name':'zero','stage':2}", cases[i].data);
        open_step(&t, &(struct step){.workload = "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer',"
                                                 "'layers':4,'hidden':512,'heads':4,'seq':1,'vocab':2}",
                                     .head = "'devices':4,'global_batch':16",
                                     .stack = stack});
        for (size_t j = 0; j < t.model.n_layers; j++) {
            block = fmax(block, dl_layer_parameters(&t.model.layers[j]));
            layers += dl_layer_parameters(&t.model.layers[j]);
        }
        check_close(cases[i].data, t.memory[0].buffers,
                    (cases[i].blocks > 0 ? cases[i].blocks * block : layers - dl_layer_parameters(&t.model.layers[0])) *
                        gradient_bytes,
                    exactly);
        dl_session_close(&t);
    }
}
END_TEST

START_TEST(deepspeed_refuses_stage_2_in_a_pipeline)
{
    check_refusal(&(struct step){.software = "deepspeed-2021",
                                 .workload = FOUR_BLOCKS,
                                 .head = "'devices':8,'global_batch':16",
                                 .stack = "{'name':'pipeline','ways':2},{'name':'data'},{'name':'zero','stage':2}"},
                  "test.json:/stack/2/stage: must be at most 1 beside a pipeline with the software deepspeed-2021, "
                  "got 2");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("accumulation");
    tcase_add_loop_test(tests, shards_are_scattered_in_every_micro_batch, 0, 4);
    tcase_add_test(tests, software_accumulates_what_it_does);
    tcase_add_test(tests, a_chunk_is_scattered_when_its_turn_ends);
    tcase_add_test(tests, the_report_says_what_accumulates);
    tcase_add_test(tests, each_micro_batch_costs_a_scatter);
    tcase_add_test(tests, buckets_of_whole_gradients_need_memory);
    tcase_add_test(tests, deepspeed_refuses_stage_2_in_a_pipeline);
    Suite *const suite = suite_create("accumulation");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
