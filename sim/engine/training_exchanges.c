/* training_exchanges.c - exchanges among the ranks of a stage that hold the same parameters, in all such groups at
 * once.
 *
 * Replicas and context ranks hold the same; experts only every expert_ways-th replica. A call begins when all replicas
 * have come to it, also where its groups are smaller: exact where they are in step. */
#include <math.h>

#include "sim/engine/training_parts.h"

static struct crew *first_of(struct dl_training *t, uint32_t stage) { return &t->crews[stage * t->n_played]; }

static uint32_t expert_ways(const struct dl_training *t, bool of_experts)
{
    return of_experts ? t->request.setting->expert_ways : 1;
}

static uint32_t n_groups(const struct dl_training *t, bool of_experts)
{
    return t->request.setting->ways[DL_AXIS_TENSOR] * expert_ways(t, of_experts);
}

static void open_group(struct dl_training *t, uint32_t stage, bool of_experts, uint32_t index)
{
    const uint32_t n_tensor = t->request.setting->ways[DL_AXIS_TENSOR], apart = expert_ways(t, of_experts);
    const uint32_t most = dl_copies(t->request.setting, of_experts);
    uint32_t *const device = dl_arena_alloc(t->request.arena, (most + 1) * sizeof *device);
    uint32_t n = 0;
    for (uint32_t replica = index / n_tensor; replica < t->n_replicas; replica += apart)
        for (uint32_t member = index % n_tensor; member < t->n_members; member += n_tensor)
            device[n++] = device_of(t, &(struct crew){.stage = stage, .replica = replica}, member);
    dl_group_init(&t->queues[stage].groups[of_experts][index], t->request.estimator->topology, device, n,
                  t->request.arena);
}

enum dl_status dl_training_open_queues(struct dl_training *t)
{
    const uint32_t most_groups = n_groups(t, true);
    t->queues = dl_alloc(t->n_stages * sizeof *t->queues);
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        struct queue *const q = &t->queues[stage];
        q->running = dl_alloc(most_groups * sizeof *q->running);
        q->ended = dl_alloc(most_groups * sizeof *q->ended);
        for (int of_experts = 0; of_experts < 2; of_experts++) {
            q->groups[of_experts] = dl_alloc(n_groups(t, of_experts) * sizeof *q->groups[of_experts]);
            for (uint32_t i = 0; i < n_groups(t, of_experts); i++) open_group(t, stage, of_experts, i);
        }
    }
    return DL_OK;
}

void dl_training_close_queues(struct dl_training *t)
{
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        struct queue *const q = &t->queues[stage];
        for (uint32_t i = 0; i < n_groups(t, true); i++) {
            dl_exchange_free(q->running[i]);
            dl_exchange_free(q->ended[i]);
        }
        for (size_t i = 0; i < q->n_chosen; i++) dl_free(q->chosen[i].choices);
        void *const blocks[] = {q->exchanges, q->groups[0], q->groups[1], q->chosen, q->running, q->ended};
        for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    }
    dl_free(t->queues);
}

/* ---- which algorithm ---- */

static enum dl_status choose(struct dl_training *t, const struct queue *q, const struct dl_call *call, uint32_t index,
                             struct dl_choice *out)
{
    static const enum dl_op ops[] = {DL_ALLREDUCE, DL_REDUCESCATTER, DL_ALLGATHER};
    const struct dl_wish wish = {
        .op = ops[call->op],
        .algorithm = "auto",
        .protocol = "auto",
        .group = &q->groups[call->of_experts][index],
        .bytes = call->bytes,
        .payload = {.kind = call->payload_bits > 0 ? DL_QUANTIZED : DL_DENSE, .bits = call->payload_bits}};
    return dl_choose(t->request.estimator, &wish, t->request.arena, out, t->err);
}

static bool alike(const struct dl_call *a, const struct dl_call *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->payload_bits == b->payload_bits &&
           a->of_experts == b->of_experts;
}

/* Blocks are equal, so there are few kinds of calls. */
static const struct dl_choice *choices_for(struct dl_training *t, struct queue *q, const struct dl_call *call)
{
    for (size_t i = 0; i < q->n_chosen; i++)
        if (alike(&q->chosen[i].call, call)) return q->chosen[i].choices;
    DL_GROW(q->chosen, q->n_chosen, q->chosen_capacity);
    struct chosen *const c = &q->chosen[q->n_chosen++];
    const uint32_t n = n_groups(t, call->of_experts);
    *c = (struct chosen){.call = *call, .choices = dl_alloc(n * sizeof *c->choices)};
    for (uint32_t i = 0; i < n && !t->err->status; i++) choose(t, q, call, i, &c->choices[i]);
    return c->choices;
}

/* ---- one after the other ---- */

static void start_next(struct dl_training *t, uint32_t stage);

/* Who waits behind others in the queue waits for the network. */
static void release(struct dl_training *t, struct crew *c, const struct exchange *x)
{
    dl_training_end_wait(t, c, x->unbroken_s, t->request.lowered->calls[x->call].cause);
    dl_training_go_on(t, c);
}

/* On each of the crews that take part. */
static void record(struct dl_training *t, uint32_t stage, const struct exchange *x)
{
    for (uint32_t i = 0; i < t->n_played; i++)
        t->request.recorder->add(t->request.recorder->user,
                                 &(struct dl_slice){.kind = DL_SLICE_EXCHANGE,
                                                    .stage = stage,
                                                    .replica = i,
                                                    .from_s = x->begun_s,
                                                    .to_s = now_s(t),
                                                    .cause = t->request.lowered->calls[x->call].cause,
                                                    .call = x->call});
}

static void ended(void *user, uint32_t stage)
{
    struct dl_training *const t = user;
    struct queue *const q = &t->queues[stage];
    const uint32_t number = q->next;
    end_busy(t, &t->exchanging);
    if (--q->exchanges[number].n_running) return;
    q->exchanges[number].done = true;
    q->exchanges[number].ended_s = now_s(t);
    q->busy = false;
    q->next++;
    if (t->request.recorder) record(t, stage, &q->exchanges[number]);
    if (t->over) return;
    start_next(t, stage);
    for (uint32_t i = 0; i < t->n_played; i++) {
        struct crew *const c = first_of(t, stage) + i;
        const struct exchange x = q->exchanges[number]; /* a copy: going on may start more of them */
        if (c->waits_for == number + 1) release(t, c, &x);
    }
}

static void start(struct dl_training *t, uint32_t stage, struct exchange *x)
{
    struct queue *const q = &t->queues[stage];
    const struct dl_call *const call = &t->request.lowered->calls[x->call];
    const struct dl_choice *const choices = choices_for(t, q, call);
    if (t->err->status) return;
    q->busy = true;
    x->begun_s = now_s(t);
    x->unbroken_s = q->next && x[-1].ended_s == x->begun_s ? x[-1].unbroken_s : x->begun_s;
    x->n_running = n_groups(t, call->of_experts);
    for (uint32_t i = 0; i < n_groups(t, call->of_experts); i++) {
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
    if (q->busy || q->next == q->n_exchanges || q->exchanges[q->next].n_joined < t->n_played) return;
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
