/* context.c - ranks that share sequences: volumes, work and memory against closed forms. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define LAYERS 2
#define HIDDEN 64
#define HEADS 16
#define KV_HEADS 4
#define SEQ 64
#define SAMPLES 2
#define MODEL(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':64,"  \
    "'vocab':512" more "}"
#define GROUPED MODEL(",'kv_heads':4")
#define BATCH "'global_batch':2,'microbatch':2"
#define DATA ",{'name':'data'}"

static const double exactly = 1e-9;
static const uint32_t all_ways[] = {2, 4, 8};

static const char *stack_of(uint32_t ways, const char *more)
{
    static char text[300];
    snprintf(text, sizeof text, "{'name':'context','ways':%u%s}" DATA, ways, more);
    return text;
}

/* Of the keys and values of one rank's tokens in a block, with so many heads. */
static double key_bytes(uint32_t ways, double heads)
{
    return 2 * activation_bytes * SAMPLES * SEQ * HIDDEN / HEADS * heads / ways;
}

/* Keys and values pass all but one rank: 2 b s h_kv (w - 1) / w elements of a block. Backward their gradients too, and
 * these go home in the end. The last block of the forward has nothing to wait for. */
START_TEST(a_ring_carries_keys_and_values_round)
{
    const uint32_t ways = all_ways[_i];
    const double bytes = LAYERS * key_bytes(ways, KV_HEADS);
    struct dl_session t;
    open_step(&t, &(struct step){.workload = GROUPED, .head = BATCH, .stack = stack_of(ways, ",'zigzag':true")});
    const double last_s = kernels_s(&t, DL_ITEM_F, "attention") / ways; /* all blocks are equal */
    check_close("forward", cause_s(&t, DL_ITEM_F, DL_CAUSE_CONTEXT) + kernels_s(&t, DL_ITEM_F, "attention") - last_s,
                (ways - 1) * bytes / SLOW_BYTES_PER_S, exactly);
    check_close("backward", cause_s(&t, DL_ITEM_B, DL_CAUSE_CONTEXT) + kernels_s(&t, DL_ITEM_B, "attention"),
                (2 * ways - 1) * bytes / SLOW_BYTES_PER_S, exactly);
    dl_session_close(&t);
}
END_TEST

/* As PyTorch has it: keys and values, repeated for all queries, are gathered beside the first block; their gradients go
 * round in fp32, each beside the next block, and home. */
#define RING(keys)                                                                                                     \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash'," keys "}"

START_TEST(a_ring_may_gather_repeated_keys_once)
{
    const uint32_t ways = all_ways[_i];
    const double bytes = LAYERS * key_bytes(ways, HEADS), wider = gradient_bytes / activation_bytes;
    struct dl_session t;
    open_step(&t, &(struct step){.software = RING("'ring_repeats_keys':true,'ring_gathers_once':true,"
                                                  "'ring_gradient_bytes':4"),
                                 .workload = GROUPED,
                                 .head = BATCH,
                                 .stack = stack_of(ways, ",'zigzag':true")});
    const double first_s = kernels_s(&t, DL_ITEM_F, "attention") / ways; /* all blocks are equal */
    check_close("forward", cause_s(&t, DL_ITEM_F, DL_CAUSE_CONTEXT) + first_s, (ways - 1) * bytes / SLOW_BYTES_PER_S,
                exactly);
    check_close("backward", cause_s(&t, DL_ITEM_B, DL_CAUSE_CONTEXT) + kernels_s(&t, DL_ITEM_B, "attention"),
                (ways - 1 + ways * wider) * bytes / SLOW_BYTES_PER_S, exactly);
    dl_session_close(&t);
}
END_TEST

static double moved(const struct dl_session *t, enum dl_item_kind kind, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < item(t, kind)->n_instructions; i++) {
        const struct dl_instruction *const instruction = &item(t, kind)->instructions[i];
        if (instruction->name && strcmp(instruction->name, name) == 0) sum += instruction->bytes;
    }
    return sum;
}

/* Each of `ways` blocks is merged with what a rank has, whose tokens are one of `ways` parts: whatever the ways. */
START_TEST(blocks_of_a_ring_are_merged)
{
    const uint32_t ways = all_ways[_i];
    const double queries = LAYERS * activation_bytes * SAMPLES * SEQ * HIDDEN;
    struct dl_session t;
    open_step(&t, &(struct step){.software = RING("'ring_merge_moves':16,'ring_merge_backward_moves':25"),
                                 .workload = GROUPED,
                                 .head = BATCH,
                                 .stack = stack_of(ways, ",'zigzag':true")});
    check_close("forward", moved(&t, DL_ITEM_F, "merge"), 16 * queries, exactly);
    check_close("backward", moved(&t, DL_ITEM_B, "merge"), 25 * queries, exactly);
    dl_session_close(&t);
}
END_TEST

/* Where the network is fast only the last way home is seen. */
START_TEST(a_ring_hides_behind_attention)
{
    const uint32_t ways = all_ways[_i];
    struct dl_session t;
    open_step(&t,
              &(struct step){.system = FAST_SYSTEM, .workload = GROUPED, .head = BATCH, .stack = stack_of(ways, "")});
    ck_assert_double_eq(cause_s(&t, DL_ITEM_F, DL_CAUSE_CONTEXT), 0);
    check_close("backward", cause_s(&t, DL_ITEM_B, DL_CAUSE_CONTEXT),
                LAYERS * key_bytes(ways, KV_HEADS) / FAST_BYTES_PER_S, exactly);
    dl_session_close(&t);
}
END_TEST

/* Everybody waits for the rank with the last tokens, which has 2 - 1/w times the mean work; zigzag evens that out. */
START_TEST(a_causal_mask_makes_the_last_rank_slow)
{
    static const char *const kinds[] = {"ring", "allgather"};
    const uint32_t ways = all_ways[_i % 3];
    char plain[100], zigzag[100];
    struct dl_session whole, uneven, even;
    snprintf(plain, sizeof plain, ",'kind':'%s'", kinds[_i / 3]);
    snprintf(zigzag, sizeof zigzag, ",'kind':'%s','zigzag':true", kinds[_i / 3]);
    open_step(&whole, &(struct step){.workload = GROUPED, .head = BATCH, .stack = ""});
    open_step(&uneven, &(struct step){.workload = GROUPED, .head = BATCH, .stack = stack_of(ways, plain)});
    open_step(&even, &(struct step){.workload = GROUPED, .head = BATCH, .stack = stack_of(ways, zigzag)});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double mean_s = kernels_s(&whole, kind, "attention") / ways;
        check_close("zigzag", kernels_s(&even, kind, "attention"), mean_s, exactly);
        check_close("plain", kernels_s(&uneven, kind, "attention"), (2 - 1.0 / ways) * mean_s, exactly);
    }
    dl_session_close(&whole);
    dl_session_close(&uneven);
    dl_session_close(&even);
}
END_TEST

/* Before attention b s (h + 2 h_kv) / w elements, after it b s h / w; of these a rank keeps 1/w. */
START_TEST(an_alltoall_carries_queries_keys_values_and_results)
{
    static const struct {
        const char *workload;
        double key_heads;
    } models[] = {{MODEL(""), HEADS}, {GROUPED, KV_HEADS}};
    const uint32_t ways = all_ways[_i % 3];
    const double held = fmax(models[_i / 3].key_heads, ways); /* every rank needs at least one head */
    const double queries = activation_bytes * SAMPLES * SEQ * HIDDEN / ways;
    const double bytes = LAYERS * (2 * queries + key_bytes(ways, held));
    struct dl_session t;
    open_step(&t, &(struct step){.workload = models[_i / 3].workload,
                                 .head = BATCH,
                                 .stack = stack_of(ways, ",'kind':'alltoall'")});
    if (_i < 3) check_close("4 b s h / w", bytes, LAYERS * 4 * queries, exactly);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_CONTEXT) * SLOW_BYTES_PER_S, bytes * (ways - 1) / ways,
                    exactly);
        ck_assert_uint_eq(count_cause(&t, kind, DL_CAUSE_CONTEXT), 2 * LAYERS);
    }
    dl_session_close(&t);
}
END_TEST

START_TEST(an_allgather_carries_what_a_ring_does)
{
    const uint32_t ways = all_ways[_i];
    const double seconds = (ways - 1) * LAYERS * key_bytes(ways, KV_HEADS) / SLOW_BYTES_PER_S;
    struct dl_session t;
    open_step(&t, &(struct step){.workload = GROUPED, .head = BATCH, .stack = stack_of(ways, ",'kind':'allgather'")});
    check_close("forward", cause_s(&t, DL_ITEM_F, DL_CAUSE_CONTEXT), seconds, exactly);
    check_close("backward", cause_s(&t, DL_ITEM_B, DL_CAUSE_CONTEXT), 2 * seconds, exactly); /* and the gradients */
    dl_session_close(&t);
}
END_TEST

static const char *const kinds_of_work[] = {
    ",'kind':'ring'",     ",'kind':'ring','zigzag':true", ",'kind':'allgather'", ",'kind':'allgather','zigzag':true",
    ",'kind':'alltoall'",
};

START_TEST(ranks_share_the_flop_and_the_activations)
{
    static const char *const models[] = {GROUPED, MODEL(",'causal':false")};
    const char *const workload = models[_i % 2], *const kind = kinds_of_work[_i / 2];
    struct dl_session whole, part;
    open_step(&whole, &(struct step){.workload = workload, .head = BATCH, .stack = ""});
    for (size_t i = 0; i < DL_COUNT(all_ways); i++) {
        const uint32_t ways = all_ways[i];
        open_step(&part, &(struct step){.workload = workload, .head = BATCH, .stack = stack_of(ways, kind)});
        check_close("flop", ways * flop_of(&part), flop_of(&whole), exactly);
        check_close("activations", ways * part.memory[0].activations, whole.memory[0].activations, exactly);
        check_close("parameters", part.memory[0].parameters, whole.memory[0].parameters, exactly);
        ck_assert_double_eq(part.lowered.model_flop[DL_FLOP_FULL], whole.lowered.model_flop[DL_FLOP_FULL]);
        dl_session_close(&part);
    }
    dl_session_close(&whole);
}
END_TEST

/* Every kernel but attention, which may be in pieces, takes the ways-th part of its time. */
START_TEST(other_kernels_are_divided_exactly)
{
    const uint32_t ways = all_ways[_i];
    struct dl_session whole, part;
    open_step(&whole, &(struct step){.workload = GROUPED, .head = BATCH, .stack = ""});
    open_step(&part,
              &(struct step){.workload = GROUPED, .head = BATCH, .stack = stack_of(ways, ",'kind':'allgather'")});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const struct dl_template *const a = item(&whole, kind), *const b = training_priced(&part, item(&part, kind));
        size_t j = 0;
        for (size_t i = 0; i < a->n_instructions; i++, j++) {
            while (b->instructions[j].cause == DL_CAUSE_CONTEXT) j++;
            ck_assert_str_eq(a->instructions[i].name, b->instructions[j].name);
            if (strcmp(a->instructions[i].name, "attention") != 0)
                check_close(a->instructions[i].name, ways * b->instructions[j].device_s, a->instructions[i].device_s,
                            exactly);
        }
    }
    dl_session_close(&whole);
    dl_session_close(&part);
}
END_TEST

/* An all-reduce over data x context ranks: 2 (n - 1) / n of the gradients through each link. */
START_TEST(gradients_are_summed_over_data_and_context)
{
    static const struct {
        uint32_t context, data;
    } cases[] = {{4, 1}, {2, 2}, {2, 4}, {1, 8}};
    const uint32_t n = cases[_i].context * cases[_i].data;
    char head[100];
    struct dl_session t;
    snprintf(head, sizeof head, "'global_batch':%u,'microbatch':2,'devices':%u", 2 * cases[_i].data, n);
    open_step(&t, &(struct step){.workload = GROUPED, .head = head, .stack = stack_of(cases[_i].context, "")});
    const struct training_outcome outcome = training_simulate(&t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
    const double bytes = dl_model_parameters(&t.model) * gradient_bytes;
    check_close("data", outcome.result.exposed_s[DL_CAUSE_DATA], 2.0 * (n - 1) / n * bytes / SLOW_BYTES_PER_S, 1e-6);
    dl_session_close(&t);
}
END_TEST

START_TEST(zero_cuts_over_data_and_context)
{
    static const char stack[] = "{'name':'context','ways':4},{'name':'data'},{'name':'zero','stage':3}";
    struct dl_session t;
    open_step(
        &t, &(struct step){.workload = GROUPED, .head = "'global_batch':4,'microbatch':2,'devices':8", .stack = stack});
    check_close("parameters", t.memory[0].parameters * 8, dl_model_parameters(&t.model) * activation_bytes, exactly);
    const struct training_outcome outcome = training_simulate(&t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
    dl_session_close(&t);
}
END_TEST

/* Selective recomputation has kept what the all-to-alls brought, but not the keys that went round. */
START_TEST(recomputation_sends_again_what_it_has_not)
{
    static const struct {
        const char *kind, *recompute;
        uint32_t again; /* transfers of a block in its backward that belong to its forward */
    } cases[] = {
        {"alltoall", "none", 0}, {"alltoall", "selective", 0}, {"alltoall", "full", 2},
        {"ring", "none", 0},     {"ring", "selective", 3},     {"ring", "full", 3},
    };
    char head[100], kind[40];
    struct dl_session t;
    snprintf(head, sizeof head, BATCH ",'recompute':'%s'", cases[_i].recompute);
    snprintf(kind, sizeof kind, ",'kind':'%s'", cases[_i].kind);
    open_step(&t, &(struct step){.workload = GROUPED, .head = head, .stack = stack_of(4, kind)});
    const uint32_t own = strcmp(cases[_i].kind, "ring") == 0 ? 5 : 2;
    ck_assert_uint_eq(count_cause(&t, DL_ITEM_B, DL_CAUSE_CONTEXT), LAYERS * (own + cases[_i].again));
    dl_session_close(&t);
}
END_TEST

/* Tensor ranks have a part of the heads each. */
START_TEST(tensor_ranks_send_their_own_heads)
{
    const uint32_t tensor = 1u << _i;
    const double heads = (double)KV_HEADS / tensor;
    char stack[200];
    struct dl_session t;
    snprintf(stack, sizeof stack, "{'name':'tensor','ways':%u},{'name':'context','ways':4,'kind':'allgather'}" DATA,
             tensor);
    open_step(&t, &(struct step){.workload = GROUPED, .head = BATCH, .stack = stack});
    check_close("forward", cause_s(&t, DL_ITEM_F, DL_CAUSE_CONTEXT),
                3 * LAYERS * key_bytes(4, heads) / SLOW_BYTES_PER_S, exactly);
    dl_session_close(&t);
}
END_TEST

static const struct {
    struct step step;
    const char *message;
} bad[] = {
    {{.workload = GROUPED, .head = BATCH, .stack = "{'name':'context','ways':5}" DATA},
     "test.json:/stack/0/ways: must divide the tokens of a sample, 64, got 5; 4 or 8 would do"},
    {{.workload = GROUPED, .head = BATCH, .stack = "{'name':'context','ways':64,'zigzag':true}" DATA},
     "test.json:/stack/0/ways: must divide half of the tokens of a sample, 32, got 64; 32 would do"},
    {{.workload = GROUPED, .head = BATCH, .stack = "{'name':'context','ways':32,'kind':'alltoall'}" DATA},
     "test.json:/stack/0/ways: must divide the heads of a tensor rank, 16, got 32; 16 would do"},
    {{.workload = MODEL(""),
      .head = BATCH,
      .stack = "{'name':'tensor','ways':8},{'name':'context','ways':4,'kind':'alltoall'}" DATA},
     "test.json:/stack/1/ways: must divide the heads of a tensor rank, 2, got 4; 2 would do"},
    {{.workload = GROUPED, .software = "megatron-2021", .head = BATCH, .stack = "{'name':'context','ways':4}" DATA},
     "test.json:/stack/0: needs fused attention, which software megatron-2021 does not have; one with "
     "\"attention\": \"flash\" would do"},
    {{.workload = GROUPED,
      .software = "pytorch-eager",
      .head = BATCH ",'precision':'fp32'",
      .stack = "{'name':'context','ways':4}" DATA},
     "test.json:/stack/0: needs fused attention, which software pytorch-eager does not have in this precision for "
     "grouped queries; bf16 would do"},
    {{.workload = GROUPED,
      .software = "{'schema':'dlsim/software/1','source':'a test','unfused_wide_groups':true}",
      .head = BATCH,
      .stack = "{'name':'context','ways':4}" DATA},
     "test.json:/stack/0: needs fused attention, which software test does not have; one with \"attention\": "
     "\"flash\" would do"},
    {{.workload = "mlp-mnist", .head = BATCH, .stack = "{'name':'context','ways':4}" DATA},
     "test.json:/stack/0: mlp-mnist has no attention, so no sequence to share"},
    {{.workload = GROUPED,
      .head = BATCH ",'order':['tensor','data','pipeline']",
      .stack = "{'name':'context','ways':4}" DATA},
     "test.json:/order: must name context too, which has 4 ways"},
};

START_TEST(what_cannot_be_shared_is_refused) { check_refusal(&bad[_i].step, bad[_i].message); }
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("context");
    tcase_add_loop_test(tests, a_ring_carries_keys_and_values_round, 0, 3);
    tcase_add_loop_test(tests, a_ring_may_gather_repeated_keys_once, 0, 3);
    tcase_add_loop_test(tests, blocks_of_a_ring_are_merged, 0, 3);
    tcase_add_loop_test(tests, a_ring_hides_behind_attention, 0, 3);
    tcase_add_loop_test(tests, a_causal_mask_makes_the_last_rank_slow, 0, 6);
    tcase_add_loop_test(tests, an_alltoall_carries_queries_keys_values_and_results, 0, 6);
    tcase_add_loop_test(tests, an_allgather_carries_what_a_ring_does, 0, 3);
    tcase_add_loop_test(tests, ranks_share_the_flop_and_the_activations, 0, 2 * (int)DL_COUNT(kinds_of_work));
    tcase_add_loop_test(tests, other_kernels_are_divided_exactly, 0, 3);
    tcase_add_loop_test(tests, gradients_are_summed_over_data_and_context, 0, 4);
    tcase_add_test(tests, zero_cuts_over_data_and_context);
    tcase_add_loop_test(tests, recomputation_sends_again_what_it_has_not, 0, 6);
    tcase_add_loop_test(tests, tensor_ranks_send_their_own_heads, 0, 3);
    tcase_add_loop_test(tests, what_cannot_be_shared_is_refused, 0, DL_COUNT(bad));
    Suite *const suite = suite_create("context");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
