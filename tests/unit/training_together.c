/* training_together.c - collectives of ranks in step that meet others on their links. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>

#include "sim/plan/plan.h"
#include "tests/unit/divided_step.h"

#define GPT                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'tied_embedding':false}"
#define MOE                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'experts':4,'top_k':1,'tied_embedding':false}"
#define BESIDE                                                                                                         \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash','overlaps_tensor':true}"
#define OVERLAP "{'name':'data','overlap':true}"

static const double exactly = 1e-9;

static double simulate(struct dl_session *t)
{
    const struct training_outcome outcome = training_simulate(t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
    double sum = 0;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) sum += outcome.result.exposed_s[cause];
    check_close("causes", sum, outcome.result.step_s, exactly);
    return outcome.result.step_s;
}

/* ---- who is played ---- */

static const struct {
    const char *workload, *system, *head, *stack;
    bool meets;
} places[] = {
    {GPT, SLOW_SYSTEM, "'devices':4,'global_batch':4", "{'name':'tensor','ways':4}", false},
    {GPT, SLOW_SYSTEM, "'devices':8,'global_batch':4", "{'name':'tensor','ways':4},{'name':'data'}", false},
    {GPT, SLOW_SYSTEM, "'devices':8,'global_batch':4", "{'name':'tensor','ways':4}," OVERLAP, true},
    {GPT, SLOW_SYSTEM, "'devices':8,'global_batch':4", "{'name':'tensor','ways':4},{'name':'pipeline','ways':2}", true},
    {MOE, SLOW_SYSTEM, "'devices':8,'global_batch':8", "{'name':'expert','ways':4},{'name':'data'}", false},
    {MOE, SLOW_SYSTEM, "'devices':8,'global_batch':8", "{'name':'expert','ways':4}," OVERLAP, true},
    {GPT, SLOW_SYSTEM, "'devices':8,'global_batch':8",
     "{'name':'data'},{'name':'tensor','ways':2},{'name':'zero','stage':3}", true},
    /* Every device has its own way into the NVSwitch and its own NIC; there and into the next node meet. */
    {GPT, "dgx-h100", "'devices':16,'global_batch':4", "{'name':'tensor','ways':4},{'name':'pipeline','ways':4}", true},
    {GPT, "dgx-h100", "'devices':8,'global_batch':4", "{'name':'tensor','ways':4},{'name':'data'}", false},
};

START_TEST(exchanges_are_played_where_others_may_be_on_their_links)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = places[_i].workload,
                                 .system = places[_i].system,
                                 .head = places[_i].head,
                                 .stack = places[_i].stack});
    ck_assert_int_eq(t.lowered.played.collectives > 0, places[_i].meets);
    dl_session_close(&t);
}
END_TEST

/* Two sums for each of four blocks forward and as many backward, one after the embedding and one before the head; and
 * both ways what the other stage has sent in parts is gathered; four micro-batches. A ring of four ranks is one bundle,
 * and a sum takes as long as two gathers. Where not all may be simulated, the sums are, or else the gathers. */
START_TEST(no_more_are_played_than_may_be)
{
    const double n_sums = 4 * (2 * (2 * 4) + 2), n_gathers = 4 * 2, n = n_sums + n_gathers, n_ranks = 4;
    const struct {
        double collectives, bundles, played;
    } limits[] = {
        {n, n, n},
        {n - 1, n, n_sums},
        {n, n - 1, n_sums},
        {n - 1, n - 1, n_sums},
        {n_sums, n, n_sums},
        {n_sums - 1, n, n_gathers},
        {n, n_sums - 1, n_gathers},
        {n_gathers - 1, n, 0},
        {n, n_gathers - 1, 0},
    };
    struct step step = {.workload = GPT, .head = places[3].head, .stack = places[3].stack};
    struct dl_session t;
    for (size_t i = 0; i < DL_COUNT(limits); i++) {
        step.most.in_step = (struct dl_played){limits[i].collectives * n_ranks, limits[i].bundles};
        open_step(&t, &step);
        ck_assert_double_eq(t.lowered.played.collectives, limits[i].played * n_ranks);
        ck_assert_double_eq(t.lowered.played.bundles, limits[i].played);
        ck_assert_double_eq(t.lowered.n_timed_alone, (n - limits[i].played) * n_ranks);
        dl_session_close(&t);
    }
}
END_TEST

/* Messages between stages are simulated in any case: four micro-batches both ways. */
START_TEST(a_part_is_played_beside_what_is_in_any_case)
{
    const double n_sums = 4 * (2 * (2 * 4) + 2), n_ranks = 4, n_messages = 4 * 2;
    for (int less = 0; less < 2; less++) {
        struct dl_session t;
        open_step(&t, &(struct step){.workload = GPT,
                                     .head = places[3].head,
                                     .stack = places[3].stack,
                                     .most.in_step.collectives = n_sums * n_ranks,
                                     .most.in_part = n_sums + n_messages - less});
        ck_assert_int_eq(t.lowered.played.bundles == n_sums, !less);
        dl_session_close(&t);
    }
}
END_TEST

static const struct {
    const char *workload, *head, *stack;
    uint32_t n_sets; /* of replicas */
} alike[] = {
    {GPT, "'devices':16,'global_batch':16", "{'name':'tensor','ways':2},{'name':'pipeline','ways':2},{'name':'data'}",
     4},
    {GPT, "'devices':16,'global_batch':16", "{'name':'tensor','ways':2},{'name':'pipeline','ways':2}," OVERLAP, 4},
    {MOE, "'devices':32,'global_batch':16",
     "{'name':'tensor','ways':2},{'name':'expert','ways':4},{'name':'pipeline','ways':2},{'name':'data'}", 2},
};

/* Replicas are alike and share no links: all wait for the ones that are simulated. */
START_TEST(some_replicas_tell_the_step_of_all)
{
    struct step step = {.workload = alike[_i].workload, .head = alike[_i].head, .stack = alike[_i].stack};
    struct dl_session t;
    open_step(&t, &step);
    const struct dl_played all = t.lowered.played;
    const double all_s = simulate(&t);
    dl_plan_nothing(&t.lowered);
    const double priced_s = simulate(&t);
    ck_assert_msg(all_s > priced_s * 1.001, "%g s and %g s: nobody meets", all_s, priced_s);
    dl_session_close(&t);
    for (uint32_t n = 1; n < alike[_i].n_sets; n++) {
        step.most.in_step.bundles = (n + 0.5) * all.bundles / alike[_i].n_sets;
        open_step(&t, &step);
        ck_assert_double_eq(t.lowered.played.collectives, n * all.collectives / alike[_i].n_sets);
        ck_assert_double_eq(t.lowered.n_timed_alone, all.collectives - t.lowered.played.collectives);
        check_close(alike[_i].stack, simulate(&t), all_s, exactly);
        dl_session_close(&t);
    }
}
END_TEST

static bool starts_a_copy(const struct dl_session *t, const struct dl_parts *parts)
{
    bool any = false;
    for (size_t i = 0; i < parts->n; i++)
        any |= parts->items[i].kind == DL_START && t->lowered.calls[parts->items[i].call].op == DL_COPY;
    return any;
}

/* Copies to hosts meet each other below PCIe switches on every node. */
START_TEST(copies_are_played_where_collectives_are_priced)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = GPT,
                                 .system = "dgx-a100-hdr4",
                                 .head = "'devices':16,'global_batch':16",
                                 .stack = "{'name':'tensor','ways':2},{'name':'pipeline','ways':2},{'name':'data'},"
                                          "{'name':'offload','activations':1}",
                                 .most.in_step.bundles = 200});
    const struct dl_template *const forward = item(&t, DL_ITEM_F);
    ck_assert(t.lowered.plan.lockstep_groups && forward->priced.n > 0);
    ck_assert(starts_a_copy(&t, &forward->planned) && starts_a_copy(&t, &forward->priced));
    dl_session_close(&t);
}
END_TEST

/* ---- what that changes ---- */

static const struct {
    const char *workload, *stack;
} busy[] = {
    {GPT, "{'name':'tensor','ways':2}," OVERLAP},
    {GPT, "{'name':'tensor','ways':4}," OVERLAP},
    {MOE, "{'name':'expert','ways':4}," OVERLAP},
    {MOE, "{'name':'expert','ways':2}," OVERLAP},
};

/* Devices take no time, so that some of each port's bytes are always on their way: in turns or side by side. */
START_TEST(a_port_carries_no_more_than_its_bandwidth)
{
    struct dl_session t;
    open_step(&t, &(struct step){
                      .workload = busy[_i].workload, .head = "'devices':8,'global_batch':8", .stack = busy[_i].stack});
    ck_assert_double_gt(t.lowered.played.collectives, 0);
    const struct training_outcome outcome = training_simulate(&t, "simgrid");
    ck_assert(outcome.result.complete);
    check_close(busy[_i].stack, outcome.result.step_s, outcome.busiest_s, 1e-6);
    dl_session_close(&t);
}
END_TEST

static const struct {
    const char *workload, *software, *head, *stack;
} lonely[] = {
    {GPT, NULL, "'devices':8,'global_batch':2,'microbatch':2",
     "{'name':'tensor','ways':4},{'name':'pipeline','ways':2}"},
    {GPT, BESIDE, "'devices':8,'global_batch':2,'microbatch':2",
     "{'name':'tensor','ways':4},{'name':'pipeline','ways':2}"},
    {GPT, BESIDE, "'devices':4,'global_batch':2,'microbatch':2",
     "{'name':'tensor','ways':2,'sequence':true},{'name':'pipeline','ways':2}"},
    {GPT, BESIDE, "'devices':4,'global_batch':2,'microbatch':2",
     "{'name':'tensor','ways':2,'sequence':true,'overlap_chunks':2},{'name':'pipeline','ways':2}"},
    {GPT, NULL, "'devices':8,'global_batch':2,'microbatch':2",
     "{'name':'tensor','ways':4,'grid':'2d'},{'name':'pipeline','ways':2}"},
};

/* With one micro-batch nobody works while something is sent: they meet nobody, and take as long as if they were timed,
 * also where they go beside kernels that they slow. */
START_TEST(exchanges_that_meet_nobody_take_their_own_time)
{
    struct dl_session t;
    double step_s[2];
    for (int timed = 0; timed < 2; timed++) {
        const struct step step = {.workload = lonely[_i].workload,
                                  .software = lonely[_i].software,
                                  .system = IDEAL_SYSTEM("1e9", "1e-6"),
                                  .device = IDEAL_DEVICE_WITH(",'taken_by_exchanges':" TAKEN("0.25")),
                                  .head = lonely[_i].head,
                                  .stack = lonely[_i].stack};
        open_step(&t, &step);
        ck_assert_double_gt(t.lowered.played.collectives, 0);
        if (timed) dl_plan_nothing(&t.lowered);
        step_s[timed] = simulate(&t);
        dl_session_close(&t);
    }
    check_close(lonely[_i].stack, step_s[0], step_s[1], exactly);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("training_together");
    TCase *const all = tcase_create("all");
    tcase_add_loop_test(all, exchanges_are_played_where_others_may_be_on_their_links, 0, DL_COUNT(places));
    tcase_add_test(all, no_more_are_played_than_may_be);
    tcase_add_test(all, a_part_is_played_beside_what_is_in_any_case);
    tcase_add_test(all, copies_are_played_where_collectives_are_priced);
    tcase_add_loop_test(all, some_replicas_tell_the_step_of_all, 0, DL_COUNT(alike));
    tcase_add_loop_test(all, a_port_carries_no_more_than_its_bandwidth, 0, DL_COUNT(busy));
    tcase_add_loop_test(all, exchanges_that_meet_nobody_take_their_own_time, 0, DL_COUNT(lonely));
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
