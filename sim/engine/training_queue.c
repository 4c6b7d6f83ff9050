/* training_queue.c - the collectives among replicas that a lockstep group has started and that are not done, in their
 * order. */
#include <assert.h>

#include "sim/engine/training_parts.h"

void dl_queued_add(struct queue *q, struct communicator *at, uint32_t number)
{
    if (q->first == q->end) q->first = q->end = 0;
    DL_GROW(q->items, q->end, q->capacity);
    q->items[q->end++] = (struct queued){at, number};
}

void dl_queued_end(struct queue *q)
{
    assert(q->first < q->end);
    q->last = q->items[q->first++];
}

const struct queued *dl_queued_latest(const struct queue *q, const struct communicator *at)
{
    for (size_t i = q->end; i-- > q->first;)
        if (!at || q->items[i].at == at) return &q->items[i];
    return NULL;
}
