/* tensor_overlap.c - collectives of tensor ranks in chunks, beside the pieces of the products that they belong to, or
 * whole, beside the product after them. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512}"
#define BATCH "'global_batch':8,'microbatch':8"

static const char *stack_of(uint32_t ways, const char *options)
{
    static char text[300];
    snprintf(text, sizeof text, "{'name':'tensor','ways':%u%s},{'name':'data'}", ways, options);
    return text;
}

static bool is_collective(const struct dl_instruction *i)
{
    return i->cause == DL_CAUSE_SEQUENCE || i->cause == DL_CAUSE_TENSOR;
}

/* A gather with the product after it and a scatter or sum with the product before: c + (n - 1) max(c, p) + p for a
 * chunk of c and a piece of p seconds, so (n - 1) min(c, p) less than one after the other. What is gathered again
 * before a product that a scatter follows is for the gradient after it, and alone. */
static double hidden_s(const struct dl_template *t, double chunks, bool scatters)
{
    double sum = 0;
    for (size_t i = 1; i + 1 < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (!is_collective(at)) continue;
        const bool gathers = strcmp(at->name, "allgather") == 0;
        if (!gathers && !scatters) continue;
        if (gathers && i + 2 < t->n_instructions && strcmp(at[2].name, "reducescatter") == 0) continue;
        const struct dl_instruction *const product = gathers ? at + 1 : at - 1;
        if (product->flop > 0) sum += (chunks - 1) * fmin(at->device_s, product->device_s) / chunks;
    }
    return sum;
}

START_TEST(chunks_hide_behind_the_pieces_of_a_product)
{
    static const char *const systems[] = {SLOW_SYSTEM, IDEAL_SYSTEM("1e13", "0"), FAST_SYSTEM};
    static const uint32_t n_chunks[] = {2, 4, 16};
    const uint32_t chunks = n_chunks[_i / 3 % 3];
    const char *const sequence = _i / 9 ? "true" : "false";
    char options[2][100];
    struct dl_session plain, cut;
    snprintf(options[0], sizeof options[0], ",'sequence':%s", sequence);
    snprintf(options[1], sizeof options[1], ",'sequence':%s,'overlap_chunks':%u", sequence, chunks);
    struct step step = {.system = systems[_i % 3], .workload = MODEL, .head = BATCH};
    step.stack = stack_of(4, options[0]);
    open_step(&plain, &step);
    step.stack = stack_of(4, options[1]);
    open_step(&cut, &step);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double hidden = hidden_s(training_priced(&plain, item(&plain, kind)), chunks, true);
        ck_assert_double_gt(hidden, 0);
        check_close("seconds", item(&cut, kind)->total.seconds, item(&plain, kind)->total.seconds - hidden, 1e-9);
        check_close("compute", cause_s(&cut, kind, DL_CAUSE_COMPUTE), cause_s(&plain, kind, DL_CAUSE_COMPUTE), 1e-9);
    }
    check_close("flop", flop_of(&cut), flop_of(&plain), 1e-9);
    dl_session_close(&plain);
    dl_session_close(&cut);
}
END_TEST

START_TEST(gathers_alone_hide_if_scatters_do_not_overlap)
{
    struct dl_session plain, cut;
    struct step step = {.system = SLOW_SYSTEM, .workload = MODEL, .head = BATCH};
    step.stack = stack_of(4, ",'sequence':true");
    open_step(&plain, &step);
    step.stack = stack_of(4, ",'sequence':true,'overlap_chunks':4,'overlap_scatters':false");
    open_step(&cut, &step);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double hidden = hidden_s(training_priced(&plain, item(&plain, kind)), 4, false);
        ck_assert_double_gt(hidden, 0);
        check_close("seconds", item(&cut, kind)->total.seconds, item(&plain, kind)->total.seconds - hidden, 1e-9);
    }
    dl_session_close(&plain);
    dl_session_close(&cut);
}
END_TEST

/* On a device with tiles and waves, many small products take longer than a large one. */
START_TEST(pieces_are_priced_as_the_small_products_that_they_are)
{
    static const char *const options[] = {",'sequence':true", ",'sequence':true,'overlap_chunks':16"};
    double compute_s[2];
    for (size_t i = 0; i < DL_COUNT(options); i++) {
        char strategy[600];
        struct dl_session t;
        snprintf(strategy, sizeof strategy,
                 "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':1,'stack':[%s]}",
                 stack_of(8, options[i]));
        const struct training_inputs inputs = {.system = "dgx-a100-hdr4",
                                               .device = "a100-40",
                                               .software = "ideal",
                                               .workload = "gpt-1.7b",
                                               .strategy = strategy};
        ck_assert_msg(!training_open(&t, &inputs), "%s", t.err.text);
        compute_s[i] = cause_s(&t, DL_ITEM_F, DL_CAUSE_COMPUTE);
        dl_session_close(&t);
    }
    ck_assert_double_gt(compute_s[1], 1.1 * compute_s[0]);
}
END_TEST

#define SOFTWARE(keys)                                                                                                 \
    "{'schema':'dlsim/software/1','source':'a test','collective_host_s':0,'gradient_bytes':4,'attention':'flash'" keys \
    "}"

/* Seconds of collectives that may go beside the product after them: a sum or scatter that the gradient of weights
 * follows, and what is gathered again for that gradient. */
static double beside_s(const struct dl_template *t)
{
    double sum = 0;
    for (size_t i = 0; i + 2 < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        const bool again = strcmp(at->name, "allgather") == 0 && strcmp(at[2].name, "reducescatter") == 0;
        const bool is_sum = strcmp(at->name, "allreduce") == 0 || strcmp(at->name, "reducescatter") == 0;
        if (is_collective(at) && (is_sum || again) && at[1].flop > 0) sum += fmin(at->device_s, at[1].device_s);
    }
    return sum;
}

START_TEST(sums_go_beside_the_gradient_of_weights)
{
    static const char *const systems[] = {SLOW_SYSTEM, IDEAL_SYSTEM("1e13", "0"), FAST_SYSTEM};
    struct dl_session apart, beside;
    struct step step = {.system = systems[_i % 3], .workload = MODEL, .head = BATCH};
    step.stack = stack_of(4, _i / 3 ? ",'sequence':true" : "");
    step.software = SOFTWARE("");
    open_step(&apart, &step);
    step.software = SOFTWARE(",'overlaps_tensor':true");
    open_step(&beside, &step);
    const double hidden = beside_s(training_priced(&apart, item(&apart, DL_ITEM_B)));
    ck_assert_double_gt(hidden, 0);
    check_close("forward", item(&beside, DL_ITEM_F)->total.seconds, item(&apart, DL_ITEM_F)->total.seconds, 1e-12);
    check_close("backward", item(&beside, DL_ITEM_B)->total.seconds, item(&apart, DL_ITEM_B)->total.seconds - hidden,
                1e-9);
    check_close("flop", flop_of(&beside), flop_of(&apart), 1e-12);
    dl_session_close(&apart);
    dl_session_close(&beside);
}
END_TEST

/* What a collective takes of the device is lost to the product beside it, while the collective lasts. */
START_TEST(a_product_beside_a_sum_has_less_of_the_device)
{
    struct dl_session taken;
    const struct training_inputs inputs = {
        .system = "dgx-a100-hdr4",
        .device = "a100-80",
        .software = SOFTWARE(",'overlaps_tensor':true"),
        .workload = "gpt-1.7b",
        .strategy = "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':1,"
                    "'stack':[{'name':'tensor','ways':4}]}"};
    ck_assert_msg(!training_open(&taken, &inputs), "%s", taken.err.text);
    const double fraction = taken.device.taken_by_exchanges.fraction[DL_CLASS_PRODUCT];
    double most_s = 0;
    const struct dl_template *const forward = training_priced(&taken, item(&taken, DL_ITEM_F));
    for (size_t i = 0; i < forward->n_instructions; i++)
        if (is_collective(&forward->instructions[i])) most_s = fmax(most_s, forward->instructions[i].device_s);
    const double interference_s = cause_s(&taken, DL_ITEM_B, DL_CAUSE_INTERFERENCE);
    const double n_sums = 2 * 24 + 1; /* of blocks and head, all as long as those forward */
    ck_assert_double_gt(interference_s, 0);
    ck_assert_double_le(interference_s, n_sums * fraction * most_s * (1 + 1e-9));
    dl_session_close(&taken);
}
END_TEST

static double gathered_bytes(const struct dl_session *t, const struct dl_template *work)
{
    double sum = 0;
    for (size_t i = 0; i < work->n_instructions; i++) {
        const struct dl_instruction *const at = &work->instructions[i];
        if (at->kind == DL_START && t->lowered.calls[at->call].op == DL_ALLGATHER)
            sum += t->lowered.calls[at->call].bytes;
    }
    return sum;
}

/* Where scatters do not overlap, what is gathered again has no chunks beside its product: it goes beside it. Where
 * nothing goes beside a collective, nothing is hidden, in pieces or whole. */
START_TEST(what_is_gathered_again_shows)
{
    static const struct {
        const char *software, *options[2];
    } cases[] = {{SOFTWARE(",'overlaps_tensor':true"),
                  {",'sequence':true", ",'sequence':true,'overlap_chunks':4,'overlap_scatters':false"}},
                 {SOFTWARE(",'overlaps_tensor':true,'waits_for_collectives':true"),
                  {",'sequence':true", ",'sequence':true,'overlap_chunks':4"}}};
    double bytes[2];
    for (size_t i = 0; i < DL_COUNT(bytes); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.system = SLOW_SYSTEM,
                                     .software = cases[_i].software,
                                     .workload = MODEL,
                                     .head = BATCH,
                                     .stack = stack_of(4, cases[_i].options[i])});
        bytes[i] = gathered_bytes(&t, item(&t, DL_ITEM_B));
        dl_session_close(&t);
    }
    ck_assert_double_gt(bytes[0], 0);
    check_close("bytes of gathers", bytes[1], bytes[0], 1e-9);
}
END_TEST

/* Where weight gradients come later, a sum cannot wait for them: the stage before needs it. */
START_TEST(nothing_goes_beside_gradients_that_come_later)
{
    static const char *const softwares[] = {SOFTWARE(""), SOFTWARE(",'overlaps_tensor':true")};
    double seconds[2][DL_ITEM_W + 1];
    for (size_t i = 0; i < DL_COUNT(softwares); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.software = softwares[i],
                                     .workload = MODEL,
                                     .head = "'global_batch':8,'microbatch':2",
                                     .stack = "{'name':'pipeline','ways':2,'schedule':'zb-h1'},"
                                              "{'name':'tensor','ways':4,'sequence':false}"});
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_W; kind++) seconds[i][kind] = item(&t, kind)->total.seconds;
        ck_assert_uint_eq(count_cause(&t, DL_ITEM_W, DL_CAUSE_TENSOR), 0);
        dl_session_close(&t);
    }
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_W; kind++)
        check_close("seconds", seconds[1][kind], seconds[0][kind], 1e-12);
}
END_TEST

/* Tokens of experts are gathered before their first product and scattered after their second, and backward the other
 * way: wide, in one piece, beside nothing, and not again for the gradients of weights. */
START_TEST(tokens_of_experts_are_gathered_by_themselves)
{
    static const char device[] = "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':"
                                 "{'fp32':1e15,'fp16':1e15,'bf16':1e15,'fp8':2e15},'memory_bytes':1e18,"
                                 "'memory_bytes_per_s':1e18,'launch_s':0,'figures':{'compute_fraction':1,"
                                 "'bandwidth_fraction':1}}";
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','attention':'flash',"
                                   "'overlaps_tensor':true,'operands':[{'precision':'fp8','moves':0,'launches':0,"
                                   "'gathered':true}]}";
    static const char *const options[] = {",'sequence':true", ",'sequence':true,'overlap_chunks':4"};
    const double bytes = activation_bytes * SAMPLES * SEQ * TOP_K * HIDDEN;
    struct dl_session t;
    open_step(&t, &(struct step){.device = device,
                                 .software = software,
                                 .workload = SMALL_EXPERTS("8", ""),
                                 .head = "'global_batch':2,'microbatch':2,'devices':4,'precision':'fp8'",
                                 .stack = stack_of(4, options[_i])});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        uint32_t n[DL_N_OPS] = {0};
        for (size_t i = 0; i + 1 < item(&t, kind)->n_instructions; i++) {
            const struct dl_instruction *const at = &item(&t, kind)->instructions[i];
            const struct dl_comm *const comm = &t.lowered.calls[at->call];
            if (at->kind != DL_START || comm->bytes != bytes) continue;
            ck_assert(at[1].kind == DL_WAIT && at[1].call == at->call);
            n[comm->op]++;
        }
        ck_assert_uint_eq(n[DL_ALLGATHER], LAYERS);
        ck_assert_uint_eq(n[DL_REDUCESCATTER], LAYERS);
    }
    dl_session_close(&t);
}
END_TEST

/* What experts' first product was given is kept as it came, whole on each rank; all else is divided, as is what comes
 * back for its weights. Ranks that have whole experts have tokens of their own. */
START_TEST(gathered_tokens_of_experts_are_kept_whole)
{
    static const char *const stacks[] = {"{'name':'data'}",
                                         "{'name':'tensor','ways':4,'sequence':true},{'name':'data'}",
                                         "{'name':'tensor','ways':4,'sequence':true},"
                                         "{'name':'expert','ways':4,'over_tensor':true},{'name':'data'}"};
    static const double ways[] = {1, 4, 4};
    const double given = activation_bytes * SAMPLES * SEQ * TOP_K * HIDDEN;
    double saved[DL_COUNT(stacks)];
    for (size_t i = 0; i < DL_COUNT(stacks); i++) {
        char head[100];
        struct dl_session t;
        snprintf(head, sizeof head, "'global_batch':2,'microbatch':2,'devices':%g,'precision':'bf16'", ways[i]);
        open_step(&t, &(struct step){.workload = SMALL_EXPERTS("8", ""), .head = head, .stack = stacks[i]});
        saved[i] = saved_bytes(&t, 1);
        dl_session_close(&t);
    }
    check_close("shared", saved[1], (saved[0] - given) / ways[1] + given, 1e-12);
    check_close("whole", saved[2], saved[0] / ways[2], 1e-12);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("tensor_overlap");
    tcase_add_loop_test(tests, chunks_hide_behind_the_pieces_of_a_product, 0, 18);
    tcase_add_test(tests, gathers_alone_hide_if_scatters_do_not_overlap);
    tcase_add_test(tests, pieces_are_priced_as_the_small_products_that_they_are);
    tcase_add_loop_test(tests, sums_go_beside_the_gradient_of_weights, 0, 6);
    tcase_add_test(tests, a_product_beside_a_sum_has_less_of_the_device);
    tcase_add_test(tests, nothing_goes_beside_gradients_that_come_later);
    tcase_add_loop_test(tests, what_is_gathered_again_shows, 0, 2);
    tcase_add_loop_test(tests, tokens_of_experts_are_gathered_by_themselves, 0, 2);
    tcase_add_test(tests, gathered_tokens_of_experts_are_kept_whole);
    Suite *const suite = suite_create("tensor_overlap");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
