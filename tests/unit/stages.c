/* stages.c - which layers are on which stage: counted, listed, or by what they cost. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>

#include "sim/core/random.h"
#include "strategies/stages.h"
#include "tests/unit/divided_step.h"

#define GPT(layers, vocab)                                                                                             \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':" layers                             \
    ",'hidden':64,'heads':4,'seq':32,'vocab':" vocab "}"

/* ---- counted ---- */

static const struct counted_case {
    uint32_t layers, positions;
    const char *pipeline;
    uint32_t first, middle, last; /* blocks */
} counted_cases[] = {
    {12, 4, "'ways':4", 3, 3, 3},
    {22, 8, "'ways':8,'split':'count_ends'", 2, 3, 2},
    {30, 8, "'ways':8,'split':'count_ends'", 3, 4, 3},
    {62, 32, "'ways':32,'split':'count_ends'", 1, 2, 1},
    {126, 16, "'ways':16,'split':'count_ends'", 7, 8, 7}, /* Llama 3 405B (arXiv 2407.21783, section 3.3.2) */
    {46, 48, "'ways':16,'split':'count_ends','chunks':3,'schedule':'interleaved'", 0, 1, 0},
    {30, 32, "'ways':8,'split':'count_ends','chunks':4,'schedule':'interleaved'", 0, 1, 0},
    {14, 8, "'ways':8,'layers_per_stage':[1,2,2,2,2,2,2,1]", 1, 2, 1},
    {12, 8, "'ways':8,'layers_per_stage':[0,2,2,2,2,2,2,0]", 0, 2, 0},
    {12, 8, "'ways':8,'embedding':'alone','head':'alone'", 0, 2, 0},
    {14, 8, "'ways':8,'embedding':'alone'", 0, 2, 2},
    {14, 8, "'ways':8,'head':'alone'", 2, 2, 0},
    {13, 8, "'ways':8,'head':'alone','split':'count_ends'", 1, 2, 0},
    {12, 8, "'ways':4,'chunks':2,'schedule':'zbv','head':'alone','embedding':'alone'", 0, 2, 0},
    {12, 4, "'ways':4,'chunks':2,'schedule':'dualpipe'", 3, 3, 3}, /* held twice, dealt once */
};

static void open_pipeline(struct dl_session *t, const char *workload, const char *pipeline)
{
    char stack[300];
    snprintf(stack, sizeof stack, "{'name':'pipeline',%s}", pipeline);
    open_step(t, &(struct step){.workload = workload, .head = "'global_batch':16", .stack = stack});
}

static void check_cover(const struct dl_session *t)
{
    const struct dl_position *const p = t->lowered.positions;
    ck_assert_uint_eq(p[0].first_layer, 0);
    for (uint32_t i = 0; i + 1 < t->lowered.n_positions; i++) ck_assert_uint_eq(p[i].end_layer, p[i + 1].first_layer);
    ck_assert_uint_eq(p[t->lowered.n_positions - 1].end_layer, t->model.n_layers);
}

START_TEST(positions_have_the_blocks_of_the_rule)
{
    const struct counted_case *const c = &counted_cases[_i];
    struct dl_session t;
    char workload[300];
    snprintf(workload, sizeof workload, GPT("%u", "64"), c->layers);
    open_pipeline(&t, workload, c->pipeline);
    ck_assert_uint_eq(t.lowered.n_positions, c->positions);
    for (uint32_t i = 0; i < c->positions; i++) {
        const uint32_t expected = i == 0 ? c->first : i + 1 < c->positions ? c->middle : c->last;
        ck_assert_msg(t.lowered.positions[i].n_blocks == expected, "%s: %u blocks at %u, not %u", c->pipeline,
                      t.lowered.positions[i].n_blocks, i, expected);
    }
    check_cover(&t);
    dl_session_close(&t);
}
END_TEST

START_TEST(what_does_not_divide_is_as_even_as_can_be_larger_first)
{
    for (uint32_t layers = 5; layers < 14; layers++) {
        struct dl_session t;
        char workload[300];
        snprintf(workload, sizeof workload, GPT("%u", "64"), layers);
        open_pipeline(&t, workload, "'ways':5");
        for (uint32_t i = 0; i < 5; i++)
            ck_assert_uint_eq(t.lowered.positions[i].n_blocks, layers / 5 + (i < layers % 5));
        check_cover(&t);
        dl_session_close(&t);
    }
}
END_TEST

/* An explicit list is that and nothing else: the same bytes come out. */
START_TEST(a_list_of_what_the_rule_gives_is_the_same_step)
{
    static const char *const pipelines[] = {"'ways':4", "'ways':4,'layers_per_stage':[3,3,2,2]"};
    uint64_t hashes[2];
    for (int i = 0; i < 2; i++) {
        struct dl_session t;
        open_pipeline(&t, GPT("10", "64"), pipelines[i]);
        hashes[i] = training_simulate(&t, "simgrid").report_hash;
        dl_session_close(&t);
    }
    ck_assert_uint_eq(hashes[0], hashes[1]);
}
END_TEST

/* ---- by cost ---- */

struct quality {
    double maximum, squares;
};

static struct quality quality_of(const double *cost, uint32_t n_parts, const size_t *ends)
{
    struct quality q = {0};
    for (uint32_t i = 0; i < n_parts; i++) {
        double sum = 0;
        for (size_t k = i ? ends[i - 1] : 0; k < ends[i]; k++) sum += cost[k];
        q.maximum = fmax(q.maximum, sum);
        q.squares += sum * sum;
    }
    return q;
}

/* The next increasing ends, which stop at n; false: those were the last. */
static bool next_ends(size_t *ends, uint32_t n_parts, size_t n)
{
    for (uint32_t i = n_parts - 1; i-- > 0;) {
        if (ends[i] >= n - (n_parts - 1 - i)) continue;
        ends[i]++;
        for (uint32_t k = i + 1; k + 1 < n_parts; k++) ends[k] = ends[k - 1] + 1;
        return true;
    }
    return false;
}

/* Whole numbers, so that sums are exact. */
START_TEST(by_cost_is_the_best_of_all_cuts)
{
    enum { most = 9 };
    gsl_rng *const rng = dl_random_new(7, "costs", (uint64_t)_i);
    const size_t n = 2 + gsl_rng_uniform_int(rng, most - 1);
    const uint32_t n_parts = 1 + (uint32_t)gsl_rng_uniform_int(rng, n);
    double cost[most];
    for (size_t i = 0; i < n; i++) cost[i] = (double)gsl_rng_uniform_int(rng, 12);
    gsl_rng_free(rng);
    size_t ends[most], tried[most];
    dl_split_by_cost(cost, n, n_parts, ends);
    for (uint32_t i = 0; i < n_parts; i++) ck_assert_uint_gt(ends[i], i ? ends[i - 1] : 0);
    ck_assert_uint_eq(ends[n_parts - 1], n);
    const struct quality is = quality_of(cost, n_parts, ends);
    for (uint32_t i = 0; i < n_parts; i++) tried[i] = i + 1 < n_parts ? i + 1 : n;
    do {
        const struct quality q = quality_of(cost, n_parts, tried);
        ck_assert_double_le(is.maximum, q.maximum);
        if (q.maximum == is.maximum) ck_assert_double_le(is.squares, q.squares);
    } while (next_ends(tried, n_parts, n));
}
END_TEST

static double longest_position_s(const struct dl_session *t)
{
    double longest_s = 0;
    for (uint32_t i = 0; i < t->lowered.n_positions; i++) {
        const struct dl_template *const items = t->lowered.positions[i].items;
        double sum_s = 0;
        for (int kind = 0; kind <= DL_ITEM_W; kind++) sum_s += items[kind].total.seconds;
        longest_s = fmax(longest_s, sum_s);
    }
    return longest_s;
}

/* A head as large as several blocks: what counts it as none or as one has it hold up all stages. */
START_TEST(by_cost_shortens_the_longest_position)
{
    static const char *const splits[] = {"by_cost", "even", "count_ends"};
    static const char *const schedules[] = {"'1f1b'", "'zb-h1'", "'zbv','chunks':2", "'interleaved','chunks':2"};
    double longest_s[3];
    for (int i = 0; i < 3; i++) {
        struct dl_session t;
        char pipeline[200];
        snprintf(pipeline, sizeof pipeline, "'ways':4,'split':'%s','schedule':%s", splits[i], schedules[_i]);
        open_pipeline(&t, GPT("24", "2048"), pipeline);
        check_cover(&t);
        longest_s[i] = longest_position_s(&t);
        dl_session_close(&t);
    }
    ck_assert_double_lt(longest_s[0], longest_s[1]);
    ck_assert_double_lt(longest_s[0], longest_s[2]);
}
END_TEST

/* Layers are priced through the whole stack, exchanges too; none of these stays. */
START_TEST(pricing_leaves_nothing_behind)
{
    static const char *const splits[] = {"by_cost", "even"};
    size_t n_calls[2];
    for (int i = 0; i < 2; i++) {
        struct dl_session t;
        char stack[300];
        snprintf(stack, sizeof stack,
                 "{'name':'pipeline','ways':2,'split':'%s'},{'name':'data','overlap':true},{'name':'zero','stage':3}",
                 splits[i]);
        open_step(&t,
                  &(struct step){.workload = GPT("8", "64"), .head = "'devices':4,'global_batch':8", .stack = stack});
        n_calls[i] = t.lowered.n_calls;
        dl_session_close(&t);
    }
    ck_assert_uint_eq(n_calls[0], n_calls[1]);
}
END_TEST

/* ---- by weights ---- */

/* nanotron's Llama of 1.3B, whose head has the weights of four blocks (src/nanotron/models/base.py, build_model): of 20
 * in all, each of four stages is complete with what reaches 5, 10 and 15. With eight stages the head passes the share
 * of the last but one; here every stage has something, and the head stays with the last. */
START_TEST(by_weights_stages_are_complete_when_their_share_is_reached)
{
    static const char llama[] = "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':16,"
                                "'hidden':2048,'heads':32,'ffn':8192,'seq':64,'vocab':131072,'activation':'swiglu',"
                                "'norm':'rmsnorm','positions':'rotary','bias':false,'dropout':false,"
                                "'tied_embedding':%s}";
    static const uint32_t four[] = {5, 5, 5, 1}, eight[] = {3, 2, 3, 2, 3, 2, 1, 0};
    for (int i = 0; i < 4; i++) {
        const uint32_t n = i < 2 ? 4 : 8, *const expected = i < 2 ? four : eight;
        char workload[400], pipeline[60];
        struct dl_session t;
        snprintf(workload, sizeof workload, llama, i % 2 ? "true" : "false");
        snprintf(pipeline, sizeof pipeline, "'ways':%u,'split':'by_weights'", n);
        open_pipeline(&t, workload, pipeline);
        for (uint32_t p = 0; p < n; p++) ck_assert_uint_eq(t.lowered.positions[p].n_blocks, expected[p]);
        check_cover(&t);
        dl_session_close(&t);
    }
}
END_TEST

/* ---- losses ---- */

/* Of an MLP of eight pairs and of a network of images: not dealt, but with the last blocks, or alone as a head is. */
START_TEST(a_loss_goes_with_the_last_blocks)
{
    static const char *const workloads[] = {
        "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','loss':'cross_entropy',"
        "'widths':[8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8]}",
        "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8,8],'layers':[{'kind':'repeat',"
        "'times':8,'layers':[{'kind':'conv','filters':4,'window':3,'pad':1}]},{'kind':'cross_entropy'}]}"};
    static const struct {
        const char *pipeline;
        uint32_t blocks, last;
    } cases[] = {{"'ways':4", 2, 2},
                 {"'ways':4,'chunks':2,'schedule':'interleaved'", 1, 1},
                 {"'ways':3,'split':'count_ends'", 3, 2},
                 {"'ways':5,'head':'alone'", 2, 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_pipeline(&t, workloads[_i], cases[i].pipeline);
        const uint32_t n = t.lowered.n_positions;
        const struct dl_position *const last = &t.lowered.positions[n - 1];
        for (uint32_t j = 0; j + 1 < n; j++) ck_assert_uint_eq(t.lowered.positions[j].n_blocks, cases[i].blocks);
        ck_assert_uint_eq(last->n_blocks, cases[i].last);
        ck_assert_uint_eq(last->end_layer - last->first_layer, cases[i].last + 1);
        check_cover(&t);
        dl_session_close(&t);
    }
}
END_TEST

/* ---- tied embeddings ---- */

START_TEST(the_last_stage_has_a_table_of_its_own)
{
    static const char *const pipelines[] = {"'ways':1", "'ways':4", "'ways':4,'chunks':2,'schedule':'interleaved'",
                                            "'ways':4,'chunks':2,'schedule':'zbv'"};
    const double table = 512 * 64, bytes = 2 /* bf16 */ + 4 /* gradients */ + 12 /* Adam */;
    double sum = 0, model = 0;
    struct dl_session t;
    open_pipeline(&t, GPT("8", "512"), pipelines[_i]);
    for (uint32_t i = 0; i < t.job.setting.ways[DL_AXIS_PIPELINE]; i++)
        sum += t.memory[i].parameters + t.memory[i].gradients + t.memory[i].optimizer;
    model = dl_model_parameters(&t.model);
    const bool apart = _i == 1 || _i == 2;
    ck_assert_double_eq(sum, (model + (apart ? table : 0)) * bytes);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("stages");
    tcase_add_loop_test(tests, positions_have_the_blocks_of_the_rule, 0, (int)DL_COUNT(counted_cases));
    tcase_add_test(tests, what_does_not_divide_is_as_even_as_can_be_larger_first);
    tcase_add_test(tests, by_weights_stages_are_complete_when_their_share_is_reached);
    tcase_add_test(tests, a_list_of_what_the_rule_gives_is_the_same_step);
    tcase_add_loop_test(tests, by_cost_is_the_best_of_all_cuts, 0, 300);
    tcase_add_loop_test(tests, by_cost_shortens_the_longest_position, 0, 4);
    tcase_add_test(tests, pricing_leaves_nothing_behind);
    tcase_add_loop_test(tests, a_loss_goes_with_the_last_blocks, 0, 2);
    tcase_add_loop_test(tests, the_last_stage_has_a_table_of_its_own, 0, 4);
    Suite *const suite = suite_create("stages");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
