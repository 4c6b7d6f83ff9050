/* training_copies.c - two stages that hold the same sum their gradients of it, replica by replica.
 *
 * The crews of the two stages meet: each member exchanges with the one of the same coordinates, all at once. Both wait
 * for the end, so a crew is in one meeting at a time. */
#include <assert.h>

#include "sim/engine/training_parts.h"

static struct meeting *meeting_of(const struct dl_training *t, const struct crew *c, uint32_t call)
{
    return &t->meetings[t->request.lowered->calls[call].members.pair[0] * t->n_played + c->replica];
}

void dl_training_open_meetings(struct dl_training *t) { t->meetings = dl_alloc(t->n_crews * sizeof *t->meetings); }

static void free_exchanges(const struct dl_training *t, struct meeting *m)
{
    for (uint32_t i = 0; m->running && i < t->n_members; i++) dl_exchange_free(m->running[i]);
}

void dl_training_close_meetings(struct dl_training *t)
{
    for (uint32_t i = 0; i < t->n_crews; i++) {
        free_exchanges(t, &t->meetings[i]);
        dl_free(t->meetings[i].running);
        dl_free(t->meetings[i].choices);
    }
    dl_free(t->meetings);
}

static enum dl_status choose(struct dl_training *t, const struct meeting *m, uint32_t member, struct dl_choice *out)
{
    const struct dl_call *const call = &t->request.lowered->calls[m->call];
    uint32_t *const pair = dl_arena_alloc(t->request.arena, 2 * sizeof *pair);
    for (int i = 0; i < 2; i++) pair[i] = device_of(t, m->crews[i], member);
    struct dl_group *const group = dl_arena_alloc(t->request.arena, sizeof *group);
    dl_group_init(group, t->request.estimator->topology, pair, 2, t->request.arena);
    assert(call->op == DL_EXCHANGE_ALLREDUCE);
    const struct dl_wish wish = {
        .op = DL_ALLREDUCE, .algorithm = "auto", .protocol = "auto", .group = group, .bytes = call->bytes};
    return dl_choose(t->request.estimator, &wish, t->request.arena, out, t->err);
}

static enum dl_status prepare(struct dl_training *t, struct meeting *m)
{
    if (m->choices) return DL_OK;
    m->choices = dl_alloc(t->n_members * sizeof *m->choices);
    m->running = dl_alloc(t->n_members * sizeof *m->running);
    for (uint32_t i = 0; i < t->n_members && !t->err->status; i++) choose(t, m, i, &m->choices[i]);
    return t->err->status;
}

static void record(const struct dl_training *t, const struct meeting *m)
{
    for (int i = 0; i < 2; i++)
        t->request.recorder->add(t->request.recorder->user,
                                 &(struct dl_slice){.kind = DL_SLICE_EXCHANGE,
                                                    .stage = m->crews[i]->stage,
                                                    .replica = m->crews[i]->replica,
                                                    .from_s = m->start.begun_s,
                                                    .to_s = now_s(t),
                                                    .cause = t->request.lowered->calls[m->call].cause,
                                                    .call = m->call});
}

static void ended(void *user, uint32_t index)
{
    struct dl_training *const t = user;
    struct meeting *const m = &t->meetings[index];
    end_busy(t, &t->sending);
    if (--m->n_running) return;
    if (t->request.recorder) record(t, m);
    if (t->over) return;
    m->start.n_joined = 0;
    for (int i = 0; i < 2; i++) dl_training_end_wait(t, m->crews[i], &m->start, DL_CAUSE_PIPELINE, 0);
    for (int i = 0; i < 2; i++) dl_training_go_on(t, m->crews[i]);
}

static void start(struct dl_training *t, struct meeting *m)
{
    if (prepare(t, m)) return;
    free_exchanges(t, m);
    m->n_running = t->n_members;
    for (uint32_t i = 0; i < t->n_members; i++) {
        begin_busy(t, &t->sending);
        t->result.n_exchanges++;
        m->running[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                     .wire = t->request.wire,
                                                                     .collective = &m->choices[i].collective,
                                                                     .pace = &m->choices[i].estimate.pace,
                                                                     .fluid = !t->request.by_message,
                                                                     .done = ended,
                                                                     .user = t,
                                                                     .tag = (uint32_t)(m - t->meetings)});
    }
}

void dl_training_meet(struct dl_training *t, struct crew *c, uint32_t call)
{
    struct meeting *const m = meeting_of(t, c, call);
    m->call = call;
    m->crews[m->start.n_joined] = c;
    dl_start_join(&m->start, &c->delays, now_s(t));
    c->meets = m;
    c->waits_since_s = now_s(t);
    if (m->start.n_joined == 2) start(t, m);
}
