/* training_volumes_replicas.c - the bytes that replicas exchange against the papers: what programs ask for, and what
 * time that takes on an ideal machine. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/training_volumes.h"

/* Bytes of a template in units of what passes through a rank that sends everything once. */
static double volume_of(const struct dl_template *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++) {
        if (t->instructions[i].kind != DL_START) continue;
        const struct dl_comm *const call = &training.lowered.calls[t->instructions[i].call];
        if (call->channel == DL_CHANNEL_REPLICAS) sum += (call->op == DL_ALLREDUCE ? 2 : 1) * call->bytes;
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
        sum += volume_of(p->items[last ? DL_TEMPLATE_LAST : (int)s->items[0][i].kind]);
    }
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
        const double device_s = seconds_of("bucket", p->items[DL_TEMPLATE_LAST]) + seconds_of("bucket", &p->end);
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
            n += training.lowered.calls[end->instructions[i].call].op == DL_BROADCAST;
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

int main(void)
{
    TCase *const tests = tcase_create("training_volumes_replicas");
    tcase_add_loop_test(tests, replicas_exchange_the_volumes_of_zero, 0, (int)DL_COUNT(exchange_cases));
    tcase_add_test(tests, an_exchange_takes_its_bytes_over_the_bandwidth);
    tcase_add_loop_test(tests, quantized_gradients_have_their_bits, 0, 4);
    tcase_add_test(tests, gradients_of_bf16_may_be_wider);
    tcase_add_test(tests, stage_1_may_sum_gradients_whole);
    tcase_add_test(tests, gradients_pass_through_buckets);
    tcase_add_test(tests, owners_of_whole_tensors_broadcast_them);
    Suite *const suite = suite_create("training_volumes_replicas");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
