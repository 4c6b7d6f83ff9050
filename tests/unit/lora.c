/* lora.c - adapters on frozen weights: flop, states, what is kept and what is sent, by closed forms; and refusals. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/battery.h"

enum { BLOCKS = 4, HIDDEN = 64, SEQ = 32, VOCAB = 512, RANK = 8 };
#define LORA(targets, more) "{'name':'lora','rank':8,'targets':[" targets "]" more "}"
#define OF_ATTENTION LORA("'qkv','projection'", "")
#define OF_ALL LORA("'qkv','projection','fc1','fc2'", "")
#define ONE "'precision':'fp16','devices':1,'global_batch':1"
#define FOUR "'precision':'fp16','devices':4,'global_batch':4"
#define WITHOUT(more)                                                                                                  \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'dropout':false" more "}"
#define WITHOUT_DROPOUT WITHOUT("")
#define WITH_FACTORS WITHOUT(",'layer_scale':true")

static const double exactly = 1e-12, square = HIDDEN * HIDDEN, vocabulary = VOCAB * HIDDEN;
static const double low = SEQ * RANK * 2, wide = SEQ * HIDDEN * 2;                 /* bytes of activations */
static const double of_attention = RANK * (HIDDEN + 3 * HIDDEN + HIDDEN + HIDDEN); /* adapters of a block */

static void open_lora(struct dl_session *t, const char *workload, const char *head, const char *stack)
{
    open_step(t, &(struct step){.workload = workload, .head = head, .stack = stack});
}

/* Four instead of six for each frozen weight, six for each of an adapter. Below the adapter of the first block there is
 * no gradient of an input: neither of its qkv nor of what A is given. The table is looked up. */
START_TEST(frozen_weights_have_no_gradients)
{
    const double attention = 4.0 * SEQ * SEQ * HIDDEN / 2; /* forward, causal */
    const double frozen = 2.0 * SEQ * (2 * (BLOCKS * 12 * square + vocabulary) - 3 * square);
    const double adapters = 2.0 * SEQ * (3 * BLOCKS * of_attention - RANK * HIDDEN);
    struct dl_session t;
    open_lora(&t, WITHOUT_DROPOUT, ONE, OF_ATTENTION);
    check_close("model", t.model.model_flop_per_sample[DL_FLOP_CAUSAL], frozen + adapters + 3 * BLOCKS * attention,
                exactly);
    check_close("step", flop_of(&t), frozen + adapters + 3.5 * BLOCKS * attention, exactly);
    dl_session_close(&t);
}
END_TEST

/* Whoever shares the work: no product of an adapter is done twice. Recomputation does all of a block's forward again.
 * Fused attention goes backward in 2.5 times its forward. */
START_TEST(ranks_share_the_flop_of_adapters)
{
    static const struct {
        const char *stack;
        double again;
    } cases[] = {{"", 0},
                 {",{'name':'data'}", 0},
                 {",{'name':'data'},{'name':'zero','stage':1}", 0},
                 {",{'name':'data'},{'name':'zero','stage':3}", 0},
                 {",{'name':'tensor','ways':4}", 0},
                 {",{'name':'tensor','ways':4,'sequence':true}", 0},
                 {",{'name':'tensor','ways':2,'sequence':true},{'name':'pipeline','ways':2}", 0},
                 {",{'name':'pipeline','ways':4}", 0},
                 {",{'name':'pipeline','ways':2,'schedule':'zb-h1'},{'name':'data'}", 0},
                 {",{'name':'context','ways':2},{'name':'data'}", 0},
                 {",{'name':'tensor','ways':4},{'name':'recompute','mode':'full'}", 1}};
    const double attention = 4.0 * SEQ * SEQ * HIDDEN / 2, adapter = of_attention + RANK * (2 * HIDDEN + 8 * HIDDEN);
    const double forward = BLOCKS * (2.0 * SEQ * (12 * square + adapter) + attention);
    const double frozen = 2.0 * SEQ * (2 * (BLOCKS * 12 * square + vocabulary) - 3 * square);
    const double trained = 2.0 * SEQ * (3 * BLOCKS * adapter - RANK * HIDDEN);
    char stack[300];
    struct dl_session t;
    snprintf(stack, sizeof stack, OF_ALL "%s", cases[_i].stack);
    open_lora(&t, WITHOUT_DROPOUT, _i == 0 ? ONE : "'precision':'fp16','devices':4,'global_batch':8", stack);
    estimated(&t, stack);
    check_close(stack, spent_per_sample(&t), frozen + trained + 3.5 * BLOCKS * attention + cases[_i].again * forward,
                1e-9);
    dl_session_close(&t);
}
END_TEST

START_TEST(only_adapters_have_states)
{
    const double trained = BLOCKS * of_attention;
    const double frozen = BLOCKS * (12 * square + 13 * HIDDEN) + vocabulary + (SEQ + 2) * HIDDEN;
    struct dl_session t;
    open_lora(&t, FOUR_BLOCKS, ONE, OF_ATTENTION);
    check_close("trained", dl_model_parameters(&t.model), trained, 0);
    check_close("frozen", dl_model_frozen(&t.model), frozen, 0);
    check_close("held", t.memory[0].parameters, 2 * (trained + frozen), exactly);
    check_close("optimizer", t.memory[0].optimizer, 12 * trained, exactly);
    check_close("gradients", t.memory[0].gradients, 4 * trained, exactly);
    dl_session_close(&t);
}
END_TEST

static double kept_by(size_t layer, const char *workload, const char *stack)
{
    struct dl_session t;
    open_lora(&t, workload, ONE, stack);
    const struct dl_saved saved = t.model.layers[layer].saved;
    dl_session_close(&t);
    return saved.inside_bytes + saved.outside_bytes;
}

static double kept_by_block(const char *workload, const char *stack) { return kept_by(2, workload, stack); }

/* A frozen layer keeps nothing of its own; what attention makes it keeps for itself. */
START_TEST(adapters_keep_what_frozen_layers_do_not)
{
    const double all = kept_by_block(WITHOUT_DROPOUT, ""), mask = wide / 2;
    check_close("all", kept_by_block(WITHOUT_DROPOUT, OF_ALL), all + 4 * low, exactly);
    check_close("projection", kept_by_block(WITHOUT_DROPOUT, LORA("'projection'", "")), all - (1 + 1 + 4) * wide + low,
                exactly);
    check_close("qkv, dropped", kept_by_block(WITHOUT_DROPOUT, LORA("'qkv'", ",'dropout':true")),
                all - (1 + 4) * wide + mask + low, exactly);
    check_close("projection, dropped", kept_by_block(WITHOUT_DROPOUT, LORA("'projection'", ",'dropout':true")),
                all - (1 + 1 + 4) * wide + wide + mask + low, exactly);
}
END_TEST

/* What factors of channels are given is of use for their own gradients alone. */
START_TEST(frozen_factors_keep_nothing)
{
    check_close("factors", kept_by_block(WITH_FACTORS, LORA("'qkv'", "")),
                kept_by_block(WITHOUT_DROPOUT, LORA("'qkv'", "")), exactly);
}
END_TEST

/* The first block keeps what its first adapter is given, and from there on what any block does: queries, keys, values
 * and what attention makes, what the second norm is given, four widths for the GELU. Nothing below has a backward. */
START_TEST(nothing_is_kept_below_the_first_adapter)
{
    static const struct {
        const char *stack;
        double widths;
    } cases[] = {{LORA("'qkv'", ""), 1 + 3 + 1 + 1 + 4},
                 {LORA("'projection'", ""), 1 + 1 + 4},
                 {LORA("'fc1'", ""), 1 + 4},
                 {LORA("'fc2'", ""), 4}};
    check_close(cases[_i].stack, kept_by(1, WITHOUT_DROPOUT, cases[_i].stack), cases[_i].widths * wide + low, exactly);
}
END_TEST

/* Low ranks are gathered or summed forward, and their gradients summed; what B makes for a layer that is cut by rows is
 * gathered, or goes from columns to tokens. */
START_TEST(tensor_ranks_divide_adapters)
{
    const double n = 4, bytes[] = {once(n, wide), once(n, wide / n)};
    static const char *const stacks[] = {
        LORA("'qkv','projection'", "") ",{'name':'tensor','ways':4,'sequence':true}",
        LORA("'qkv','projection'", ",'alltoall':true") ",{'name':'tensor','ways':4,'sequence':true}"};
    for (size_t i = 0; i < DL_COUNT(stacks); i++) {
        struct dl_session t;
        open_lora(&t, FOUR_BLOCKS, "'precision':'fp16','devices':4,'global_batch':1", stacks[i]);
        check_close("forward", cause_s(&t, DL_ITEM_F, DL_CAUSE_TENSOR) * SLOW_BYTES_PER_S,
                    BLOCKS * (3 * once(n, low) + bytes[i]), 1e-9);
        check_close("backward", cause_s(&t, DL_ITEM_B, DL_CAUSE_TENSOR) * SLOW_BYTES_PER_S,
                    BLOCKS * (4 * once(n, low) + bytes[i]), 1e-9);
        check_close("optimizer", t.memory[0].optimizer, 12 * BLOCKS * of_attention / n, exactly);
        dl_session_close(&t);
    }
}
END_TEST

/* Two gathers and two scatters of a block each way, and one at each end: tokens are not gathered again for gradients of
 * weights, and nothing comes out of the first block or goes into the embedding. */
START_TEST(frozen_layers_gather_tokens_once)
{
    const double n = 4, each = once(n, wide);
    struct dl_session t;
    open_lora(&t, FOUR_BLOCKS, "'precision':'fp16','devices':4,'global_batch':1",
              OF_ATTENTION ",{'name':'tensor','ways':4,'sequence':true}");
    check_close("forward", cause_s(&t, DL_ITEM_F, DL_CAUSE_SEQUENCE) * SLOW_BYTES_PER_S, (4 * BLOCKS + 2) * each, 1e-9);
    check_close("backward", cause_s(&t, DL_ITEM_B, DL_CAUSE_SEQUENCE) * SLOW_BYTES_PER_S, 4 * BLOCKS * each, 1e-9);
    dl_session_close(&t);
}
END_TEST

static double data_bytes(const char *stack)
{
    struct dl_session t;
    open_lora(&t, FOUR_BLOCKS, FOUR, stack);
    t.request.engine = "analytic";
    ck_assert_msg(!dl_session_run(&t), "%s", t.err.text);
    const double bytes = t.report.result.exposed_s[DL_CAUSE_DATA] * SLOW_BYTES_PER_S;
    dl_session_close(&t);
    return bytes;
}

/* Replicas sum gradients of adapters; stage 3 gathers frozen weights, too, for both passes. */
START_TEST(replicas_exchange_adapters)
{
    const double n = 4, trained = BLOCKS * of_attention;
    const double frozen = BLOCKS * (12 * square + 13 * HIDDEN) + vocabulary + (SEQ + 2) * HIDDEN;
    check_close("sums", data_bytes(OF_ATTENTION ",{'name':'data'}"), 2 * once(n, 4 * trained), 1e-6);
    check_close("stage 1", data_bytes(OF_ATTENTION ",{'name':'data'},{'name':'zero'}"), once(n, (4 + 2) * trained),
                1e-6);
    check_close("stage 3", data_bytes(OF_ATTENTION ",{'name':'data'},{'name':'zero','stage':3,'prefetch':0}"),
                once(n, 4 * trained) + 2 * once(n, 2 * (trained + frozen)), 1e-6);
}
END_TEST

/* Matrices of blocks in fp8; the table and vectors at the ends stay. */
START_TEST(frozen_weights_may_be_narrow)
{
    const double block = 12 * square + 13 * HIDDEN, ends = vocabulary + (SEQ + 2) * HIDDEN;
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                 .device = "h100",
                                 .software = "ideal",
                                 .head = "'precision':'fp8','devices':1,'global_batch':1",
                                 .stack = LORA("'qkv','projection'", ",'narrow_weights':true")});
    check_close("held", t.memory[0].parameters, BLOCKS * (block + 2 * of_attention) + 2 * ends, exactly);
    dl_session_close(&t);
}
END_TEST

static const struct {
    const char *workload, *head, *stack, *message;
} refused[] = {
    {TWO_WITH_EXPERTS, ONE, OF_ATTENTION,
     "test.json:/stack/0: test can have no adapters: it has experts, whose blocks are not dense"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[64,64,64]}", ONE, OF_ATTENTION,
     "test.json:/stack/0: test can have no adapters: it is no transformer"},
    {FOUR_BLOCKS, FOUR, LORA("'qkv'", "") ",{'name':'tensor','ways':4,'grid':'2d','x':4,'y':1}",
     "test.json:/stack/0: adapters are divided over tensor ranks in a line only; must be beside grid 1d"},
    {FOUR_BLOCKS, FOUR, "{'name':'lora','rank':6,'targets':['qkv']},{'name':'tensor','ways':4}",
     "test.json:/stack/0/rank: must be a multiple of the tensor ways, 4, which divide it; got 6"},
    {FOUR_BLOCKS, FOUR, LORA("'qkv'", ",'alltoall':true") ",{'name':'tensor','ways':4}",
     "test.json:/stack/0/alltoall: needs sequence parallelism, which divides tokens; leave it out"},
    {FOUR_BLOCKS, FOUR, LORA("'qkv','fc1'", ",'alltoall':true") ",{'name':'tensor','ways':4,'sequence':true}",
     "test.json:/stack/0/alltoall: is for adapters on projection or fc2; name one in targets, or leave it out"},
    {FOUR_BLOCKS, ONE, "{'name':'lora','rank':65,'targets':['fc1']}",
     "test.json:/stack/0/rank: must be at most the smallest side of the matrices with adapters, 64; got 65"},
    {FOUR_BLOCKS, ONE, LORA("'qkv'", ",'narrow_weights':true"),
     "test.json:/stack/0/narrow_weights: GEMMs take operands as wide as activations in fp16; leave it out or set a "
     "narrower precision"},
};

START_TEST(what_cannot_be_is_refused)
{
    check_refusal(
        &(struct step){.workload = refused[_i].workload, .head = refused[_i].head, .stack = refused[_i].stack},
        refused[_i].message);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("lora");
    TCase *const tests = tcase_create("lora");
    tcase_add_test(tests, frozen_weights_have_no_gradients);
    tcase_add_loop_test(tests, ranks_share_the_flop_of_adapters, 0, 11);
    tcase_add_loop_test(tests, nothing_is_kept_below_the_first_adapter, 0, 4);
    tcase_add_test(tests, only_adapters_have_states);
    tcase_add_test(tests, adapters_keep_what_frozen_layers_do_not);
    tcase_add_test(tests, frozen_factors_keep_nothing);
    tcase_add_test(tests, tensor_ranks_divide_adapters);
    tcase_add_test(tests, frozen_layers_gather_tokens_once);
    tcase_add_test(tests, replicas_exchange_adapters);
    tcase_add_test(tests, frozen_weights_may_be_narrow);
    tcase_add_loop_test(tests, what_cannot_be_is_refused, 0, DL_COUNT(refused));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
