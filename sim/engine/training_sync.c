/* training_sync.c - the end of the step: exchanges over the replicas of a stage, and the optimizer. */
#include "sim/engine/training_parts.h"

static void go_through_calls(struct dl_training *t, uint32_t stage);

static struct crew *first_of(struct dl_training *t, uint32_t stage) { return &t->crews[stage * t->n_replicas]; }

static void crew_ends(struct dl_training *t, struct crew *c)
{
    c->end_s = now_s(t);
    if (++t->n_done < t->n_crews) return;
    t->result.complete = true;
    t->result.step_s = now_s(t);
}

static void optimizer_ends(void *user, uint32_t stage)
{
    struct dl_training *const t = user;
    t->syncs[stage].call++;
    go_through_calls(t, stage);
}

/* All replicas of a stage have the same optimizer step and begin it together. */
static void start_optimizer(struct dl_training *t, uint32_t stage)
{
    const struct dl_segment *const segment = &t->request.lowered->programs[stage].optimizer.fused;
    for (uint32_t i = 0; i < t->n_replicas; i++) book_segment(first_of(t, stage) + i, segment);
    t->request.engine->kind->timer(t->request.engine, now_s(t) + segment->seconds, optimizer_ends, t, stage);
}

static void exchange_ends(void *user, uint32_t stage)
{
    struct dl_training *const t = user;
    struct sync *const sync = &t->syncs[stage];
    end_busy(t, &t->exchanging);
    if (--sync->n_running) return;
    for (uint32_t i = 0; i < t->n_replicas; i++)
        first_of(t, stage)[i].causes_s[DL_CAUSE_DATA] += now_s(t) - sync->begun_s;
    sync->call++;
    go_through_calls(t, stage);
}

static enum dl_status choose_exchange(struct dl_training *t, uint32_t stage, const struct dl_call *call,
                                      uint32_t member)
{
    static const enum dl_op ops[] = {DL_ALLREDUCE, DL_REDUCESCATTER, DL_ALLGATHER};
    struct sync *const sync = &t->syncs[stage];
    uint32_t *const device = dl_arena_alloc(t->request.arena, (t->n_replicas + 1) * sizeof *device);
    for (uint32_t i = 0; i < t->n_replicas; i++) device[i] = device_of(t, first_of(t, stage) + i, member);
    dl_group_init(&sync->groups[member], t->request.estimator->topology, device, t->n_replicas, t->request.arena);
    const struct dl_wish wish = {
        .op = ops[call->op],
        .algorithm = "auto",
        .protocol = "auto",
        .group = &sync->groups[member],
        .bytes = call->bytes,
        .payload = {.kind = call->payload_bits > 0 ? DL_QUANTIZED : DL_DENSE, .bits = call->payload_bits}};
    return dl_choose(t->request.estimator, &wish, t->request.arena, &sync->choices[member], t->err);
}

static void start_call(struct dl_training *t, uint32_t stage, const struct dl_call *call)
{
    struct sync *const sync = &t->syncs[stage];
    sync->begun_s = now_s(t);
    sync->n_running = t->n_members;
    for (uint32_t i = 0; i < t->n_members; i++) {
        if (choose_exchange(t, stage, call, i)) return;
        dl_exchange_free(sync->exchanges[i]);
        begin_busy(t, &t->exchanging);
        t->result.n_exchanges++;
        sync->exchanges[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                          .wire = t->request.wire,
                                                                          .collective = &sync->choices[i].collective,
                                                                          .pace = &sync->choices[i].estimate.pace,
                                                                          .fluid = true,
                                                                          .done = exchange_ends,
                                                                          .user = t,
                                                                          .tag = stage});
    }
}

/* Calls before the optimizer, the optimizer, calls after it: `call` counts all of them. */
static void go_through_calls(struct dl_training *t, uint32_t stage)
{
    const struct dl_program *const p = &t->request.lowered->programs[stage];
    const struct sync *const sync = &t->syncs[stage];
    uint32_t n_before = 0;
    while (n_before < p->n_calls && !p->calls[n_before].after_optimizer) n_before++;
    if (sync->call == n_before) {
        start_optimizer(t, stage);
    } else if (sync->call <= p->n_calls) {
        start_call(t, stage, &p->calls[sync->call < n_before ? sync->call : sync->call - 1]);
    } else {
        for (uint32_t i = 0; i < t->n_replicas; i++) crew_ends(t, first_of(t, stage) + i);
    }
}

void dl_training_join_sync(struct dl_training *t, struct crew *c)
{
    struct sync *const sync = &t->syncs[c->stage];
    c->waits_since_s = now_s(t);
    if (++sync->n_arrived < t->n_replicas) return;
    for (uint32_t i = 0; i < t->n_replicas; i++) {
        struct crew *const other = first_of(t, c->stage) + i;
        other->causes_s[DL_CAUSE_BUBBLE] += now_s(t) - other->waits_since_s;
    }
    go_through_calls(t, c->stage);
}
