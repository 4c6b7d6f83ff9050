/* training_ahead_send.h - messages whose arrival is known when they leave. In a header, as it is in the innermost loop.
 */
#ifndef DL_ENGINE_TRAINING_AHEAD_SEND_H
#define DL_ENGINE_TRAINING_AHEAD_SEND_H

#include <math.h>

#include "sim/engine/training_ahead_waits.h"
#include "sim/engine/training_ahead_work.h"
#include "sim/engine/training_messages.h"

/* Behind those that went the same way; as an engine would add it up. */
static inline void find_arrival(const struct dl_training *t, struct ahead *a, struct message *m)
{
    double *const free_s = &a->free_s[m->channel->line];
    const double departs_s = fmax(m->sent.begun_s, *free_s);
    m->posted_s = departs_s + dl_training_latency_left_s(t, m, departs_s);
    m->arrives_s = m->posted_s + m->channel->alone_s;
    *free_s = m->arrives_s;
}

/* What the item has made leaves now. */
static inline uint32_t new_message(struct dl_training *t, struct ahead *a, struct runner *from,
                                   const struct dl_sequenced *item, double now)
{
    const uint32_t id = free_message(t);
    struct message *const m = &t->messages[id];
    struct channel *const way = item->to == from->onward_stage ? &from->group->onward : &from->group->back;
    m->receiver = item->to;
    m->sender = from->stage;
    m->tag = item->gives;
    m->item = item;
    m->channel = way;
    m->sent.begun_s = now;
    m->sent.undisturbed_s = now - from->late.total_s;
    put_late(&m->sent.delays, &from->late);
    find_arrival(t, a, m);
    way->n_sent++;
    t->result.n_sends++;
    return id;
}

/* The sender is between items, so that its work is not slowed now. */
static inline void leave(struct dl_training *t, struct ahead *a, struct runner *from, struct runner *to,
                         double arrives_s, double now)
{
    note_sending(t, a, arrives_s, now);
    from->undelivered_until_s = fmax(from->undelivered_until_s, arrives_s);
    from->in_flight_until_s = fmax(from->in_flight_until_s, arrives_s);
    meet_message(a, to, arrives_s, now);
}

#endif
