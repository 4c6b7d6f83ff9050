/* training_ahead_items.c - items in the order of their ends: the innermost loop of all that is priced. */
#include <assert.h>
#include <math.h>

#include "sim/engine/training_ahead_send.h"
#include "sim/engine/training_steady_parts.h"

/* ---- work ---- */

/* Work up to the next that ends, and when; INFINITY: there is no more in the item. The host goes on when the device has
 * come to a drain. */
static inline double begin_part(const struct ahead *a, struct runner *r, double now)
{
    while (r->part < r->parts_end) {
        const struct dl_part *const part = r->part++;
        if (part->kind == DL_DO) return begin_work(a, r, part, now);
        r->host_s = fmax(r->host_s + part->host_s, now);
    }
    return INFINITY;
}

/* The host notices what comes from another stage. */
static inline void take_input(struct dl_training *t, struct runner *r, uint32_t tag, double now)
{
    r->input_s = 0;
    if (tag == DL_NO_TAG) return;
    const uint32_t message = r->arrived[tag];
    r->arrived[tag] = 0;
    r->n_arrived--;
    if (message == DL_OWN_MESSAGE + 1) return;
    r->input_s = t->messages[message - 1].arrives_s;
    dl_training_free_message(t, message - 1);
    r->host_s += t->request.step.send_host_s;
    if (t->request.step.drains_at_receives) r->host_s = fmax(r->host_s, now);
}

static inline double begin_item(struct dl_training *t, const struct ahead *a, struct runner *r, double now)
{
    const struct dl_parts *const parts = &r->blocks[r->item->block]->planned;
    take_input(t, r, r->item->wants, now);
    r->part = parts->items;
    r->parts_end = parts->items + parts->n;
    r->phase = r->item->item.kind == DL_ITEM_F ? DL_PHASE_FORWARD : DL_PHASE_BACKWARD;
    r->item_s = 0;
    return begin_part(a, r, now);
}

/* ---- inputs ---- */

/* Whether it has come. At one instant, what was entered first in the queue of an engine comes first. */
static inline bool is_here(const struct runner *r, const struct message *m, double now)
{
    return m->arrives_s < now || (m->arrives_s == now && m->posted_s < r->posted_s);
}

/* What the lockstep group waits for, if others send any. */
struct inputs {
    const struct message *last; /* that comes */
    double undisturbed_s;       /* of that which comes last in the undisturbed step */
};

static inline bool is_sent(const struct runner *r) { return r->item->wants == DL_NO_TAG || r->arrived[r->item->wants]; }

/* False: one is not sent yet. */
static inline bool find_inputs(const struct dl_training *t, const struct runner *r, struct inputs *out)
{
    const struct dl_sequenced *item = r->item;
    *out = (struct inputs){.undisturbed_s = -INFINITY};
    for (bool more = true; more; more = item->item.with_next, item++) {
        if (item->wants == DL_NO_TAG) continue;
        const uint32_t message = r->arrived[item->wants];
        if (!message) return false;
        if (message == DL_OWN_MESSAGE + 1) continue;
        const struct message *const m = &t->messages[message - 1];
        if (!out->last || m->arrives_s >= out->last->arrives_s) out->last = m;
        out->undisturbed_s = fmax(out->undisturbed_s, m->sent.undisturbed_s);
    }
    return true;
}

/* From when on the inputs are there that a lockstep group waits for; INFINITY: that is not known yet. */
static inline double end_wait_for_inputs(const struct dl_training *t, struct runner *r)
{
    struct inputs inputs;
    if (!find_inputs(t, r, &inputs)) return INFINITY;
    r->waits_for_input = false;
    if (!inputs.last || is_here(r, inputs.last, r->waits_since_s)) {
        pass_input(r, inputs.undisturbed_s);
        return r->waits_since_s;
    }
    r->posted_s = inputs.last->posted_s;
    end_wait_for_message(r, &inputs.last->sent, inputs.undisturbed_s, inputs.last->arrives_s);
    return inputs.last->arrives_s;
}

/* A lockstep group goes to its item, if it can. Items that make one step begin when all of their inputs are there. */
static void resume(struct dl_training *t, struct ahead *a, struct runner *r)
{
    const double now = r->item == r->first ? end_wait_for_inputs(t, r) : r->waits_since_s;
    if (now < INFINITY) dl_tournament_add(&a->dates, r->stage, begin_item(t, a, r, now));
}

static inline void next_item(struct dl_training *t, struct ahead *a, struct runner *r, double now)
{
    if (r->item == r->items_end) {
        dl_ahead_end_items(t, r, now);
        return;
    }
    r->first = r->item;
    r->n_sends = 0;
    r->waits_for_input = true;
    r->waits_since_s = now;
    if (is_sent(r)) resume(t, a, r);
}

void dl_ahead_begin_items(struct dl_training *t, struct runner *r, double now) { next_item(t, t->ahead, r, now); }

/* ---- handing on ---- */

static inline void send(struct dl_training *t, struct ahead *a, struct runner *from, const struct dl_sequenced *item,
                        double now)
{
    const uint32_t id = new_message(t, a, from, item, now);
    const double arrives_s = t->messages[id].arrives_s;
    struct runner *const to = &a->runners[item->to];
    leave(t, a, from, to, arrives_s, now);
    assert(!to->arrived[item->gives]);
    to->arrived[item->gives] = id + 1;
    to->n_arrived++;
    if (to->waits_for_input && is_sent(to)) resume(t, a, to);
}

static inline void pass_on(struct dl_training *t, struct ahead *a, struct runner *r, const struct dl_sequenced *item,
                           double now)
{
    if (item->gives == DL_NO_TAG) return;
    if (item->to != r->stage) {
        send(t, a, r, item, now);
        return;
    }
    assert(!r->arrived[item->gives]);
    r->arrived[item->gives] = DL_OWN_MESSAGE + 1;
    r->n_arrived++;
}

/* Who waits for its sends does nothing else meanwhile; returns until when. */
static inline double wait_for_sends(struct runner *r, double now)
{
    const double until_s = fmax(r->undelivered_until_s, now);
    r->posted_s = now;
    r->books.messages_s += until_s - now;
    delay_by_messages(&r->late, until_s - now);
    return until_s;
}

static inline void hand_on(struct dl_training *t, struct ahead *a, struct runner *r, double now)
{
    const struct dl_sequenced *item = r->first;
    do {
        pass_on(t, a, r, item, now);
    } while (item++ < r->item);
    r->item++;
    if (r->n_sends) {
        if (t->request.step.sends != DL_SENDS_ASYNCHRONOUS) now = wait_for_sends(r, now);
        if (t->request.step.drains_at_sends) r->host_s = fmax(r->host_s, now);
    }
    next_item(t, a, r, now);
}

static inline void end_item(struct dl_training *t, struct runner *r, double now)
{
    const struct dl_sequenced *const item = r->item;
    t->items_s[item->item.kind] += r->item_s;
    t->n_items[item->item.kind]++;
    r->n_sends += item->gives != DL_NO_TAG && item->to != r->stage;
    const struct record done = {
        .end_s = now, .host_s = r->host_s, .item_s = r->item_s, .input_s = r->input_s, .delay_s = r->late.total_s};
    if (!r->course || !note_item(t, r->group, r->course, item, done)) return;
    dl_ahead_store(t, r);
    dl_steady_note_period(t, r->group, r->course);
}

/* The next item of the same step. */
static inline void join_next(struct dl_training *t, struct ahead *a, struct runner *r, double now)
{
    r->item++;
    r->waits_since_s = now;
    resume(t, a, r);
}

/* Until when the host launches what the step sends; INFINITY: it is not waited for. */
static inline double begin_sends(const struct dl_training *t, struct runner *r, double now)
{
    if (!r->n_sends) return INFINITY;
    r->host_s += r->n_sends * t->request.step.send_host_s;
    if (r->host_s <= now) return INFINITY;
    r->waits_for_host = true;
    r->waits_since_s = now;
    return r->host_s;
}

static inline void end_wait_for_host(struct runner *r, double now)
{
    const double wait_s = now - r->waits_since_s;
    r->waits_for_host = false;
    r->posted_s = r->waits_since_s;
    r->books.host_s += wait_s;
    r->books.elapsed_s[r->phase] += wait_s;
}

/* The lockstep group's date has come: whether it hands on now. */
static inline bool is_through(struct dl_training *t, struct ahead *a, struct runner *r, double now)
{
    if (r->waits_for_host) {
        end_wait_for_host(r, now);
        return true;
    }
    double until_s = r->until_s; /* later than its date by messages that left since that was set */
    if (until_s <= now) {
        end_work(r, now);
        until_s = begin_part(a, r, now);
        if (until_s == INFINITY) {
            end_item(t, r, now);
            if (r->item->item.with_next) {
                join_next(t, a, r, now);
                return false;
            }
            until_s = begin_sends(t, r, now);
            if (until_s == INFINITY) return true;
        }
    }
    dl_tournament_add(&a->dates, r->stage, until_s);
    return false;
}

bool dl_ahead_go_on(struct dl_training *t)
{
    struct ahead *const a = t->ahead;
    const bool *const is_due = dl_steady_due(t);
    for (double now; (now = dl_tournament_date_s(&a->dates)) < INFINITY;) {
        t->ahead_s = now;
        struct runner *const r = &a->runners[dl_tournament_take(&a->dates)];
        if (is_through(t, a, r, now)) hand_on(t, a, r, now);
        dl_tournament_settle(&a->dates);
        if (is_due && *is_due) return true;
    }
    return false;
}
