/* training_iterations.c - one iteration after the other.
 *
 * Without a barrier between steps a lockstep group goes on by itself, and the last iteration is looked at from the end
 * of the one before to its own end, on all lockstep groups: some have begun with it earlier, and go on with the next
 * one meanwhile. So it is a step among others, in which nothing runs empty. A single iteration stands alone. */
#include <math.h>

#include "sim/engine/training_delays.h"
#include "sim/engine/training_steady.h"

static void slow_down_by_scenario(struct dl_training *t)
{
    const struct dl_scenario *const s = t->request.scenario;
    t->slows_work = s->n_slow > 0 || s->jitter_fraction > 0;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        struct lockstep_group *const c = &t->lockstep_groups[i];
        c->slowdown = dl_scenario_slowdown(s, c->stage, c->replica);
        if (s->jitter_fraction > 0) c->jitter = dl_random_new(t->request.seed, "jitter", i);
    }
}

/* Ranks in lockstep go at the pace of the slowest of them. */
static double slowest_in_lockstep(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct dl_step *const s = &t->request.step;
    const uint32_t first =
        dl_ranks_offset(s->ranks, s->stages, c->stage) + dl_ranks_offset(s->ranks, s->replicas, c->replica);
    double slowest = 0;
    for (uint32_t i = 0; i < t->n_members; i++)
        slowest = fmax(slowest, t->request.slowdown_of_rank[first + dl_ranks_offset(s->ranks, s->in_lockstep, i)]);
    return slowest;
}

static void slow_down_by_ranks(struct dl_training *t)
{
    t->slows_work = true;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++)
        t->lockstep_groups[i].slowdown *= slowest_in_lockstep(t, &t->lockstep_groups[i]);
}

void dl_training_open_iterations(struct dl_training *t)
{
    t->n_iterations = t->request.iterations ? t->request.iterations : 1;
    t->n_ended = dl_alloc(t->n_iterations * sizeof *t->n_ended);
    if (t->request.scenario) slow_down_by_scenario(t);
    if (t->request.slowdown_of_rank) slow_down_by_ranks(t);
}

void dl_training_close_iterations(struct dl_training *t)
{
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++)
        if (t->lockstep_groups[i].jitter) gsl_rng_free(t->lockstep_groups[i].jitter);
    dl_free(t->n_ended);
}

static bool goes_on_by_itself(const struct dl_training *t, const struct lockstep_group *c)
{
    const bool last_is_among_others = t->n_iterations > 1; /* one more than asked for, as far as it comes */
    return !t->request.step.has_barrier && c->iteration < t->n_iterations + last_is_among_others;
}

static void go_to_first(struct lockstep_group *c)
{
    c->item = 0;
    c->owed_s = 0;
}

static void pass_barrier(struct dl_training *t)
{
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++)
        if (t->lockstep_groups[i].waits_for_others)
            dl_training_end_wait(t, &t->lockstep_groups[i], &t->next, DL_CAUSE_BUBBLE, 0);
    t->next.n_joined = 0;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) go_to_first(&t->lockstep_groups[i]);
    dl_training_begin_all(t);
}

static void finish(struct dl_training *t)
{
    const struct dl_skipped skipped = dl_steady_skipped(t);
    t->result.complete = true;
    t->result.end_s = now_s(t) + skipped.all_s;
    t->result.step_s = now_s(t) - t->from_s + skipped.last_s;
    dl_training_close_books(t);
    t->over = true;
}

void dl_training_end_iteration(struct dl_training *t, struct lockstep_group *c)
{
    const uint32_t iteration = c->iteration++;
    const bool all = iteration < t->n_iterations && ++t->n_ended[iteration] == t->n_lockstep_groups;
    const bool goes_on = goes_on_by_itself(t, c);
    c->waits_for_others = !goes_on;
    c->waits_since_s = now_s(t);
    if (!goes_on) dl_start_join(&t->next, &c->delays, now_s(t));
    if (all && c->iteration + 1 == t->n_iterations) dl_training_open_books(t);
    if (all && c->iteration == t->n_iterations)
        finish(t);
    else if (all && t->request.step.has_barrier)
        pass_barrier(t);
    else if (goes_on) {
        go_to_first(c);
        dl_training_work(t, c);
    }
}
