/* training_ahead_sending.c - when at least one message is under way, of messages whose arrival is known. */
#include <math.h>

#include "sim/engine/training_ahead_parts.h"

void dl_ahead_pass_sending(struct dl_training *t)
{
    if (t->sending.n && t->ahead->sending_until_s <= t->ahead_s) end_sending(t, t->ahead);
}

static void sending_begins(void *user, uint32_t tag)
{
    (void)tag;
    begin_busy(user, &((struct dl_training *)user)->sending);
}

static void sending_ends(void *user, uint32_t tag)
{
    (void)tag;
    end_busy(user, &((struct dl_training *)user)->sending);
}

/* From when on two stages may exchange what they both hold. */
static double exchanging_from_s(const struct dl_training *t)
{
    const struct dl_step *const s = &t->request.step;
    const struct runner *const r = t->ahead->runners;
    double from_s = INFINITY;
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].channel == DL_CHANNEL_STAGES)
            from_s = fmin(from_s, fmax(r[s->calls[i].members.pair[0]].end_s, r[s->calls[i].members.pair[1]].end_s));
    return from_s;
}

/* Exchanges between stages count as sending, too: what may be beside them is left to the engine. */
void dl_ahead_leave_sending(struct dl_training *t)
{
    struct ahead *const a = t->ahead;
    struct dl_engine *const e = t->request.engine;
    const double from_s = exchanging_from_s(t);
    if (t->sending.n) end_sending(t, a);
    while (a->n_episodes > 0 && a->episodes[a->n_episodes - 1].to_s > from_s) {
        const struct episode *const last = &a->episodes[--a->n_episodes];
        t->sending.total_s -= last->to_s - last->from_s;
        e->kind->timer(e, last->from_s, sending_begins, t, 0);
        e->kind->timer(e, last->to_s, sending_ends, t, 0);
    }
    a->n_episodes = 0;
}
