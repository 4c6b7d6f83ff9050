/* updated_parameters.c - ZeRO 1 and 2 with overlap: updated parameters come beside the first forwards of the next step,
 * as often and as many as after the update, and chunk by chunk. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/exchanges.h"

/* The step is its bytes here, whenever they go. */
START_TEST(overlap_moves_the_same_bytes)
{
    static const char *const options[] = {"'stage':1", "'stage':2", "'stage':1,'shard_ways':4",
                                          "'stage':1,'gather_bits':8"};
    double busiest_s[2];
    for (int overlap = 0; overlap < 2; overlap++) {
        char stack[200];
        struct dl_session t;
        snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero',%s%s}", options[_i],
                 overlap ? ",'overlap':true" : "");
        busiest_s[overlap] = play(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = stack}).busiest_s;
        dl_session_close(&t);
    }
    check_close(options[_i], busiest_s[1], busiest_s[0], exactly);
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

/* Those of the next chunk are asked for where a chunk begins, those of the first after the update: a later stage that
 * asked for them at its first forward would do so only when its input is there. */
START_TEST(a_chunk_asks_for_the_next)
{
    static const struct {
        const char *pipeline;
        uint32_t stages, chunks;
    } cases[] = {{"", 1, 1},
                 {"{'name':'pipeline','ways':2},", 2, 1},
                 {"{'name':'pipeline','ways':2,'schedule':'gpipe'},", 2, 1},
                 {"{'name':'pipeline','ways':2,'schedule':'interleaved','chunks':2},", 2, 2}};
    const uint32_t n_chunks = cases[_i].chunks, n_stages = cases[_i].stages;
    const double bytes_each = 2;
    char stack[300], head[100];
    struct dl_session t;
    snprintf(stack, sizeof stack, "%s%s", cases[_i].pipeline, ZERO("'stage':1,'overlap':true"));
    snprintf(head, sizeof head, "'devices':%u,'global_batch':16", 4 * n_stages);
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = head, .stack = stack});
    for (uint32_t stage = 0; stage < n_stages; stage++) {
        const struct dl_program *const p = &t.lowered.programs[stage];
        const double first = held_by(&t, stage, 0) * bytes_each;
        check_close("end", gathered_in(&t, &p->end), n_stages > 1 ? first : 0, exactly);
        for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
            struct dl_template *const *const items = &p->items[chunk * DL_N_TEMPLATES];
            const double next = chunk + 1 < n_chunks ? held_by(&t, stage, chunk + 1) * bytes_each : 0;
            for (int kind = 0; kind < DL_TEMPLATE_FIRST; kind++) ck_assert(gathered_in(&t, items[kind]) == 0);
            check_close("first forward", gathered_in(&t, items[DL_TEMPLATE_FIRST]), next + (n_stages > 1 ? 0 : first),
                        exactly);
        }
    }
    dl_session_close(&t);
}
END_TEST

/* Gathers as long as a few layers hide behind others, in every engine. */
START_TEST(overlap_hides_gathers_behind_forwards)
{
    static const char *const engines[] = {"simgrid", "analytic"}, *const overlaps[] = {"", ",'overlap':true"};
    static const char pipeline[] = "{'name':'pipeline','ways':2,'schedule':'interleaved','chunks':2},";
    static const char *const stacks[] = {"", pipeline};
    double step_s[2], data_s[2];
    for (size_t i = 0; i < DL_COUNT(overlaps); i++) {
        char stack[300];
        struct dl_session t;
        snprintf(stack, sizeof stack, "%s{'name':'data'},{'name':'zero'%s}", stacks[_i / 2], overlaps[i]);
        open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                     .system = IDEAL_SYSTEM("1e10", "1e-6"),
                                     .device = "a100-80",
                                     .head = "'precision':'fp16','devices':8,'global_batch':32",
                                     .stack = stack});
        const struct training_outcome outcome = training_simulate(&t, engines[_i % 2]);
        ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s: %s", stack, outcome.err.text);
        step_s[i] = outcome.result.step_s;
        data_s[i] = outcome.result.exposed_s[DL_CAUSE_DATA];
        dl_session_close(&t);
    }
    ck_assert_double_lt(step_s[1], step_s[0]);
    ck_assert_double_lt(data_s[1], data_s[0]);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("updated_parameters");
    tcase_add_loop_test(tests, overlap_moves_the_same_bytes, 0, 4);
    tcase_add_loop_test(tests, a_chunk_asks_for_the_next, 0, 4);
    tcase_add_loop_test(tests, overlap_hides_gathers_behind_forwards, 0, 4);
    Suite *const suite = suite_create("updated_parameters");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
