#include "sim/engine/training_ahead.h"

#include <assert.h>

#include "sim/engine/training_ahead_waits.h"
#include "sim/engine/training_ahead_parts.h"
#include "sim/engine/training_steady.h"

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
    const double until_s = runner_of(t, c)->in_flight_until_s;
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

/* Leave periods out, once; what is noted for that is not needed any more then. */
static void try_to_leave_out(struct dl_training *t)
{
    const uint32_t iteration = t->lockstep_groups[0].iteration;
    dl_steady_try(t, iteration);
    if (dl_steady_watches(t, iteration)) return;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        struct runner *const r = &t->ahead->runners[i];
        const struct dl_sequenced *const item = program_of(t, r->group)->sequence + r->group->item;
        r->first += item - r->item;
        r->item = item;
        r->course = NULL;
    }
}

static void begin(struct dl_training *t, struct lockstep_group *c, double begin_s)
{
    struct runner *const r = runner_of(t, c);
    const struct dl_program *const p = program_of(t, c);
    *r = (struct runner){.group = c,
                         .item = p->sequence,
                         .items_end = p->sequence + p->n_sequence,
                         .blocks = p->items,
                         .onward_stage = t->lockstep_groups[c->onward.to].stage,
                         .in_flight_until_s = begin_s,
                         .undelivered_until_s = begin_s};
    if (dl_steady_watches(t, c->iteration)) r->course = dl_steady_course(t, c);
    assert(c->delays.total_s == t->ahead->before.total_s);
    dl_ahead_sum_delays(&c->delays);
}

static void end(struct dl_training *t, struct lockstep_group *c)
{
    dl_ahead_divide_delays(c, &t->ahead->before);
    book_blocks(t, c);
}

void dl_ahead_run(struct dl_training *t)
{
    const double begin_s = now_s(t);
    t->is_ahead = true;
    t->ahead_s = begin_s;
    t->ahead->before = t->lockstep_groups[0].delays;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) begin(t, &t->lockstep_groups[i], begin_s);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) dl_ahead_begin_items(t, &t->ahead->runners[i], begin_s);
    while (dl_ahead_go_on(t)) try_to_leave_out(t);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) end(t, &t->lockstep_groups[i]);
    dl_ahead_leave_sending(t);
    t->is_ahead = false;
}
