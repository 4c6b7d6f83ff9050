/* training_analytic.c - the analytic engine against the simulation: equal where nothing shares a link but an exchange
 * with itself, never slower. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>
#include <stdio.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define GPT                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':16,'hidden':1024,'heads':16,"        \
    "'seq':512,'vocab':8192}"

static const struct {
    const char *system, *transport, *device, *schedule;
    int tensor, pipeline, data, chunks, zero;
    bool alike;      /* nothing else shares a link, so that both must agree */
    double rounding; /* more, where the slowest lane in latency is not the one on the busiest link */
} cases[] = {
    {IDEAL_SYSTEM("1e18", "1e-6"), NULL, IDEAL_DEVICE, "1f1b", 1, 4, 1, 1, 0, true, 0},
    {IDEAL_SYSTEM("1e18", "1e-6"), NULL, IDEAL_DEVICE, "interleaved", 1, 4, 1, 2, 0, true, 0},
    {IDEAL_SYSTEM("1e18", "1e-6"), NULL, IDEAL_DEVICE, "zb-h1", 2, 4, 1, 1, 0, true, 0},
    {IDEAL_SYSTEM("1e10", "1e-6"), NULL, IDEAL_DEVICE, "1f1b", 1, 1, 8, 1, 0, true, 0},
    {IDEAL_SYSTEM("1e10", "1e-6"), NULL, IDEAL_DEVICE, "1f1b", 1, 1, 8, 1, 3, true, 0},
    {IDEAL_SYSTEM("1e10", "1e-6"), NULL, IDEAL_DEVICE, "1f1b", 1, 4, 2, 1, 0, false,
     0},                                                              /* sends both ways share a port */
    {"v100-40gbe", NULL, "a100-80", "1f1b", 1, 1, 16, 1, 0, true, 0}, /* lanes share the adapter of a node */
    {"v100-40gbe", NULL, "a100-80", "1f1b", 4, 1, 4, 1, 0, true, 0},  /* groups do */
    {"summit", NULL, "a100-80", "1f1b", 2, 1, 6, 1, 1, true, 1e-4},   /* their rings do, along several channels */
    {"summit", NULL, "a100-80", "1f1b", 4, 1, 3, 1, 0, true, 1e-3},   /* the second group is on two nodes of six */
    {"tpu-v4", NULL, "tpu-v4", "1f1b", 4, 1, 4, 1, 1, true, 0},       /* planes of a mesh */
    {"selene", NULL, "a100-80", "1f1b", 8, 4, 8, 1, 1, false, 0},
    {"frontier", NULL, "mi250x-gcd", "1f1b", 8, 8, 4, 1, 0, false, 0},
};

static const char *const softwares[] = {"ideal", "megatron-2021", "megatron-deepspeed"};
enum { n_cases = DL_COUNT(cases), n_played = n_cases * DL_COUNT(softwares) };

static struct dl_training_result play_alone(struct dl_session *t)
{
    t->request.engine = "analytic";
    ck_assert_msg(!dl_session_run(t), "%s", t->err.text);
    return t->report.result;
}

static void open_case(struct dl_session *t, int index)
{
    const int which = index % n_cases;
    char zero[64] = "", strategy[640];
    if (cases[which].zero) snprintf(zero, sizeof zero, ",{'name':'zero','stage':%d}", cases[which].zero);
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'x','devices':%d,'global_batch':%d,"
             "'precision':'bf16','stack':[{'name':'pipeline','ways':%d,'schedule':'%s','chunks':%d},"
             "{'name':'tensor','ways':%d},{'name':'data'}%s]}",
             cases[which].tensor * cases[which].pipeline * cases[which].data, 16 * cases[which].data,
             cases[which].pipeline, cases[which].schedule, cases[which].chunks, cases[which].tensor, zero);
    const struct training_inputs in = {.system = cases[which].system,
                                       .transport = cases[which].transport,
                                       .device = cases[which].device,
                                       .software = softwares[index / n_cases],
                                       .workload = GPT,
                                       .strategy = strategy};
    ck_assert_msg(!training_open(t, &in), "%s", t->err.text);
}

START_TEST(analytic_is_the_simulation_without_sharing)
{
    struct dl_session t;
    open_case(&t, _i);
    const struct dl_training_result simulated = training_simulate(&t, "simgrid").result, alone = play_alone(&t);
    ck_assert(simulated.complete && alone.complete);
    const double rounding = 1e-9 + cases[_i % n_cases].rounding;
    ck_assert_double_le(alone.step_s, simulated.step_s * (1 + rounding));
    if (cases[_i % n_cases].alike) ck_assert_double_eq_tol(alone.step_s, simulated.step_s, rounding * simulated.step_s);
    dl_session_close(&t);
}
END_TEST

/* Of 16 micro-batches: one group of all, and some with a smaller last one. */
START_TEST(both_engines_agree_on_groups_of_any_size)
{
    static const int groups[] = {4, 6, 11, 12, 16};
    char strategy[300];
    struct dl_session t;
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'x','global_batch':16,'stack':["
             "{'name':'pipeline','ways':4,'schedule':'interleaved','chunks':4,'group':%d}]}",
             groups[_i]);
    const struct training_inputs in = {.system = IDEAL_SYSTEM("1e18", "1e-4"),
                                       .device = IDEAL_DEVICE,
                                       .software = "ideal",
                                       .workload = GPT,
                                       .strategy = strategy};
    ck_assert_msg(!training_open(&t, &in), "%s", t.err.text);
    const struct dl_training_result simulated = training_simulate(&t, "simgrid").result, alone = play_alone(&t);
    ck_assert(simulated.complete && alone.complete);
    ck_assert_double_eq_tol(alone.step_s, simulated.step_s, 1e-9 * simulated.step_s);
    dl_session_close(&t);
}
END_TEST

/* Seconds that ranks wait for tensor parallelism on nodes of six devices. */
static double tensor_s(int devices, const char *placement)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    char strategy[200];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','workload':'x','devices':%d,'global_batch':%d,"
             "'stack':[{'name':'tensor','ways':4},{'name':'data'}]}",
             devices, 4 * devices);
    const struct dl_session_request request = {.topo = {.name = "summit"},
                                               .device = {.name = "a100-80"},
                                               .strategy = training_input(strategy, arena),
                                               .workload = training_input(GPT, arena),
                                               .placement = placement,
                                               .engine = "analytic"};
    ck_assert_msg(!dl_session_open(&s, &request) && !dl_session_run(&s), "%s", s.err.text);
    const double seconds = s.report.result.exposed_s[DL_CAUSE_TENSOR];
    dl_session_close(&s);
    dl_arena_free(arena);
    return seconds;
}

/* Of three groups of four the second is on two nodes; the others wait for it. */
START_TEST(the_group_that_reaches_farthest_sets_the_pace)
{
    const double in_a_node_s = tensor_s(4, NULL), on_two_nodes_s = tensor_s(4, "list:4,5,6,7");
    ck_assert_double_gt(on_two_nodes_s, 1.5 * in_a_node_s);
    ck_assert_double_eq_tol(tensor_s(12, NULL), on_two_nodes_s, 1e-9 * on_two_nodes_s);
}
END_TEST

START_TEST(causes_of_the_one_replica_sum_to_the_step)
{
    struct dl_session t;
    open_case(&t, _i);
    const struct dl_training_result r = play_alone(&t);
    double sum = 0;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) sum += r.exposed_s[cause];
    ck_assert_double_eq_tol(sum, r.step_s, 1e-9 * r.step_s);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("training_analytic");
    TCase *const all = tcase_create("analytic");
    tcase_add_loop_test(all, analytic_is_the_simulation_without_sharing, 0, n_played);
    tcase_add_loop_test(all, causes_of_the_one_replica_sum_to_the_step, 0, n_played);
    tcase_add_loop_test(all, both_engines_agree_on_groups_of_any_size, 0, 5);
    tcase_add_test(all, the_group_that_reaches_farthest_sets_the_pace);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
