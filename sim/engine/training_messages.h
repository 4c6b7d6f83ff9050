/* training_messages.h - messages between stages: made and freed. In a header, as it is in the innermost loops. */
#ifndef DL_ENGINE_TRAINING_MESSAGES_H
#define DL_ENGINE_TRAINING_MESSAGES_H

#include <assert.h>
#include <math.h>

#include "sim/engine/training_delays.h"

#define DL_NO_MESSAGE UINT32_MAX

static inline bool is_blocking(const struct dl_training *t) { return t->request.step.sends == DL_SENDS_BLOCKING; }

static inline uint32_t free_message(struct dl_training *t)
{
    const uint32_t id = t->free_message;
    if (id != DL_NO_MESSAGE) {
        t->free_message = t->messages[id].next;
        return id;
    }
    DL_GROW(t->messages, t->n_messages, t->messages_capacity);
    t->messages[t->n_messages] = (struct message){0};
    return (uint32_t)t->n_messages++;
}

/* A message that has arrived is worked on. */
static inline void dl_training_free_message(struct dl_training *t, uint32_t id)
{
    t->messages[id].item = NULL;
    t->messages[id].next = t->free_message;
    t->free_message = id;
}

/* A message that is sent now, and has not left yet. */
static inline uint32_t dl_training_new_message(struct dl_training *t, struct lockstep_group *from,
                                               const struct dl_sequenced *item)
{
    const uint32_t to = item->to * t->n_played + from->replica; /* not asked for its stage: it is seldom in the cache */
    struct channel *const channel = from->onward.to == to ? &from->onward : &from->back;
    assert(channel->to == to);
    const uint32_t id = free_message(t);
    struct message *const p = &t->messages[id];
    p->receiver = channel->to;
    p->tag = item->gives;
    p->sender = (uint32_t)(from - t->lockstep_groups);
    p->item = item;
    p->channel = channel;
    p->next = DL_NO_MESSAGE;
    p->sent.n_joined = 0;
    dl_start_join(&p->sent, &from->delays, now_s(t));
    t->result.n_sends++;
    return id;
}

/* What of its latency is left to a message that leaves then. A port is busy with the bytes of a message, not with its
 * latency: that goes on while the message stands in line, unless sends block. */
static inline double dl_training_latency_left_s(const struct dl_training *t, const struct message *p, double departs_s)
{
    return is_blocking(t) ? p->channel->latency_s : fmax(p->sent.begun_s + p->channel->latency_s - departs_s, 0);
}

#endif
