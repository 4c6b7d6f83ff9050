/* training_steady.c - four ways through one step, with every schedule: event by event or ahead of the events, in full
 * or with periods left out. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include <math.h>

#include "sim/core/random.h"
#include "sim/engine/engines.h"
#include "strategies/schedule.h"
#include "tests/unit/hand_made_step.h"

static const double tolerance = 1e-12;

struct outcome {
    struct dl_training_result result;
    struct dl_link_load busiest;
    uint64_t n_events;
};

/* Equal stages come to things at the same instant, but for rounding: where sends block, that decides who is first. */
struct disturbance {
    gsl_rng *random; /* NULL: stages are equal */
    double spread;   /* of the times of stages */
    bool last_one_differs;
};

static void scale(struct dl_template *t, double by)
{
    for (size_t i = 0; i < t->planned.n; i++) {
        t->planned.items[i].segment.seconds *= by;
        t->planned.items[i].behind_host_s *= by;
        for (int cause = 0; cause < DL_N_CAUSES; cause++) t->planned.items[i].segment.by_cause[cause] *= by;
    }
}

static void disturb(struct hand_made *h, const struct disturbance *d)
{
    h->setting.last_backward_differs = d->last_one_differs;
    for (uint32_t stage = 0; stage < h->step->stages; stage++) {
        const double by = d->random ? 1 + d->spread * (2 * gsl_rng_uniform(d->random) - 1) : 1;
        for (uint32_t i = 0; i < h->step->chunks * DL_N_TEMPLATES; i++) {
            struct dl_template *const t = h->lowered.programs[stage].items[i];
            const bool is_last = i % DL_N_TEMPLATES == DL_TEMPLATE_LAST;
            if (is_last) add_work(t, "last", DL_CAUSE_COMPUTE, 1.5 * h->step->backward_s, h->step->launch_host_s);
            if (is_last) fuse_by_hand(t, h->lowered.calls);
            scale(t, by);
        }
    }
}

struct way {
    bool by_events, extrapolates;
};

static struct outcome play_alone(struct hand_made *h, struct way way)
{
    struct outcome out;
    struct dl_engine *const engine = dl_engine_find("analytic")->create(NULL, 0);
    struct dl_wire *const wire = dl_wire_new(engine, h->machine.topology, h->machine.bytes_per_s, &h->err);
    struct dl_training_request request = request_on(h, engine, wire);
    request.extrapolates = way.extrapolates;
    request.by_events = way.by_events;
    request.one_replica = true;
    struct dl_training *const training = dl_training_start(&request, &h->err);
    check_ok(&h->err);
    engine->kind->run(engine);
    out.result = dl_training_result(training, &h->err);
    check_ok(&h->err);
    out.n_events = engine->kind->n_events(engine);
    dl_training_free(training);
    if (!dl_wire_busiest(wire, &out.busiest, 1)) out.busiest = (struct dl_link_load){0};
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    return out;
}

static void check_close(const struct step *s, const char *what, double full, double other, double of)
{
    ck_assert_msg(fabs(full - other) <= tolerance * of,
                  "%s of %s, %u stages, %u micro-batches, sends %d: one way %.17g, another %.17g", what, s->schedule,
                  s->stages, s->micros, (int)s->sends, full, other);
}

static void check_same(const struct step *s, const struct outcome *a, const struct outcome *b)
{
    const struct dl_training_result *const f = &a->result, *const e = &b->result;
    check_close(s, "step", f->step_s, e->step_s, f->step_s);
    check_close(s, "end", f->end_s, e->end_s, f->end_s);
    for (int i = 0; i < DL_N_CAUSES; i++) {
        check_close(s, dl_cause_name((enum dl_cause)i), f->exposed_s[i], e->exposed_s[i], f->step_s);
        check_close(s, "busy", f->busy_s[i], e->busy_s[i], f->step_s);
    }
    for (int i = 0; i < DL_N_PHASES; i++) check_close(s, "phase", f->elapsed_s[i], e->elapsed_s[i], f->step_s);
    for (int i = 0; i <= DL_ITEM_W; i++) check_close(s, "item", f->item_s[i], e->item_s[i], f->step_s);
    ck_assert_uint_eq(f->n_sends, e->n_sends);
    ck_assert_uint_eq(f->n_exchanges, e->n_exchanges);
    check_close(s, "load", a->busiest.bytes, b->busiest.bytes, a->busiest.bytes);
}

/* Returns the share of events that were played. */
static double compare(const struct step *s, const struct disturbance *d)
{
    struct hand_made h;
    make_by_hand(&h, s);
    disturb(&h, d);
    dl_write_sequences(&h.lowered, &h.setting, &h.err);
    check_ok(&h.err);
    const struct outcome full = play_alone(&h, (struct way){true, false}),
                         other = play_alone(&h, (struct way){true, true}),
                         ahead = play_alone(&h, (struct way){false, false}),
                         least = play_alone(&h, (struct way){false, true});
    check_same(s, &full, &other);
    check_same(s, &full, &ahead);
    check_same(s, &full, &least);
    if (s->barrier && !s->scenario) ck_assert_uint_lt(3 * ahead.n_events, full.n_events);
    release_by_hand(&h);
    return (double)other.n_events / (double)full.n_events;
}

static struct step usual(const char *schedule)
{
    const bool has_chunks = !strcmp(schedule, "interleaved") || !strcmp(schedule, "breadth-first");
    const bool has_two = !strcmp(schedule, "zbv") || !strncmp(schedule, "v-", 2) || !strcmp(schedule, "dualpipe");
    return (struct step){.schedule = schedule,
                         .stages = 4,
                         .replicas = 2,
                         .micros = 64,
                         .chunks = has_chunks || has_two ? 2 : 1,
                         .forward_s = 1,
                         .backward_s = 2,
                         .weight_s = 1,
                         .update_s = 3,
                         .gradient_bytes = 2 * BYTES_PER_S,
                         .barrier = true};
}

/* Mostly with a last group that is smaller. */
static void deal_in_groups(struct step *s, gsl_rng *r)
{
    s->group = s->stages + (uint32_t)gsl_rng_uniform_int(r, 6);
    s->micros = dl_schedule_nearest_in_groups(s->group, s->stages, 64 + (uint32_t)gsl_rng_uniform_int(r, 64));
}

static struct step draw(const char *schedule, gsl_rng *r)
{
    struct step s = usual(schedule);
    s.forward_s = 0.5 + gsl_rng_uniform(r);
    s.backward_s = 1 + gsl_rng_uniform(r);
    s.weight_s = 0.5 + gsl_rng_uniform(r);
    s.send_bytes = (gsl_rng_uniform_int(r, 3) ? 0.2 : 1) * gsl_rng_uniform(r) * BYTES_PER_S;
    s.sends = (enum dl_sends)gsl_rng_uniform_int(r, 3);
    s.launch_host_s = gsl_rng_uniform_int(r, 2) ? 0.6 * gsl_rng_uniform(r) : 0;
    s.send_host_s = gsl_rng_uniform_int(r, 2) ? 0.1 * gsl_rng_uniform(r) : 0;
    s.drains_at_sends = gsl_rng_uniform_int(r, 2);
    s.drains_at_end = gsl_rng_uniform_int(r, 2);
    s.taken_by_sends = taken_alike(gsl_rng_uniform_int(r, 2) ? 0.3 : 0);
    s.barrier = gsl_rng_uniform_int(r, 2);
    s.iterations = 1 + (uint32_t)gsl_rng_uniform_int(r, 3);
    if (gsl_rng_uniform_int(r, 3) == 0)
        s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','replicas':[{'replica':0,'slowdown':1.25}]}";
    if (strcmp(schedule, "interleaved") == 0 && gsl_rng_uniform_int(r, 2)) deal_in_groups(&s, r);
    return s;
}

/* Those whose sequence is one forward and one backward, more or less, again and again. */
static bool has_steady_part(const char *schedule)
{
    return strcmp(schedule, "gpipe") != 0 && strcmp(schedule, "breadth-first") != 0;
}

START_TEST(extrapolated_equals_full)
{
    enum { n_draws = 60 };
    const char *const schedule = dl_schedule_get((size_t)_i)->name;
    gsl_rng *const r = dl_random_new(1, "steady", (uint64_t)_i);
    int n_extrapolated = 0;
    for (int i = 0; i < n_draws; i++) {
        const struct step s = draw(schedule, r);
        const struct disturbance d = {.random = r, .spread = i % 3 ? 0.3 : 1e-3, .last_one_differs = i % 2};
        n_extrapolated += compare(&s, &d) < 0.9;
    }
    gsl_rng_free(r);
    if (has_steady_part(schedule))
        ck_assert_int_gt(n_extrapolated, n_draws / 2);
    else
        ck_assert_int_eq(n_extrapolated, 0);
}
END_TEST

/* The longer the step the smaller the part of it that is played. */
START_TEST(what_is_played_does_not_grow_with_micro_batches)
{
    struct step s = usual("1f1b");
    const struct disturbance none = {0};
    for (s.micros = 64; s.micros <= 4096; s.micros *= 8)
        ck_assert_double_lt(compare(&s, &none), 0.3 * 64 / s.micros + 1e-3);
}
END_TEST

START_TEST(jitter_is_played_in_full)
{
    struct step s = usual("1f1b");
    const struct disturbance none = {0};
    s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','jitter':{'fraction':0.1}}";
    ck_assert_double_eq(compare(&s, &none), 1);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_steady");
    tcase_add_loop_test(tests, extrapolated_equals_full, 0, (int)dl_schedule_count());
    tcase_add_test(tests, what_is_played_does_not_grow_with_micro_batches);
    tcase_add_test(tests, jitter_is_played_in_full);
    return run_steps(tests, "training_steady");
}
