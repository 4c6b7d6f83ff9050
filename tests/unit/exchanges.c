/* exchanges.c - what replicas exchange, against closed forms: shards, gathers, buckets, servers, packed gradients. The
 * network is so slow that the step is its bytes. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"
#include "tests/unit/workload_counts.h"

#define BATCH "'devices':8,'global_batch':24" /* three micro-batches for each of eight replicas */
#define DEVICE_MEMORY_BYTES_PER_S 1e18        /* of the ideal device */

static const double replicas = 8, exactly = 1e-6;
static const double scale_bytes = 4.0 / 512; /* a value, where they are quantised */

/* ---- volumes ---- */

/* What passes a rank's port when n ranks gather or scatter so many bytes. */
static double once(double n, double bytes) { return (n - 1) / n * bytes; }

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

#define ZERO(options) "{'name':'data'},{'name':'zero'," options "}"
#define ZERO_OVERLAP(options) "{'name':'data','overlap':true},{'name':'zero'," options "}"

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

static struct training_outcome play(struct dl_session *t, const struct step *step)
{
    open_step(t, step);
    const struct training_outcome outcome = training_simulate(t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s: %s", step->stack, outcome.err.text);
    return outcome;
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

static double expert_parameters(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

/* Shards of four, in which pairs hold the same experts; across the two shards all do. Context ranks hold the same too,
 * and are always in one shard. */
START_TEST(shards_hold_experts_and_context)
{
    static const struct {
        const char *head, *stack;
        double shard, expert_shard; /* ranks that hold the same, of a shard */
    } cases[] = {
        {"'devices':8,'global_batch':8", "{'name':'expert','ways':2}," ZERO("'stage':3,'shard_ways':4"), 4, 2},
        {"'devices':8,'global_batch':8", "{'name':'expert','ways':4}," ZERO("'stage':3,'shard_ways':4"), 4, 1},
        {"'devices':16,'global_batch':8",
         "{'name':'context','ways':2},{'name':'expert','ways':2}," ZERO("'stage':3,'shard_ways':4"), 8, 4},
    };
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = TWO_WITH_EXPERTS, .head = cases[_i].head, .stack = cases[_i].stack});
    const double experts = expert_parameters(&t.model) / t.job.setting.expert_ways;
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

/* ---- buckets ---- */

/* From the last layer back: a bucket is closed by the layer that fills it. */
START_TEST(buckets_hold_the_layers_that_fill_them)
{
    static const double sizes[] = {10, 2.5e5, 5e5, 1e6, 1e9};
    char stack[100];
    struct dl_session t;
    snprintf(stack, sizeof stack, "{'name':'data','overlap':true,'bucket_bytes':%g}", sizes[_i]);
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = stack});
    const struct dl_template *const last = item(&t, (enum dl_item_kind)DL_TEMPLATE_LAST);
    double bucket = 0;
    size_t at = 0;
    for (size_t layer = t.model.n_layers; layer-- > 0;) {
        bucket += dl_layer_parameters(&t.model.layers[layer]) * gradient_bytes;
        if (bucket < sizes[_i] && layer) continue;
        while (at < last->n_instructions && last->instructions[at].kind != DL_START) at++;
        ck_assert_uint_lt(at, last->n_instructions);
        ck_assert_double_eq(t.lowered.calls[last->instructions[at++].call].bytes, bucket);
        bucket = 0;
    }
    while (at < last->n_instructions && last->instructions[at].kind != DL_START) at++;
    ck_assert_uint_eq(at, last->n_instructions);
    dl_session_close(&t);
}
END_TEST

/* Without overlap as few as can be, all alike. */
START_TEST(buckets_limit_what_goes_at_once)
{
    struct dl_session t;
    open_step(&t,
              &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = "{'name':'data','bucket_bytes':1e5}"});
    const double bytes = dl_model_parameters(&t.model) * gradient_bytes, n = ceil(bytes / 1e5);
    ck_assert_double_eq((double)t.lowered.n_calls, n);
    for (size_t i = 0; i < t.lowered.n_calls; i++) check_close("bucket", t.lowered.calls[i].bytes, bytes / n, 1e-12);
    dl_session_close(&t);
}
END_TEST

/* ---- packing ---- */

static double pass_bytes(const struct dl_template *of, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < of->n_instructions; i++)
        if (strcmp(of->instructions[i].name, name) == 0) {
            ck_assert_int_eq(of->instructions[i].cause, DL_CAUSE_DATA);
            sum += of->instructions[i].device_s * DEVICE_MEMORY_BYTES_PER_S;
        }
    return sum;
}

/* Read and written, a parameter. The union of eight ranks' picks is unpacked. */
START_TEST(packing_passes_over_the_values)
{
    static const struct {
        const char *stack;
        double pack, unpack;
        const char *packing, *unpacking; /* kernels whose times a device may have */
    } cases[] = {
        {"{'name':'data'},{'name':'quantized_allreduce','bits':8}", 4 + 1 + 4.0 / 512, 4 + 1 + 4.0 / 512, "quantize",
         "dequantize"},
        {"{'name':'data'},{'name':'zero'},{'name':'quantized_allreduce','bits':8}", 4 + 1 + 4.0 / 512,
         (4 + 1 + 4.0 / 512) / 8, "quantize", "dequantize"},
        {"{'name':'data'},{'name':'quantized_allreduce','method':'one_bit'}", 4 + 4 + 4 + 0.125 + 4.0 / 512,
         4 + 0.125 + 4.0 / 512, "one_bit", "one_bit_decode"},
        {"{'name':'data'},{'name':'quantized_allreduce','method':'top_k'}", 4 + 4 + 4 + 0.01 * 8,
         4 + (1 - 0.99 * 0.99 * 0.99 * 0.99 * 0.99 * 0.99 * 0.99 * 0.99) * 8, "topk", "unpack"},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = cases[_i].stack});
    const double parameters = dl_model_parameters(&t.model);
    check_close(cases[_i].stack, pass_bytes(&t.lowered.programs[0].end, cases[_i].packing), parameters * cases[_i].pack,
                1e-9);
    check_close(cases[_i].stack, pass_bytes(&t.lowered.programs[0].end, cases[_i].unpacking),
                parameters * cases[_i].unpack, 1e-9);
    dl_session_close(&t);
}
END_TEST

/* Each rank packs its part and unpacks the whole, for the forward and again for the backward. */
START_TEST(quantised_parameters_are_converted_before_each_use)
{
    struct dl_session t;
    const double each = activation_bytes + 1 + scale_bytes;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = ZERO("'stage':3,'gather_bits':8")});
    const double parameters = dl_model_parameters(&t.model);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("quantize", pass_bytes(item(&t, kind), "quantize"), parameters / replicas * each, 1e-9);
        check_close("dequantize", pass_bytes(item(&t, kind), "dequantize"), parameters * each, 1e-9);
    }
    dl_session_close(&t);
}
END_TEST

/* As often as the software reads or writes them, and in stage 3 alone. */
START_TEST(gradients_are_moved_before_they_are_scattered)
{
    static const struct {
        const char *stack;
        double moves;
    } cases[] = {{ZERO("'stage':3"), 4}, {ZERO("'stage':3,'shard_ways':4"), 4}, {ZERO("'stage':2"), 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','scatter_moves':4}",
                                     .workload = FOUR_BLOCKS,
                                     .head = BATCH,
                                     .stack = cases[i].stack});
        const double bytes = cases[i].moves * gradient_bytes * dl_model_parameters(&t.model);
        check_close(cases[i].stack, pass_bytes(item(&t, DL_ITEM_B), "bucket"), bytes, 1e-9);
        dl_session_close(&t);
    }
}
END_TEST

/* Before each use of a layer, forward and backward; what stays gathered is copied once. */
START_TEST(parameters_are_moved_after_they_are_gathered)
{
    static const struct {
        const char *stack;
        double forward, backward;
    } cases[] = {{ZERO("'stage':3"), 2, 2}, {ZERO("'stage':3,'reshard':false"), 2, 0}, {ZERO("'stage':1"), 0, 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','gather_moves':2}",
                                     .workload = FOUR_BLOCKS,
                                     .head = BATCH,
                                     .stack = cases[i].stack});
        const double once = dl_precision_bytes(t.job.setting.precision) * dl_model_parameters(&t.model);
        check_close(cases[i].stack, pass_bytes(item(&t, DL_ITEM_F), "copy_out"), cases[i].forward * once, 1e-9);
        check_close(cases[i].stack, pass_bytes(item(&t, DL_ITEM_B), "copy_out"), cases[i].backward * once, 1e-9);
        dl_session_close(&t);
    }
}
END_TEST

static double forward_s(const char *software)
{
    struct dl_session t;
    double sum = 0;
    open_step(&t,
              &(struct step){.software = software, .workload = FOUR_BLOCKS, .head = BATCH, .stack = ZERO("'stage':3")});
    const struct dl_template *const forward = item(&t, DL_ITEM_F);
    for (size_t i = 0; i < forward->n_instructions; i++) sum += forward->instructions[i].device_s;
    dl_session_close(&t);
    return sum;
}

/* Casts of autocast are not there if parameters come in the precision of products. */
START_TEST(kernels_see_gathered_parameters_as_they_are_cast)
{
#define SOFTWARE(kernels) "{'schema':'dlsim/software/1','source':'a test'" kernels "}"
#define SLOW_IF_MIXED ",'kernels':[{'operation':'residual','launches':1,'moves':10,'numbers':'mixed'}]"
    const double plain_s = forward_s(SOFTWARE(""));
    ck_assert_double_gt(forward_s(SOFTWARE(SLOW_IF_MIXED)), plain_s);
    ck_assert_double_eq(forward_s(SOFTWARE(SLOW_IF_MIXED ",'casts_gathered':true")), plain_s);
}
END_TEST

/* On a network as fast as the memory the passes count as much as the exchange, and both are data's. */
START_TEST(packing_is_booked_as_data)
{
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.system = IDEAL_SYSTEM("1e18", "0"),
                                .workload = FOUR_BLOCKS,
                                .head = BATCH,
                                .stack = "{'name':'data'},{'name':'quantized_allreduce','method':'one_bit'}"});
    const double sent = 0.125 + scale_bytes, each = (12 + sent) + 2 * once(replicas, sent) + (4 + sent);
    check_close("data", outcome.result.exposed_s[DL_CAUSE_DATA] * DEVICE_MEMORY_BYTES_PER_S,
                dl_model_parameters(&t.model) * each, exactly);
    ck_assert_double_ge(outcome.result.busy_s[DL_CAUSE_DATA], outcome.result.exposed_s[DL_CAUSE_DATA]);
    dl_session_close(&t);
}
END_TEST

/* ---- memory ---- */

/* Of a stage 3 on eight replicas: parts, and what is gathered or kept. */
START_TEST(memory_is_what_is_cut_gathered_and_kept)
{
    static const struct {
        const char *stack;
        double parts;       /* that parameters are cut into */
        double layers;      /* of the largest, gathered; 0: all are; -1: all but those that are done */
        double bits;        /* that these have when they travel, if others */
        double error_bytes; /* a parameter */
    } cases[] = {
        {ZERO("'stage':3"), 8, 2, 0, 0},
        {ZERO("'stage':3,'prefetch':0"), 8, 1, 0, 0},
        {ZERO("'stage':3,'prefetch':2"), 8, 3, 0, 0},
        {ZERO("'stage':3,'shard_ways':4"), 4, 2, 0, 0},
        {ZERO("'stage':3,'prefetch':100"), 8, -1, 0, 0},
        {ZERO("'stage':3,'reshard':false,'prefetch':0"), 8, 0, 0, 0},
        {ZERO("'stage':3,'gather_bits':8"), 8, 2, 8, 0},
        {ZERO("'stage':3") ",{'name':'quantized_allreduce','method':'one_bit'}", 8, 2, 0, 4},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = cases[_i].stack});
    const double parameters = dl_model_parameters(&t.model);
    double largest = 0;
    for (size_t i = 0; i < t.model.n_layers; i++) largest = fmax(largest, dl_layer_parameters(&t.model.layers[i]));
    /* The fullest moment: the head and a block are done, and the gradients of two blocks are not gone yet. */
    const double done = largest + dl_layer_parameters(&t.model.layers[t.model.n_layers - 1]);
    const double gathered = cases[_i].layers > 0    ? cases[_i].layers * largest
                            : cases[_i].layers == 0 ? parameters
                                                    : parameters - done;
    check_close(cases[_i].stack, t.memory[0].parameters, parameters / cases[_i].parts * activation_bytes, 1e-9);
    check_close(cases[_i].stack, t.memory[0].gradients, parameters / cases[_i].parts * gradient_bytes, 1e-9);
    check_close(cases[_i].stack, t.memory[0].buffers,
                gathered * (activation_bytes + cases[_i].bits / 8) + 2 * largest * gradient_bytes +
                    parameters * cases[_i].error_bytes,
                1e-9);
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
    tcase_add_loop_test(tests, shards_hold_experts_and_context, 0, 3);
    tcase_add_test(tests, top_k_sends_values_and_their_places);
    tcase_add_loop_test(tests, servers_share_what_all_workers_send, 0, 6);
    tcase_add_test(tests, all_groups_share_the_servers);
    tcase_add_loop_test(tests, buckets_hold_the_layers_that_fill_them, 0, 5);
    tcase_add_test(tests, buckets_limit_what_goes_at_once);
    tcase_add_loop_test(tests, packing_passes_over_the_values, 0, 4);
    tcase_add_test(tests, quantised_parameters_are_converted_before_each_use);
    tcase_add_test(tests, gradients_are_moved_before_they_are_scattered);
    tcase_add_test(tests, parameters_are_moved_after_they_are_gathered);
    tcase_add_test(tests, kernels_see_gathered_parameters_as_they_are_cast);
    tcase_add_test(tests, packing_is_booked_as_data);
    tcase_add_loop_test(tests, memory_is_what_is_cut_gathered_and_kept, 0, 8);
    tcase_add_loop_test(tests, a_refusal_names_its_key, 0, (int)DL_COUNT(refusals));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
