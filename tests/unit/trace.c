/* trace.c - the trace of a training step, read back: it tells the same as the result. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS, mkstemp */
#include <math.h>

#include "sim/report/trace.h"
#include "tests/unit/hand_made_step.h"
#include "tests/unit/suite.h"

static const double ns_in_us = 1e-3;
enum { instructions_of_an_item = 2 };

static const struct step pipeline = {.schedule = "1f1b",
                                     .stages = 3,
                                     .replicas = 2,
                                     .micros = 5,
                                     .chunks = 1,
                                     .forward_s = 1,
                                     .backward_s = 2,
                                     .update_s = 0.5,
                                     .send_bytes = 0.25 * BYTES_PER_S,
                                     .gradient_bytes = BYTES_PER_S,
                                     .barrier = true,
                                     .iterations = 1};

struct traced {
    struct step step;
    struct dl_training_result result;
    struct {
        uint32_t replicas;
        uint64_t slices, instructions;
    } left_out;
    json_t *events;
};

/* Play the step in this process, write the trace and read it back. */
static struct traced trace(struct step s, size_t most_slices)
{
    struct traced t = {.step = s};
    struct hand_made h;
    char path[] = "/tmp/dlsim-trace-XXXXXX";
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    make_by_hand(&h, &t.step);
    h.timeline = dl_timeline_new(&(struct dl_timeline_request){
        .step = dl_lowered_step(&h.lowered, &h.setting), .topology = h.machine.topology, .most_slices = most_slices});
    t.result = play_here(&h);
    dl_trace_write(h.timeline, path, &t.left_out.instructions, &h.err);
    t.left_out.slices = h.timeline->left_out.slices;
    t.left_out.replicas = h.timeline->left_out.replicas;
    check_ok(&h.err);
    json_error_t json_error;
    json_t *const root = json_load_file(path, JSON_REJECT_DUPLICATES, &json_error);
    ck_assert_msg(root != NULL, "%s", json_error.text);
    t.events = json_incref(json_object_get(root, "traceEvents"));
    ck_assert(json_is_array(t.events));
    json_decref(root);
    unlink(path);
    dl_timeline_free(h.timeline);
    release_by_hand(&h);
    return t;
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *const text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static double number_of(const json_t *event, const char *key) { return json_number_value(json_object_get(event, key)); }

static bool is_slice(const json_t *event, const char *category)
{
    return !strcmp(text_of(event, "ph"), "X") && !strcmp(text_of(event, "cat"), category);
}

static bool is_time_of_group(const json_t *event, uint32_t process)
{
    return (is_slice(event, "work") || is_slice(event, "wait")) && number_of(event, "pid") == process;
}

static size_t count(const struct traced *t, const char *category)
{
    size_t n = 0, i;
    const json_t *event;
    json_array_foreach(t->events, i, event) n += is_slice(event, category);
    return n;
}

/* Without gap or overlap, from 0 to the end. */
static void check_time_of_group(const struct traced *t, uint32_t process, double end_us)
{
    double at_us = 0;
    size_t i;
    const json_t *event;
    json_array_foreach(t->events, i, event)
    {
        if (!is_time_of_group(event, process)) continue;
        ck_assert_double_eq_tol(number_of(event, "ts"), at_us, ns_in_us / 2);
        at_us = number_of(event, "ts") + number_of(event, "dur");
    }
    ck_assert_double_eq_tol(at_us, end_us, ns_in_us);
}

static double sum_of(const struct traced *t, enum dl_cause cause)
{
    char key[40];
    double sum_s = 0;
    size_t i;
    const json_t *event;
    snprintf(key, sizeof key, "%s_s", dl_cause_name(cause));
    json_array_foreach(t->events, i, event) if (is_slice(event, "work") || is_slice(event, "wait")) sum_s +=
        number_of(json_object_get(event, "args"), key);
    return sum_s;
}

/* With a slow host, or with work that is slowed by what goes on beside it. */
START_TEST(slices_of_a_lockstep_group_are_its_time_and_sum_to_the_causes)
{
    struct step s = pipeline;
    s.launch_host_s = _i == 1 ? 0.7 : 0;
    s.send_host_s = s.launch_host_s / 2;
    s.taken_by_sends = taken_alike(_i == 2 ? 0.3 : 0);
    const struct traced t = trace(s, 0);
    const uint32_t n_lockstep_groups = t.step.stages * t.step.replicas;
    const double rounding = 1e-8;
    for (uint32_t process = 1; process <= n_lockstep_groups; process++)
        check_time_of_group(&t, process, t.result.step_s * 1e6);
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        ck_assert_double_eq_tol(sum_of(&t, (enum dl_cause)cause) / n_lockstep_groups, t.result.exposed_s[cause],
                                rounding * t.result.step_s);
    ck_assert_double_gt(t.result.exposed_s[DL_CAUSE_BUBBLE], 0);
    ck_assert((t.result.exposed_s[DL_CAUSE_HOST] > 0) == (_i == 1));
    ck_assert((t.result.exposed_s[DL_CAUSE_INTERFERENCE] > 0) == (_i == 2));
    json_decref(t.events);
}
END_TEST

/* Lockstep groups are somewhere else in the step when the last one is over. */
START_TEST(slices_go_on_over_iterations)
{
    struct step s = pipeline;
    s.iterations = 3;
    s.barrier = false;
    const struct traced t = trace(s, 0);
    double end_us = 0;
    size_t i;
    const json_t *event;
    json_array_foreach(t.events, i, event) if (is_time_of_group(event, 1)) end_us =
        number_of(event, "ts") + number_of(event, "dur");
    ck_assert_double_gt(end_us, 2e6 * t.result.step_s);
    for (uint32_t process = 1; process <= s.stages * s.replicas; process++) check_time_of_group(&t, process, end_us);
    json_decref(t.events);
}
END_TEST

START_TEST(everything_that_happens_has_a_slice)
{
    const struct traced t = trace(pipeline, 0);
    const struct step *const s = &t.step;
    const size_t n_lockstep_groups = s->stages * s->replicas, n_items = 2 * s->micros * n_lockstep_groups;
    ck_assert_uint_eq(count(&t, "work"), n_items + n_lockstep_groups);
    ck_assert_uint_eq(count(&t, "send"), t.result.n_sends);
    ck_assert_uint_eq(count(&t, "exchange"), n_lockstep_groups);
    ck_assert_uint_eq(count(&t, "compute") + count(&t, "tensor"), instructions_of_an_item * n_items);
    ck_assert_uint_eq(t.left_out.slices + t.left_out.instructions, 0);
    json_decref(t.events);
}
END_TEST

START_TEST(instructions_lie_inside_of_their_part)
{
    const struct traced t = trace(pipeline, 0);
    double from_us = 0, to_us = 0;
    size_t i, n = 0;
    const json_t *event;
    json_array_foreach(t.events, i, event)
    {
        if (is_slice(event, "work")) {
            from_us = number_of(event, "ts");
            to_us = from_us + number_of(event, "dur");
        }
        if (!is_slice(event, "compute") && !is_slice(event, "tensor")) continue;
        const bool first = is_slice(event, "compute");
        n += first;
        ck_assert_str_eq(text_of(event, "name"), first ? "half \"one\"" : "half two");
        ck_assert_double_eq_tol(number_of(event, "dur"), (to_us - from_us) / 2, ns_in_us);
        if (first) ck_assert_double_eq_tol(number_of(event, "ts"), from_us, ns_in_us / 2);
        if (!first) ck_assert_double_eq_tol(number_of(event, "ts") + number_of(event, "dur"), to_us, ns_in_us / 2);
    }
    ck_assert_uint_gt(n, 0);
    json_decref(t.events);
}
END_TEST

/* The host of the first stage does nothing but launch: its k-th instruction starts no earlier than after k launches. */
START_TEST(instructions_start_when_they_are_launched)
{
    struct step s = pipeline;
    s.stages = s.replicas = 1;
    s.gradient_bytes = s.update_s = 0;
    s.launch_host_s = 5;
    const struct traced t = trace(s, 0);
    size_t i;
    uint32_t n = 0;
    const json_t *event;
    json_array_foreach(t.events, i, event) if (is_slice(event, "compute") || is_slice(event, "tensor"))
        ck_assert_double_eq_tol(number_of(event, "ts"), 1e6 * s.launch_host_s * ++n, ns_in_us);
    ck_assert_uint_eq(n, 2 * instructions_of_an_item * s.micros);
    json_decref(t.events);
}
END_TEST

START_TEST(what_has_no_room_is_counted)
{
    const struct traced t = trace(pipeline, 20);
    ck_assert_uint_eq(count(&t, "compute") + count(&t, "tensor"), 0);
    ck_assert_uint_eq(count(&t, "work") + count(&t, "wait") + count(&t, "send") + count(&t, "exchange"), 20);
    ck_assert_uint_gt(t.left_out.slices, 0);
    ck_assert_uint_gt(t.left_out.instructions, 0);
    json_decref(t.events);
}
END_TEST

START_TEST(few_replicas_are_all_shown)
{
    struct step s = pipeline;
    s.stages = 2;
    s.replicas = DL_TIMELINE_GROUPS / s.stages;
    const struct traced t = trace(s, 0);
    ck_assert_uint_eq(count(&t, "exchange"), DL_TIMELINE_GROUPS);
    ck_assert_uint_eq(t.left_out.replicas, 0);
    json_decref(t.events);
}
END_TEST

START_TEST(many_replicas_are_shown_by_the_first)
{
    struct step s = pipeline;
    s.stages = 1;
    s.replicas = DL_TIMELINE_GROUPS + 1;
    const struct traced t = trace(s, 0);
    ck_assert_uint_eq(count(&t, "exchange"), 1);
    ck_assert_uint_eq(t.left_out.replicas, DL_TIMELINE_GROUPS);
    json_decref(t.events);
}
END_TEST

START_TEST(looking_changes_nothing)
{
    const struct dl_training_result usual = play(&pipeline);
    const struct traced t = trace(pipeline, 0);
    ck_assert_double_eq(t.result.step_s, usual.step_s);
    ck_assert(!memcmp(t.result.exposed_s, usual.exposed_s, sizeof usual.exposed_s));
    json_decref(t.events);
}
END_TEST

/* ---- the tap ---- */

START_TEST(tap_keeps_all_bytes_and_their_rate)
{
    const double bytes_per_s = 100, seconds = 50, weight = 2;
    const struct dl_engine_link links[] = {{.bandwidth_bytes_per_s = bytes_per_s}, {.bandwidth_bytes_per_s = 1e9}};
    const struct dl_hop hops[] = {{.link = 0, .weight = weight}};
    struct dl_engine *const tap = dl_tap_new(dl_engine_get(0)->create(links, 2), 2);
    tap->kind->start(
        tap, &(struct dl_bundle){
                 .hops = hops, .n_hops = 1, .bytes = bytes_per_s * seconds / weight, .rate_cap_bytes_per_s = INFINITY});
    ck_assert_uint_eq(tap->kind->run(tap), 0);
    const double *const bins = dl_tap_bins(tap, 0), width_s = dl_tap_width_s(tap);
    double sum = 0;
    for (size_t i = 0; i < DL_TAP_BINS; i++) {
        sum += bins[i];
        if ((double)(i + 1) * width_s <= seconds) ck_assert_double_eq_tol(bins[i] / width_s, bytes_per_s, 1e-9);
    }
    ck_assert_double_eq_tol(sum, bytes_per_s * seconds, 1e-6);
    ck_assert_ptr_null(dl_tap_bins(tap, 1));
    tap->kind->destroy(tap);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("trace");
    TCase *const tests = tcase_create("trace");
    tcase_add_loop_test(tests, slices_of_a_lockstep_group_are_its_time_and_sum_to_the_causes, 0, 3);
    tcase_add_test(tests, slices_go_on_over_iterations);
    tcase_add_test(tests, everything_that_happens_has_a_slice);
    tcase_add_test(tests, instructions_lie_inside_of_their_part);
    tcase_add_test(tests, instructions_start_when_they_are_launched);
    tcase_add_test(tests, what_has_no_room_is_counted);
    tcase_add_test(tests, few_replicas_are_all_shown);
    tcase_add_test(tests, many_replicas_are_shown_by_the_first);
    tcase_add_test(tests, looking_changes_nothing);
    tcase_add_test(tests, tap_keeps_all_bytes_and_their_rate);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
