/* parallel_blocks.c - attention and feed-forward side by side: what is computed and kept as when they follow each
 * other, what tensor ranks sum less often, and what is refused. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"
#include "workloads/workloads.h"

enum { BLOCKS = 4, HIDDEN = 64, SEQ = 32 };
#define MODEL(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'dropout':false" more "}"
#define ONE_NORM ",'parallel_norms':1"
#define TWO_NORMS ",'parallel_norms':2"
#define GATED ",'activation':'swiglu','projections':'apart'"
#define BATCH "'global_batch':2,'devices':2"

static const double exactly = 1e-12;

static void open_blocks(struct dl_session *t, const char *workload, const char *stack)
{
    open_step(t, &(struct step){.software = FLASH, .workload = workload, .head = BATCH, .stack = stack});
}

static uint32_t count(const struct dl_session *t, enum dl_item_kind kind, const char *op)
{
    const struct dl_template *const of = item(t, kind);
    uint32_t n = 0;
    for (size_t i = 0; i < of->n_instructions; i++) n += strcmp(of->instructions[i].name, op) == 0;
    return n;
}

/* Forward one sum for both; backward one for each norm, whose gradients part there. Beside the blocks the embedding is
 * summed once forward, and the input of the head once backward. */
START_TEST(tensor_ranks_sum_both_at_once)
{
    static const struct {
        const char *workload;
        uint32_t forward, backward;
    } cases[] = {{MODEL(""), 2, 2}, {MODEL(TWO_NORMS), 1, 2}, {MODEL(ONE_NORM), 1, 1}};
    struct dl_session t;
    open_blocks(&t, cases[_i].workload, "{'name':'tensor','ways':2}");
    ck_assert_uint_eq(count(&t, DL_ITEM_F, "allreduce"), cases[_i].forward * BLOCKS + 1);
    ck_assert_uint_eq(count(&t, DL_ITEM_B, "allreduce"), cases[_i].backward * BLOCKS + 1);
    dl_session_close(&t);
}
END_TEST

/* With sequence parallelism what enters is gathered, forward and for the gradient of weights again. */
START_TEST(tokens_are_gathered_for_each_norm)
{
    static const struct {
        const char *workload;
        uint32_t enter, leave;
    } cases[] = {{MODEL(""), 2, 2}, {MODEL(TWO_NORMS), 2, 1}, {MODEL(ONE_NORM), 1, 1}};
    struct dl_session t;
    open_blocks(&t, cases[_i].workload, "{'name':'tensor','ways':2,'sequence':true}");
    ck_assert_uint_eq(count(&t, DL_ITEM_F, "allgather"), cases[_i].enter * BLOCKS + 1);
    ck_assert_uint_eq(count(&t, DL_ITEM_F, "reducescatter"), cases[_i].leave * BLOCKS + 1);
    ck_assert_uint_eq(count(&t, DL_ITEM_B, "allgather"), (cases[_i].leave + cases[_i].enter) * BLOCKS + 2);
    ck_assert_uint_eq(count(&t, DL_ITEM_B, "reducescatter"), cases[_i].enter * BLOCKS + 1);
    dl_session_close(&t);
}
END_TEST

static double parameters_of(const struct dl_session *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->model.n_layers; i++)
        sum += t->model.layers[i].parameters_inside + t->model.layers[i].parameters_outside;
    return sum;
}

static double saved_by_block(const struct dl_session *t)
{
    const struct dl_saved *const s = &t->model.layers[1].saved;
    return s->inside_bytes + s->outside_bytes;
}

/* What the second norm is given is what the first is given; with one norm its result is one operand, too. */
START_TEST(the_rest_is_as_when_they_follow_each_other)
{
    static const struct {
        const char *workload;
        double fewer_vectors, fewer_tensors; /* of a block: of parameters, and saved, each of its width */
    } cases[] = {{MODEL(TWO_NORMS), 0, 1}, {MODEL(ONE_NORM), 2, 2}};
    const double samples = 1, activation = samples * SEQ * HIDDEN * DL_ACTIVATION_BYTES;
    struct dl_session in_turn, beside;
    open_blocks(&in_turn, MODEL(""), "{'name':'data'}");
    open_blocks(&beside, cases[_i].workload, "{'name':'data'}");
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("flop", item(&beside, kind)->total.flop, item(&in_turn, kind)->total.flop, exactly);
    ck_assert_double_eq(parameters_of(&beside), parameters_of(&in_turn) - BLOCKS * HIDDEN * cases[_i].fewer_vectors);
    ck_assert_double_eq(saved_by_block(&beside), saved_by_block(&in_turn) - cases[_i].fewer_tensors * activation);
    dl_session_close(&in_turn);
    dl_session_close(&beside);
}
END_TEST

/* Every way to cut products, gated and stored apart or not. */
START_TEST(ranks_that_cut_them_do_as_much_as_in_turn)
{
    static const char *const stacks[] = {"{'name':'tensor','ways':2}", "{'name':'tensor','ways':2,'sequence':true}",
                                         "{'name':'tensor','ways':2,'grid':'3d','x':1,'y':2,'z':1}",
                                         "{'name':'tensor','ways':2,'grid':'3d','x':2,'y':1,'z':1}"};
    static const char *const workloads[][2] = {
        {MODEL(ONE_NORM), MODEL("")},
        {MODEL(TWO_NORMS), MODEL("")},
        {MODEL(ONE_NORM GATED), MODEL(GATED)},
        {MODEL(TWO_NORMS GATED), MODEL(GATED)},
    };
    const char *const *const of = workloads[(size_t)_i % DL_COUNT(workloads)];
    const char *const stack = stacks[(size_t)_i / DL_COUNT(workloads)];
    struct dl_session beside, in_turn;
    open_blocks(&beside, of[0], stack);
    open_blocks(&in_turn, of[1], stack);
    check_close(stack, flop_of(&beside), flop_of(&in_turn), exactly);
    dl_session_close(&beside);
    dl_session_close(&in_turn);
}
END_TEST

START_TEST(experts_do_not_go_beside_attention)
{
    const struct step step = {
        .workload = MODEL(ONE_NORM ",'experts':4,'top_k':2"), .head = BATCH, .stack = "{'name':'data'}"};
    check_refusal(&step, "test.json:/parallel_norms: means nothing beside 'experts': no model has both");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("parallel_blocks");
    TCase *const tests = tcase_create("parallel_blocks");
    tcase_add_loop_test(tests, tensor_ranks_sum_both_at_once, 0, 3);
    tcase_add_loop_test(tests, tokens_are_gathered_for_each_norm, 0, 3);
    tcase_add_loop_test(tests, the_rest_is_as_when_they_follow_each_other, 0, 2);
    tcase_add_loop_test(tests, ranks_that_cut_them_do_as_much_as_in_turn, 0, 16);
    tcase_add_test(tests, experts_do_not_go_beside_attention);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
