/* training_volumes.c - the bytes that ranks and stages of a replica exchange against the papers: what programs ask for,
 * what time that takes on an ideal machine, and what its links carry. Those of replicas are in
 * training_volumes_replicas.c. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/training_volumes.h"

/* ---- over the tensor ranks ---- */

static size_t count(const struct dl_template *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].kind == DL_START && strcmp(t->instructions[i].name, name) == 0) n++;
    return n;
}

/* Two sums forward and two backward in a block (Shoeybi et al. 2019, figure 4), one in the embedding, and one in the
 * head backward; full recomputation has those of the blocks forward once more. Where tokens are cut, what the layers
 * cut by columns were given is gathered again backward (Korthikanti et al., section 4.2.2). */
static const struct tensor_case {
    const char *stack;
    bool sequence;
    size_t forward, backward; /* sums, or pairs of gather and scatter */
} tensor_cases[] = {
    {"{'name':'tensor','ways':4}", false, 2 * LAYERS + 1, 2 * LAYERS + 1},
    {"{'name':'tensor','ways':4},{'name':'recompute','mode':'selective'}", false, 2 * LAYERS + 1, 2 * LAYERS + 1},
    {"{'name':'tensor','ways':4},{'name':'recompute','mode':'full'}", false, 2 * LAYERS + 1, 4 * LAYERS + 1},
    {"{'name':'tensor','ways':4,'sequence':true}", true, 2 * LAYERS + 1, 2 * LAYERS + 1},
    {"{'name':'tensor','ways':4,'sequence':true},{'name':'recompute','mode':'selective'}", true, 2 * LAYERS + 1,
     2 * LAYERS + 1},
    {"{'name':'tensor','ways':4,'sequence':true},{'name':'recompute','mode':'full'}", true, 2 * LAYERS + 1,
     4 * LAYERS + 1},
};

START_TEST(tensor_ranks_sum_four_times_a_block)
{
    const struct tensor_case *const c = &tensor_cases[_i];
    const double ways = 4, micros = 3, microbatch = 2;
    play(PLAIN_SOFTWARE, "'global_batch':6,'microbatch':2", c->stack);
    const struct dl_template *const items = training.lowered.programs[0].items[0]; /* of one position */
    const char *const first = c->sequence ? "allgather" : "allreduce", *const second =
                                                                           c->sequence ? "reducescatter" : "allreduce";
    ck_assert_uint_eq(count(&items[DL_ITEM_F], first), c->forward);
    ck_assert_uint_eq(count(&items[DL_ITEM_F], second), c->forward);
    const size_t again = c->sequence ? 2 * LAYERS + 1 : 0;
    ck_assert_uint_eq(count(&items[DL_ITEM_B], first), c->backward + again);
    ck_assert_uint_eq(count(&items[DL_ITEM_B], second), c->backward);
    const double bytes = microbatch * SEQ * HIDDEN * activation_bytes;
    const double sum_s = 2 * (ways - 1) / ways * bytes / BYTES_PER_S;
    check_close(c->stack, outcome.result.exposed_s[c->sequence ? DL_CAUSE_SEQUENCE : DL_CAUSE_TENSOR],
                micros * ((double)(c->forward + c->backward) + (double)again / 2) * sum_s);
    done();
}
END_TEST

/* What is whole on every rank is done by all of them, unless tokens are cut there too. */
START_TEST(sequence_parallelism_leaves_no_work_twice)
{
    static const char *const workloads[] = {"bert-large", "gpt-1.7b"};
    const struct training_inputs inputs = {
        .system = SYSTEM,
        .device = IDEAL_DEVICE,
        .software = PLAIN_SOFTWARE,
        .workload = workloads[_i],
        .strategy = "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':1,"
                    "'stack':[{'name':'tensor','ways':4,'sequence':true}]}"};
    ck_assert_msg(!training_open(&training, &inputs), "%s", training.err.text);
    const struct dl_template *const items = training.lowered.programs[0].items[0]; /* of one position */
    check_close(workloads[_i], 4 * (items[DL_ITEM_F].total.flop + items[DL_ITEM_B].total.flop),
                training.model.model_flop_per_sample[DL_FLOP_FULL]);
    done();
}
END_TEST

/* ---- between the stages ---- */

static double table_bytes(void) { return VOCAB * HIDDEN * fmax(activation_bytes, training.software.gradient_bytes); }

START_TEST(stages_send_an_activation_or_its_gradient)
{
    static const struct {
        const char *software, *stack;
        double ways; /* that a send is divided by */
    } cases[] = {
        {SOFTWARE("2", "true"), "{'name':'pipeline','ways':2}", 1},
        {SOFTWARE("2", "true"), "{'name':'pipeline','ways':2},{'name':'tensor','ways':4}", 4},
        {SOFTWARE("2", "false"), "{'name':'pipeline','ways':2},{'name':'tensor','ways':4}", 1},
        {SOFTWARE("2", "false"), "{'name':'pipeline','ways':2},{'name':'tensor','ways':4,'sequence':true}", 4},
        {SOFTWARE("2", "true"), "{'name':'pipeline','ways':4,'schedule':'gpipe'},{'name':'tensor','ways':2}", 2},
    };
    const double micros = 5, microbatch = 3;
    play(cases[_i].software, "'global_batch':15,'microbatch':3", cases[_i].stack);
    const double bytes = microbatch * SEQ * HIDDEN * activation_bytes / cases[_i].ways;
    const uint32_t stages = training.job.setting.ways[DL_AXIS_PIPELINE];
    /* A stage in the middle sends both ways, the first and the last sum the gradients of the table. */
    const double in_the_middle = stages > 2 ? 2 * micros * bytes + training_played_bytes(&training, 1) : 0;
    const double in_step = fmax(training_played_bytes(&training, 0), training_played_bytes(&training, stages - 1));
    const double at_an_end = micros * bytes + table_bytes() / training.job.setting.ways[DL_AXIS_TENSOR] + in_step;
    check_close(cases[_i].stack, outcome.busiest_s * BYTES_PER_S, fmax(in_the_middle, at_an_end));
    ck_assert_double_eq(outcome.result.n_sends, 2 * (stages - 1) * micros);
    done();
}
END_TEST

/* Narayanan et al., SC21, section 4.1: each tensor rank is sent a part, and the stage gathers the whole, unless tokens
 * stay cut. */
START_TEST(parts_that_tensor_ranks_are_sent_are_gathered)
{
    static const struct {
        const char *software, *tensor;
        size_t gathers;
    } cases[] = {{SOFTWARE("2", "true"), "{'name':'tensor','ways':4}", 1},
                 {SOFTWARE("2", "false"), "{'name':'tensor','ways':4}", 0},
                 {SOFTWARE("2", "true"), "{'name':'data'}", 0}};
    char stack[200];
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':2},%s", cases[_i].tensor);
    play(cases[_i].software, "'global_batch':15,'microbatch':3", stack);
    for (uint32_t stage = 0; stage < 2; stage++) {
        const struct dl_template *const items = training.lowered.programs[stage].items[0]; /* of one position */
        ck_assert_uint_eq(count(&items[DL_ITEM_F], "allgather"), stage == 1 ? cases[_i].gathers : 0);
        ck_assert_uint_eq(count(&items[DL_ITEM_B], "allgather"), stage == 0 ? cases[_i].gathers : 0);
        const double gather_s = 3.0 / 4 * 3 * SEQ * HIDDEN * activation_bytes / BYTES_PER_S;
        const struct dl_instruction *const first = items[stage == 1 ? DL_ITEM_F : DL_ITEM_B].instructions;
        if (cases[_i].gathers) check_close("first", training.lowered.calls[first->call].alone_s, gather_s);
    }
    done();
}
END_TEST

/* ---- between stages that hold the same ---- */

/* Bytes of the calls between stages at the end of a stage's step. */
static double copied_bytes(uint32_t stage)
{
    const struct dl_template *const end = &training.lowered.programs[stage].end;
    double sum = 0;
    for (size_t i = 0; i < end->n_instructions; i++) {
        const struct dl_comm *const call = &training.lowered.calls[end->instructions[i].call];
        if (end->instructions[i].kind == DL_START && call->members.is_pair) sum += call->bytes;
    }
    return sum;
}

/* Megatron's embedding group: the first and the last stage, if these are two. Two ranks that sum send all they have
 * once; the others wait for them only where replicas or the next step make them. */
static const struct tied_case {
    const char *head, *stack;
    uint32_t first, last;
    double tensor, cut; /* ways; ranks that share what ZeRO leaves of the gradients */
} tied_cases[] = {
    {"'global_batch':4", "{'name':'pipeline','ways':2}", 0, 1, 1, 1},
    {"'global_batch':4", "{'name':'pipeline','ways':4}", 0, 3, 1, 1},
    {"'global_batch':4", "{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'},{'name':'tensor','ways':2}",
     0, 1, 2, 1},
    {"'devices':8,'global_batch':4", "{'name':'pipeline','ways':2},{'name':'tensor','ways':2},{'name':'data'}", 0, 1, 2,
     1},
    {"'devices':8,'global_batch':8", "{'name':'pipeline','ways':4},{'name':'data','overlap':true}", 0, 3, 1, 1},
    {"'devices':8,'global_batch':8", "{'name':'pipeline','ways':4},{'name':'data'},{'name':'zero','stage':1}", 0, 3, 1,
     1},
    {"'devices':8,'global_batch':8",
     "{'name':'pipeline','ways':4},{'name':'data','when':'end'},{'name':'zero','stage':2}", 0, 3, 1, 1},
    {"'devices':8,'global_batch':8", "{'name':'pipeline','ways':4},{'name':'data'},{'name':'zero','stage':3}", 0, 3, 1,
     2},
};

START_TEST(tied_embeddings_are_summed_by_first_and_last)
{
    const struct tied_case *const c = &tied_cases[_i];
    play(PLAIN_SOFTWARE, c->head, c->stack);
    const double bytes = table_bytes() / c->tensor / c->cut;
    for (uint32_t stage = 0; stage < training.job.setting.ways[DL_AXIS_PIPELINE]; stage++)
        ck_assert_double_eq(copied_bytes(stage), stage == c->first || stage == c->last ? bytes : 0);
    const double n_meetings = (double)training.job.n_devices / training.job.setting.ways[DL_AXIS_PIPELINE];
    const struct dl_training_result tied = outcome.result;
    done();
    play_workload(UNTIED, PLAIN_SOFTWARE, c->head, c->stack); /* the head has as many parameters, its own */
    check_close(c->stack, tied.step_s - outcome.result.step_s, bytes / BYTES_PER_S);
    ck_assert_double_eq((double)(tied.n_exchanges - outcome.result.n_exchanges), n_meetings);
    done();
}
END_TEST

START_TEST(a_stage_with_both_ends_sums_nothing)
{
    static const char *const stacks[] = {"{'name':'tensor','ways':2}",
                                         "{'name':'pipeline','ways':2,'chunks':2,'schedule':'zbv'}"};
    play(PLAIN_SOFTWARE, "'global_batch':4", stacks[_i]);
    for (uint32_t stage = 0; stage < training.job.setting.ways[DL_AXIS_PIPELINE]; stage++)
        ck_assert_double_eq(copied_bytes(stage), 0);
    done();
}
END_TEST

/* Stage s and the one as far from the other end have the same two positions; a table is on each of the outermost two
 * once, and is summed with the rest. */
START_TEST(dualpipe_sums_the_two_copies_of_the_model)
{
    play(PLAIN_SOFTWARE, "'devices':8,'global_batch':16",
         "{'name':'pipeline','ways':4,'chunks':2,'schedule':'dualpipe'},{'name':'tensor','ways':2}");
    double sum = 0;
    for (uint32_t stage = 0; stage < 4; stage++) {
        ck_assert_double_eq(copied_bytes(stage), copied_bytes(3 - stage));
        sum += copied_bytes(stage);
    }
    check_close("copies", sum, 2 * rank_parameters() * activation_bytes); /* gradients have as many here */
    done();
}
END_TEST

/* The last stage hands its first chunk on to the first stage. */
START_TEST(chunks_multiply_the_sends)
{
    play(PLAIN_SOFTWARE, "'global_batch':6", "{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'}");
    ck_assert_double_eq(outcome.result.n_sends, 2 * (2 * 2 - 1) * 6);
    done();
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_volumes");
    tcase_add_loop_test(tests, tensor_ranks_sum_four_times_a_block, 0, (int)DL_COUNT(tensor_cases));
    tcase_add_loop_test(tests, sequence_parallelism_leaves_no_work_twice, 0, 2);
    tcase_add_loop_test(tests, stages_send_an_activation_or_its_gradient, 0, 5);
    tcase_add_loop_test(tests, parts_that_tensor_ranks_are_sent_are_gathered, 0, 3);
    tcase_add_loop_test(tests, tied_embeddings_are_summed_by_first_and_last, 0, (int)DL_COUNT(tied_cases));
    tcase_add_loop_test(tests, a_stage_with_both_ends_sums_nothing, 0, 2);
    tcase_add_test(tests, dualpipe_sums_the_two_copies_of_the_model);
    tcase_add_test(tests, chunks_multiply_the_sends);
    Suite *const suite = suite_create("training_volumes");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
