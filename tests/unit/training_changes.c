/* training_changes.c - links that change on the way of ranks in step: what crosses them is played, or refused. */
#define _GNU_SOURCE /* mkstemp */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define WORKLOAD(rest)                                                                                                 \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512" rest "}"
#define GPT WORKLOAD("")
#define MOE WORKLOAD(",'experts':4,'top_k':1")
#define STRATEGY(devices, stack)                                                                                       \
    "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':" devices                              \
    ",'global_batch':8,'stack':[" stack "]}"
#define FLASH "{'schema':'dlsim/software/1','source':'a test','attention':'flash'}"
#define SYSTEM IDEAL_SYSTEM("1e6", "0")
#define FIRST_LINK "node0.device0 -> switch"

struct step {
    const char *system, *workload, *strategy;
    enum dl_cause cause;
};

/* A link has this fraction of its bandwidth from the start, all of it from then on. */
struct change {
    const char *link; /* NULL: none changes */
    double fraction, until_s;
};

static void open_limited(struct dl_session *s, const struct step *step, struct change change, double most_bundles)
{
    struct dl_arena *const texts = dl_arena_new();
    char path[] = "/tmp/dlsim-changes-XXXXXX";
    FILE *const file = fdopen(mkstemp(path), "w");
    fprintf(file,
            "{\"schema\": \"dlsim/scenario/1\", \"source\": \"a test\", \"links\": "
            "[{\"link\": \"%s\", \"at_s\": 0, \"bandwidth_fraction\": %g}",
            change.link ? change.link : "", change.fraction);
    if (change.until_s > 0)
        fprintf(file, ", {\"link\": \"%s\", \"at_s\": %g, \"bandwidth_fraction\": 1}", change.link, change.until_s);
    fputs("]}", file);
    fclose(file);
    const struct dl_session_request request = {.topo = training_input(step->system, texts),
                                               .strategy = training_input(step->strategy, texts),
                                               .workload = training_input(step->workload, texts),
                                               .software = training_input(FLASH, texts),
                                               .device = training_input(IDEAL_DEVICE, texts),
                                               .scenario = change.link ? path : NULL,
                                               .most.in_step.bundles = most_bundles};
    dl_session_open(s, &request);
    unlink(path);
    dl_arena_free(texts);
}

static void open_step(struct dl_session *s, const struct step *step, const char *link, double fraction)
{
    open_limited(s, step, (struct change){link, fraction, 0}, 0);
}

static struct training_outcome play_on(const char *engine, const struct step *step, const char *link, double fraction)
{
    struct dl_session s;
    open_step(&s, step, link, fraction);
    ck_assert_msg(!s.err.status, "%s", s.err.text);
    const struct training_outcome outcome = training_simulate(&s, engine);
    dl_session_close(&s);
    return outcome;
}

static struct training_outcome play(const struct step *step, const char *link, double fraction)
{
    return play_on("simgrid", step, link, fraction);
}

static const struct step steps[] = {
    {SYSTEM, GPT, STRATEGY("2", "{'name':'tensor','ways':2}"), DL_CAUSE_TENSOR},
    {SYSTEM, GPT, STRATEGY("4", "{'name':'tensor','ways':4}"), DL_CAUSE_TENSOR},
    {SYSTEM, MOE, STRATEGY("2", "{'name':'expert','ways':2},{'name':'data'}"), DL_CAUSE_EXPERT},
};

/* Nothing but the links takes time, and all wait for the slowest. */
START_TEST(half_the_bandwidth_is_twice_the_time)
{
    const double exactly = 1e-9;
    const struct step *const step = &steps[_i];
    const double whole_s = play(step, NULL, 1).result.exposed_s[step->cause];
    const double same_s = play(step, FIRST_LINK, 1).result.exposed_s[step->cause];
    const double half_s = play(step, FIRST_LINK, 0.5).result.exposed_s[step->cause];
    ck_assert(whole_s > 0 && fabs(same_s / whole_s - 1) < exactly);
    ck_assert_msg(fabs(half_s / whole_s - 2) < exactly, "%.12g s, and %.12g s with half the bandwidth", whole_s,
                  half_s);
}
END_TEST

START_TEST(a_machine_that_is_cut_in_two_is_refused)
{
    struct dl_session s;
    open_step(&s, &steps[_i], FIRST_LINK, 0);
    ck_assert_int_eq(s.err.status, DL_IMPOSSIBLE);
    ck_assert_ptr_nonnull(strstr(s.err.text, ":/links: cuts test in two"));
    dl_session_close(&s);
}
END_TEST

/* Nothing but the links takes time, and nobody can go on without the one that has failed. */
START_TEST(a_step_goes_on_when_the_link_comes_back)
{
    const double exactly = 1e-9, until_s = 5;
    const double whole_s = play(&steps[_i], NULL, 1).result.step_s;
    for (size_t i = 0; i < dl_engine_sharing_count(); i++) {
        struct dl_session s;
        open_limited(&s, &steps[_i], (struct change){FIRST_LINK, 0, until_s}, 0);
        ck_assert_msg(!s.err.status, "%s", s.err.text);
        const struct training_outcome outcome = training_simulate(&s, dl_engine_get(i)->name);
        dl_session_close(&s);
        ck_assert_msg(fabs(outcome.result.step_s / (until_s + whole_s) - 1) < exactly, "%s: %.12g s, not %.12g s",
                      dl_engine_get(i)->name, outcome.result.step_s, until_s + whole_s);
    }
}
END_TEST

/* Ranks are on the first node; the network is not theirs. */
START_TEST(changes_elsewhere_change_nothing)
{
    static const char *const elsewhere[] = {"node1: device0 -> nvswitch0", "node0: device5 -> nvswitch0",
                                            "node0.nic0 -> leaf0"};
    const struct step step = {"dgx-h100", GPT, STRATEGY("4", "{'name':'tensor','ways':4}"), DL_CAUSE_TENSOR};
    const struct training_outcome usual = play(&step, NULL, 1);
    for (size_t i = 0; i < DL_COUNT(elsewhere); i++)
        ck_assert_double_eq(play(&step, elsewhere[i], 0).result.step_s, usual.result.step_s);
}
END_TEST

/* ---- where there are too many for all to be played ---- */

#define WITH_DATA(devices, stack) STRATEGY(devices, stack ",{'name':'data'}")
static const struct {
    const char *system, *workload, *strategy, *link;
    uint32_t n_playing; /* lockstep groups */
    bool may_meet;      /* others; but they do not */
} divided[] = {
    {SYSTEM, GPT, WITH_DATA("8", "{'name':'tensor','ways':2}"), FIRST_LINK, 1, false},
    {SYSTEM, GPT, WITH_DATA("16", "{'name':'tensor','ways':2},{'name':'context','ways':2,'kind':'allgather'}"),
     "node6.device0 -> switch", 1, false},
    {SYSTEM, MOE, WITH_DATA("8", "{'name':'expert','ways':2}"), FIRST_LINK, 2, false},
    {SYSTEM, MOE, WITH_DATA("16", "{'name':'expert','ways':2},{'name':'tensor','ways':2}"), "node13.device0 -> switch",
     2, false},
    {"dgx-h100", GPT, WITH_DATA("32", "{'name':'tensor','ways':4}"), "node1: device5 -> nvswitch0", 1, false},
    /* One micro-batch: nobody works while something is sent. */
    {SYSTEM, GPT, WITH_DATA("32", "{'name':'tensor','ways':2},{'name':'pipeline','ways':2}"),
     "node17.device0 -> switch", 1, true},
};

static uint32_t count_playing(const struct dl_session *s)
{
    const uint32_t *const ways = s->job.setting.ways;
    uint32_t n = 0;
    for (uint32_t i = 0; i < ways[DL_AXIS_PIPELINE] * ways[DL_AXIS_DATA]; i++) n += s->lowered.plan.lockstep_groups[i];
    return n;
}

/* Nothing else is on their links, so that those of other lockstep groups take their own time. */
START_TEST(those_that_do_not_cross_a_change_need_not_be_played)
{
    static const double fractions[] = {1, 0.5, 0.01};
    const double exactly = 1e-9;
    const struct step step = {
        .system = divided[_i].system, .workload = divided[_i].workload, .strategy = divided[_i].strategy};
    for (size_t i = 0; i < DL_COUNT(fractions) * dl_engine_sharing_count(); i++) {
        const char *const engine = dl_engine_get(i / DL_COUNT(fractions))->name;
        const double fraction = fractions[i % DL_COUNT(fractions)];
        struct dl_session s;
        open_step(&s, &step, divided[_i].link, fraction);
        const struct dl_played all = s.lowered.played;
        ck_assert(!s.lowered.plays_beyond);
        const double all_s = training_simulate(&s, engine).result.step_s;
        dl_session_close(&s);
        open_limited(&s, &step, (struct change){divided[_i].link, fraction, 0}, 1);
        ck_assert_msg(!s.err.status && s.lowered.plan.lockstep_groups, "%s", s.err.text);
        ck_assert(s.lowered.plays_beyond);
        ck_assert_uint_eq(count_playing(&s), divided[_i].n_playing);
        ck_assert(s.lowered.played.collectives > 0 && s.lowered.played.collectives < all.collectives);
        ck_assert(s.lowered.played.bundles > 0 && s.lowered.played.bundles < all.bundles);
        ck_assert_int_eq(s.lowered.n_timed_alone > 0, divided[_i].may_meet);
        const double some_s = training_simulate(&s, engine).result.step_s;
        ck_assert_msg(fabs(some_s / all_s - 1) < exactly, "%.12g s, all played %.12g s", some_s, all_s);
        dl_session_close(&s);
    }
}
END_TEST

/* Exchanges over replicas that do not fold: estimates know of no change. */
START_TEST(with_a_change_no_exchange_is_timed)
{
    static const struct step step = {
        .system = "crossbar", .workload = GPT, .strategy = STRATEGY("8", "{'name':'data'}")};
    struct dl_session s;
    for (int changes = 0; changes < 2; changes++) {
        open_step(&s, &step, changes ? FIRST_LINK : NULL, 1);
        ck_assert_msg(!s.err.status, "%s", s.err.text);
        s.request.most.effort = 1;
        const struct training_outcome outcome = training_simulate(&s, "simgrid");
        ck_assert_int_eq(outcome.result.n_timed_alone > 0, !changes);
        ck_assert_int_eq(outcome.result.plays_beyond, changes);
        dl_session_close(&s);
    }
}
END_TEST

START_TEST(what_is_never_played_is_refused)
{
    const struct step step = {SYSTEM, GPT, STRATEGY("2", "{'name':'context','ways':2},{'name':'data'}"),
                              DL_CAUSE_CONTEXT};
    struct dl_session s;
    open_step(&s, &step, FIRST_LINK, 0.5);
    ck_assert_str_eq(s.err.text,
                     "--scenario: changes links on the way of an exchange (context, sendrecv) that is timed "
                     "beforehand and not played");
    dl_session_close(&s);
}
END_TEST

/* Gradients go to the host while parameters come. A path of its own is priced, unless it changes. */
START_TEST(copies_to_the_host_cross_links_that_change)
{
    const double exactly = 1e-9, until_s = 5;
    const struct step step = {SYSTEM, GPT, STRATEGY("1", "{'name':'offload','optimizer':1}"), DL_CAUSE_OFFLOAD};
    const char link[] = "node0: device0 -> host";
    const double whole_s = play(&step, NULL, 1).result.exposed_s[step.cause];
    const double same_s = play(&step, link, 1).result.exposed_s[step.cause];
    const double half_s = play(&step, link, 0.5).result.exposed_s[step.cause];
    ck_assert(whole_s > 0 && fabs(same_s / whole_s - 1) < exactly && fabs(half_s / whole_s - 2) < exactly);
    struct dl_session s;
    open_limited(&s, &step, (struct change){link, 0, until_s}, 0);
    ck_assert_msg(!s.err.status, "%s", s.err.text);
    const double late_s = training_simulate(&s, "simgrid").result.step_s;
    ck_assert_msg(fabs(late_s / (until_s + whole_s) - 1) < exactly, "%.12g s", late_s);
    dl_session_close(&s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("changes");
    tcase_add_loop_test(tests, half_the_bandwidth_is_twice_the_time, 0, DL_COUNT(steps));
    tcase_add_loop_test(tests, a_machine_that_is_cut_in_two_is_refused, 0, DL_COUNT(steps));
    tcase_add_loop_test(tests, a_step_goes_on_when_the_link_comes_back, 0, DL_COUNT(steps));
    tcase_add_test(tests, changes_elsewhere_change_nothing);
    tcase_add_loop_test(tests, those_that_do_not_cross_a_change_need_not_be_played, 0, DL_COUNT(divided));
    tcase_add_test(tests, with_a_change_no_exchange_is_timed);
    tcase_add_test(tests, what_is_never_played_is_refused);
    tcase_add_test(tests, copies_to_the_host_cross_links_that_change);
    Suite *const suite = suite_create("training_changes");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
