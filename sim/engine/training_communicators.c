/* training_communicators.c - collectives: when they begin and end, and who waits for them. One begins when all lockstep
 * groups of its communicator have come to it and each of them is through with what it started before. */
#include <math.h>

#include "sim/engine/training_delays.h"

/* ---- what differs between channels ---- */

static bool is_of_replicas(const struct communicator *at) { return at->channel == DL_CHANNEL_REPLICAS; }

/* Lockstep groups may come to more before they wait for the first. Of others one at a time is there, and none is kept.
 */
static bool is_queued(const struct communicator *at)
{
    return is_of_replicas(at) || at->channel == DL_CHANNEL_BESIDE || is_for_copies(at);
}

/* Work on its lockstep groups' devices goes on beside it, and has less of them. */
static bool slows_work(const struct communicator *at) { return is_of_replicas(at) || is_in_lockstep(at); }

/* NULL: its time is part of items. */
static struct busy *busy_of(struct dl_training *t, const struct communicator *at)
{
    switch (at->channel) {
    case DL_CHANNEL_REPLICAS: return &t->exchanging;
    case DL_CHANNEL_STAGES: return &t->sending;
    case DL_CHANNEL_LOCKSTEP:
    case DL_CHANNEL_BESIDE:
    case DL_CHANNEL_COPIES_OUT:
    case DL_CHANNEL_COPIES_IN:
    case DL_CHANNEL_AHEAD: break;
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

/* What its lockstep groups came to after it may go on now. */
static void start_after(struct dl_training *t, struct communicator *at)
{
    const struct communicator *before = NULL;
    for (uint32_t i = 0; is_of_replicas(at) && i < at->n; i++) dl_queued_end(&dl_training_member(t, at, i)->queue);
    for (uint32_t i = 0; is_of_replicas(at) && i < at->n; i++) {
        const struct queued *const next = dl_queued_first(&dl_training_member(t, at, i)->queue);
        if (next && next->at != before) start_next(t, next->at);
        before = next ? next->at : before;
    }
    if (!is_of_replicas(at)) start_next(t, at);
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
        start_after(t, at);
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

static uint32_t n_groups(const struct chosen *chosen) { return chosen->n_groups / chosen->n_instances; }

static const struct dl_choice *choice_for(const struct communicator *at, const struct chosen *chosen, uint32_t group)
{
    return &chosen->choices[chosen->by_instance ? chosen->by_instance[at->instance * n_groups(chosen) + group] : group];
}

static void start_groups(struct dl_training *t, struct communicator *at, const struct chosen *chosen)
{
    make_room(at, n_groups(chosen));
    for (uint32_t i = 0; i < n_groups(chosen); i++) {
        const struct dl_choice *const choice = choice_for(at, chosen, i);
        dl_exchange_free(at->ended[i]);
        at->ended[i] = at->running[i];
        if (busy_of(t, at)) begin_busy(t, busy_of(t, at));
        at->running[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                      .wire = t->request.wire,
                                                                      .collective = &choice->collective,
                                                                      .pace = &choice->estimate.pace,
                                                                      .fluid = !t->request.by_message,
                                                                      .is_in_step = is_in_lockstep(at),
                                                                      .done = ended,
                                                                      .user = t,
                                                                      .tag = (uint32_t)(at - t->communicators)});
    }
}

/* The one before it that a lockstep group had to wait for until now; NULL: none. */
static const struct rendezvous *followed(const struct dl_training *t, const struct communicator *at,
                                         const struct rendezvous *x)
{
    if (!is_queued(at)) return NULL;
    if (!is_of_replicas(at)) return x > at->posted && x[-1].ended_s == x->begun_s ? &x[-1] : NULL;
    for (uint32_t i = 0; i < at->n; i++) {
        const struct queued *const last = &dl_training_member(t, at, i)->queue.last;
        if (last->at && rendezvous(last->at, last->number)->ended_s == x->begun_s)
            return rendezvous(last->at, last->number);
    }
    return NULL;
}

/* Who waits behind others waits for the network. */
static void follow(const struct dl_training *t, const struct communicator *at, struct rendezvous *x)
{
    const struct rendezvous *const before = followed(t, at, x);
    if (!before) return;
    x->start.begun_s = before->start.begun_s;
    x->start.delays = before->start.delays;
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
    follow(t, at, x);
    dl_training_start_copy(t, at, x->comm, ended);
}

static void start(struct dl_training *t, struct communicator *at, struct rendezvous *x)
{
    if (is_for_copies(at)) {
        start_copy(t, at, x);
        return;
    }
    struct communicator *const has_choices =
        is_of_replicas(at) ? dl_training_replicas(t, dl_training_member(t, at, 0)->stage) : at;
    const struct chosen *const chosen = dl_training_chosen(t, has_choices, x->comm, x->iteration);
    if (t->err->status) return;
    at->busy = true;
    x->begun_s = now_s(t);
    x->alone_s = is_in_lockstep(at) ? alone_s(chosen) : 0;
    follow(t, at, x);
    if (!is_in_lockstep(at)) t->result.n_exchanges += n_groups(chosen);
    x->n_running = chosen->is_timed ? 1 : n_groups(chosen);
    if (!chosen->is_timed) {
        start_groups(t, at, chosen);
        return;
    }
    begin_busy(t, busy_of(t, at));
    t->request.engine->kind->timer(t->request.engine, x->begun_s + chosen->estimated_s, ended, t,
                                   (uint32_t)(at - t->communicators));
}

/* A lockstep group has started something else before, which is not done. */
static bool has_others_before(const struct dl_training *t, const struct communicator *at)
{
    bool others = false;
    for (uint32_t i = 0; is_of_replicas(at) && i < at->n && !others; i++)
        others = dl_queued_first(&dl_training_member(t, at, i)->queue)->at != at;
    return others;
}

static void start_next(struct dl_training *t, struct communicator *at)
{
    if (at->busy || at->next == at->n_dropped + at->n_posted) return;
    struct rendezvous *const x = rendezvous(at, at->next);
    if (x->start.n_joined < at->n || has_others_before(t, at)) return;
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
    const struct queued *const latest = is_of_replicas(at) ? dl_queued_latest(&c->queue, at) : NULL;
    return latest ? latest->number + 1 : at->next;
}

void dl_training_join(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm)
{
    struct communicator *const at = dl_training_communicator(t, c, comm);
    const uint32_t number = number_of(c, at);
    if (number == at->n_dropped + at->n_posted) {
        DL_GROW(at->posted, at->n_posted, at->posted_capacity);
        at->posted[at->n_posted++] = (struct rendezvous){.comm = comm, .iteration = c->iteration};
    }
    if (is_queued(at))
        *latest(t, c, comm) = number + 1;
    else
        c->is_in = at;
    if (at->channel == DL_CHANNEL_BESIDE) c->beside = at;
    if (is_of_replicas(at)) dl_queued_add(&c->queue, at, number);
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

/* All that it started among replicas. */
static bool may_pass_all(struct dl_training *t, struct lockstep_group *c)
{
    const struct queued *const latest = dl_queued_latest(&c->queue, NULL), *const last = &c->queue.last;
    if (latest) return wait_for(t, c, latest->at, latest->number);
    if (last->at) dl_training_pass(t, c, rendezvous(last->at, last->number)->start.undisturbed_s);
    return true;
}

/* With whom the latest one was depends on the iteration. */
static bool may_pass_drawn(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm)
{
    const struct queue *const q = &c->queue;
    for (size_t i = q->end; i-- > q->first;)
        if (rendezvous(q->items[i].at, q->items[i].number)->comm == comm)
            return wait_for(t, c, q->items[i].at, q->items[i].number);
    if (q->last.at) dl_training_pass(t, c, rendezvous(q->last.at, q->last.number)->start.undisturbed_s);
    return true;
}

bool dl_training_may_pass(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm)
{
    if (!comm) return may_pass_all(t, c);
    if (comm->members.are_drawn) return may_pass_drawn(t, c, comm);
    struct communicator *const at = dl_training_communicator(t, c, comm);
    if (!is_queued(at)) return c->is_in != at || wait_for(t, c, at, at->next);
    const uint32_t number = *latest(t, c, comm); /* + 1 */
    if (!number) return true;
    if (number > at->next) return wait_for(t, c, at, number - 1);
    if (number > at->n_dropped) dl_training_pass(t, c, rendezvous(at, number - 1)->start.undisturbed_s);
    return true;
}

/* ---- waiting that is looked at before it ends ---- */

const struct rendezvous *dl_training_awaited(const struct lockstep_group *c)
{
    return rendezvous(c->waits_at, c->waits_for);
}

/* To the next that is not done there. */
static bool has_come(const struct lockstep_group *c, const struct communicator *at)
{
    if (is_of_replicas(at)) return dl_queued_latest(&c->queue, at) != NULL;
    return at->channel != DL_CHANNEL_BESIDE || c->n_beside > at->next;
}

/* Who has not; NULL: all have, so that one of them is not through with another one before it. */
static const struct lockstep_group *missing(const struct dl_training *t, const struct communicator *at)
{
    for (uint32_t i = 0; i < at->n; i++)
        if (!has_come(dl_training_member(t, at, i), at)) return dl_training_member(t, at, i);
    return NULL;
}

static const struct communicator *before(const struct dl_training *t, const struct communicator *at)
{
    uint32_t i = 0;
    while (dl_queued_first(&dl_training_member(t, at, i)->queue)->at == at) i++;
    return dl_queued_first(&dl_training_member(t, at, i)->queue)->at;
}

struct start dl_training_awaited_start(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct communicator *at = c->waits_at;
    while (!at->busy) {
        const struct lockstep_group *const late = is_queued(at) ? missing(t, at) : c;
        if (late) return dl_start_now(t, late);
        at = before(t, at);
    }
    return rendezvous(at, at->next)->start;
}
