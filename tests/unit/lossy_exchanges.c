/* lossy_exchanges.c - every algorithm with a payload that is not dense, on a machine whose switches add: values that
 * are packed take less time than dense ones, or the algorithm refuses them. */
#include <check.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const struct setting machine = {.system = "h200x8", .transport = "ideal", .engine = "simgrid"};
enum { n_ranks = 7, dense = 0, n_payloads = 3 }; /* one device is left for servers */
static const struct dl_payload payloads[n_payloads] = {
    {.kind = DL_DENSE}, {.kind = DL_QUANTIZED, .bits = 4}, {.kind = DL_TOPK, .ratio = 0.01}};

static void run_all(const struct dl_algorithm *a, bool fluid, struct outcome outcomes[n_payloads])
{
    struct job jobs[n_payloads];
    for (size_t i = 0; i < n_payloads; i++)
        jobs[i] = (struct job){.op = a->op,
                               .algorithm = a->name,
                               .n = n_ranks,
                               .bytes = a->op == DL_BARRIER ? 0 : 1e8,
                               .payload = payloads[i],
                               .fluid = fluid,
                               .refusable = true};
    run_jobs(&machine, jobs, n_payloads, outcomes);
}

START_TEST(packed_values_are_faster_or_refused)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    struct outcome outcomes[n_payloads];
    for (int fluid = 0; fluid < 2; fluid++) {
        run_all(a, fluid, outcomes);
        if (outcomes[dense].refused || a->op == DL_BARRIER) continue; /* other machines, or nothing to send */
        for (size_t i = dense + 1; i < n_payloads; i++) {
            ck_assert_int_eq(outcomes[i].refused, a->fold == DL_FOLD_SWITCH);
            if (outcomes[i].refused) continue;
            ck_assert_double_lt(outcomes[i].estimate_s, outcomes[dense].estimate_s);
            ck_assert_double_lt(outcomes[i].result.time_s, outcomes[dense].result.time_s);
        }
    }
}
END_TEST

START_TEST(one_rank_is_done_at_once_or_refused)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    const struct job alone = {.op = a->op, .algorithm = a->name, .n = 1, .bytes = 1e8, .refusable = true};
    struct outcome outcome;
    run_jobs(&machine, &alone, 1, &outcome);
    if (!outcome.refused && !a->has_servers) ck_assert_double_eq(outcome.result.time_s, 0);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("lossy_exchanges");
    TCase *const tests = tcase_create("algorithms");
    tcase_add_loop_test(tests, packed_values_are_faster_or_refused, 0, (int)dl_algorithm_count());
    tcase_add_loop_test(tests, one_rank_is_done_at_once_or_refused, 0, (int)dl_algorithm_count());
    suite_add_tcase(s, tests);
    return run_suite(s);
}
