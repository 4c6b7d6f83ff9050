/* tensor_overlap.c - collectives of tensor ranks in chunks, beside the pieces of the products that they belong to. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

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
 * chunk of c and a piece of p seconds, so (n - 1) min(c, p) less than one after the other. */
static double hidden_s(const struct dl_template *t, double chunks)
{
    double sum = 0;
    for (size_t i = 1; i + 1 < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (!is_collective(at)) continue;
        const bool gathers = strcmp(at->name, "allgather") == 0;
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
        const double hidden = hidden_s(item(&plain, kind), chunks);
        ck_assert_double_gt(hidden, 0);
        check_close("seconds", item(&cut, kind)->total.seconds, item(&plain, kind)->total.seconds - hidden, 1e-9);
        check_close("compute", cause_s(&cut, kind, DL_CAUSE_COMPUTE), cause_s(&plain, kind, DL_CAUSE_COMPUTE), 1e-9);
    }
    check_close("flop", flop_of(&cut), flop_of(&plain), 1e-9);
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

int main(void)
{
    TCase *const tests = tcase_create("tensor_overlap");
    tcase_add_loop_test(tests, chunks_hide_behind_the_pieces_of_a_product, 0, 18);
    tcase_add_test(tests, pieces_are_priced_as_the_small_products_that_they_are);
    Suite *const suite = suite_create("tensor_overlap");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
