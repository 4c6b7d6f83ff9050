/* sensitivity_slow.c - elasticities of simulated steps against closed forms and Euler's theorem. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/study/sensitivity_runs.h"

#include <math.h>
#include <stdio.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

/* ---- steps ---- */

#define MLP                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':512,'heads':8,"           \
    "'seq':128,'vocab':1024}"
#define HEAD "'devices':16,'global_batch':64,'precision':'bf16'"

static struct dl_arena *texts;

static struct dl_sensitivity find(struct dl_session *s, struct dl_session_request request, size_t n_workers)
{
    ck_assert_msg(!dl_session_open(s, &request), "%s", s->err.text);
    struct dl_sensitivity found;
    struct dl_error err = {0};
    const struct dl_sensitivity_request wanted = {.session = s, .n_workers = n_workers};
    ck_assert_msg(!dl_sensitivity_find(&wanted, &found, &err), "%s", err.text);
    return found;
}

static struct dl_session_request request_of(const char *system, const char *device, const char *software,
                                            const char *stack)
{
    const char *const strategy = dl_arena_format(
        texts, "{'schema':'dlsim/strategy/1','source':'a test','workload':'none'," HEAD ",'stack':[%s]}", stack);
    return (struct dl_session_request){.topo = training_input(system, texts),
                                       .strategy = training_input(strategy, texts),
                                       .workload = training_input(MLP, texts),
                                       .software = training_input(software, texts),
                                       .device = training_input(device, texts),
                                       .engine = "analytic"};
}

static const struct dl_effect *effect_of(const struct dl_sensitivity *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i].path, path) == 0) return &s->items[i];
    ck_abort_msg("%s has no effect", path);
    return NULL;
}

START_TEST(one_allreduce_has_the_elasticities_of_its_closed_form)
{
    struct dl_session s;
    const struct dl_sensitivity found =
        find(&s, request_of(IDEAL_SYSTEM("1e9", "1e-4"), IDEAL_DEVICE, "ideal", "{'name':'data'}"), 0);
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    const double step_s = s.report.result.step_s, compute_s = s.report.result.exposed_s[DL_CAUSE_COMPUTE] +
                                                              s.report.result.exposed_s[DL_CAUSE_OPTIMIZER];
    const double n = s.job.n_devices, wire_s = 2 * (n - 1) / n * s.lowered.calls[0].bytes / 1e9;
    const double tolerance = 1e-4; /* curvature of the differences */
    ck_assert_double_eq(found.step_s, step_s);
    ck_assert_double_gt(wire_s, 0.1 * step_s);
    ck_assert_double_eq_tol(effect_of(&found, "topo.network.bandwidth_bytes_per_s")->elasticity, -wire_s / step_s,
                            tolerance);
    ck_assert_double_eq_tol(effect_of(&found, "topo.network.latency_s")->elasticity,
                            (step_s - wire_s - compute_s) / step_s, tolerance);
    ck_assert_double_eq_tol(found.sum, 1, tolerance);
    dl_session_close(&s);
}
END_TEST

#define TWO_LINKS(of_nic)                                                                                              \
    "{'schema':'dlsim/system/1','source':'a test','nodes':16,'node':{'device':'a test','devices':1,'parts':[],"        \
    "'nics':{'count':1,'attach':['device0'],'link':'pcie4','bandwidth_bytes_per_s':" of_nic ",'latency_s':0}},"        \
    "'network':{'kind':'crossbar','link':'ib','bandwidth_bytes_per_s':1e9,'latency_s':0}}"

START_TEST(of_two_links_in_a_row_the_slower_one_counts)
{
    struct dl_session s;
    const struct dl_sensitivity found =
        find(&s, request_of(TWO_LINKS("2e9"), IDEAL_DEVICE, "ideal", "{'name':'data'}"), 0);
    const struct dl_effect *const e = effect_of(&found, "topo.network.bandwidth_bytes_per_s");
    ck_assert_double_lt(e->below, -0.5);
    ck_assert_double_eq_tol(e->below, e->above, 1e-2);
    ck_assert_str_eq(e->of, "ib");
    for (size_t i = 0; i < found.n; i++) ck_assert_ptr_null(strstr(found.items[i].path, "nics"));
    dl_session_close(&s);
}
END_TEST

START_TEST(of_two_links_alike_each_counts_if_it_is_slower_and_not_if_faster)
{
    struct dl_session s;
    const struct dl_sensitivity found =
        find(&s, request_of(TWO_LINKS("1e9"), IDEAL_DEVICE, "ideal", "{'name':'data'}"), 0);
    static const char *const paths[] = {"topo.network.bandwidth_bytes_per_s", "topo.node.nics.bandwidth_bytes_per_s"};
    for (size_t i = 0; i < DL_COUNT(paths); i++) {
        const struct dl_effect *const e = effect_of(&found, paths[i]);
        ck_assert_double_lt(e->below, -0.5);
        ck_assert_double_eq_tol(e->above, 0, 1e-12);
        ck_assert_double_eq_tol(e->elasticity, e->below / 2, 1e-12);
    }
    ck_assert_double_eq_tol(found.sum, 1, 1e-2);
    dl_session_close(&s);
}
END_TEST

#define PAIR                                                                                                           \
    "{'schema':'dlsim/system/1','source':'a test','nodes':2,'node':{'device':'a test','devices':1,'parts':[]},"        \
    "'network':{'kind':'graph','link':'ib','bandwidth_bytes_per_s':1e9,'latency_s':1e-6,'switches':1,"                 \
    "'links':[[0,2],[1,2,5e8,1e-3]]}}"

START_TEST(links_of_a_graph_are_constants_too)
{
    struct dl_session s;
    struct dl_session_request q = request_of(PAIR, IDEAL_DEVICE, "ideal", "{'name':'data'}");
    q.devices = 2;
    const struct dl_sensitivity found = find(&s, q, 0);
    ck_assert_int_eq(effect_of(&found, "topo.network.links.1.2")->dimension, DL_RATE);
    ck_assert_int_eq(effect_of(&found, "topo.network.links.1.3")->dimension, DL_TIME);
    ck_assert_double_eq_tol(found.sum, 1, 1e-3);
    dl_session_close(&s);
}
END_TEST

#define HOST_BOUND "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-3,'launches_per_kernel':1.5}"

/* They are changed together at first, the time to more and the factor to less. */
START_TEST(a_time_and_a_count_of_it_do_not_hide_each_other)
{
    struct dl_session s;
    const struct dl_sensitivity found =
        find(&s, request_of(IDEAL_SYSTEM("1e9", "1e-6"), IDEAL_DEVICE, HOST_BOUND, "{'name':'data'}"), 0);
    ck_assert_double_gt(effect_of(&found, "software.host_s_per_launch")->elasticity, 0.9);
    ck_assert_double_gt(effect_of(&found, "software.launches_per_kernel")->elasticity, 0.9);
    ck_assert_double_eq_tol(found.sum, 1, 1e-3);
    dl_session_close(&s);
}
END_TEST

/* ---- shipped files ---- */

static const struct {
    const char *system, *software, *stack, *engine;
} shipped[] = {
    {"selene", "megatron-2022", "{'name':'pipeline','ways':4},{'name':'tensor','ways':2},{'name':'data'}", "simgrid"},
    {"lumi", "axonn", "{'name':'tensor','ways':4},{'name':'data'},{'name':'zero','stage':3}", "analytic"},
    {"dgx-h100", "megatron-core", "{'name':'pipeline','ways':2,'schedule':'zb-h1'},{'name':'data'}", "analytic"},
    {"tpu-v4", "maxtext", "{'name':'tensor','ways':4},{'name':'data'}", "analytic"},
    {"summit", "deepspeed-2021", "{'name':'data'},{'name':'offload','optimizer':1}", "analytic"},
};

static struct dl_session_request shipped_request(int i)
{
    struct dl_session_request q = request_of(shipped[i].system, NULL, shipped[i].software, shipped[i].stack);
    q.engine = shipped[i].engine;
    if (strcmp(shipped[i].system, "summit") == 0) q.set = (struct dl_texts){{"precision=\"fp16\""}, 1};
    return q;
}

/* Seconds scale with all times and the inverse of all rates; so the sum is 1 if the files hold every constant. */
START_TEST(by_euler_times_less_rates_sum_to_one)
{
    struct dl_session s;
    const struct dl_sensitivity found = find(&s, shipped_request(_i), 0);
    ck_assert_uint_eq(found.n_fixed, 0);
    ck_assert_double_eq_tol(found.sum, 1, 0.01); /* 1 % changes of times that take turns at being the longest */
    ck_assert_double_lt(found.step_s_low, found.step_s);
    ck_assert_double_gt(found.step_s_high, found.step_s);
    dl_session_close(&s);
}
END_TEST

/* Beside what the model leaves open, which is 30 % and more. */
START_TEST(a_third_of_the_runs_leaves_as_much_open)
{
    struct dl_session s;
    struct dl_sensitivity few;
    struct dl_error err = {0};
    const double of_model = 0.3;
    const struct dl_sensitivity all = find(&s, shipped_request(_i), 0);
    const struct dl_sensitivity_request wanted = {.session = &s, .least_open = 0.01};
    ck_assert_msg(!dl_sensitivity_find(&wanted, &few, &err), "%s", err.text);
    ck_assert_double_eq(few.step_s, all.step_s);
    ck_assert_double_le(few.constants_s_high, all.constants_s_high * (1 + 1e-12));
    ck_assert_double_eq_tol(hypot(few.constants_s_high / few.step_s - 1, of_model),
                            hypot(all.constants_s_high / all.step_s - 1, of_model), 0.01 * of_model);
    ck_assert_uint_lt(few.n_runs, 2 * all.n_runs / 3);
    dl_session_close(&s);
}
END_TEST

/* The step by a session that chooses collectives itself. */
static double step_with(int i, const struct dl_effect *e, double factor)
{
    struct dl_session s;
    struct dl_session_request q = shipped_request(i);
    q.set.items[q.set.n++] = dl_arena_format(texts, "%s=%.17g", e->path, e->value * factor);
    q.n_doubts = 1;
    ck_assert_msg(!dl_session_open(&s, &q) && !dl_session_run(&s), "%s", s.err.text);
    const double step_s = s.report.result.step_s;
    dl_session_close(&s);
    return step_s;
}

START_TEST(what_was_chosen_for_collectives_holds_with_other_devices_and_software)
{
    struct dl_session s;
    const struct dl_session_request q = shipped_request(_i);
    if (strcmp(q.engine, "analytic")) return; /* of SimGrid there is one run a process */
    const struct dl_sensitivity found = find(&s, q, 0);
    size_t n = 0;
    for (size_t i = 0; i < found.n && n < 6; i++) {
        const struct dl_effect *const e = &found.items[i];
        if (strncmp(e->path, "device.", 7) && strncmp(e->path, "software.", 9)) continue;
        if (strcmp(e->path, "device.measured") == 0) continue;
        const double step_s = step_with(_i, e, 1.01);
        ck_assert_double_eq_tol(e->above, log(step_s / found.step_s) / log(1.01), 1e-12);
        n++;
    }
    ck_assert_uint_gt(n, 2);
    dl_session_close(&s);
}
END_TEST

static void same_effects(const struct dl_sensitivity *a, const struct dl_sensitivity *b)
{
    ck_assert_double_eq(a->step_s, b->step_s);
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->n_runs, b->n_runs);
    ck_assert_double_eq(a->constants_s_low, b->constants_s_low);
    ck_assert_double_eq(a->constants_s_high, b->constants_s_high);
    for (size_t i = 0; i < a->n; i++) {
        ck_assert_str_eq(a->items[i].path, b->items[i].path);
        ck_assert_double_eq(a->items[i].below, b->items[i].below);
        ck_assert_double_eq(a->items[i].above, b->items[i].above);
    }
}

/* One after the other they are in this process, on the machine and with the choices of the first. With a limit each has
 * a process, and chooses what the session that is not run has not. */
START_TEST(runs_of_one_process_find_what_many_do)
{
    struct dl_session s;
    struct dl_error err = {0};
    struct dl_sensitivity found[3];
    struct dl_session_request q = shipped_request(_i);
    q.engine = "analytic";
    ck_assert_msg(!dl_session_open(&s, &q), "%s", s.err.text);
    for (size_t i = 0; i < 3; i++) {
        const struct dl_sensitivity_request wanted = {
            .session = &s, .least_open = 0.01, .n_workers = i ? 2 : 1, .limit_s = i < 2 ? 0 : 1e3};
        ck_assert_msg(!dl_sensitivity_find(&wanted, &found[i], &err), "%s", err.text);
    }
    same_effects(&found[0], &found[1]);
    same_effects(&found[0], &found[2]);
    dl_session_close(&s);
}
END_TEST

START_TEST(measured_times_are_one_constant)
{
    struct dl_session s;
    struct dl_session_request q = request_of(IDEAL_SYSTEM("1e9", "1e-6"), "xeon-core", "ideal", "{'name':'data'}");
    q.set = (struct dl_texts){{"precision=\"fp32\""}, 1};
    const struct dl_sensitivity found = find(&s, q, 0);
    ck_assert_double_gt(effect_of(&found, "device.measured")->elasticity, 0.3);
    ck_assert_double_eq_tol(found.sum, 1, 0.01);
    dl_session_close(&s);
}
END_TEST

/* A limit of power that is felt. */
START_TEST(watts_are_rates)
{
    struct dl_session s;
    struct dl_session_request q = request_of(IDEAL_SYSTEM("1e15", "0"), "h200", "ideal", "{'name':'data'}");
    q.set = (struct dl_texts){{"workload.hidden=4096", "global_batch=256", "microbatch=16"}, 3};
    const struct dl_sensitivity found = find(&s, q, 0);
    ck_assert_double_lt(s.lowered.clock, 1);
    ck_assert_int_eq(effect_of(&found, "device.power.limit_w")->dimension, DL_RATE);
    ck_assert_double_lt(effect_of(&found, "device.power.limit_w")->elasticity, -0.2);
    ck_assert_double_eq_tol(found.sum, 1, 0.01);
    dl_session_close(&s);
}
END_TEST

static void collect_value(void *user, const struct dl_fact *fact)
{
    double **const next = user;
    *(*next)++ = fact->value;
}

static void count_number(void *user, const struct dl_fact *fact)
{
    (void)fact;
    ++*(size_t *)user;
}

static struct dl_json doc_of(const struct dl_session *s, const char *path)
{
    const struct dl_json docs[] = {s->machine.system_doc, s->device_doc, s->machine.transport_doc, s->software_doc};
    static const char *const prefixes[] = {"topo.", "device.", "transport.", "software."};
    for (size_t i = 0; i < DL_COUNT(docs); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0) return docs[i];
    ck_abort_msg("%s is of no file", path);
    return docs[0];
}

/* How many numbers of its document the constant's assignment changes. */
static size_t count_changed(const struct dl_session *s, const struct dl_figure *c)
{
    const struct dl_json doc = doc_of(s, c->effect.path);
    const struct dl_json changed = {.value = json_deep_copy(doc.value), .where = doc.where};
    const char *const assignment = strchr(dl_figure_changed(c, 2, s->arena), '.') + 1;
    struct dl_error err = {0};
    size_t n = 0, n_changed = 0;
    ck_assert_msg(!dl_json_set(changed, assignment, s->arena, &err), "%s", err.text);
    dl_json_facts(doc, s->arena, count_number, &n);
    double *const before = dl_alloc(n * sizeof *before), *const after = dl_alloc(n * sizeof *after), *next = before;
    dl_json_facts(doc, s->arena, collect_value, &next);
    next = after;
    dl_json_facts(changed, s->arena, collect_value, &next);
    for (size_t i = 0; i < n; i++) n_changed += before[i] != after[i];
    dl_free(before);
    dl_free(after);
    json_decref(changed.value);
    return n_changed;
}

START_TEST(the_path_of_a_constant_changes_it_and_nothing_else)
{
    struct dl_session s;
    struct dl_figures constants = {0};
    const struct dl_session_request q = shipped_request(_i);
    ck_assert_msg(!dl_session_open(&s, &q), "%s", s.err.text);
    dl_figures_find(&s, &constants);
    ck_assert_uint_gt(constants.n, 5);
    for (size_t i = 0; i < constants.n; i++)
        ck_assert_msg(count_changed(&s, &constants.items[i]) == 1, "%s", constants.items[i].effect.path);
    dl_free(constants.items);
    dl_session_close(&s);
}
END_TEST

START_TEST(the_same_bits_whatever_the_number_of_workers)
{
    struct dl_session s[2];
    char *said[2];
    for (int i = 0; i < 2; i++) {
        const struct dl_sensitivity found =
            find(&s[i], request_of(TWO_LINKS("1e9"), IDEAL_DEVICE, "megatron-2021", "{'name':'data'}"), i ? 3 : 1);
        json_t *const json = json_object();
        dl_sensitivity_add_json(&found, json);
        said[i] = json_dumps(json, JSON_REAL_PRECISION(17));
        json_decref(json);
        dl_session_close(&s[i]);
    }
    ck_assert_str_eq(said[0], said[1]);
    for (int i = 0; i < 2; i++) free(said[i]);
}
END_TEST

#define SURE_SYSTEM(fact)                                                                                              \
    "{'schema':'dlsim/system/1','source':'a test','nodes':16,'node':{'device':'a test','devices':1,'parts':[]},"       \
    "'network':{'kind':'crossbar','link':'ib','bandwidth_bytes_per_s':1e9,'latency_s':0,"                              \
    "'facts':{'bandwidth_bytes_per_s':" fact "}}}"

START_TEST(the_interval_of_a_fact_reaches_the_step)
{
    struct dl_session s;
    const char *const system =
        SURE_SYSTEM("{'grade':'measured','source':'a test','low':0.6e9,'high':1e9}"); /* surely not faster */
    const struct dl_sensitivity found = find(&s, request_of(system, IDEAL_DEVICE, "ideal", "{'name':'data'}"), 0);
    const struct dl_effect *const e = effect_of(&found, "topo.network.bandwidth_bytes_per_s");
    ck_assert(!e->by_grade);
    ck_assert_double_eq(e->low, 0.6e9);
    ck_assert_double_eq(e->high, 1e9);
    ck_assert_double_ge(found.step_s_high, found.step_s * (1 - 0.4 * e->elasticity));
    dl_session_close(&s);
}
END_TEST

static void set_up(void) { texts = dl_arena_new(); }

static void tear_down(void) { dl_arena_free(texts); }

int main(void)
{
    Suite *const suite = suite_create("sensitivity");
    TCase *const tests = tcase_create("sensitivity");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_allreduce_has_the_elasticities_of_its_closed_form);
    tcase_add_test(tests, of_two_links_in_a_row_the_slower_one_counts);
    tcase_add_test(tests, of_two_links_alike_each_counts_if_it_is_slower_and_not_if_faster);
    tcase_add_test(tests, links_of_a_graph_are_constants_too);
    tcase_add_test(tests, a_time_and_a_count_of_it_do_not_hide_each_other);
    tcase_add_loop_test(tests, by_euler_times_less_rates_sum_to_one, 0, (int)DL_COUNT(shipped));
    tcase_add_loop_test(tests, a_third_of_the_runs_leaves_as_much_open, 0, (int)DL_COUNT(shipped));
    tcase_add_loop_test(tests, what_was_chosen_for_collectives_holds_with_other_devices_and_software, 0,
                        (int)DL_COUNT(shipped));
    tcase_add_loop_test(tests, runs_of_one_process_find_what_many_do, 0, (int)DL_COUNT(shipped));
    tcase_add_test(tests, measured_times_are_one_constant);
    tcase_add_test(tests, watts_are_rates);
    tcase_add_loop_test(tests, the_path_of_a_constant_changes_it_and_nothing_else, 0, (int)DL_COUNT(shipped));
    tcase_add_test(tests, the_same_bits_whatever_the_number_of_workers);
    tcase_add_test(tests, the_interval_of_a_fact_reaches_the_step);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
