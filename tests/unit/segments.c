/* segments.c - a segment as a map over the clocks of host and device, against its ops one by one: random segments of
 * kernels, priced collectives and copies, from random dates. */
#include "sim/program/segments.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "tests/unit/suite.h"

enum { n_segments = 200, n_calls = 8, most_ops = 60 };

/* Two of each channel. */
static void draw_calls(gsl_rng *rng, struct dl_comm calls[n_calls])
{
    for (uint32_t i = 0; i < n_calls; i++) {
        const enum dl_channel channel = DL_CHANNEL_LOCKSTEP + (enum dl_channel)(i / 2);
        const double alone_s = 4 * gsl_rng_uniform(rng);
        calls[i] = (struct dl_comm){.op = channel >= DL_CHANNEL_COPIES_OUT ? DL_COPY : DL_ALLTOALL,
                                    .channel = channel,
                                    .cause = DL_CAUSE_EXPERT,
                                    .alone_s = alone_s};
        if (channel < DL_CHANNEL_COPIES_OUT)
            for (int k = DL_CLASS_PRODUCT; k < DL_N_CLASSES; k++)
                calls[i].taken.fraction[k] = 0.9 * gsl_rng_uniform(rng);
    }
}

static void add_call(struct dl_template *t, enum dl_instruction_kind kind, uint32_t call, double host_s)
{
    dl_template_add(t, &(struct dl_instruction){.kind = kind, .name = "call", .call = call, .host_s = host_s});
}

static void add_kernel(gsl_rng *rng, struct dl_template *t)
{
    const bool is_launch = gsl_rng_uniform_int(rng, 4) == 0;
    dl_template_add(t, &(struct dl_instruction){.name = "kernel",
                                                .cause = DL_CAUSE_COMPUTE,
                                                .device_s = is_launch ? 0 : gsl_rng_uniform(rng),
                                                .kernel = (enum dl_kernel_class)gsl_rng_uniform_int(rng, DL_N_CLASSES),
                                                .host_s = gsl_rng_uniform(rng)});
}

/* In lockstep one at a time, of others any number; all are waited for. */
static void draw_segment(gsl_rng *rng, struct dl_template *t)
{
    uint32_t open[n_calls] = {0};
    for (size_t i = 0; i < most_ops; i++) {
        const uint32_t call = (uint32_t)gsl_rng_uniform_int(rng, n_calls);
        const bool in_lockstep = call < 2, is_free = !open[call] && !(in_lockstep && open[1 - call]);
        if (gsl_rng_uniform_int(rng, 2))
            add_kernel(rng, t);
        else if (is_free)
            add_call(t, DL_START, call, in_lockstep ? gsl_rng_uniform(rng) : 0), open[call] = 1;
        else if (open[call])
            add_call(t, DL_WAIT, call, 0), open[call] = 0;
    }
    for (uint32_t call = 0; call < n_calls; call++)
        if (open[call]) add_call(t, DL_WAIT, call, 0);
}

/* All dates as they are. */
struct player {
    double host_s, device_s, free_s[n_calls / 2];
    double end_s[n_calls];
    double class_s[n_calls][DL_N_CLASSES]; /* of kernels beside each call */
    bool is_open[n_calls];
};

/* So much of its time is lost that kernels beside it, of all classes together, get as far as each of them would. */
static double taken_s(const struct player *p, const struct dl_comm *calls, uint32_t call)
{
    double work_s = 0, beside_s = 0;
    for (int k = 0; k < DL_N_CLASSES; k++) {
        work_s += p->class_s[call][k];
        beside_s += p->class_s[call][k] / (1 - calls[call].taken.fraction[k]);
    }
    return work_s > 0 ? calls[call].alone_s - calls[call].alone_s * work_s / beside_s : 0;
}

static void play_wait(struct player *p, const struct dl_comm *calls, uint32_t call)
{
    double sum_s = 0;
    for (uint32_t i = call - call % 2; i < call - call % 2 + 2; i++) {
        if (!p->is_open[i] || p->end_s[i] > p->end_s[call]) continue;
        sum_s += taken_s(p, calls, i);
        p->is_open[i] = false;
    }
    p->device_s = fmax(p->device_s + sum_s, p->end_s[call]);
}

static void play_op(struct player *p, const struct dl_comm *calls, const struct dl_instruction *i)
{
    double *const free_s = &p->free_s[i->call / 2];
    p->host_s += i->host_s;
    switch (i->kind) {
    case DL_DO:
        p->device_s = fmax(p->device_s, p->host_s) + i->device_s;
        for (uint32_t k = 0; k < n_calls; k++) p->class_s[k][i->kernel] += i->device_s;
        break;
    case DL_START:
        p->device_s = fmax(p->device_s, p->host_s);
        p->end_s[i->call] = *free_s = fmax(p->device_s, *free_s) + calls[i->call].alone_s;
        p->is_open[i->call] = true;
        memset(p->class_s[i->call], 0, sizeof p->class_s[i->call]);
        break;
    case DL_WAIT:
        if (p->is_open[i->call]) play_wait(p, calls, i->call);
        break;
    case DL_DRAIN: break;
    }
}

START_TEST(a_segment_is_its_ops_one_by_one)
{
    gsl_rng *const rng = dl_random_new(1, "segments", (uint64_t)_i);
    struct dl_comm calls[n_calls];
    struct dl_template t = {0};
    draw_calls(rng, calls);
    draw_segment(rng, &t);
    dl_template_fuse(&t, calls, &(struct dl_plan){0});
    ck_assert_uint_eq(t.planned.n, 1);
    const struct dl_part *const part = &t.planned.items[0];
    for (int k = 0; k < 20; k++) {
        struct player p = {.host_s = 60 * gsl_rng_uniform(rng), .device_s = 60 * gsl_rng_uniform(rng)};
        const double end_s = fmax(p.device_s + part->segment.seconds, p.host_s + part->behind_host_s);
        const double host_s = p.host_s + part->host_s;
        for (size_t i = 0; i < t.n_instructions; i++) play_op(&p, calls, &t.instructions[i]);
        ck_assert_double_eq_tol(end_s, p.device_s, 1e-11);
        ck_assert_double_eq_tol(host_s, p.host_s, 1e-11);
    }
    double sum = 0;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) sum += part->segment.by_cause[cause];
    ck_assert_double_eq_tol(sum, part->segment.seconds, 1e-11);
    dl_template_release(&t);
    gsl_rng_free(rng);
}
END_TEST

/* Host and device begin together. */
START_TEST(the_total_of_a_template_is_its_ops_one_by_one)
{
    gsl_rng *const rng = dl_random_new(2, "segments", (uint64_t)_i);
    struct dl_comm calls[n_calls];
    struct dl_template t = {0};
    struct player p = {0};
    draw_calls(rng, calls);
    draw_segment(rng, &t);
    dl_template_sum(&t, calls);
    for (size_t i = 0; i < t.n_instructions; i++) play_op(&p, calls, &t.instructions[i]);
    ck_assert_double_eq_tol(t.total.seconds, p.device_s, 1e-11);
    dl_template_release(&t);
    gsl_rng_free(rng);
}
END_TEST

/* Launched long before, each call waited for at once: a slow device takes longer for its kernels, and not for these. */
START_TEST(a_slow_device_has_the_same_network)
{
    gsl_rng *const rng = dl_random_new(3, "segments", (uint64_t)_i);
    const double pace = 1 + gsl_rng_uniform(rng);
    struct dl_comm calls[n_calls];
    struct dl_template t = {0};
    double kernels_s = 0, network_s = 0, sum_s = 0;
    draw_calls(rng, calls);
    for (size_t i = 0; i < most_ops; i++) {
        const uint32_t call = (uint32_t)gsl_rng_uniform_int(rng, n_calls);
        add_kernel(rng, &t);
        kernels_s += t.instructions[t.n_instructions - 1].device_s;
        add_call(&t, DL_START, call, 0);
        add_call(&t, DL_WAIT, call, 0);
        network_s += calls[call].alone_s;
    }
    dl_template_fuse(&t, calls, &(struct dl_plan){0});
    const struct dl_segment *const s = &t.planned.items[0].segment;
    ck_assert_double_eq_tol(dl_slowed_s(s->seconds, s->network_s, pace), pace * kernels_s + network_s, 1e-11);
    ck_assert_double_eq_tol(dl_segment_slowed_s(s, DL_CAUSE_EXPERT, pace), network_s, 1e-11);
    for (int cause = 0; cause < DL_N_CAUSES; cause++) sum_s += dl_segment_slowed_s(s, (enum dl_cause)cause, pace);
    ck_assert_double_eq_tol(sum_s, pace * kernels_s + network_s, 1e-11);
    dl_template_release(&t);
    gsl_rng_free(rng);
}
END_TEST

/* Behind its host, which is slow too: what the network takes on the way from the host's last launch is not. */
START_TEST(a_slow_device_behind_its_host_has_the_same_network)
{
    const double host_s = 6, kernel_s = 2, pace = 1.5;
    struct dl_comm calls[n_calls] = {{.op = DL_ALLTOALL, .channel = DL_CHANNEL_LOCKSTEP, .alone_s = 3}};
    struct dl_template t = {0};
    for (int i = 0; i < 2; i++) {
        add_call(&t, DL_START, 0, 0);
        add_call(&t, DL_WAIT, 0, 0);
        dl_template_add(&t, &(struct dl_instruction){.name = "kernel", .device_s = kernel_s, .host_s = host_s});
    }
    add_call(&t, DL_START, 0, 0);
    add_call(&t, DL_WAIT, 0, 0);
    dl_template_fuse(&t, calls, &(struct dl_plan){0});
    const struct dl_part *const part = &t.planned.items[0];
    ck_assert_double_eq_tol(part->behind_host_s, 2 * host_s + kernel_s + 3, 1e-12);
    ck_assert_double_eq_tol(dl_slowed_s(part->behind_host_s, part->behind_network_s, pace),
                            pace * (2 * host_s + kernel_s) + 3, 1e-12);
    dl_template_release(&t);
}
END_TEST

/* ---- what comes again and again ---- */

static void check_near(const char *what, double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-12 * fmax(fabs(b), 1), "%s: %.17g became %.17g", what, b, a);
}

static void check_segments(const struct dl_segment *a, const struct dl_segment *b)
{
    check_near("seconds", a->seconds, b->seconds);
    check_near("network_s", a->network_s, b->network_s);
    check_near("flop", a->flop, b->flop);
    for (int i = 0; i < DL_N_CAUSES; i++) check_near("by_cause", a->by_cause[i], b->by_cause[i]);
    for (int i = 0; i < DL_N_CLASSES; i++) check_near("by_class", a->by_class[i], b->by_class[i]);
    for (int i = 0; i < DL_N_GROUNDS; i++) check_near("by_ground", a->by_ground[i], b->by_ground[i]);
    for (int i = 0; i < DL_N_FLOP_COUNTS; i++) check_near("counted_flop", a->counted_flop[i], b->counted_flop[i]);
}

static void check_parts(const struct dl_parts *a, const struct dl_parts *b)
{
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct dl_part *const x = &a->items[i], *const y = &b->items[i];
        ck_assert_int_eq(x->kind, y->kind);
        ck_assert_uint_eq(x->call, y->call);
        ck_assert_uint_eq(x->first, y->first);
        ck_assert_uint_eq(x->end, y->end);
        check_near("host_s", x->host_s, y->host_s);
        check_near("behind_host_s", x->behind_host_s, y->behind_host_s);
        check_near("behind_network_s", x->behind_network_s, y->behind_network_s);
        check_segments(&x->segment, &y->segment);
    }
}

/* Hosts that are slower and faster than their devices; and sometimes calls that stay open, or what others can see. */
static void draw_rounds(gsl_rng *rng, struct dl_template *t)
{
    const double host_pace = 4 * gsl_rng_uniform(rng);
    const size_t times = 2 + gsl_rng_uniform_int(rng, 40);
    draw_segment(rng, t);
    const size_t from = t->n_instructions;
    draw_segment(rng, t);
    if (gsl_rng_uniform_int(rng, 4) == 0) add_call(t, DL_DRAIN, 0, 0);
    if (gsl_rng_uniform_int(rng, 4) == 0) add_call(t, DL_START, 2, 0);
    for (size_t i = from; i < t->n_instructions; i++) t->instructions[i].host_s *= host_pace;
    dl_template_note(t, t->n_instructions - from, rng);
    for (size_t i = 1; i < times; i++) ck_assert(dl_template_again(t, rng));
    draw_segment(rng, t);
    ck_assert(!dl_template_again(t, rng));
    ck_assert_uint_eq(dl_template_times(t, from), times);
    ck_assert_uint_eq(dl_template_times(t, from - 1), 1);
}

START_TEST(what_is_repeated_is_as_if_it_were_written_each_time)
{
    gsl_rng *const rng = dl_random_new(4, "segments", (uint64_t)_i);
    struct dl_comm calls[n_calls];
    bool simulated[n_calls] = {false};
    struct dl_template t = {0};
    draw_calls(rng, calls);
    draw_rounds(rng, &t);
    if (_i % 4 == 0) simulated[gsl_rng_uniform_int(rng, n_calls)] = true;
    const struct dl_plan plan = {.calls = simulated};
    dl_template_sum(&t, calls);
    dl_template_fuse(&t, calls, &plan);
    struct dl_template each = t;
    each.planned = each.priced = (struct dl_parts){0};
    t.instructions = NULL; /* they are the other's now */
    dl_template_unfold(&each);
    ck_assert_uint_eq(each.n_instructions, t.length);
    ck_assert_uint_lt(t.n_instructions, t.length);
    dl_template_sum(&each, calls);
    dl_template_fuse(&each, calls, &plan);
    check_segments(&t.total, &each.total);
    check_parts(&t.planned, &each.planned);
    t.repeated = NULL;
    dl_template_release(&t);
    dl_template_release(&each);
    gsl_rng_free(rng);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("segments");
    TCase *const tests = tcase_create("segments");
    tcase_add_loop_test(tests, a_segment_is_its_ops_one_by_one, 0, n_segments);
    tcase_add_loop_test(tests, the_total_of_a_template_is_its_ops_one_by_one, 0, n_segments);
    tcase_add_loop_test(tests, a_slow_device_has_the_same_network, 0, n_segments);
    tcase_add_test(tests, a_slow_device_behind_its_host_has_the_same_network);
    tcase_add_loop_test(tests, what_is_repeated_is_as_if_it_were_written_each_time, 0, n_segments);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
