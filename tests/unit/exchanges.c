/* exchanges.c - what replicas exchange, against closed forms: shards, gathers, servers, packed gradients. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/exchanges.h"

/* ---- volumes ---- */

/* Gradients have 4 bytes here, parameters 2. */
struct volume_case {
    const char *stack;
    double gathers, gathered_bytes; /* a parameter */
    double scatters;
    double shard;  /* ranks among which these go */
    double across; /* sums of a part over the shards */
    double sums;   /* over all replicas */
    double sum_bytes;
};

#define SUM(s, n, b)                                                                                                   \
    {                                                                                                                  \
        .stack = s, .sums = n, .sum_bytes = b                                                                          \
    }
#define CUT(s, g, b, r, n, a)                                                                                          \
    {                                                                                                                  \
        .stack = s, .gathers = g, .gathered_bytes = b, .scatters = r, .shard = n, .across = a                          \
    }

static const struct volume_case volume_cases[] = {
    SUM("{'name':'data'}", 1, 4),
    SUM("{'name':'data','bucket_bytes':1e5}", 1, 4),
    SUM("{'name':'data','overlap':true,'bucket_bytes':3e5}", 1, 4),
    SUM("{'name':'data','when':'micro'}", 3, 4),
    SUM("{'name':'data','when':'micro','bucket_bytes':1e5}", 3, 4),
    SUM("{'name':'data','when':'micro','overlap':true}", 3, 4),
    SUM("{'name':'data','when':'micro','overlap':true,'bucket_bytes':3e5}", 3, 4),
    CUT(ZERO("'stage':1"), 1, 2, 1, 8, 0),
    CUT(ZERO("'stage':2"), 1, 2, 3, 8, 0), /* shards accumulate, so that every micro-batch scatters */
    CUT("{'name':'data','when':'micro'},{'name':'zero','stage':2}", 1, 2, 3, 8, 0),
    CUT("{'name':'data','overlap':true,'bucket_bytes':1e5},{'name':'zero','stage':2}", 1, 2, 3, 8, 0),
    CUT("{'name':'data','bucket_bytes':1e5},{'name':'zero','stage':2}", 1, 2, 3, 8, 0),
    CUT("{'name':'data','when':'end'},{'name':'zero','stage':2}", 1, 2, 1, 8, 0), /* whole gradients do */
    CUT("{'name':'data','when':'end','overlap':true},{'name':'zero','stage':2}", 1, 2, 1, 8, 0),
    CUT("{'name':'data','when':'end'},{'name':'zero','stage':3}", 2 * 3, 2, 1, 8, 0),
    CUT("{'name':'data','when':'end','overlap':true},{'name':'zero','stage':3,'shard_ways':4}", 2 * 3, 2, 1, 4, 1),
    CUT(ZERO("'stage':3"), 2 * 3, 2, 3, 8, 0),
    CUT(ZERO("'stage':3,'prefetch':0"), 2 * 3, 2, 3, 8, 0),
    CUT(ZERO_OVERLAP("'stage':3,'prefetch':3"), 2 * 3, 2, 3, 8, 0),
    CUT(ZERO("'stage':3,'prefetch':100"), 2 * 3, 2, 3, 8, 0),
    CUT(ZERO("'stage':3,'reshard':false"), 3, 2, 3, 8, 0), /* 2 Psi a micro-batch, not 3 */
    CUT(ZERO_OVERLAP("'stage':3,'reshard':false,'prefetch':2"), 3, 2, 3, 8, 0),
    CUT(ZERO("'stage':1,'shard_ways':4"), 1, 2, 1, 4, 1),
    CUT(ZERO_OVERLAP("'stage':2,'shard_ways':4"), 1, 2, 3, 4, 1),
    CUT(ZERO("'stage':2,'shard_ways':4"), 1, 2, 3, 4, 1),
    CUT("{'name':'data','when':'micro'},{'name':'zero','stage':2,'shard_ways':4}", 1, 2, 3, 4, 3),
    CUT(ZERO("'stage':3,'shard_ways':4"), 2 * 3, 2, 3, 4, 1),
    CUT(ZERO("'stage':3,'shard_ways':2"), 2 * 3, 2, 3, 2, 1),
    CUT(ZERO("'stage':3,'shard_ways':8"), 2 * 3, 2, 3, 8, 0),
    CUT(ZERO_OVERLAP("'stage':3,'shard_ways':4"), 2 * 3, 2, 3, 4, 1),
    CUT("{'name':'data','when':'micro'},{'name':'zero','stage':3,'shard_ways':4}", 2 * 3, 2, 3, 4, 3),
    CUT("{'name':'data','when':'micro','overlap':true},{'name':'zero','stage':3,'shard_ways':2}", 2 * 3, 2, 3, 2, 3),
    CUT(ZERO("'stage':3,'shard_ways':4,'reshard':false"), 3, 2, 3, 4, 1),
    CUT(ZERO("'stage':3,'gather_bits':8"), 2 * 3, 1 + 4.0 / 512, 3, 8, 0),
    CUT(ZERO("'stage':3,'gather_bits':4,'shard_ways':4"), 2 * 3, 0.5 + 4.0 / 512, 3, 4, 1),
    CUT(ZERO("'stage':2,'gather_bits':8"), 1, 1 + 4.0 / 512, 3, 8, 0),
    SUM("{'name':'data','exchange':'rings'}", 1, 4),
    SUM("{'name':'data','exchange':'direct_ring'}", 1, 4),
    SUM("{'name':'data','exchange':'direct_ring'},{'name':'quantized_allreduce','method':'one_bit'}", 1,
        0.125 + 4.0 / 512),
    SUM("{'name':'data'},{'name':'quantized_allreduce'}", 1, 1 + 4.0 / 512),
    SUM("{'name':'data'},{'name':'quantized_allreduce','method':'qsgd','bits':4}", 1, 0.5 + 4.0 / 512),
    SUM("{'name':'data'},{'name':'quantized_allreduce','method':'one_bit'}", 1, 0.125 + 4.0 / 512),
};

static double volume_of(const struct volume_case *c, double parameters)
{
    const double parts = once(c->shard, parameters * (c->gathers * c->gathered_bytes + c->scatters * gradient_bytes));
    const double across = c->across * 2 * once(replicas / c->shard, parameters * gradient_bytes / c->shard);
    const double sums = c->sums * 2 * once(replicas, parameters * c->sum_bytes);
    return (c->shard ? parts + across : 0) + sums;
}

START_TEST(replicas_exchange_their_volumes)
{
    const struct volume_case *const c = &volume_cases[_i];
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = c->stack});
    const double bytes = volume_of(c, dl_model_parameters(&t.model));
    check_close(c->stack, outcome.result.exposed_s[DL_CAUSE_DATA] * SLOW_BYTES_PER_S, bytes, exactly);
    check_close(c->stack, outcome.busiest_s * SLOW_BYTES_PER_S, bytes, exactly);
    dl_session_close(&t);
}
END_TEST

/* Where GEMMs are in bf16: with stages 2 and 3 gradients may have another width than without. */
START_TEST(gradients_may_be_narrower_with_shards)
{
    static const struct {
        const char *stack;
        double gathers, scatters, gradient_bytes;
    } cases[] = {{ZERO("'stage':1"), 1, 1, 4}, {ZERO("'stage':2"), 1, 3, 2}, {ZERO("'stage':3"), 2 * 3, 3, 2}};
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,"
                                            "'collective_host_s':0,'gradient_bytes':4,'bf16_zero_gradient_bytes':2,"
                                            "'attention':'flash'}",
                                .workload = FOUR_BLOCKS,
                                .head = BATCH ",'precision':'bf16'",
                                .stack = cases[_i].stack});
    const double each = cases[_i].gathers * 2 + cases[_i].scatters * cases[_i].gradient_bytes;
    check_close(cases[_i].stack, outcome.busiest_s * SLOW_BYTES_PER_S,
                once(replicas, dl_model_parameters(&t.model) * each), exactly);
    dl_session_close(&t);
}
END_TEST

static double expert_parameters(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

/* Shards of four, in which pairs hold the same experts; across the two shards all do. Context ranks hold the same too,
 * and are always in one shard; or they have experts of their own. */
START_TEST(shards_hold_experts_and_context)
{
    static const struct {
        const char *head, *stack;
        double shard, expert_shard; /* ranks that hold the same, of a shard */
        double ways;                /* that have different experts */
    } cases[] = {
        {"'devices':8,'global_batch':8", "{'name':'expert','ways':2}," ZERO("'stage':3,'shard_ways':4"), 4, 2, 2},
        {"'devices':8,'global_batch':8", "{'name':'expert','ways':4}," ZERO("'stage':3,'shard_ways':4"), 4, 1, 4},
        {"'devices':16,'global_batch':8",
         "{'name':'context','ways':2},{'name':'expert','ways':2}," ZERO("'stage':3,'shard_ways':4"), 8, 4, 2},
        {"'devices':16,'global_batch':8",
         "{'name':'context','ways':2},{'name':'expert','ways':2,'over_context':true}," ZERO("'stage':3,'shard_ways':4"),
         8, 4, 2},
        {"'devices':16,'global_batch':8",
         "{'name':'context','ways':2},{'name':'expert','ways':4,'over_context':true}," ZERO("'stage':3,'shard_ways':4"),
         8, 2, 4},
    };
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = TWO_WITH_EXPERTS, .head = cases[_i].head, .stack = cases[_i].stack});
    const double experts = expert_parameters(&t.model) / cases[_i].ways;
    const double others = dl_model_parameters(&t.model) - expert_parameters(&t.model);
    const double each = 2 * activation_bytes + gradient_bytes;
    const double across = others / cases[_i].shard + experts / cases[_i].expert_shard;
    const double bytes = once(cases[_i].shard, others * each) + once(cases[_i].expert_shard, experts * each) +
                         2 * once(2, across * gradient_bytes);
    const double carried = outcome.busiest_s * SLOW_BYTES_PER_S - training_played_bytes(&t, 0); /* tokens beside it */
    check_close(cases[_i].stack, carried, bytes, exactly);
    dl_session_close(&t);
}
END_TEST

/* Two ranks send each other what they picked, once; 8 bytes a value. */
START_TEST(top_k_sends_values_and_their_places)
{
    struct dl_session t;
    const struct training_outcome outcome = play(
        &t, &(struct step){.workload = FOUR_BLOCKS,
                           .head = "'devices':2,'global_batch':2",
                           .stack = "{'name':'data'},{'name':'quantized_allreduce','method':'top_k','ratio':0.02}"});
    check_close("top_k", outcome.result.exposed_s[DL_CAUSE_DATA] * SLOW_BYTES_PER_S,
                dl_model_parameters(&t.model) * 0.02 * 8, exactly);
    dl_session_close(&t);
}
END_TEST

/* ---- servers ---- */

/* Of s servers each gets an s-th part from all workers and sends it back to all: 2 n B / s. */
START_TEST(servers_share_what_all_workers_send)
{
    static const struct {
        const char *stack;
        double servers;
    } cases[] = {
        {"{'name':'data','exchange':'parameter_server'}", 1},
        {"{'name':'data','exchange':'parameter_server','servers':2}", 2},
        {"{'name':'data','exchange':'parameter_server','servers':8}", 8},
        {"{'name':'data','exchange':'parameter_server','servers':4,'overlap':true}", 4},
        {"{'name':'data','exchange':'parameter_server','servers':4,'bucket_bytes':1e5}", 4},
        {"{'name':'data','exchange':'parameter_server_serial'}", 1},
    };
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = cases[_i].stack});
    check_close(cases[_i].stack, outcome.result.exposed_s[DL_CAUSE_DATA] * SLOW_BYTES_PER_S,
                2 * replicas / cases[_i].servers * dl_model_parameters(&t.model) * gradient_bytes, exactly);
    dl_session_close(&t);
}
END_TEST

/* Tensor ranks hold different parts, and send them to the same servers. */
START_TEST(all_groups_share_the_servers)
{
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = FOUR_BLOCKS,
                                .head = "'devices':8,'global_batch':4",
                                .stack = "{'name':'tensor','ways':2},{'name':'data','exchange':'parameter_server'}"});
    const struct parameter_counts p = count_parameters(t.workload_doc.value);
    const double rank_parameters = p.inside / 2 + p.outside;
    check_close("servers", outcome.result.exposed_s[DL_CAUSE_DATA] * SLOW_BYTES_PER_S,
                2 * 8 * rank_parameters * gradient_bytes, exactly);
    dl_session_close(&t);
}
END_TEST

/* ---- refusals ---- */

#define STACK(i) "test.json:/stack/" i
static const struct {
    const char *workload, *head, *stack, *message;
} refusals[] = {
    {FOUR_BLOCKS, BATCH, ZERO("'stage':3,'shard_ways':3"),
     STACK("1/shard_ways: must divide the data ways, 8, got 3; 2 or 4 would do")},
    {TWO_WITH_EXPERTS, BATCH, ZERO("'stage':3,'shard_ways':2") ",{'name':'expert','ways':4}",
     STACK("1/shard_ways: must be a multiple of the expert ways, 4, got 2")},
    {FOUR_BLOCKS, BATCH, ZERO("'prefetch':2"),
     STACK("1/prefetch: stage 1 gathers nothing before its use; leave it out or set stage to 3")},
    {FOUR_BLOCKS, BATCH, ZERO("'stage':2,'reshard':false"),
     STACK("1/reshard: stage 2 gathers nothing before its use; leave it out or set stage to 3")},
    {FOUR_BLOCKS, BATCH, ZERO("'stage':3,'reshard':false") ",{'name':'pipeline','ways':2}",
     STACK("1/reshard: must be true in a pipeline, where forwards and backwards alternate")},
    {FOUR_BLOCKS, BATCH, "{'name':'data','bucket_bytes':1e6},{'name':'zero','stage':3}",
     STACK("0/bucket_bytes: zero's stage 3 scatters gradients layer by layer; leave it out or lower the stage")},
    {FOUR_BLOCKS, BATCH, "{'name':'data','exchange':'parameter_server'},{'name':'zero'}",
     STACK("0/exchange: zero scatters gradients, which servers do not; must be allreduce with it, got "
           "parameter_server")},
    {FOUR_BLOCKS, BATCH, "{'name':'data','exchange':'rings'},{'name':'zero'}",
     STACK("0/exchange: zero scatters gradients, which is no all-reduce; must be allreduce with it, got rings")},
    {FOUR_BLOCKS, BATCH, "{'name':'data','servers':2}",
     STACK("0/servers: only the exchange parameter_server has them to choose, got allreduce")},
    {FOUR_BLOCKS, BATCH, "{'name':'data'},{'name':'quantized_allreduce','method':'one_bit','bits':2}",
     STACK("1/bits: only the method qsgd has bits, got one_bit")},
    {FOUR_BLOCKS, BATCH, "{'name':'data'},{'name':'quantized_allreduce','ratio':0.1}",
     STACK("1/ratio: only the method top_k has a ratio, got qsgd")},
};

START_TEST(a_refusal_names_its_key)
{
    check_refusal(
        &(struct step){.workload = refusals[_i].workload, .head = refusals[_i].head, .stack = refusals[_i].stack},
        refusals[_i].message);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("exchanges");
    TCase *const tests = tcase_create("exchanges");
    tcase_add_loop_test(tests, replicas_exchange_their_volumes, 0, (int)DL_COUNT(volume_cases));
    tcase_add_loop_test(tests, gradients_may_be_narrower_with_shards, 0, 3);
    tcase_add_loop_test(tests, shards_hold_experts_and_context, 0, 5);
    tcase_add_test(tests, top_k_sends_values_and_their_places);
    tcase_add_loop_test(tests, servers_share_what_all_workers_send, 0, 6);
    tcase_add_test(tests, all_groups_share_the_servers);
    tcase_add_loop_test(tests, a_refusal_names_its_key, 0, (int)DL_COUNT(refusals));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
