/* sink_prices.c - collectives of ranks in lockstep are priced once for each kind: those that differ in anything are not
 * one. */
#define _GNU_SOURCE /* fork, pipe */
#include "strategies/sink.h"
#include "tests/unit/divided_step.h"

static const struct dl_event sum = {.kind = DL_EV_COLLECTIVE,
                                    .op = DL_ALLREDUCE,
                                    .members.digits = DL_ALONG_TENSOR,
                                    .cause = DL_CAUSE_TENSOR,
                                    .bytes = 1 << 26};

/* The sum above with one figure changed. */
static struct dl_event other(int i)
{
    struct dl_event ev = sum;
    if (i == 0) ev.payload = (struct dl_payload){.kind = DL_QUANTIZED, .bits = 4};
    if (i == 1) ev.payload = (struct dl_payload){.kind = DL_TOPK, .ratio = 0.01};
    if (i == 2) ev.bytes *= 2;
    if (i == 3) ev.op = DL_REDUCESCATTER;
    if (i == 4) ev.cause = DL_CAUSE_SEQUENCE;
    if (i == 5) ev.members.digits = DL_ALONG_CONTEXT;
    if (i == 6) ev.async = true;
    if (i == 7) ev.back_fraction = 0.5;
    return ev;
}
enum { n_lossy = 2, n_others = 8 };

static struct dl_priced_collective *price(struct dl_sink *s, const struct dl_event *ev)
{
    struct dl_error err = {0};
    struct dl_priced_collective *const p = dl_sink_price(s, ev, &err);
    ck_assert_msg(p != NULL, "%s", err.text);
    return p;
}

START_TEST(what_differs_in_one_figure_is_another_collective)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                 .system = "dgx-h100",
                                 .head = "'devices':16,'global_batch':16",
                                 .stack = "{'name':'tensor','ways':4},{'name':'context','ways':2},{'name':'data'}"});
    const struct dl_lower_request request = {.job = &t.job,
                                             .model = &t.model,
                                             .device = &t.device,
                                             .estimator = &t.estimator,
                                             .device_of_rank = t.device_of_rank};
    struct dl_sink s = {.request = &request, .arena = t.arena};
    dl_sink_init_groups(&s);
    const struct dl_event changed = other(_i);
    struct dl_priced_collective *const one = price(&s, &sum), *const two = price(&s, &changed);
    ck_assert_ptr_ne(one, two);
    ck_assert_ptr_eq(price(&s, &sum), one);
    ck_assert_ptr_eq(price(&s, &changed), two);
    ck_assert_uint_eq(s.n_prices, 2);
    ck_assert(dl_payload_equal(&one->what.payload, &sum.payload));
    ck_assert(dl_payload_equal(&two->what.payload, &changed.payload));
    if (_i < n_lossy) ck_assert_double_ne(two->what.alone_s, one->what.alone_s);
    dl_sink_release(&s);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("sink_prices");
    tcase_add_loop_test(tests, what_differs_in_one_figure_is_another_collective, 0, n_others);
    Suite *const suite = suite_create("sink_prices");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
