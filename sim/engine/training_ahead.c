#include "sim/engine/training_ahead.h"

#include <assert.h>
#include <math.h>

#include "sim/engine/training_ahead_parts.h"
#include "sim/engine/training_steady.h"

/* ---- where it is possible ---- */

static bool only_works(const struct dl_parts *parts)
{
    bool works = false;
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->items[i].kind != DL_DO && parts->items[i].kind != DL_DRAIN) return false;
        works |= parts->items[i].kind == DL_DO;
    }
    return works;
}

static bool all_only_work(const struct dl_program *p)
{
    uint32_t i = 0;
    while (i < p->n_blocks && only_works(&p->items[p->blocks[i]]->planned)) i++;
    return i == p->n_blocks;
}

static bool is_possible(const struct dl_training *t)
{
    const struct dl_training_request *const q = &t->request;
    bool possible = q->engine->kind->alone && t->n_played == 1 && !q->recorder && !q->by_events && !t->slows_work &&
                    (q->step.has_barrier || t->n_iterations == 1);
    for (uint32_t i = 0; i < t->n_stages; i++) possible = possible && all_only_work(&q->step.programs[i]);
    return possible;
}

void dl_ahead_open(struct dl_training *t)
{
    if (!is_possible(t)) return;
    struct ahead *const a = t->ahead = dl_alloc(sizeof *a);
    a->runners = dl_alloc(t->n_lockstep_groups * sizeof *a->runners);
    a->free_s = dl_alloc(2 * (size_t)t->n_lockstep_groups * sizeof *a->free_s);
}

void dl_ahead_close(struct dl_training *t)
{
    if (!t->ahead) return;
    dl_free(t->ahead->runners);
    dl_free(t->ahead->dates.heap);
    dl_free(t->ahead->free_s);
    dl_free(t->ahead->episodes);
    dl_free(t->ahead);
    t->ahead = NULL;
}

static void add(struct dl_training *t, const struct lockstep_group *c, double date_s)
{
    dl_dates_add(&t->ahead->dates, date_s, (uint32_t)(c - t->lockstep_groups));
}

/* ---- when messages are under way ---- */

static void add_episode(struct dl_training *t)
{
    struct ahead *const a = t->ahead;
    struct busy *const b = &t->sending;
    b->total_s += a->sending_until_s - b->since_s;
    b->n = 0;
    DL_GROW(a->episodes, a->n_episodes, a->episodes_capacity);
    a->episodes[a->n_episodes++] = (struct episode){b->since_s, a->sending_until_s};
}

static void pass_episode(struct dl_training *t)
{
    if (t->sending.n && t->ahead->sending_until_s <= now_s(t)) add_episode(t);
}

static void note_sending(struct dl_training *t, double until_s)
{
    if (!t->sending.n) t->sending.since_s = now_s(t);
    t->sending.n = 1;
    t->ahead->sending_until_s = fmax(t->ahead->sending_until_s, until_s);
}

static void sending_begins(void *user, uint32_t tag)
{
    (void)tag;
    begin_busy(user, &((struct dl_training *)user)->sending);
}

static void sending_ends(void *user, uint32_t tag)
{
    (void)tag;
    end_busy(user, &((struct dl_training *)user)->sending);
}

/* From when on two stages may exchange what they both hold. */
static double exchanging_from_s(const struct dl_training *t)
{
    const struct dl_step *const s = &t->request.step;
    const struct runner *const r = t->ahead->runners;
    double from_s = INFINITY;
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].channel == DL_CHANNEL_STAGES)
            from_s = fmin(from_s, fmax(r[s->calls[i].members.pair[0]].end_s, r[s->calls[i].members.pair[1]].end_s));
    return from_s;
}

/* Exchanges between stages count as sending, too: what may be beside them is left to the engine. */
static void leave_sending(struct dl_training *t)
{
    struct ahead *const a = t->ahead;
    struct dl_engine *const e = t->request.engine;
    const double from_s = exchanging_from_s(t);
    if (t->sending.n) add_episode(t);
    while (a->n_episodes > 0 && a->episodes[a->n_episodes - 1].to_s > from_s) {
        const struct episode *const last = &a->episodes[--a->n_episodes];
        t->sending.total_s -= last->to_s - last->from_s;
        e->kind->timer(e, last->from_s, sending_begins, t, 0);
        e->kind->timer(e, last->to_s, sending_ends, t, 0);
    }
    a->n_episodes = 0;
}

/* ---- items ---- */

static void item_ends(struct dl_training *t, struct lockstep_group *c);

/* The host goes on when the device has come to a drain. */
static void go_on(struct dl_training *t, struct lockstep_group *c)
{
    while (c->part < c->parts->n) {
        const struct dl_part *const part = &c->parts->items[c->part++];
        if (part->kind == DL_DO) {
            dl_ahead_begin_work(t, c, part);
            add(t, c, c->work.until_s);
            return;
        }
        c->host_s = fmax(c->host_s + part->host_s * c->slowdown, now_s(t));
    }
    item_ends(t, c);
}

static void begin_item(struct dl_training *t, struct lockstep_group *c)
{
    dl_training_take_input(t, c);
    c->running = dl_item_block(program_of(t, c), &program_of(t, c)->sequence[c->item]);
    c->parts = &c->running->planned;
    c->part = 0;
    c->item_s = 0;
    go_on(t, c);
}

/* Whether it has come. At one instant, what was entered first in the queue of an engine comes first. */
static bool is_here(const struct runner *r, const struct message *m, double now)
{
    return m->arrives_s < now || (m->arrives_s == now && m->posted_s < r->posted_s);
}

/* The input that comes last of all that the lockstep group waits for, if others send any; false: one is not sent yet.
 */
static bool find_last(const struct dl_training *t, const struct lockstep_group *c, const struct message **last)
{
    const struct dl_sequenced *item = &program_of(t, c)->sequence[c->item];
    *last = NULL;
    for (bool more = true; more; more = item->item.with_next, item++) {
        const uint32_t message = item->wants == DL_NO_TAG ? DL_OWN_MESSAGE + 1 : c->arrived[item->wants];
        if (!message) return false;
        if (message == DL_OWN_MESSAGE + 1) continue;
        const struct message *const m = &t->messages[message - 1];
        if (!*last || m->arrives_s >= (*last)->arrives_s) *last = m;
    }
    return true;
}

/* A lockstep group that waits for its inputs: go on with it, at the date at which they are there, if that is known. */
static void resume(struct dl_training *t, struct lockstep_group *c)
{
    struct runner *const r = runner_of(t, c);
    const struct message *last;
    if (!find_last(t, c, &last)) return;
    t->ahead_s = c->waits_since_s;
    if (!last || is_here(r, last, t->ahead_s)) {
        c->waits_for_input = false;
        dl_training_meet_inputs(t, c, NULL);
    } else {
        t->ahead_s = last->arrives_s;
        r->posted_s = last->posted_s;
        dl_training_meet_inputs(t, c, &last->sent);
    }
    begin_item(t, c);
}

static void go_to_end(void *user, uint32_t tag);

static void next_item(struct dl_training *t, struct lockstep_group *c)
{
    if (is_at_end(t, c)) {
        runner_of(t, c)->end_s = now_s(t);
        t->request.engine->kind->timer(t->request.engine, now_s(t), go_to_end, c, 0);
        return;
    }
    c->waits_for_input = true;
    c->waits_since_s = now_s(t);
    resume(t, c);
}

/* ---- handing on ---- */

static void deliver(struct dl_training *t, struct lockstep_group *to, const struct message *m, uint32_t message)
{
    assert(!to->arrived[m->tag]);
    to->arrived[m->tag] = message + 1;
    if (t->steady) dl_steady_note_input(t, to, m->tag, m->arrives_s);
    if (!to->waits_for_input) return;
    const double now = t->ahead_s;
    resume(t, to);
    t->ahead_s = now;
}

/* Behind those that went the same way; as an engine would add it up. */
static void find_arrival(const struct dl_training *t, struct message *m)
{
    double *const free_s = &t->ahead->free_s[m->channel->line];
    const double departs_s = fmax(m->sent.begun_s, *free_s), bytes = m->channel->bytes;
    const double rate = fmin(t->send_pace.rate_cap_bytes_per_s, m->channel->alone_bytes_per_s);
    m->posted_s = departs_s + dl_training_latency_left_s(t, m, departs_s);
    m->arrives_s = m->posted_s + (bytes > 0 && !isinf(rate) ? bytes / rate : 0);
    *free_s = m->arrives_s;
}

static void send(struct dl_training *t, struct lockstep_group *from, const struct dl_sequenced *item)
{
    const uint32_t id = dl_training_new_message(t, from, item);
    struct message *const m = &t->messages[id];
    struct lockstep_group *const to = &t->lockstep_groups[m->receiver];
    find_arrival(t, m);
    m->channel->n_sent++;
    note_sending(t, m->arrives_s);
    runner_of(t, from)->undelivered_until_s = fmax(runner_of(t, from)->undelivered_until_s, m->arrives_s);
    dl_ahead_meet_message(t, from, m->arrives_s);
    dl_ahead_meet_message(t, to, m->arrives_s);
    deliver(t, to, m, id);
}

static void pass_on(struct dl_training *t, struct lockstep_group *c, const struct dl_sequenced *item)
{
    if (item->gives == DL_NO_TAG) return;
    if (item->to != c->stage) {
        send(t, c, item);
        return;
    }
    assert(!c->arrived[item->gives]);
    c->arrived[item->gives] = DL_OWN_MESSAGE + 1;
}

/* Who waits for its sends does nothing else meanwhile. */
static void wait_for_sends(struct dl_training *t, struct lockstep_group *c)
{
    c->waits_since_s = now_s(t);
    const struct start own = dl_start_own(c);
    runner_of(t, c)->posted_s = t->ahead_s;
    t->ahead_s = fmax(runner_of(t, c)->undelivered_until_s, t->ahead_s);
    dl_training_end_wait(t, c, &own, DL_CAUSE_PIPELINE, 0);
}

static void hand_on(struct dl_training *t, struct lockstep_group *c)
{
    const struct dl_sequenced *const last = &program_of(t, c)->sequence[c->item];
    const uint32_t n_sends = dl_training_count_sends(t, c);
    for (const struct dl_sequenced *item = dl_training_first_of_step(t, c); item <= last; item++) pass_on(t, c, item);
    c->item++;
    if (n_sends && t->request.step.sends != DL_SENDS_ASYNCHRONOUS) wait_for_sends(t, c);
    if (n_sends) dl_training_meet_device(t, c);
    next_item(t, c);
}

static void item_ends(struct dl_training *t, struct lockstep_group *c)
{
    dl_training_book_item(t, c);
    if (program_of(t, c)->sequence[c->item].item.with_next) {
        c->item++;
        begin_item(t, c);
        return;
    }
    const uint32_t n_sends = dl_training_count_sends(t, c);
    c->host_s += n_sends * t->request.step.send_host_s * c->slowdown;
    if (!n_sends || c->host_s <= now_s(t)) {
        hand_on(t, c);
        return;
    }
    c->waits_for_host = hand_on;
    c->waits_since_s = now_s(t);
    add(t, c, c->host_s);
}

static void step(struct dl_training *t, struct lockstep_group *c)
{
    if (c->waits_for_host) {
        runner_of(t, c)->posted_s = c->waits_since_s;
        dl_training_end_wait_for_host(t, c);
        hand_on(t, c);
    } else if (dl_ahead_end_work(t, c)) {
        go_on(t, c);
    } else {
        add(t, c, c->work.until_s);
    }
}

/* ---- an iteration ---- */

static void last_message_comes(void *user, uint32_t tag)
{
    (void)tag;
    struct lockstep_group *const c = user;
    c->n_in_flight = 0;
    dl_training_retime(c->training, c);
}

static void go_to_end(void *user, uint32_t tag)
{
    (void)tag;
    struct lockstep_group *const c = user;
    struct dl_training *const t = c->training;
    const double until_s = runner_of(t, c)->in_flight_until_s;
    if (until_s > now_s(t)) {
        c->n_in_flight = 1;
        t->request.engine->kind->timer(t->request.engine, until_s, last_message_comes, c, 0);
    }
    dl_training_work(t, c);
}

void dl_ahead_run(struct dl_training *t)
{
    struct ahead *const a = t->ahead;
    const double begin_s = now_s(t);
    t->is_ahead = true;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        a->runners[i] = (struct runner){.in_flight_until_s = begin_s, .undelivered_until_s = begin_s};
        t->ahead_s = begin_s;
        next_item(t, &t->lockstep_groups[i]);
    }
    while (a->dates.n) {
        const struct dl_date first = dl_dates_take(&a->dates);
        t->ahead_s = first.date_s;
        pass_episode(t);
        step(t, &t->lockstep_groups[dl_date_number(&first)]);
        t->ahead_s = first.date_s;
        if (dl_steady_is_due(t)) dl_steady_try(t, t->lockstep_groups[0].iteration);
    }
    leave_sending(t);
    t->is_ahead = false;
}
