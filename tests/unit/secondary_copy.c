/* secondary_copy.c - ZeRO's second copy of parameters (hpZ of ZeRO++), against closed forms: what is gathered among
 * whom, when, and what the copy takes. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/exchanges.h"

/* ---- volumes ---- */

/* Of 8 replicas with 3 micro-batches: the first forward gathers among a shard, 2 forwards and 3 backwards among
 * neighbours, and each backward scatters in the shard. Parameters have 2 bytes here, gradients 4. */
static const struct {
    const char *stack;
    double shard, near, gathered_bytes;
} volumes[] = {
    {ZERO("'stage':3,'secondary_ways':2"), 8, 2, 2},
    {ZERO("'stage':3,'secondary_ways':4"), 8, 4, 2},
    {ZERO("'stage':3,'secondary_ways':8"), 8, 8, 2},
    {ZERO("'stage':3,'secondary_ways':4,'prefetch':0"), 8, 4, 2},
    {ZERO_OVERLAP("'stage':3,'secondary_ways':4,'prefetch':3"), 8, 4, 2},
    {ZERO("'stage':3,'secondary_ways':4,'gather_bits':8"), 8, 4, 1 + 4.0 / 512},
    {ZERO("'stage':3,'shard_ways':4,'secondary_ways':2"), 4, 2, 2},
};

START_TEST(only_the_first_gather_of_a_step_goes_to_all)
{
    const double near = volumes[_i].near, shard = volumes[_i].shard, bytes_each = volumes[_i].gathered_bytes;
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = volumes[_i].stack});
    const double all = dl_model_parameters(&t.model);
    const double gathered = once(shard, all * bytes_each) + 5 * once(near, all * bytes_each);
    const double summed =
        3 * once(shard, all * gradient_bytes) + 2 * once(replicas / shard, all * gradient_bytes / shard);
    check_close(volumes[_i].stack, outcome.result.exposed_s[DL_CAUSE_DATA] * SLOW_BYTES_PER_S, gathered + summed,
                exactly);
    check_close(volumes[_i].stack, outcome.busiest_s * SLOW_BYTES_PER_S, gathered + summed, exactly);
    dl_session_close(&t);
}
END_TEST

/* Quantised to 4 bits with an fp32 scale for 512 values: all of them among neighbours, and their sums across these.
 * Neither is quantised once more; sums across shards may be. */
START_TEST(quantised_gradients_go_to_neighbours_first)
{
    static const struct {
        const char *stack;
        double shard, near, summed_bytes;
    } cases[] = {
        {ZERO("'stage':3,'secondary_ways':2,'scatter_bits':4"), 8, 2, 4},
        {ZERO("'stage':3,'secondary_ways':4,'scatter_bits':4"), 8, 4, 4},
        {ZERO("'stage':3,'secondary_ways':8,'scatter_bits':4"), 8, 8, 4},
        {ZERO_OVERLAP("'stage':3,'secondary_ways':4,'scatter_bits':4"), 8, 4, 4},
        {ZERO("'stage':3,'shard_ways':4,'secondary_ways':2,'scatter_bits':4"), 4, 2, 4},
        {ZERO("'stage':3,'shard_ways':4,'secondary_ways':2,'scatter_bits':4") ",{'name':'quantized_allreduce'}", 4, 2,
         1 + 4.0 / 512}};
    const double near = cases[_i].near, shard = cases[_i].shard, bytes_each = 0.5 + scale_bytes;
    struct dl_session t;
    const struct training_outcome outcome =
        play(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = cases[_i].stack});
    const double all = dl_model_parameters(&t.model);
    const double gathered = once(shard, all * 2) + 5 * once(near, all * 2);
    const double scattered = once(near, all * bytes_each) + once(shard / near, all / near * bytes_each);
    const double across = 2 * once(replicas / shard, all * cases[_i].summed_bytes / shard);
    check_close(cases[_i].stack, outcome.busiest_s * SLOW_BYTES_PER_S, gathered + 3 * scattered + across, exactly);
    dl_session_close(&t);
}
END_TEST

/* Kernels pack what ZeRO sends and unpack what comes: a transport that is slow to do so is not asked to. */
START_TEST(what_kernels_pack_is_not_packed_again)
{
    static const char *const stacks[] = {ZERO("'stage':1,'gather_bits':8"), ZERO("'stage':3,'gather_bits':8"),
                                         ZERO("'stage':3,'secondary_ways':4,'scatter_bits':4"),
                                         ZERO_OVERLAP("'stage':3,'secondary_ways':2,'gather_bits':8,'scatter_bits':4")};
    static const char *const engines[] = {"simgrid", "analytic"}, *const sets[] = {NULL, "transport.pack_s_per_byte=1"};
    for (size_t engine = 0; engine < DL_COUNT(engines); engine++) {
        double step_s[DL_COUNT(sets)];
        for (size_t i = 0; i < DL_COUNT(sets); i++) {
            struct dl_session t;
            open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = BATCH, .stack = stacks[_i], .set = sets[i]});
            step_s[i] = training_simulate(&t, engines[engine]).result.step_s;
            dl_session_close(&t);
        }
        check_close(stacks[_i], step_s[1], step_s[0], exactly);
    }
}
END_TEST

/* ---- gathers by block ---- */

static uint32_t uses_of(const struct dl_session *t, uint32_t stage, uint32_t block)
{
    return t->lowered.programs[stage].uses[block];
}

/* Bytes that a template gathers among so many ranks. */
static double gathered_among(const struct dl_session *t, const struct dl_template *of, uint32_t n)
{
    double sum = 0;
    for (size_t i = 0; i < of->n_instructions; i++) {
        const struct dl_instruction *const at = &of->instructions[i];
        const struct dl_comm *const call = at->kind == DL_START ? &t->lowered.calls[at->call] : NULL;
        if (call && call->op == DL_ALLGATHER && dl_members_count(&t->job.setting.ranks, &call->members) == n)
            sum += (double)dl_template_times(of, i) * call->bytes;
    }
    return sum;
}

/* A chunk has one first forward, whatever the schedule; all others and all backwards gather near. */
START_TEST(each_chunk_has_one_first_forward)
{
    static const struct {
        const char *pipeline;
        uint32_t stages, chunks;
    } cases[] = {{"{'name':'pipeline','ways':1},", 1, 1},
                 {"{'name':'pipeline','ways':2},", 2, 1},
                 {"{'name':'pipeline','ways':2,'schedule':'gpipe'},", 2, 1},
                 {"{'name':'pipeline','ways':2,'schedule':'interleaved','chunks':2},", 2, 2},
                 {"{'name':'pipeline','ways':2,'schedule':'zb-h1'},", 2, 1}};
    char stack[300], head[100];
    struct dl_session t;
    snprintf(stack, sizeof stack, "%s%s", cases[_i].pipeline, ZERO("'stage':3,'secondary_ways':2"));
    snprintf(head, sizeof head, "'devices':%u,'global_batch':16", 4 * cases[_i].stages);
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS, .head = head, .stack = stack});
    const double twice = cases[_i].stages > 1 ? 512 * 64 : 0; /* an embedding that both ends hold */
    const double all = 2 * (dl_model_parameters(&t.model) + twice);
    double far = 0, near = 0;
    for (uint32_t stage = 0; stage < cases[_i].stages; stage++)
        for (uint32_t chunk = 0; chunk < cases[_i].chunks; chunk++) {
            struct dl_template *const *const items = &t.lowered.programs[stage].items[chunk * DL_N_TEMPLATES];
            ck_assert_uint_eq(uses_of(&t, stage, chunk * DL_N_TEMPLATES + DL_TEMPLATE_FIRST), 1);
            ck_assert_uint_eq(uses_of(&t, stage, chunk * DL_N_TEMPLATES + DL_ITEM_F), 3);
            for (int kind = 0; kind < DL_TEMPLATE_FIRST; kind++) ck_assert(gathered_among(&t, items[kind], 4) == 0);
            far += gathered_among(&t, items[DL_TEMPLATE_FIRST], 4);
            near += gathered_among(&t, items[DL_ITEM_F], 2);
            check_close("backward", gathered_among(&t, items[DL_ITEM_B], 2), gathered_among(&t, items[DL_ITEM_F], 2),
                        exactly);
        }
    check_close("first", far, all, exactly);
    check_close("later", near, all, exactly);
    dl_session_close(&t);
}
END_TEST

/* Matrix by matrix: all uses of a recomputed block but those of the first forward are near. Each matrix comes for the
 * forward, its repetition and the backward, but for the last of the repetition, a third of the block, which the
 * backward begins with. */
START_TEST(matrices_are_gathered_near_after_their_first_use)
{
    struct dl_session t;
    open_step(&t, &(struct step){.software = "{'schema':'dlsim/software/1','source':'a test','attention':'flash',"
                                             "'gathers_modules':true}",
                                 .workload = FOUR_BLOCKS,
                                 .head = "'devices':8,'global_batch':16,'recompute':'full'",
                                 .stack = ZERO("'stage':3,'secondary_ways':4,'reuse_parameters':1")});
    struct dl_template *const *const items = t.lowered.programs[0].items;
    const double all = gathered_among(&t, items[DL_TEMPLATE_FIRST], 8);
    check_close("first", all, 2 * dl_model_parameters(&t.model), exactly);
    check_close("forward", gathered_among(&t, items[DL_ITEM_F], 4), all, exactly);
    const double block = 12.0 * 64 * 64 + 13.0 * 64, blocks = 2 * 4 * block;
    check_close("backward", gathered_among(&t, items[DL_ITEM_B], 4), all + blocks * 2 / 3, exactly);
    ck_assert(gathered_among(&t, items[DL_ITEM_B], 8) == 0);
    dl_session_close(&t);
}
END_TEST

/* Weights that are not trained need no gather among all: their second copy stays as it is. */
START_TEST(frozen_weights_are_always_near)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                 .head = "'devices':8,'global_batch':16",
                                 .stack = "{'name':'lora','rank':4,'targets':['qkv','fc1']}," ZERO(
                                     "'stage':3,'secondary_ways':4")});
    const double bytes_each = 2;
    double trained = 0, frozen = 0;
    for (size_t i = 0; i < t.model.n_layers; i++) {
        trained += t.model.layers[i].parameters_inside + t.model.layers[i].parameters_outside;
        frozen += t.model.layers[i].frozen_inside + t.model.layers[i].frozen_outside;
    }
    const struct dl_template *const first = t.lowered.programs[0].items[DL_TEMPLATE_FIRST];
    ck_assert(trained > 0 && frozen > trained);
    check_close("trained", gathered_among(&t, first, 8), bytes_each * trained, exactly);
    check_close("frozen", gathered_among(&t, first, 4), bytes_each * frozen, exactly);
    check_close("later", gathered_among(&t, item(&t, DL_ITEM_F), 4), bytes_each * (trained + frozen), exactly);
    dl_session_close(&t);
}
END_TEST

/* ---- experts, context and memory ---- */

static double bytes_held(const struct dl_session *t, enum dl_tensor_kind tensor)
{
    const struct dl_memory_ops *const ops = &t->lowered.programs[0].begin;
    double sum = 0;
    for (size_t i = 0; i < ops->n; i++)
        if (ops->items[i].tensor == tensor) sum += ops->items[i].bytes;
    return sum;
}

static double expert_parameters(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

/* Ranks of the second copy: neighbours with their context ranks; of experts, those of them that hold the same. */
START_TEST(the_copy_is_cut_among_neighbours)
{
    static const struct {
        const char *workload, *head, *stack;
        double near, expert_near, ways; /* ways: that have different experts */
    } cases[] = {
        {FOUR_BLOCKS, "'devices':8,'global_batch':16", ZERO("'stage':3"), 0, 0, 1},
        {FOUR_BLOCKS, "'devices':8,'global_batch':16", ZERO("'stage':3,'secondary_ways':2"), 2, 2, 1},
        {FOUR_BLOCKS, "'devices':16,'global_batch':16",
         "{'name':'context','ways':2}," ZERO("'stage':3,'secondary_ways':4"), 8, 8, 1},
        {TWO_WITH_EXPERTS, "'devices':8,'global_batch':16",
         "{'name':'expert','ways':2}," ZERO("'stage':3,'secondary_ways':4"), 4, 2, 2},
        {TWO_WITH_EXPERTS, "'devices':8,'global_batch':16",
         "{'name':'expert','ways':4}," ZERO("'stage':3,'secondary_ways':4"), 4, 1, 4},
    };
    const double near = cases[_i].near, expert_near = cases[_i].expert_near;
    struct dl_session t;
    open_step(&t, &(struct step){.workload = cases[_i].workload, .head = cases[_i].head, .stack = cases[_i].stack});
    const double experts = expert_parameters(&t.model) / cases[_i].ways;
    const double others = dl_model_parameters(&t.model) - expert_parameters(&t.model);
    check_close(cases[_i].stack, bytes_held(&t, DL_TENSOR_SECONDARY),
                near ? 2 * (others / near + experts / expert_near) : 0, exactly);
    if (near) {
        const double come = 2 * (others + (expert_near > 1 ? experts : 0));
        double there = 0;
        const struct dl_memory_ops *const ops = &item(&t, DL_ITEM_B)->memory;
        for (size_t i = 0; i < ops->n; i++)
            if (ops->items[i].tensor == DL_TENSOR_GATHERED && !ops->items[i].frees) there += ops->items[i].bytes;
        check_close(cases[_i].stack, there, come, exactly);
    }
    dl_session_close(&t);
}
END_TEST

/* ---- refusals ---- */

#define STACK(i) "test.json:/stack/" i
static const struct {
    const char *workload, *stack, *message;
} refusals[] = {
    {FOUR_BLOCKS, ZERO("'stage':3,'secondary_ways':3"),
     STACK("1/secondary_ways: must divide the data ways, 8, got 3; 2 or 4 would do")},
    {FOUR_BLOCKS, ZERO("'stage':3,'shard_ways':4,'secondary_ways':8"),
     STACK("1/secondary_ways: must divide shard_ways, 4, got 8; 4 would do")},
    {FOUR_BLOCKS, ZERO("'stage':3,'secondary_ways':1"), STACK("1/secondary_ways: must be in [2, 1000000000], got 1")},
    {FOUR_BLOCKS, ZERO("'stage':2,'secondary_ways':4"),
     STACK("1/secondary_ways: stage 2 gathers nothing before its use; leave it out or set stage to 3")},
    {FOUR_BLOCKS, ZERO("'stage':3,'reshard':false,'secondary_ways':4"),
     STACK("1/secondary_ways: parameters that stay gathered (reshard false) need no second copy; leave one of both "
           "out")},
    {FOUR_BLOCKS, ZERO("'stage':3,'scatter_bits':4"),
     STACK("1/scatter_bits: needs secondary_ways: quantised gradients go among these neighbours first")},
    {FOUR_BLOCKS, ZERO("'stage':3,'secondary_ways':4,'scatter_bits':4") ",{'name':'quantized_allreduce'}",
     STACK("2: nothing is left to quantise beside scatter_bits of zero, unless its shard_ways are below the data ways; "
           "leave one of both out")},
    {TWO_WITH_EXPERTS, ZERO("'stage':3,'secondary_ways':2") ",{'name':'expert','ways':4}",
     STACK("1/secondary_ways: must be a multiple of the expert ways, 4, got 2")},
    {FOUR_BLOCKS, ZERO("'stage':3,'secondary_ways':4") ",{'name':'offload','parameters':1}",
     STACK("2/parameters: must be 0 beside zero's secondary_ways: the second copy of parameters is on the devices")},
};

START_TEST(a_refusal_names_its_key)
{
    check_refusal(&(struct step){.workload = refusals[_i].workload, .head = BATCH, .stack = refusals[_i].stack},
                  refusals[_i].message);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("secondary_copy");
    tcase_add_loop_test(tests, only_the_first_gather_of_a_step_goes_to_all, 0, DL_COUNT(volumes));
    tcase_add_loop_test(tests, quantised_gradients_go_to_neighbours_first, 0, 6);
    tcase_add_loop_test(tests, what_kernels_pack_is_not_packed_again, 0, 4);
    tcase_add_loop_test(tests, each_chunk_has_one_first_forward, 0, 5);
    tcase_add_test(tests, matrices_are_gathered_near_after_their_first_use);
    tcase_add_test(tests, frozen_weights_are_always_near);
    tcase_add_loop_test(tests, the_copy_is_cut_among_neighbours, 0, 5);
    tcase_add_loop_test(tests, a_refusal_names_its_key, 0, DL_COUNT(refusals));
    Suite *const suite = suite_create("secondary_copy");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
