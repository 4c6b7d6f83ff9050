/* training_volumes.c - the bytes of each strategy against the papers: what programs ask for, what time that takes on an
 * ideal machine, and what its links carry. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define BYTES_PER_S 1e9
#define SYSTEM IDEAL_SYSTEM("1e9", "0")
#define LAYERS 4
#define HIDDEN 64
#define SEQ 32
#define VOCAB 512
#define WORKLOAD                                                                                                       \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512}"
#define UNTIED                                                                                                         \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'tied_embedding':false}"
#define SOFTWARE(gradient_bytes, scatters)                                                                             \
    "{'schema':'dlsim/software/1','source':'a "                                                                        \
    "test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':" gradient_bytes ",'scatters_sends':" scatters \
    "}"

static const double exactly = 1e-6, activation_bytes = 2;

static struct dl_session training;
static struct training_outcome outcome;

static void play_workload(const char *workload, const char *software, const char *head, const char *stack)
{
    const struct training_inputs inputs = {
        .system = SYSTEM, .device = IDEAL_DEVICE, .software = software, .workload = workload};
    ck_assert_msg(!training_open_stack(&training, inputs, head, stack), "%s", training.err.text);
    outcome = training_simulate(&training, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
}

static void play(const char *software, const char *head, const char *stack)
{
    play_workload(WORKLOAD, software, head, stack);
}

static void done(void) { dl_session_close(&training); }

static void check_close(const char *what, double is, double should)
{
    ck_assert_msg(fabs(is - should) <= exactly * fabs(should), "%s: %.12g, not %.12g", what, is, should);
}

/* ---- over the replicas ---- */

/* Bytes of a template in units of what passes through a rank that sends everything once. */
static double volume_of(const struct dl_template *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++) {
        if (t->instructions[i].kind != DL_START) continue;
        const struct dl_call *const call = &training.lowered.calls[t->instructions[i].call];
        sum += (call->op == DL_EXCHANGE_ALLREDUCE ? 2 : 1) * call->bytes;
    }
    return sum;
}

static double seconds_of(const char *kernel, const struct dl_template *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (strcmp(t->instructions[i].name, kernel) == 0) sum += t->instructions[i].device_s;
    return sum;
}

/* Of a step of a single stage. */
static double step_volume(void)
{
    const struct dl_schedule *const s = &training.lowered.schedule;
    const struct dl_program *const p = &training.lowered.programs[0];
    double sum = volume_of(&p->end);
    for (uint32_t i = 0; i < s->n_items[0]; i++) {
        const bool last = training.job.setting.last_backward_differs && i + 1 == s->n_items[0];
        sum += volume_of(&p->items[last ? DL_TEMPLATE_LAST : (int)s->items[0][i].kind]);
    }
    return sum;
}

static double rank_parameters(void)
{
    double sum = 0;
    for (size_t i = 0; i < training.model.n_layers; i++)
        sum += training.model.layers[i].parameters_inside / training.job.setting.ways[DL_AXIS_TENSOR] +
               training.model.layers[i].parameters_outside;
    return sum;
}

static const struct exchange_case {
    const char *stack;
    double psi; /* ZeRO (Rajbhandari et al., SC20), section 7: parameters that a rank sends, of all */
} exchange_cases[] = {
    {"{'name':'data'}", 2},
    {"{'name':'data','overlap':true}", 2},
    {"{'name':'data'},{'name':'zero','stage':1}", 2},
    {"{'name':'data'},{'name':'zero','stage':2}", 2},
    {"{'name':'data'},{'name':'zero','stage':3}", 3},
    {"{'name':'data','overlap':true},{'name':'zero','stage':1}", 2},
    {"{'name':'data','overlap':true},{'name':'zero','stage':2}", 2},
    {"{'name':'data','overlap':true},{'name':'zero','stage':3}", 3},
    {"{'name':'data'},{'name':'zero','stage':3},{'name':'recompute','mode':'full'}", 3}, /* gathered for both */
    {"{'name':'data'},{'name':'tensor','ways':2}", 2},
    {"{'name':'data'},{'name':'tensor','ways':2},{'name':'zero','stage':1}", 2},
    {"{'name':'data'},{'name':'tensor','ways':2},{'name':'zero','stage':3}", 3},
};

START_TEST(replicas_exchange_the_volumes_of_zero)
{
    const struct exchange_case *const c = &exchange_cases[_i];
    play("ideal", "'devices':8,'global_batch':8", c->stack);
    const double n = training.job.setting.ways[DL_AXIS_DATA];
    const double times = c->psi == 3 ? training.job.setting.micros : 1;         /* cut parameters are needed for each */
    const double bytes = times * c->psi * rank_parameters() * activation_bytes; /* gradients have as many here */
    ck_assert_double_gt(n, 1);
    check_close(c->stack, step_volume(), bytes);
    check_close(c->stack, outcome.busiest_s * BYTES_PER_S - training_played_bytes(&training, 0), bytes * (n - 1) / n);
    done();
}
END_TEST

/* Nothing overlaps, so the step has them after all else. */
START_TEST(an_exchange_takes_its_bytes_over_the_bandwidth)
{
    play("ideal", "'devices':8,'global_batch':32", "{'name':'data'}");
    const double bytes = 2 * rank_parameters() * activation_bytes * 7 / 8;
    check_close("data", outcome.result.exposed_s[DL_CAUSE_DATA], bytes / BYTES_PER_S);
    done();
}
END_TEST

START_TEST(gradients_of_bf16_may_be_wider)
{
    static const struct {
        const char *precision;
        double bytes;
    } cases[] = {{"bf16", 4}, {"fp16", 2}, {"fp32", 4}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char head[100];
        snprintf(head, sizeof head, "'devices':8,'global_batch':8,'precision':'%s'", cases[i].precision);
        play("{'schema':'dlsim/software/1','source':'a test','gradient_bytes':2,'bf16_gradient_bytes':4}", head,
             "{'name':'data'}");
        check_close(head, step_volume(), 2 * rank_parameters() * cases[i].bytes);
        done();
    }
}
END_TEST

/* As DeepSpeed: sums go to all, and parameters are gathered beside that. */
START_TEST(stage_1_may_sum_gradients_whole)
{
    static const struct {
        const char *precision;
        int stage;
        double bytes;
    } cases[] = {{"bf16", 1, 2 * 4 + 2}, {"bf16", 2, 4 + 2}, {"fp16", 1, 2 * 2 + 2}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char head[100], stack[100];
        snprintf(head, sizeof head, "'devices':8,'global_batch':8,'precision':'%s'", cases[i].precision);
        snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero','stage':%d}", cases[i].stage);
        play("{'schema':'dlsim/software/1','source':'a test','gradient_bytes':2,'bf16_gradient_bytes':4,"
             "'gradients_whole':true}",
             head, stack);
        check_close(head, step_volume(), rank_parameters() * cases[i].bytes);
        done();
    }
}
END_TEST

/* Of what replicas sum, once a step; what nobody else has goes through no bucket. */
START_TEST(gradients_pass_through_buckets)
{
    static const struct {
        const char *stack;
        int devices;
        double moves;
    } cases[] = {{"{'name':'data'}", 8, 6},
                 {"{'name':'data','bucket_bytes':1e4}", 8, 6},
                 {"{'name':'data','overlap':true},{'name':'zero','stage':2}", 8, 6},
                 {"{'name':'data'},{'name':'zero','stage':3}", 8, 0},
                 {"{'name':'data'}", 1, 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char head[100];
        snprintf(head, sizeof head, "'devices':%d,'global_batch':32", cases[i].devices);
        play("{'schema':'dlsim/software/1','source':'a test','gradient_bytes':4,'bucket_moves':6}", head,
             cases[i].stack);
        const struct dl_program *const p = &training.lowered.programs[0];
        const double device_s = seconds_of("bucket", &p->items[DL_TEMPLATE_LAST]) + seconds_of("bucket", &p->end);
        const double bytes = cases[i].moves * rank_parameters() * 4;
        check_close(cases[i].stack, device_s * training.device.memory_bytes_per_s, bytes);
        done();
    }
}
END_TEST

/* Tensors of the model: of a block four products with a bias each and two norms of two vectors; two tables and the last
 * norm. */
enum { n_tensors = LAYERS * (4 * 2 + 2 * 2) + 2 + 2 };

static double n_broadcasts(void)
{
    const struct dl_template *const end = &training.lowered.programs[0].end;
    double n = 0;
    for (size_t i = 0; i < end->n_instructions; i++)
        if (end->instructions[i].kind == DL_START)
            n += training.lowered.calls[end->instructions[i].call].op == DL_EXCHANGE_BROADCAST;
    return n;
}

/* Gradients are scattered among those that cut, what is left is summed across them, and each owner's parameters pass
 * through every port: all of them once, not without a rank's own as in an all-gather. */
START_TEST(owners_of_whole_tensors_broadcast_them)
{
    static const struct {
        int replicas, stage, shard_ways;
        double owners;
    } cases[] = {{8, 1, 8, 8}, {8, 2, 8, 8}, {8, 1, 2, 2}, {128, 1, 128, n_tensors}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char head[100], stack[150];
        const double n = cases[i].replicas, shards = cases[i].shard_ways, others = n / shards;
        snprintf(head, sizeof head, "'devices':%d,'global_batch':%d", cases[i].replicas, cases[i].replicas);
        snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero','stage':%d,'shard_ways':%d}", cases[i].stage,
                 cases[i].shard_ways);
        play("{'schema':'dlsim/software/1','source':'a test','gradient_bytes':2,'deals_tensors':true}", head, stack);
        const double passes = (shards - 1) / shards + 2 * (others - 1) / others / shards + 1;
        check_close(stack, n_broadcasts(), cases[i].owners);
        check_close(stack, outcome.result.exposed_s[DL_CAUSE_DATA],
                    passes * rank_parameters() * activation_bytes / BYTES_PER_S);
        done();
    }
}
END_TEST

/* QSGD: so many bits a value whatever the gradients are kept in, and one scale of 4 bytes for 512 values. */
START_TEST(quantized_gradients_have_their_bits)
{
    static const struct {
        const char *software, *stack;
        double bits, dense_passes;
    } cases[] = {
        {SOFTWARE("4", "true"), "{'name':'data'},{'name':'quantized_allreduce','bits':8}", 8, 0},
        {SOFTWARE("2", "true"), "{'name':'data'},{'name':'quantized_allreduce','bits':8}", 8, 0},
        {SOFTWARE("2", "true"), "{'name':'data'},{'name':'quantized_allreduce','bits':1}", 1, 0},
        {SOFTWARE("4", "true"), "{'name':'data'},{'name':'quantized_allreduce','bits':4},{'name':'zero'}", 4, 1},
    };
    const double scale = 4.0 / 512;
    play(cases[_i].software, "'devices':8,'global_batch':8", cases[_i].stack);
    const double passes = 2 - cases[_i].dense_passes; /* with zero parameters are gathered as they are */
    const double bytes =
        rank_parameters() * (passes * (cases[_i].bits / 8 + scale) + cases[_i].dense_passes * activation_bytes);
    check_close(cases[_i].stack, outcome.busiest_s * BYTES_PER_S, bytes * 7 / 8);
    done();
}
END_TEST

/* ---- over the tensor ranks ---- */

static size_t count(const struct dl_template *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].kind == DL_DO && strcmp(t->instructions[i].name, name) == 0) n++;
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
    play("ideal", "'global_batch':6,'microbatch':2", c->stack);
    const struct dl_template *const items = training.lowered.programs[0].items;
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
        .software = "ideal",
        .workload = workloads[_i],
        .strategy = "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':1,"
                    "'stack':[{'name':'tensor','ways':4,'sequence':true}]}"};
    ck_assert_msg(!training_open(&training, &inputs), "%s", training.err.text);
    const struct dl_template *const items = training.lowered.programs[0].items;
    check_close(workloads[_i], 4 * (items[DL_ITEM_F].total.flop + items[DL_ITEM_B].total.flop),
                training.model.model_flop_per_sample);
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
        const struct dl_template *const items = training.lowered.programs[stage].items;
        ck_assert_uint_eq(count(&items[DL_ITEM_F], "allgather"), stage == 1 ? cases[_i].gathers : 0);
        ck_assert_uint_eq(count(&items[DL_ITEM_B], "allgather"), stage == 0 ? cases[_i].gathers : 0);
        const double gather_s = 3.0 / 4 * 3 * SEQ * HIDDEN * activation_bytes / BYTES_PER_S;
        const struct dl_instruction *const first = items[stage == 1 ? DL_ITEM_F : DL_ITEM_B].instructions;
        if (cases[_i].gathers) check_close("first", first->device_s, gather_s);
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
        const struct dl_call *const call = &training.lowered.calls[end->instructions[i].call];
        if (end->instructions[i].kind == DL_START && call->between_stages) sum += call->bytes;
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
    {"'devices':8,'global_batch':8", "{'name':'pipeline','ways':4},{'name':'data'},{'name':'zero','stage':2}", 0, 3, 1,
     2},
    {"'devices':8,'global_batch':8", "{'name':'pipeline','ways':4},{'name':'data'},{'name':'zero','stage':3}", 0, 3, 1,
     2},
};

START_TEST(tied_embeddings_are_summed_by_first_and_last)
{
    const struct tied_case *const c = &tied_cases[_i];
    play("ideal", c->head, c->stack);
    const double bytes = table_bytes() / c->tensor / c->cut;
    for (uint32_t stage = 0; stage < training.job.setting.ways[DL_AXIS_PIPELINE]; stage++)
        ck_assert_double_eq(copied_bytes(stage), stage == c->first || stage == c->last ? bytes : 0);
    const double n_meetings = (double)training.job.n_devices / training.job.setting.ways[DL_AXIS_PIPELINE];
    const struct dl_training_result tied = outcome.result;
    done();
    play_workload(UNTIED, "ideal", c->head, c->stack); /* the head has as many parameters, its own */
    check_close(c->stack, tied.step_s - outcome.result.step_s, bytes / BYTES_PER_S);
    ck_assert_double_eq((double)(tied.n_exchanges - outcome.result.n_exchanges), n_meetings);
    done();
}
END_TEST

START_TEST(a_stage_with_both_ends_sums_nothing)
{
    static const char *const stacks[] = {"{'name':'tensor','ways':2}",
                                         "{'name':'pipeline','ways':2,'chunks':2,'schedule':'zbv'}"};
    play("ideal", "'global_batch':4", stacks[_i]);
    for (uint32_t stage = 0; stage < training.job.setting.ways[DL_AXIS_PIPELINE]; stage++)
        ck_assert_double_eq(copied_bytes(stage), 0);
    done();
}
END_TEST

/* Stage s and the one as far from the other end have the same two positions; a table is on each of the outermost two
 * once, and is summed with the rest. */
START_TEST(dualpipe_sums_the_two_copies_of_the_model)
{
    play("ideal", "'devices':8,'global_batch':16",
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
    play("ideal", "'global_batch':6", "{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'}");
    ck_assert_double_eq(outcome.result.n_sends, 2 * (2 * 2 - 1) * 6);
    done();
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_volumes");
    tcase_add_loop_test(tests, replicas_exchange_the_volumes_of_zero, 0, (int)DL_COUNT(exchange_cases));
    tcase_add_test(tests, an_exchange_takes_its_bytes_over_the_bandwidth);
    tcase_add_loop_test(tests, quantized_gradients_have_their_bits, 0, 4);
    tcase_add_test(tests, gradients_of_bf16_may_be_wider);
    tcase_add_test(tests, stage_1_may_sum_gradients_whole);
    tcase_add_test(tests, gradients_pass_through_buckets);
    tcase_add_test(tests, owners_of_whole_tensors_broadcast_them);
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
