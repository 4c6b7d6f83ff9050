/* updated_parameters.c - ZeRO 1 and 2 with overlap: updated parameters come beside the first forwards of the next step,
 * as often and as many as after the update, and chunk by chunk. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/exchanges.h"

/* The step is its bytes here, whenever they go. */
START_TEST(overlap_moves_the_same_bytes)
{
    static const struct {
        const char *workload, *more, *options;
    } runs[] = {{FOUR_BLOCKS, "", "'stage':1"},
                {FOUR_BLOCKS, "", "'stage':2"},
                {FOUR_BLOCKS, "", "'stage':1,'shard_ways':4"},
                {FOUR_BLOCKS, "", "'stage':1,'gather_bits':8"},
                {FOUR_BLOCKS, "{'name':'lora','rank':4,'targets':['qkv']},", "'stage':1"},
                {TWO_WITH_EXPERTS, "", "'stage':1"}};
    double busiest_s[2];
    for (int overlap = 0; overlap < 2; overlap++) {
        char stack[200];
        struct dl_session t;
        snprintf(stack, sizeof stack, "%s{'name':'data'},{'name':'zero',%s%s}", runs[_i].more, runs[_i].options,
                 overlap ? ",'overlap':true" : "");
        busiest_s[overlap] =
            play(&t, &(struct step){.workload = runs[_i].workload, .head = BATCH, .stack = stack}).busiest_s;
        dl_session_close(&t);
    }
    check_close(runs[_i].options, busiest_s[1], busiest_s[0], exactly);
}
END_TEST

static double gathered_in(const struct dl_session *t, const struct dl_template *of)
{
    double sum = 0;
    for (size_t i = 0; i < of->n_instructions; i++) {
        const struct dl_instruction *const at = &of->instructions[i];
        const struct dl_comm *const call = at->kind == DL_START ? &t->lowered.calls[at->call] : NULL;
        if (call && call->op == DL_ALLGATHER) sum += (double)dl_template_times(of, i) * call->bytes;
    }
    return sum;
}

/* Experts that are divided are gathered apart. */
START_TEST(overlap_gathers_experts)
{
    double bytes[2];
    for (int overlap = 0; overlap < 2; overlap++) {
        const char *const stack = overlap ? "{'name':'expert','ways':2}," ZERO("'overlap':true")
                                          : "{'name':'expert','ways':2}," ZERO("'stage':1");
        struct dl_session t;
        open_step(&t, &(struct step){.workload = TWO_WITH_EXPERTS, .head = BATCH, .stack = stack});
        const struct dl_program *const p = &t.lowered.programs[0];
        bytes[overlap] = gathered_in(&t, overlap ? p->items[DL_TEMPLATE_FIRST] : &p->end);
        dl_session_close(&t);
    }
    ck_assert_double_gt(bytes[0], 0);
    check_close("bytes", bytes[1], bytes[0], exactly);
}
END_TEST

static double held_by(const struct dl_session *t, uint32_t stage, uint32_t chunk)
{
    const struct dl_lowered *const l = &t->lowered;
    const struct dl_position *const p =
        &l->positions[l->schedule.position_of[stage * t->lowered.programs[stage].n_chunks + chunk]];
    double sum = 0;
    for (size_t i = p->first_layer; i < p->end_layer; i++)
        sum += l->layers[i].parameters_inside + l->layers[i].parameters_outside;
    return sum;
}

#define NO_BARRIER                                                                                                     \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash','step_barrier':false}"
#define PIPELINE "{'name':'pipeline','ways':2},"
#define INTERLEAVED "{'name':'pipeline','ways':2,'schedule':'interleaved','chunks':2},"
#define DUALPIPE "{'name':'pipeline','ways':2,'schedule':'dualpipe','chunks':2},"

/* Those of the next chunk are asked for where a chunk begins, those of the first after the update: a later stage that
 * asked for them at its first forward would do so only when its input is there, and the first begins a step with the
 * others unless there is no barrier. */
START_TEST(a_chunk_asks_for_the_next)
{
    static const struct {
        const char *pipeline;
        uint32_t stages, chunks;
        bool is_shared;       /* chunks are of two stages */
        const char *software; /* NULL: with a barrier between steps */
    } cases[] = {{"", 1, 1, false, NULL},
                 {PIPELINE, 2, 1, false, NULL},
                 {PIPELINE, 2, 1, false, NO_BARRIER},
                 {"{'name':'pipeline','ways':2,'schedule':'gpipe'},", 2, 1, false, NO_BARRIER},
                 {INTERLEAVED, 2, 2, false, NULL},
                 {INTERLEAVED, 2, 2, false, NO_BARRIER},
                 {DUALPIPE, 2, 2, true, NO_BARRIER}};
    const uint32_t n_chunks = cases[_i].chunks, n_stages = cases[_i].stages;
    const double bytes_each = 2;
    char stack[300], head[100];
    struct dl_session t;
    snprintf(stack, sizeof stack, "%s%s", cases[_i].pipeline, ZERO("'stage':1,'overlap':true"));
    snprintf(head, sizeof head, "'devices':%u,'global_batch':16", 4 * n_stages);
    open_step(&t,
              &(struct step){.workload = FOUR_BLOCKS, .software = cases[_i].software, .head = head, .stack = stack});
    for (uint32_t stage = 0; stage < n_stages; stage++) {
        const struct dl_program *const p = &t.lowered.programs[stage];
        ck_assert_uint_eq(p->n_chunks, n_chunks);
        double at_update = 0;
        for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
            struct dl_template *const *const items = &p->items[chunk * DL_N_TEMPLATES];
            const double own = held_by(&t, stage, chunk) * bytes_each;
            const bool waits = stage > 0 || (n_stages > 1 && !cases[_i].software);
            const bool is_late = cases[_i].is_shared || (chunk == 0 && waits);
            const double next =
                !cases[_i].is_shared && chunk + 1 < n_chunks ? held_by(&t, stage, chunk + 1) * bytes_each : 0;
            at_update += is_late ? own : 0;
            for (int kind = 0; kind < DL_TEMPLATE_FIRST; kind++) ck_assert(gathered_in(&t, items[kind]) == 0);
            check_close("first forward", gathered_in(&t, items[DL_TEMPLATE_FIRST]),
                        next + (is_late || chunk > 0 ? 0 : own), exactly);
        }
        check_close("end", gathered_in(&t, &p->end), at_update, exactly);
    }
    dl_session_close(&t);
}
END_TEST

static const char *const overlaps[] = {"", ",'overlap':true"};
#define A_LAYER_EACH "'bucket_bytes':1e5" /* fewer gradients than those of a block */

/* With and without overlap; `data` and `more` are options of data and entries of the stack. */
static void time_both(const char *more, const char *data, const char *software, const char *engine,
                      struct training_outcome both[2])
{
    for (size_t i = 0; i < DL_COUNT(overlaps); i++) {
        char stack[300];
        struct dl_session t;
        snprintf(stack, sizeof stack, "%s{'name':'data'%s%s},{'name':'zero'%s}", more, *data ? "," : "", data,
                 overlaps[i]);
        open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                     .system = IDEAL_SYSTEM("1e10", "1e-6"),
                                     .device = "a100-80",
                                     .software = software,
                                     .head = "'precision':'fp16','devices':8,'global_batch':32",
                                     .stack = stack});
        both[i] = training_simulate(&t, engine);
        ck_assert_msg(!both[i].err.status && both[i].result.complete, "%s: %s", stack, both[i].err.text);
        dl_session_close(&t);
    }
}

/* Gathers as long as a few layers hide behind others, in every engine. */
START_TEST(overlap_hides_gathers_behind_forwards)
{
    static const char *const engines[] = {"simgrid", "analytic"};
    static const char *const runs[][2] = {{"", FLASH}, {INTERLEAVED, FLASH}, {PIPELINE, NO_BARRIER}};
    struct training_outcome both[2];
    time_both(runs[_i / 2][0], A_LAYER_EACH, runs[_i / 2][1], engines[_i % 2], both);
    ck_assert_double_lt(both[1].result.step_s, both[0].result.step_s);
    ck_assert_double_lt(both[1].result.exposed_s[DL_CAUSE_DATA], both[0].result.exposed_s[DL_CAUSE_DATA]);
}
END_TEST

/* Few parameters are one bucket, with one latency. */
START_TEST(overlap_is_never_slower)
{
    static const char *const stacks[] = {"", "{'name':'lora','rank':4,'targets':['qkv']},",
                                         "{'name':'pipeline','ways':4},", INTERLEAVED, DUALPIPE};
    static const char *const software[] = {FLASH, NO_BARRIER};
    struct training_outcome both[2];
    time_both(stacks[_i / 2], "", software[_i % 2], "analytic", both);
    ck_assert_double_le(both[1].result.step_s, both[0].result.step_s * (1 + 1e-9));
}
END_TEST

/* The host puts as many parts together. */
START_TEST(overlap_keeps_host_time)
{
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,"
                                   "'collective_host_s':0,'gather_part_host_s':1}";
    static const char *const workloads[] = {FOUR_BLOCKS, TWO_WITH_EXPERTS};
    double step_s[2];
    for (size_t i = 0; i < DL_COUNT(overlaps); i++) {
        char stack[200];
        struct dl_session t;
        snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero'%s}", overlaps[i]);
        step_s[i] = play(&t, &(struct step){.workload = workloads[_i],
                                            .system = FAST_SYSTEM,
                                            .software = software,
                                            .head = BATCH,
                                            .stack = stack})
                        .result.step_s;
        dl_session_close(&t);
    }
    ck_assert_double_gt(step_s[0], replicas);
    check_close("step", step_s[1], step_s[0], 1e-3);
}
END_TEST

/* Gradients are summed at the end of a layer, or of a chunk, with it and without. */
START_TEST(overlap_keeps_memory)
{
    static const char short_samples[] = "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer',"
                                        "'layers':4,'hidden':64,'heads':4,'seq':2,'vocab':64}";
    static const char *const runs[][2] = {{"", "shards"}, {INTERLEAVED, "chunk"}};
    double peak[2];
    for (size_t i = 0; i < DL_COUNT(overlaps); i++) {
        char stack[300], software[200];
        struct dl_session t;
        snprintf(stack, sizeof stack, "%s{'name':'data'},{'name':'zero','stage':2%s}", runs[_i][0], overlaps[i]);
        snprintf(software, sizeof software, "{'schema':'dlsim/software/1','source':'a test','accumulates':'%s'}",
                 runs[_i][1]);
        open_step(&t, &(struct step){.workload = short_samples,
                                     .software = software,
                                     .head = "'devices':8,'global_batch':32",
                                     .stack = stack});
        peak[i] = t.memory[0].peak;
        dl_session_close(&t);
    }
    check_close("memory", peak[1], peak[0], exactly);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("updated_parameters");
    tcase_add_loop_test(tests, overlap_moves_the_same_bytes, 0, 6);
    tcase_add_test(tests, overlap_gathers_experts);
    tcase_add_loop_test(tests, a_chunk_asks_for_the_next, 0, 7);
    tcase_add_loop_test(tests, overlap_hides_gathers_behind_forwards, 0, 6);
    tcase_add_loop_test(tests, overlap_is_never_slower, 0, 10);
    tcase_add_loop_test(tests, overlap_keeps_host_time, 0, 2);
    tcase_add_loop_test(tests, overlap_keeps_memory, 0, 2);
    Suite *const suite = suite_create("updated_parameters");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
