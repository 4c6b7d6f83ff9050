/* layouts_of_software.c - what only some software does: copies that put samples first, and tiles of tokens that experts
 * share, which have as many places where the strategy says that they are even. */
#include <string.h>

#include "tests/unit/analytic_run.h"

/* Seconds of the instructions whose names begin so, forward. */
static double device_s(const struct dl_session *s, const char *name)
{
    const struct dl_template *const t = &s->lowered.positions[0].items[DL_ITEM_F];
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].name && strncmp(t->instructions[i].name, name, strlen(name)) == 0)
            sum += t->instructions[i].device_s;
    return sum;
}

static double forward_s(const struct analytic_run *run, const char *name)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    ck_assert_msg(analytic_run(run, arena, &s), "%s", s.err.text);
    const double seconds = device_s(&s, name);
    dl_session_close(&s);
    dl_arena_free(arena);
    return seconds;
}

START_TEST(mixers_copy_samples_where_tokens_come_first)
{
    static const char *const software[] = {"pytorch-eager", "maxtext", "megatron-core", "megatron-bridge"};
    const struct analytic_run run = {.topo = "dgx-h200",
                                     .workload = "mamba2-2.7b",
                                     .software = software[_i],
                                     .head = "\"devices\":1,\"global_batch\":4,\"microbatch\":4,",
                                     .stack = ""};
    ck_assert_int_eq(forward_s(&run, "samples_first") > 0, _i >= 2);
}
END_TEST

START_TEST(experts_with_as_many_tokens_share_no_tile)
{
    static const char *const rows[] = {"device.figures.group_rows=0", "device.figures.group_rows=512"};
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        const struct analytic_run run = {
            .topo = "tpu-v6e",
            .workload = "mixtral-8x7b",
            .software = "maxtext",
            .head = "\"devices\":4,\"global_batch\":4,\"microbatch\":1,",
            .stack = _i ? "{\"name\":\"expert\",\"ways\":4,\"even\":true},{\"name\":\"data\"},{\"name\":\"zero\","
                          "\"stage\":3}"
                        : "{\"name\":\"expert\",\"ways\":4},{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":3}",
            .set = {rows[i]}};
        seconds[i] = forward_s(&run, "expert_fc");
    }
    ck_assert_double_gt(seconds[0], 0);
    ck_assert_int_eq(seconds[1] > seconds[0], _i == 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("layouts_of_software");
    TCase *const tests = tcase_create("layouts_of_software");
    tcase_add_loop_test(tests, mixers_copy_samples_where_tokens_come_first, 0, 4);
    tcase_add_loop_test(tests, experts_with_as_many_tokens_share_no_tile, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
