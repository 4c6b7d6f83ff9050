#include "sim/engine/training_ahead.h"

#include <assert.h>

#include "sim/engine/training_ahead_parts.h"
#include "sim/engine/training_steady_parts.h"

static void last_message_comes(void *user, uint32_t tag)
{
    (void)tag;
    struct lockstep_group *const c = user;
    c->n_in_flight = 0;
    dl_training_retime(c->training, c);
}

static void go_to_end(void *user, uint32_t tag)
{
    (void)tag;
    struct lockstep_group *const c = user;
    struct dl_training *const t = c->training;
    const double until_s = t->ahead->runners[c->stage].in_flight_until_s;
    if (until_s > now_s(t)) {
        c->n_in_flight = 1;
        t->request.engine->kind->timer(t->request.engine, until_s, last_message_comes, c, 0);
    }
    dl_training_work(t, c);
}

void dl_ahead_end_items(struct dl_training *t, struct runner *r, double now)
{
    r->end_s = now;
    t->request.engine->kind->timer(t->request.engine, now, go_to_end, r->group, 0);
}

/* What all items of a stage take by themselves, those that were left out too. */
static void book_blocks(struct dl_training *t, struct lockstep_group *c)
{
    const struct dl_program *const p = program_of(t, c);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct dl_parts *const parts = &p->items[p->blocks[i]]->planned;
        const double uses = p->uses[p->blocks[i]];
        for (size_t k = 0; k < parts->n; k++)
            for (int cause = 0; cause < DL_N_CAUSES; cause++)
                c->causes_s[cause] += uses * parts->items[k].segment.by_cause[cause];
    }
}

/* Items of others than the first lockstep group are noted once that has begun to repeat itself: what they did before
 * tells nothing. */
static void begin_notes(struct dl_training *t)
{
    for (uint32_t i = 1; i < t->n_lockstep_groups; i++) {
        struct runner *const r = &t->ahead->runners[i];
        r->course = dl_steady_course(t, r->group);
        if (r->item > r->course->first) dl_steady_begin_course(t, r->group, r->course, r->item);
    }
}

/* Leave periods out, once; what is noted for that is not needed any more then. */
static void try_to_leave_out(struct dl_training *t)
{
    enum { n_until_notes = 2 };
    struct runner *const runners = t->ahead->runners;
    const uint32_t iteration = t->lockstep_groups[0].iteration;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) dl_ahead_store(t, &runners[i]);
    dl_steady_try(t, iteration);
    if (t->steady->n_periods == n_until_notes) begin_notes(t);
    if (dl_steady_watches(t, iteration)) return;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        dl_ahead_load(t, &runners[i]);
        runners[i].course = NULL;
    }
}

static void begin(struct dl_training *t, struct runner *r, struct lockstep_group *c, double begin_s)
{
    const struct dl_program *const p = program_of(t, c);
    assert(c->delays.total_s == t->ahead->before.total_s);
    dl_ahead_sum_delays(&c->delays);
    *r = (struct runner){.group = c,
                         .stage = c->stage,
                         .arrived = c->arrived,
                         .item = p->sequence,
                         .first = p->sequence,
                         .items_end = p->sequence + p->n_sequence,
                         .blocks = p->items,
                         .onward_stage = t->lockstep_groups[c->onward.to].stage,
                         .in_flight_until_s = begin_s,
                         .undelivered_until_s = begin_s};
    if (dl_steady_watches(t, c->iteration) && c == t->lockstep_groups) r->course = dl_steady_course(t, c);
    dl_ahead_load(t, r);
}

static void end(struct dl_training *t, struct runner *r)
{
    dl_ahead_store(t, r);
    dl_ahead_divide_delays(r->group, &t->ahead->before);
    book_blocks(t, r->group);
}

void dl_ahead_run(struct dl_training *t)
{
    struct runner *const runners = t->ahead->runners;
    const double begin_s = now_s(t);
    t->is_ahead = true;
    t->ahead_s = begin_s;
    t->ahead->before = t->lockstep_groups[0].delays;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) begin(t, &runners[i], &t->lockstep_groups[i], begin_s);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) dl_ahead_begin_items(t, &runners[i], begin_s);
    while (dl_ahead_go_on(t)) try_to_leave_out(t);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) end(t, &runners[i]);
    dl_ahead_leave_sending(t);
    t->is_ahead = false;
}
