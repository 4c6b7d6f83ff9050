/* training_exchanges.c - exchanges over the replicas of a stage, for all of its tensor ranks at once. */
#include <math.h>

#include "sim/engine/training_parts.h"

static struct crew *first_of(struct dl_training *t, uint32_t stage) { return &t->crews[stage * t->n_replicas]; }

enum dl_status dl_training_open_queues(struct dl_training *t)
{
    t->queues = dl_alloc(t->n_stages * sizeof *t->queues);
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        struct queue *const q = &t->queues[stage];
        q->groups = dl_alloc(t->n_members * sizeof *q->groups);
        q->running = dl_alloc(t->n_members * sizeof *q->running);
        q->ended = dl_alloc(t->n_members * sizeof *q->ended);
        for (uint32_t member = 0; member < t->n_members; member++) {
            uint32_t *const device = dl_arena_alloc(t->request.arena, (t->n_replicas + 1) * sizeof *device);
            for (uint32_t i = 0; i < t->n_replicas; i++) device[i] = device_of(t, first_of(t, stage) + i, member);
            dl_group_init(&q->groups[member], t->request.estimator->topology, device, t->n_replicas, t->request.arena);
        }
    }
    return DL_OK;
}

void dl_training_close_queues(struct dl_training *t)
{
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        struct queue *const q = &t->queues[stage];
        for (uint32_t i = 0; i < t->n_members; i++) {
            dl_exchange_free(q->running[i]);
            dl_exchange_free(q->ended[i]);
        }
        for (size_t i = 0; i < q->n_chosen; i++) dl_free(q->chosen[i].choices);
        void *const blocks[] = {q->exchanges, q->groups, q->chosen, q->running, q->ended};
        for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    }
    dl_free(t->queues);
}

/* ---- which algorithm ---- */

static enum dl_status choose(struct dl_training *t, const struct queue *q, const struct dl_call *call, uint32_t member,
                             struct dl_choice *out)
{
    static const enum dl_op ops[] = {DL_ALLREDUCE, DL_REDUCESCATTER, DL_ALLGATHER};
    const struct dl_wish wish = {
        .op = ops[call->op],
        .algorithm = "auto",
        .protocol = "auto",
        .group = &q->groups[member],
        .bytes = call->bytes,
        .payload = {.kind = call->payload_bits > 0 ? DL_QUANTIZED : DL_DENSE, .bits = call->payload_bits}};
    return dl_choose(t->request.estimator, &wish, t->request.arena, out, t->err);
}

static bool alike(const struct dl_call *a, const struct dl_call *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->payload_bits == b->payload_bits;
}

/* Blocks are equal, so there are few kinds of calls. */
static const struct dl_choice *choices_for(struct dl_training *t, struct queue *q, const struct dl_call *call)
{
    for (size_t i = 0; i < q->n_chosen; i++)
        if (alike(&q->chosen[i].call, call)) return q->chosen[i].choices;
    DL_GROW(q->chosen, q->n_chosen, q->chosen_capacity);
    struct chosen *const c = &q->chosen[q->n_chosen++];
    *c = (struct chosen){.call = *call, .choices = dl_alloc(t->n_members * sizeof *c->choices)};
    for (uint32_t i = 0; i < t->n_members && !t->err->status; i++) choose(t, q, call, i, &c->choices[i]);
    return c->choices;
}

/* ---- one after the other ---- */

static void start_next(struct dl_training *t, uint32_t stage);

/* Waiting before it began is for replicas that had not come, waiting since then for the network. */
static void release(struct dl_training *t, struct crew *c, const struct exchange *x)
{
    const double in_flight_s = now_s(t) - fmax(x->begun_s, c->waits_since_s);
    c->causes_s[t->request.lowered->calls[x->call].cause] += in_flight_s;
    c->causes_s[DL_CAUSE_BUBBLE] += now_s(t) - c->waits_since_s - in_flight_s;
    c->waits_for = 0;
    dl_training_go_on(t, c);
}

static void ended(void *user, uint32_t stage)
{
    struct dl_training *const t = user;
    struct queue *const q = &t->queues[stage];
    const uint32_t number = q->next;
    end_busy(t, &t->exchanging);
    if (--q->exchanges[number].n_running) return;
    q->exchanges[number].done = true;
    q->busy = false;
    q->next++;
    start_next(t, stage);
    for (uint32_t i = 0; i < t->n_replicas; i++) {
        struct crew *const c = first_of(t, stage) + i;
        const struct exchange x = q->exchanges[number]; /* a copy: going on may start more of them */
        if (c->waits_for == number + 1) release(t, c, &x);
    }
}

static void start(struct dl_training *t, uint32_t stage, struct exchange *x)
{
    struct queue *const q = &t->queues[stage];
    const struct dl_choice *const choices = choices_for(t, q, &t->request.lowered->calls[x->call]);
    if (t->err->status) return;
    q->busy = true;
    x->begun_s = now_s(t);
    x->n_running = t->n_members;
    for (uint32_t i = 0; i < t->n_members; i++) {
        dl_exchange_free(q->ended[i]);
        q->ended[i] = q->running[i];
        begin_busy(t, &t->exchanging);
        t->result.n_exchanges++;
        q->running[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                     .wire = t->request.wire,
                                                                     .collective = &choices[i].collective,
                                                                     .pace = &choices[i].estimate.pace,
                                                                     .fluid = true,
                                                                     .done = ended,
                                                                     .user = t,
                                                                     .tag = stage});
    }
}

static void start_next(struct dl_training *t, uint32_t stage)
{
    struct queue *const q = &t->queues[stage];
    if (q->busy || q->next == q->n_exchanges || q->exchanges[q->next].n_joined < t->n_replicas) return;
    start(t, stage, &q->exchanges[q->next]);
}

void dl_training_join(struct dl_training *t, struct crew *c, uint32_t call)
{
    struct queue *const q = &t->queues[c->stage];
    const uint32_t number = c->n_started++;
    if (number == q->n_exchanges) {
        DL_GROW(q->exchanges, q->n_exchanges, q->exchanges_capacity);
        q->exchanges[q->n_exchanges++] = (struct exchange){.call = call};
    }
    c->latest[call] = number + 1;
    q->exchanges[number].n_joined++;
    start_next(t, c->stage);
}

bool dl_training_may_pass(struct dl_training *t, struct crew *c, uint32_t call)
{
    const uint32_t number = call == DL_EVERY_CALL ? c->n_started : c->latest[call]; /* + 1 */
    if (!number || t->queues[c->stage].exchanges[number - 1].done) return true;
    c->waits_for = number;
    c->waits_since_s = now_s(t);
    return false;
}
