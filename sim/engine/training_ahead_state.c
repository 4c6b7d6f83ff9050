/* training_ahead_state.c - what of a lockstep group is kept in its runner, while it goes through its items. Delays from
 * iterations before are one sum meanwhile. */
#include "sim/engine/training_ahead_waits.h"

void dl_ahead_load(struct dl_training *t, struct runner *r)
{
    const struct lockstep_group *const c = r->group;
    const struct dl_sequenced *const item = program_of(t, c)->sequence + c->item;
    r->first += item - r->item;
    r->item = item;
    r->n_arrived = c->n_arrived;
    r->host_s = c->host_s;
    r->late = late_of(&c->delays);
    r->owed_s = c->owed_s;
}

void dl_ahead_store(struct dl_training *t, struct runner *r)
{
    struct lockstep_group *const c = r->group;
    const struct books *const b = &r->books;
    c->item = (uint32_t)(r->item - program_of(t, c)->sequence);
    c->n_arrived = r->n_arrived;
    c->waits_for_input = r->waits_for_input;
    c->waits_since_s = r->waits_since_s;
    c->host_s = r->host_s;
    put_late(&c->delays, &r->late);
    c->owed_s = r->owed_s;
    c->input_s = r->input_s;
    c->causes_s[DL_CAUSE_BUBBLE] += b->bubble_s;
    c->causes_s[DL_CAUSE_PIPELINE] += b->messages_s;
    c->causes_s[CAUSE_OTHERS] += b->others_s;
    c->causes_s[DL_CAUSE_HOST] += b->host_s;
    c->causes_s[DL_CAUSE_INTERFERENCE] += b->interference_s;
    for (int i = 0; i <= DL_PHASE_BACKWARD; i++) c->elapsed_s[i] += b->elapsed_s[i];
    r->books = (struct books){0};
}

/* ---- delays from iterations before ---- */

void dl_ahead_sum_delays(struct delays *d)
{
    const double by_messages_s = d->by[BY_MESSAGES];
    double others_s = 0;
    for (int i = 0; i < N_DELAYS; i++) {
        if (i != BY_MESSAGES) others_s += d->by[i];
        d->by[i] = 0;
    }
    d->by[BY_MESSAGES] = by_messages_s;
    d->by[BY_OTHERS] = others_s;
}

void dl_ahead_divide_delays(struct lockstep_group *c, const struct delays *before)
{
    struct delays sum = *before;
    dl_ahead_sum_delays(&sum);
    const double delay_s = c->delays.by[BY_OTHERS], wait_s = c->causes_s[CAUSE_OTHERS];
    c->delays.by[BY_OTHERS] = c->causes_s[CAUSE_OTHERS] = 0;
    if (!(sum.by[BY_OTHERS] > 0)) return;
    for (int i = 0; i < BY_OTHERS; i++) {
        if (i == BY_MESSAGES) continue;
        const double share = before->by[i] / sum.by[BY_OTHERS];
        c->delays.by[i] = delay_s * share;
        c->causes_s[DL_CAUSE_TENSOR + i] += wait_s * share;
    }
}
