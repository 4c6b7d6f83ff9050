/* training_communicators.c - collectives: when they begin and end, and who waits for them. One begins when all lockstep
 * groups of its communicator have come to it, also where its groups are smaller: exact where they are in step. */
#include <math.h>

#include "sim/engine/training_parts.h"

/* ---- what differs between channels ---- */

/* Lockstep groups may come to more before they wait for the first. Of others one at a time is there, and none is kept.
 */
static bool is_queued(const struct communicator *at)
{
    return at->channel == DL_CHANNEL_REPLICAS || at->channel == DL_CHANNEL_BESIDE || is_for_copies(at);
}

/* Work on its lockstep groups' devices goes on beside it, and has less of them. */
static bool slows_work(const struct communicator *at)
{
    return at->channel == DL_CHANNEL_REPLICAS || is_in_lockstep(at);
}

/* NULL: its time is part of items. */
static struct busy *busy_of(struct dl_training *t, const struct communicator *at)
{
    switch (at->channel) {
    case DL_CHANNEL_REPLICAS: return &t->exchanging;
    case DL_CHANNEL_STAGES: return &t->sending;
    case DL_CHANNEL_LOCKSTEP:
    case DL_CHANNEL_BESIDE:
    case DL_CHANNEL_COPIES_OUT:
    case DL_CHANNEL_COPIES_IN: break;
    }
    return NULL;
}

static void retime_all(struct dl_training *t, const struct communicator *at)
{
    for (uint32_t i = 0; slows_work(at) && i < at->n; i++) dl_training_retime(t, dl_training_member(t, at, i));
}

double dl_training_undisturbed_s(const struct dl_training *t, const struct communicator *at, const struct rendezvous *x)
{
    return is_within_items(at) ? fmin(now_s(t) - x->start.begun_s, x->alone_s) : 0;
}

/* ---- end ---- */

static struct rendezvous *rendezvous(const struct communicator *at, uint32_t number)
{
    return &at->posted[number - at->n_dropped];
}

static void start_next(struct dl_training *t, struct communicator *at);

static void record(struct dl_training *t, const struct communicator *at, const struct rendezvous *x)
{
    if (!t->request.recorder || is_within_items(at)) return;
    for (uint32_t i = 0; i < at->n; i++)
        t->request.recorder->add(t->request.recorder->user,
                                 &(struct dl_slice){.kind = DL_SLICE_EXCHANGE,
                                                    .stage = dl_training_member(t, at, i)->stage,
                                                    .replica = dl_training_member(t, at, i)->replica,
                                                    .from_s = x->begun_s,
                                                    .to_s = now_s(t),
                                                    .cause = x->comm->cause,
                                                    .call = (uint32_t)(x->comm - t->request.step.calls)});
}

static void drop(struct communicator *at)
{
    at->n_dropped = at->next;
    at->n_posted = 0;
}

static void leave(struct dl_training *t, struct communicator *at)
{
    for (uint32_t i = 0; i < at->n; i++) dl_training_member(t, at, i)->is_in = NULL;
    drop(at);
}

/* Who goes on may come to the next one at once. */
static void wake(struct dl_training *t, struct communicator *at, uint32_t number, const struct rendezvous *x)
{
    const double undisturbed_s = dl_training_undisturbed_s(t, at, x);
    for (uint32_t i = 0; i < at->n; i++) {
        struct lockstep_group *const c = dl_training_member(t, at, i);
        if (c->waits_at != at || c->waits_for != number) continue;
        dl_training_end_wait(t, c, &x->start, x->comm->cause, undisturbed_s);
        dl_training_go_on(t, c);
    }
}

static void ended(void *user, uint32_t index)
{
    struct dl_training *const t = user;
    struct communicator *const at = &t->communicators[index];
    const uint32_t number = at->next;
    struct rendezvous *const x = rendezvous(at, number);
    if (busy_of(t, at)) end_busy(t, busy_of(t, at));
    if (--x->n_running) return;
    x->ended_s = now_s(t);
    at->busy = false;
    at->next++;
    record(t, at, x);
    if (t->over) return;
    const struct rendezvous done = *x;
    if (is_queued(at))
        start_next(t, at);
    else
        leave(t, at);
    if (is_within_items(at) && at->next == at->n_dropped + at->n_posted) drop(at);
    retime_all(t, at);
    wake(t, at, number, &done);
}

/* ---- start ---- */

static void make_room(struct communicator *at, uint32_t n)
{
    if (n <= at->n_rooms) return;
    at->running = dl_realloc(at->running, n * sizeof *at->running);
    at->ended = dl_realloc(at->ended, n * sizeof *at->ended);
    for (uint32_t i = at->n_rooms; i < n; i++) at->running[i] = at->ended[i] = NULL;
    at->n_rooms = n;
}

static void start_groups(struct dl_training *t, struct communicator *at, const struct chosen *chosen)
{
    make_room(at, chosen->n_groups);
    for (uint32_t i = 0; i < chosen->n_groups; i++) {
        dl_exchange_free(at->ended[i]);
        at->ended[i] = at->running[i];
        if (busy_of(t, at)) begin_busy(t, busy_of(t, at));
        at->running[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                      .wire = t->request.wire,
                                                                      .collective = &chosen->choices[i].collective,
                                                                      .pace = &chosen->choices[i].estimate.pace,
                                                                      .fluid = !t->request.by_message,
                                                                      .is_in_step = is_in_lockstep(at),
                                                                      .done = ended,
                                                                      .user = t,
                                                                      .tag = (uint32_t)(at - t->communicators)});
    }
}

/* Who waits behind others waits for the network. */
static void follow(const struct communicator *at, struct rendezvous *x)
{
    if (!is_queued(at) || x == at->posted || x[-1].ended_s != x->begun_s) return;
    x->start.begun_s = x[-1].start.begun_s;
    x->start.delays = x[-1].start.delays;
}

static double alone_s(const struct chosen *chosen)
{
    double longest_s = 0;
    for (uint32_t i = 0; i < chosen->n_groups; i++) longest_s = fmax(longest_s, chosen->choices[i].estimate.time_s);
    return longest_s;
}

static void start_copy(struct dl_training *t, struct communicator *at, struct rendezvous *x)
{
    at->busy = true;
    x->begun_s = now_s(t);
    x->alone_s = x->comm->alone_s;
    x->n_running = 1;
    follow(at, x);
    dl_training_start_copy(t, at, x->comm, ended);
}

static void start(struct dl_training *t, struct communicator *at, struct rendezvous *x)
{
    if (is_for_copies(at)) {
        start_copy(t, at, x);
        return;
    }
    const struct chosen *const chosen = dl_training_chosen(t, at, x->comm);
    if (t->err->status) return;
    at->busy = true;
    x->begun_s = now_s(t);
    x->alone_s = is_in_lockstep(at) ? alone_s(chosen) : 0;
    follow(at, x);
    if (!is_in_lockstep(at)) t->result.n_exchanges += chosen->n_groups;
    x->n_running = chosen->is_timed ? 1 : chosen->n_groups;
    if (!chosen->is_timed) {
        start_groups(t, at, chosen);
        return;
    }
    begin_busy(t, busy_of(t, at));
    t->request.engine->kind->timer(t->request.engine, x->begun_s + chosen->estimated_s, ended, t,
                                   (uint32_t)(at - t->communicators));
}

static void start_next(struct dl_training *t, struct communicator *at)
{
    if (at->busy || at->next == at->n_dropped + at->n_posted) return;
    struct rendezvous *const x = rendezvous(at, at->next);
    if (x->start.n_joined < at->n) return;
    start(t, at, x);
    retime_all(t, at);
}

/* ---- lockstep groups come, and wait ---- */

/* Call by call, since a lockstep group has few of them: what it has not takes no memory. */
static uint32_t *latest(const struct dl_training *t, const struct lockstep_group *c, const struct dl_comm *comm)
{
    const size_t call = (size_t)(comm - t->request.step.calls);
    return &t->latest[call * t->n_lockstep_groups + (size_t)(c - t->lockstep_groups)];
}

/* Of the rendezvous that the lockstep group comes to. */
static uint32_t number_of(struct lockstep_group *c, const struct communicator *at)
{
    if (is_for_copies(at)) return at->n_dropped + (uint32_t)at->n_posted;
    if (at->channel == DL_CHANNEL_BESIDE) return c->n_beside++;
    return is_queued(at) ? c->n_started++ : at->next;
}

void dl_training_join(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm)
{
    struct communicator *const at = dl_training_communicator(t, c, comm);
    const uint32_t number = number_of(c, at);
    if (number == at->n_dropped + at->n_posted) {
        DL_GROW(at->posted, at->n_posted, at->posted_capacity);
        at->posted[at->n_posted++] = (struct rendezvous){.comm = comm};
    }
    if (is_queued(at))
        *latest(t, c, comm) = number + 1;
    else
        c->is_in = at;
    if (at->channel == DL_CHANNEL_BESIDE) c->beside = at;
    dl_start_join(&rendezvous(at, number)->start, &c->delays, now_s(t));
    start_next(t, at);
}

static bool wait_for(struct dl_training *t, struct lockstep_group *c, struct communicator *at, uint32_t number)
{
    c->waits_at = at;
    c->waits_for = number;
    c->waits_since_s = now_s(t);
    return false;
}

bool dl_training_may_pass(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm)
{
    struct communicator *const at = comm ? dl_training_communicator(t, c, comm) : dl_training_replicas(t, c->stage);
    if (!is_queued(at)) return c->is_in != at || wait_for(t, c, at, at->next);
    const uint32_t number = comm ? *latest(t, c, comm) : c->n_started; /* + 1 */
    if (!number) return true;
    if (number > at->next) return wait_for(t, c, at, number - 1);
    if (number > at->n_dropped) dl_training_pass(t, c, &rendezvous(at, number - 1)->start);
    return true;
}

/* ---- waiting that is looked at before it ends ---- */

const struct rendezvous *dl_training_awaited(const struct lockstep_group *c)
{
    return rendezvous(c->waits_at, c->waits_for);
}

static uint32_t started_by(const struct lockstep_group *c, const struct communicator *at)
{
    return at->channel == DL_CHANNEL_BESIDE ? c->n_beside : c->n_started;
}

struct start dl_training_awaited_start(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct communicator *const at = c->waits_at;
    const struct lockstep_group *late = is_queued(at) ? dl_training_member(t, at, 0) : c;
    if (at->busy) return rendezvous(at, at->next)->start;
    while (is_queued(at) && started_by(late, at) > at->next) late++;
    return dl_start_now(t, late);
}
