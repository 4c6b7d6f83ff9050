#include "sim/engine/training_ahead.h"

#include <assert.h>
#include <math.h>

#include "sim/engine/training_ahead_work.h"
#include "sim/engine/training_messages.h"
#include "sim/engine/training_steady.h"

static const struct dl_sequenced *item_at(const struct lockstep_group *c, const struct runner *r)
{
    return &r->program->sequence[c->item];
}

/* ---- items ---- */

/* Work up to the next that ends; false: there is no more in the item. The host goes on when the device has come to a
 * drain. */
static inline bool begin_part(struct dl_training *t, struct lockstep_group *c, struct runner *r, double now)
{
    const struct dl_part *part = &c->parts->items[c->part];
    for (size_t left = c->parts->n - c->part; left > 0; left--, part++) {
        c->part++;
        if (part->kind == DL_DO) {
            begin_work(t->ahead, c, r, part, now);
            dl_tournament_set(&t->ahead->dates, c->stage, c->work.until_s);
            return true;
        }
        c->host_s = fmax(c->host_s + part->host_s, now);
    }
    return false;
}

/* The host notices what comes from another stage. */
static inline void take_input(struct dl_training *t, struct lockstep_group *c, const struct dl_sequenced *item,
                              double now)
{
    if (item->wants == DL_NO_TAG) return;
    const uint32_t message = c->arrived[item->wants];
    c->arrived[item->wants] = 0;
    c->n_arrived--;
    if (message == DL_OWN_MESSAGE + 1) return;
    dl_training_free_message(t, message - 1);
    c->host_s += t->request.step.send_host_s;
    if (t->request.step.drains_at_sends) c->host_s = fmax(c->host_s, now);
}

static void begin_item(struct dl_training *t, struct lockstep_group *c, struct runner *r, double now)
{
    const struct dl_sequenced *const item = item_at(c, r);
    take_input(t, c, item, now);
    c->parts = &dl_item_block(r->program, item)->planned;
    c->part = 0;
    c->item_s = 0;
    begin_part(t, c, r, now);
}

/* Whether it has come. At one instant, what was entered first in the queue of an engine comes first. */
static inline bool is_here(const struct runner *r, const struct message *m, double now)
{
    return m->arrives_s < now || (m->arrives_s == now && m->posted_s < r->posted_s);
}

/* What the lockstep group waits for, if others send any. */
struct inputs {
    struct message *last; /* that comes */
    double undisturbed_s; /* of that which comes last in the undisturbed step */
};

/* False: one is not sent yet. */
static inline bool find_inputs(const struct dl_training *t, const struct lockstep_group *c, const struct runner *r,
                               struct inputs *out)
{
    const struct dl_sequenced *item = item_at(c, r);
    *out = (struct inputs){.undisturbed_s = -INFINITY};
    for (bool more = true; more; more = item->item.with_next, item++) {
        const uint32_t message = item->wants == DL_NO_TAG ? DL_OWN_MESSAGE + 1 : c->arrived[item->wants];
        if (!message) return false;
        if (message == DL_OWN_MESSAGE + 1) continue;
        struct message *const m = &t->messages[message - 1];
        if (!out->last || m->arrives_s >= out->last->arrives_s) out->last = m;
        out->undisturbed_s = fmax(out->undisturbed_s, m->sent.undisturbed_s);
    }
    return true;
}

/* A lockstep group that waits for its inputs: go on with it, at the date at which they are there, if that is known. */
static void resume(struct dl_training *t, struct lockstep_group *c, struct runner *r)
{
    struct inputs inputs;
    if (!find_inputs(t, c, r, &inputs)) return;
    struct message *const last = inputs.last;
    double now = t->ahead_s = c->waits_since_s;
    c->waits_for_input = false;
    r->n_before = 0;
    if (!last || is_here(r, last, now)) {
        dl_training_pass(t, c, inputs.undisturbed_s);
    } else {
        now = t->ahead_s = last->arrives_s;
        r->posted_s = last->posted_s;
        last->sent.undisturbed_s = inputs.undisturbed_s; /* it is worked on now, and not looked at again */
        end_wait(t, c, &last->sent, DL_CAUSE_PIPELINE, 0);
    }
    begin_item(t, c, r, now);
}

static void go_to_end(void *user, uint32_t tag);

static inline void next_item(struct dl_training *t, struct lockstep_group *c, struct runner *r)
{
    if (c->item == r->program->n_sequence) {
        r->end_s = t->ahead_s;
        t->request.engine->kind->timer(t->request.engine, t->ahead_s, go_to_end, c, 0);
        return;
    }
    c->waits_for_input = true;
    c->waits_since_s = t->ahead_s;
    resume(t, c, r);
}

/* ---- handing on ---- */

static inline void deliver(struct dl_training *t, struct lockstep_group *to, const struct message *m, uint32_t message)
{
    struct runner *const r = runner_of(t, to);
    assert(!to->arrived[m->tag]);
    to->arrived[m->tag] = message + 1;
    to->n_arrived++;
    if (r->input_s) r->input_s[m->tag] = m->arrives_s;
    if (!to->waits_for_input) return;
    const double now = t->ahead_s;
    resume(t, to, r);
    t->ahead_s = now;
}

/* Behind those that went the same way; as an engine would add it up. */
static inline void find_arrival(const struct dl_training *t, struct message *m)
{
    double *const free_s = &t->ahead->free_s[m->channel->line];
    const double departs_s = fmax(m->sent.begun_s, *free_s);
    m->posted_s = departs_s + dl_training_latency_left_s(t, m, departs_s);
    m->arrives_s = m->posted_s + m->channel->alone_s;
    *free_s = m->arrives_s;
}

static inline void send(struct dl_training *t, struct lockstep_group *from, struct runner *r,
                        const struct dl_sequenced *item)
{
    const uint32_t id = dl_training_new_message(t, from, item);
    struct message *const m = &t->messages[id];
    struct lockstep_group *const to = &t->lockstep_groups[m->receiver];
    find_arrival(t, m);
    m->channel->n_sent++;
    note_sending(t, m->arrives_s);
    r->undelivered_until_s = fmax(r->undelivered_until_s, m->arrives_s);
    meet_message(from, r, m->arrives_s, t->ahead_s);
    meet_message(to, runner_of(t, to), m->arrives_s, t->ahead_s);
    deliver(t, to, m, id);
}

static inline void pass_on(struct dl_training *t, struct lockstep_group *c, struct runner *r,
                           const struct dl_sequenced *item)
{
    if (item->gives == DL_NO_TAG) return;
    if (item->to != c->stage) {
        send(t, c, r, item);
        return;
    }
    assert(!c->arrived[item->gives]);
    c->arrived[item->gives] = DL_OWN_MESSAGE + 1;
    c->n_arrived++;
}

/* Who waits for its sends does nothing else meanwhile. */
static inline void wait_for_sends(struct dl_training *t, struct lockstep_group *c, struct runner *r)
{
    c->waits_since_s = r->posted_s = t->ahead_s;
    t->ahead_s = fmax(r->undelivered_until_s, t->ahead_s);
    end_own_wait(t, c, DL_CAUSE_PIPELINE);
}

static void hand_on(struct dl_training *t, struct lockstep_group *c)
{
    struct runner *const r = runner_of(t, c);
    const struct dl_sequenced *const items = r->program->sequence;
    for (uint32_t i = c->item - r->n_before; i <= c->item; i++) pass_on(t, c, r, &items[i]);
    c->item++;
    if (c->n_sends && t->request.step.sends != DL_SENDS_ASYNCHRONOUS) wait_for_sends(t, c, r);
    if (c->n_sends && t->request.step.drains_at_sends) c->host_s = fmax(c->host_s, t->ahead_s);
    next_item(t, c, r);
}

static inline void book_item(struct dl_training *t, struct lockstep_group *c, const struct runner *r,
                             enum dl_item_kind kind)
{
    t->items_s[kind] += c->item_s;
    t->n_items[kind]++;
    if (r->input_s && c->item >= r->program->repeats.first) dl_steady_note_item(t, c);
}

/* Of all items that make one step. */
static inline uint32_t count_sends(const struct lockstep_group *c, const struct runner *r)
{
    const struct dl_sequenced *const items = r->program->sequence;
    uint32_t n = 0;
    for (uint32_t i = c->item - r->n_before; i <= c->item; i++)
        n += items[i].gives != DL_NO_TAG && items[i].to != c->stage;
    return n;
}

static inline void item_ends(struct dl_training *t, struct lockstep_group *c, struct runner *r, double now)
{
    const struct dl_item *const item = &item_at(c, r)->item;
    book_item(t, c, r, item->kind);
    if (item->with_next) {
        c->item++;
        r->n_before++;
        begin_item(t, c, r, now);
        return;
    }
    c->n_sends = count_sends(c, r);
    c->host_s += c->n_sends * t->request.step.send_host_s;
    if (!c->n_sends || c->host_s <= now) {
        hand_on(t, c);
        return;
    }
    c->waits_for_host = hand_on;
    c->waits_since_s = now;
    dl_tournament_set(&t->ahead->dates, c->stage, c->host_s);
}

static inline void step(struct dl_training *t, struct lockstep_group *c, struct runner *r, double now)
{
    if (c->waits_for_host) {
        r->posted_s = c->waits_since_s;
        dl_training_end_wait_for_host(t, c);
        hand_on(t, c);
    } else if (c->work.until_s > now) { /* it is longer by messages that left since its date was set */
        dl_tournament_set(&t->ahead->dates, c->stage, c->work.until_s);
    } else {
        end_work(c, r, item_at(c, r)->item.kind, now);
        if (!begin_part(t, c, r, now)) item_ends(t, c, r, now);
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

/* What all items of a stage take by themselves, those that were left out too. */
static void book_blocks(struct dl_training *t, struct lockstep_group *c)
{
    const struct dl_program *const p = program_of(t, c);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct dl_parts *const parts = &p->items[p->blocks[i]]->planned;
        const double uses = p->uses[p->blocks[i]];
        for (size_t k = 0; k < parts->n; k++)
            for (int cause = 0; cause < DL_N_CAUSES; cause++)
                c->causes_s[cause] += uses * parts->items[k].segment.by_cause[cause];
    }
}

/* The lockstep group whose item ends first, if any goes on. */
static inline bool step_first(struct dl_training *t)
{
    struct dl_tournament *const dates = &t->ahead->dates;
    const uint32_t first = dl_tournament_first(dates);
    const struct dl_entrant entrant = dates->entrants[first];
    if (entrant.date_s == INFINITY) return false;
    t->ahead_s = entrant.date_s;
    pass_sending(t);
    step(t, &t->lockstep_groups[first], &t->ahead->runners[first], entrant.date_s);
    t->ahead_s = entrant.date_s;
    if (dates->entrants[first].order == entrant.order) dl_tournament_set(dates, first, INFINITY);
    return true;
}

/* Leave periods out, once; what is noted for that is not needed any more then. */
static void try_to_leave_out(struct dl_training *t)
{
    const uint32_t iteration = t->lockstep_groups[0].iteration;
    dl_steady_try(t, iteration);
    if (dl_steady_watches(t, iteration)) return;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) t->ahead->runners[i].input_s = NULL;
}

static void begin(struct dl_training *t, struct lockstep_group *c, double begin_s)
{
    struct runner *const r = runner_of(t, c);
    *r = (struct runner){.program = program_of(t, c), .in_flight_until_s = begin_s, .undelivered_until_s = begin_s};
    if (dl_steady_watches(t, c->iteration)) r->input_s = dl_steady_inputs(t, c);
    t->ahead_s = begin_s;
    next_item(t, c, r);
}

void dl_ahead_run(struct dl_training *t)
{
    const double begin_s = now_s(t);
    t->is_ahead = true;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) begin(t, &t->lockstep_groups[i], begin_s);
    while (step_first(t))
        if (dl_steady_is_due(t)) try_to_leave_out(t);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) book_blocks(t, &t->lockstep_groups[i]);
    dl_ahead_leave_sending(t);
    t->is_ahead = false;
}
