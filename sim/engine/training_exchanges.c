/* training_exchanges.c - exchanges among the ranks of a stage that hold the same parameters, in all such groups at
 * once.
 *
 * Replicas and context ranks hold the same; experts only every expert_ways-th replica. A call begins when all replicas
 * have come to it, also where its groups are smaller: exact where they are in step. */
#include <math.h>

#include "sim/engine/training_parts.h"

static struct crew *first_of(struct dl_training *t, uint32_t stage) { return &t->crews[stage * t->n_played]; }

static dl_digits beside(const struct dl_call *call) { return (DL_IN_LOCKSTEP | DL_ALONG_DATA) & ~call->members.digits; }

uint32_t dl_training_n_groups(const struct dl_training *t, const struct dl_call *call)
{
    return dl_ranks_count(&t->request.setting->ranks, beside(call));
}

static const struct dl_group *groups_for(struct dl_training *t, uint32_t stage, const struct dl_call *call)
{
    const struct dl_training_request *const q = &t->request;
    const struct dl_seats seats = {q->setting, q->device_of_rank, q->estimator->topology};
    const struct queue *const queue = &t->queues[stage];
    for (size_t i = 0; i < queue->n_chosen; i++)
        if (dl_members_equal(&queue->chosen[i].call.members, &call->members)) return queue->chosen[i].groups;
    return dl_seats_groups(&seats, call->members.digits, beside(call), dl_first_of_crew(q->setting, stage, 0),
                           q->arena);
}

static uint32_t most_groups(const struct dl_training *t)
{
    uint32_t most = 0;
    for (size_t i = 0; i < t->request.lowered->n_calls; i++) {
        const struct dl_call *const call = &t->request.lowered->calls[i];
        const uint32_t n = call->members.is_pair ? 0 : dl_training_n_groups(t, call);
        if (n > most) most = n;
    }
    return most;
}

void dl_training_open_queues(struct dl_training *t)
{
    const uint32_t most = most_groups(t);
    t->queues = dl_alloc(t->n_stages * sizeof *t->queues);
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        t->queues[stage].running = dl_alloc(most * sizeof *t->queues[stage].running);
        t->queues[stage].ended = dl_alloc(most * sizeof *t->queues[stage].ended);
    }
}

void dl_training_close_queues(struct dl_training *t)
{
    const uint32_t most = most_groups(t);
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        struct queue *const q = &t->queues[stage];
        for (uint32_t i = 0; i < most; i++) {
            dl_exchange_free(q->running[i]);
            dl_exchange_free(q->ended[i]);
        }
        for (size_t i = 0; i < q->n_chosen; i++) dl_free(q->chosen[i].choices);
        void *const blocks[] = {q->exchanges, q->chosen, q->running, q->ended};
        for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    }
    dl_free(t->queues);
}

/* ---- which algorithm ---- */

static enum dl_status choose(struct dl_training *t, const struct dl_group *group, const struct dl_call *call,
                             struct dl_choice *out)
{
    static const enum dl_op ops[] = {[DL_EXCHANGE_ALLREDUCE] = DL_ALLREDUCE,
                                     [DL_EXCHANGE_REDUCESCATTER] = DL_REDUCESCATTER,
                                     [DL_EXCHANGE_ALLGATHER] = DL_ALLGATHER,
                                     [DL_EXCHANGE_BROADCAST] = DL_BROADCAST};
    const struct dl_wish wish = {.op = ops[call->op],
                                 .algorithm = call->algorithm ? call->algorithm : "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = call->bytes,
                                 .servers = t->request.setting->servers,
                                 .payload = call->payload,
                                 .n_alike = dl_training_n_groups(t, call)};
    return dl_choose(t->request.estimator, &wish, t->request.arena, out, t->err);
}

static bool alike(const struct dl_call *a, const struct dl_call *b)
{
    return a->op == b->op && a->algorithm == b->algorithm && a->bytes == b->bytes &&
           dl_payload_equal(&a->payload, &b->payload) && dl_members_equal(&a->members, &b->members);
}

/* Without a simulation: the lanes of an exchange share links in its estimate, and its groups share theirs. */
void dl_training_time(struct dl_training *t, struct chosen *c)
{
    const uint32_t n = dl_training_n_groups(t, &c->call);
    dl_choices_together_s(t->request.estimator, c->choices, n, &c->estimated_s, t->err);
    c->is_timed = true;
}

/* Blocks are equal, so there are few kinds of calls. */
struct chosen *dl_training_chosen(struct dl_training *t, uint32_t stage, const struct dl_call *call)
{
    struct queue *const q = &t->queues[stage];
    for (size_t i = 0; i < q->n_chosen; i++)
        if (alike(&q->chosen[i].call, call)) return &q->chosen[i];
    const struct dl_group *const groups = groups_for(t, stage, call);
    DL_GROW(q->chosen, q->n_chosen, q->chosen_capacity);
    struct chosen *const c = &q->chosen[q->n_chosen++];
    const uint32_t n = dl_training_n_groups(t, call);
    *c = (struct chosen){.call = *call, .groups = groups, .choices = dl_alloc(n * sizeof *c->choices)};
    for (uint32_t i = 0; i < n && !t->err->status; i++) choose(t, &groups[i], call, &c->choices[i]);
    if (t->request.one_replica && !t->err->status) dl_training_time(t, c);
    return c;
}

bool dl_training_choice(const struct dl_training *t, uint32_t stage, const struct dl_call *call, struct dl_choice *out)
{
    const struct queue *const q = &t->queues[stage];
    size_t i = 0;
    while (i < q->n_chosen && !alike(&q->chosen[i].call, call)) i++;
    if (i == q->n_chosen || call->members.is_pair) return false;
    *out = q->chosen[i].choices[0];
    return true;
}

/* ---- one after the other ---- */

static void start_next(struct dl_training *t, uint32_t stage);

static void release(struct dl_training *t, struct crew *c, const struct exchange *x)
{
    dl_training_end_wait(t, c, &x->start, t->request.lowered->calls[x->call].cause, 0);
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

static void retime_crews(struct dl_training *t, uint32_t stage)
{
    for (uint32_t i = 0; i < t->n_played; i++) dl_training_retime(t, first_of(t, stage) + i);
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
    retime_crews(t, stage);
    for (uint32_t i = 0; i < t->n_played; i++) {
        struct crew *const c = first_of(t, stage) + i;
        const struct exchange x = q->exchanges[number]; /* a copy: going on may start more of them */
        if (c->waits_for == number + 1) release(t, c, &x);
    }
}

static void start_groups(struct dl_training *t, uint32_t stage, const struct chosen *chosen, uint32_t n)
{
    struct queue *const q = &t->queues[stage];
    for (uint32_t i = 0; i < n; i++) {
        dl_exchange_free(q->ended[i]);
        q->ended[i] = q->running[i];
        begin_busy(t, &t->exchanging);
        t->result.n_exchanges++;
        q->running[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                     .wire = t->request.wire,
                                                                     .collective = &chosen->choices[i].collective,
                                                                     .pace = &chosen->choices[i].estimate.pace,
                                                                     .fluid = !t->request.by_message,
                                                                     .done = ended,
                                                                     .user = t,
                                                                     .tag = stage});
    }
}

/* Who waits behind others in the queue waits for the network. */
static void follow(struct start *s, const struct start *before)
{
    s->begun_s = before->begun_s;
    s->delays = before->delays;
}

static void start(struct dl_training *t, uint32_t stage, struct exchange *x)
{
    struct queue *const q = &t->queues[stage];
    const struct dl_call *const call = &t->request.lowered->calls[x->call];
    const struct chosen *const chosen = dl_training_chosen(t, stage, call);
    const uint32_t n = dl_training_n_groups(t, call);
    if (t->err->status) return;
    q->busy = true;
    x->begun_s = now_s(t);
    if (q->next && x[-1].ended_s == x->begun_s) follow(&x->start, &x[-1].start);
    x->n_running = chosen->is_timed ? 1 : n;
    if (!chosen->is_timed) {
        start_groups(t, stage, chosen, n);
        return;
    }
    t->result.n_exchanges += n;
    begin_busy(t, &t->exchanging);
    t->request.engine->kind->timer(t->request.engine, x->begun_s + chosen->estimated_s, ended, t, stage);
}

static void start_next(struct dl_training *t, uint32_t stage)
{
    struct queue *const q = &t->queues[stage];
    if (q->busy || q->next == q->n_exchanges || q->exchanges[q->next].start.n_joined < t->n_played) return;
    start(t, stage, &q->exchanges[q->next]);
    retime_crews(t, stage);
}

void dl_training_join(struct dl_training *t, struct crew *c, uint32_t call)
{
    struct queue *const q = &t->queues[c->stage];
    if (t->request.lowered->calls[call].members.is_pair) {
        dl_training_meet(t, c, call);
        return;
    }
    const uint32_t number = c->n_started++;
    if (number == q->n_exchanges) {
        DL_GROW(q->exchanges, q->n_exchanges, q->exchanges_capacity);
        q->exchanges[q->n_exchanges++] = (struct exchange){.call = call};
    }
    c->latest[call] = number + 1;
    dl_start_join(&q->exchanges[number].start, &c->delays, now_s(t));
    start_next(t, c->stage);
}

bool dl_training_may_pass(struct dl_training *t, struct crew *c, uint32_t call)
{
    if (call != DL_EVERY_CALL && t->request.lowered->calls[call].members.is_pair) return !c->meets;
    const uint32_t number = call == DL_EVERY_CALL ? c->n_started : c->latest[call]; /* + 1 */
    if (!number) return true;
    const struct exchange *const x = &t->queues[c->stage].exchanges[number - 1];
    if (x->done) {
        dl_training_pass(t, c, &x->start);
        return true;
    }
    c->waits_for = number;
    c->waits_since_s = now_s(t);
    return false;
}
