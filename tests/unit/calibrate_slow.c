/* calibrate_slow.c - calibration: constants that made a table come back from it, and what is not known stays as it was.
 */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/calibration_fixture.h"

struct truth {
    const char *system;
    uint32_t n_devices[2]; /* of a table each; 0: there is only one */
    struct changed {
        const char *constant; /* as dl_transport_tunables names it */
        double factor;
    } changed[3];
    double halved_from_bytes; /* times of as many and more are half of what they should be; 0: none */
};

/* One node, two nodes, and switches that add; tables of two groups, and of one alone. */
static const struct truth truths[] = {
    {"selene",
     {8, 4},
     {{"protocols/LL/peer/start_s", 1.5}, {"protocols/Simple/peer/pump_bytes_per_s/nvlink3", 1.2}},
     0},
    {"selene", {2, 8}, {{"protocols/LL128/peer/direct_s", 0.7}}, 0},
    {"dgx-a100-hdr4", {16, 24}, {{"efficiency/ib-hdr", 0.8}, {"protocols/LL/network_s/ib-hdr", 2}}, 0},
    {"h200x8", {8, 4}, {{"protocols/Simple/switch/pump_port_fraction", 0.8}, {"protocols/LL/peer/start_s", 1.3}}, 0},
    {"selene", {8}, {{"protocols/Simple/peer/pump_bytes_per_s/nvlink3", 1.2}}, 0},
    {"selene", {64}, {{"protocols/LL/network_s/ib-hdr", 2}}, 0},
    {"dgx-a100-hdr4", {16}, {{"efficiency/ib-hdr", 0.8}, {"protocols/LL/network_s/ib-hdr", 2}}, 0},
    {"perlmutter", {64}, {{"efficiency/slingshot", 0.6}}, 0},
};

static void print_table(struct subject *s, double halved_from_bytes, char *text, size_t bytes)
{
    const double most = halved_from_bytes > 0 ? 0x1p25 : 0x1p33, step = halved_from_bytes > 0 ? 2 : 4;
    size_t used =
        (size_t)snprintf(text, bytes, "# all_reduce_perf\n# size count type redop root time algbw busbw #wrong\n");
    for (double size = 8; size <= most; size *= step) {
        const double unit = halved_from_bytes > 0 && size >= halved_from_bytes ? 0.5e6 : 1e6;
        used += (size_t)snprintf(text + used, bytes - used, "%12.0f 2 float sum -1 %9.2f 0 0 N/A\n", size,
                                 unit * subject_choose(s, "auto", size).estimate.time_s);
    }
}

static void change(struct subject *s, const struct truth *truth)
{
    struct dl_error err = {0};
    const struct dl_tunables all = dl_transport_tunables(s->machine.transport_doc, s->machine.topology, s->arena);
    for (size_t i = 0; i < DL_COUNT(truth->changed) && truth->changed[i].constant; i++) {
        const struct dl_tunable *const c = find_constant(&all, truth->changed[i].constant);
        dl_tunable_set(c, truth->changed[i].factor * c->base);
    }
    dl_transport_read(s->machine.transport_doc, s->machine.topology, s->group.n_nodes, s->arena, &s->machine.transport,
                      &err);
    stop_on_error(&err);
    for (size_t i = 0; i < s->machine.topology->n_links; i++) {
        const struct dl_link *const link = &s->machine.topology->links[i];
        s->machine.bytes_per_s[i] = link->bandwidth_bytes_per_s * s->machine.transport.efficiency[link->kind];
    }
}

static void check_came_back(const struct dl_calibration *c, const struct changed *changed)
{
    const struct dl_tunable *const k = find_constant(&c->constants, changed->constant);
    const struct dl_fitted_constant *const f = &c->fitted[k - c->constants.items];
    ck_assert_msg(f->state == DL_FIT_DONE, "%s was not fitted", k->name);
    ck_assert_msg(fabs(f->value / (changed->factor * k->base) - 1) < 0.02, "%s: %g, not %g", k->name, f->value,
                  changed->factor * k->base);
    ck_assert(f->low <= f->value && f->value <= f->high);
}

static double true_value(const struct dl_tunable *k, const struct truth *truth)
{
    for (size_t i = 0; i < DL_COUNT(truth->changed) && truth->changed[i].constant; i++)
        if (strcmp(truth->changed[i].constant, k->name) == 0) return truth->changed[i].factor * k->base;
    return k->base;
}

static void check_intervals(const struct dl_calibration *c, const struct truth *truth)
{
    for (size_t i = 0; i < c->constants.n; i++) {
        const struct dl_tunable *const k = &c->constants.items[i];
        const struct dl_fitted_constant *const f = &c->fitted[i];
        const double value = true_value(k, truth);
        ck_assert_msg(f->state < DL_FIT_AGREES || (f->low <= value && value <= f->high), "%s: %g is not in %g to %g",
                      k->name, value, f->low, f->high);
    }
}

/* What the changed transport makes of a group, printed, read, and added to the runs; every second size is kept out,
 * or those that `dlsim calibrate` would keep out. */
static void add_table(struct dl_calibration *c, const struct truth *truth, const struct subject *base)
{
    static char text[8000];
    struct dl_error err = {0};
    struct dl_timings t;
    struct subject made;
    subject_open(&made, truth->system, base->group.n);
    change(&made, truth);
    print_table(&made, truth->halved_from_bytes, text, sizeof text);
    dl_timings_parse(text, "made.txt", made.arena, &t, &err);
    stop_on_error(&err);
    c->runs = dl_realloc(c->runs, (c->n_runs + t.n_rows) * sizeof *c->runs);
    for (size_t i = 0; i < t.n_rows; i++) {
        char id[80];
        snprintf(id, sizeof id, "allreduce %u %u %.0f", base->group.n, base->group.n_nodes, t.rows[i].bytes);
        const bool kept_out = truth->halved_from_bytes > 0 ? dl_is_kept_out(id) : i % 2;
        c->runs[c->n_runs++] = (struct dl_timed_run){.op = t.op,
                                                     .group = &base->group,
                                                     .bytes = t.rows[i].bytes,
                                                     .time_s = t.rows[i].time_s,
                                                     .kept_out = kept_out};
    }
    dl_timings_release(&t);
    subject_close(&made);
}

START_TEST(constants_come_back_from_tables_that_they_made)
{
    const struct truth *const truth = &truths[_i];
    struct dl_error err = {0};
    struct subject base[DL_COUNT(truth->n_devices)];
    struct dl_calibration c = {0};
    size_t n = 0;
    for (; n < DL_COUNT(base) && truth->n_devices[n]; n++) {
        subject_open(&base[n], truth->system, truth->n_devices[n]);
        add_table(&c, truth, &base[n]);
    }
    c.topology = base[0].machine.topology;
    c.transport = base[0].machine.transport_doc;
    dl_calibrate(&c, base[0].arena, &err);
    stop_on_error(&err);
    for (size_t i = 0; i < DL_COUNT(truth->changed) && truth->changed[i].constant; i++)
        check_came_back(&c, &truth->changed[i]);
    check_intervals(&c, truth);
    ck_assert_double_gt(dl_calibration_error(&c, true, false), 0.01);
    ck_assert_double_lt(dl_calibration_error(&c, true, true), 0.005);
    while (n) subject_close(&base[--n]);
    dl_free(c.runs);
}
END_TEST

/* Times of one group in which a rate limits nothing: it is very high, or all large messages take half as long as they
 * can on these wires. */
static const struct truth unlimited[] = {
    {"selene", {64}, {{"protocols/LL128/tree/pump_bytes_per_s/nvlink3", 1e3}}, 0},
    {"selene", {64}, {{"protocols/LL/tree/pump_bytes_per_s/nvlink3/2", 1e3}}, 0},
    {"selene", {8}, {{"protocols/Simple/peer/pump_bytes_per_s/nvlink3", 1e3}}, 0},
    {"dgx1-v100", {8}, {{"protocols/Simple/peer/pump_bytes_per_s/nvlink2", 1e3}}, 0},
    {"dgx-h100", {64}, {{0}}, 0x1p17},
};

/* By how much the farthest of the times is from that before. */
static double farthest(const struct dl_calibration *c)
{
    double most = 0;
    for (size_t i = 0; i < c->n_runs; i++) most = fmax(most, fabs(c->runs[i].after_s / c->runs[i].before_s - 1));
    return most;
}

/* A quarter off a constant that is told must be seen in some time. */
static void check_is_seen(const struct dl_calibration *c, size_t constant, struct dl_arena *arena)
{
    struct dl_error err = {0};
    struct dl_calibration changed = *c;
    const struct dl_tunables all = dl_transport_tunables(c->transport, c->topology, arena);
    const struct dl_tunable *const k = &all.items[constant];
    dl_tunable_set(k, c->fitted[constant].value);
    dl_calibration_estimate(&changed, false, &err);
    dl_tunable_set(k, 0.75 * c->fitted[constant].value);
    dl_calibration_estimate(&changed, true, &err);
    dl_tunable_set(k, c->fitted[constant].value);
    stop_on_error(&err);
    ck_assert_msg(farthest(&changed) > 0.005, "%s = %g, which no time shows", k->name, c->fitted[constant].value);
}

START_TEST(a_rate_that_limits_nothing_is_not_written)
{
    const struct truth *const truth = &unlimited[_i];
    struct dl_error err = {0};
    struct subject base;
    struct dl_calibration c = {0};
    subject_open(&base, truth->system, truth->n_devices[0]);
    add_table(&c, truth, &base);
    c.topology = base.machine.topology;
    c.transport = base.machine.transport_doc;
    dl_calibrate(&c, base.arena, &err);
    stop_on_error(&err);
    dl_calibration_apply(&c, c.transport, "a table", base.arena);
    for (size_t i = 0; i < c.constants.n; i++) {
        if (c.fitted[i].state < DL_FIT_AGREES) continue;
        ck_assert(c.fitted[i].state != DL_FIT_AT_LIMIT || c.constants.items[i].is_share);
        check_is_seen(&c, i, base.arena);
    }
    subject_close(&base);
    dl_free(c.runs);
}
END_TEST

START_TEST(what_is_fitted_is_stated_and_the_rest_stays_as_it_was)
{
    struct dl_error err = {0};
    struct subject s;
    subject_open(&s, "selene", 8);
    struct dl_timed_run runs[24];
    for (size_t i = 0; i < DL_COUNT(runs); i++) {
        const double bytes = ldexp(8, (int)i);
        runs[i] = (struct dl_timed_run){.op = DL_ALLREDUCE, .group = &s.group, .bytes = bytes};
        runs[i].time_s = 1.1 * subject_choose(&s, "auto", bytes).estimate.time_s;
    }
    struct dl_calibration c = {
        .topology = s.machine.topology, .transport = s.machine.transport_doc, .runs = runs, .n_runs = DL_COUNT(runs)};
    json_t *const before = json_deep_copy(s.machine.transport_doc.value);
    dl_calibrate(&c, s.arena, &err);
    stop_on_error(&err);
    ck_assert(json_equal(before, s.machine.transport_doc.value));
    dl_calibration_apply(&c, s.machine.transport_doc, "a table", s.arena);
    dl_transport_read(s.machine.transport_doc, s.machine.topology, 1, s.arena, &s.machine.transport, &err);
    stop_on_error(&err);
    const json_t *const ll = json_array_get(json_object_get(s.machine.transport_doc.value, "protocols"), 0);
    const json_t *const peer = json_object_get(ll, "peer");
    const json_t *const fact = json_object_get(json_object_get(peer, "facts"), "start_s");
    ck_assert_str_eq(json_string_value(json_object_get(fact, "source")), "a table");
    ck_assert_double_gt(json_number_value(json_object_get(fact, "high")),
                        json_number_value(json_object_get(peer, "start_s")));
    ck_assert(json_equal(json_object_get(ll, "tree"),
                         json_object_get(json_array_get(json_object_get(before, "protocols"), 0), "tree")));
    json_decref(before);
    subject_close(&s);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("calibrate");
    TCase *const tests = tcase_create("calibrate");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, constants_come_back_from_tables_that_they_made, 0, DL_COUNT(truths));
    tcase_add_loop_test(tests, a_rate_that_limits_nothing_is_not_written, 0, DL_COUNT(unlimited));
    tcase_add_test(tests, what_is_fitted_is_stated_and_the_rest_stays_as_it_was);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
