/* training_sends.c - activations and gradients on their way from stage to stage.
 *
 * A message needs no receiver that is ready: it lies there until it is wanted, so that no order of sends can lock.
 * Those that go the same way go one after the other, as on a connection. */
#include <assert.h>
#include <math.h>

#include "sim/collective/kept.h"
#include "sim/engine/training_messages.h"
#include "sim/engine/training_waits.h"

/* ---- the ways ---- */

/* One for each way from stage to stage. Where sends block there is one between two stages, named by the lockstep group
 * from which it goes onward. */
static uint32_t line_between(const struct dl_training *t, const struct lockstep_group *from,
                             const struct lockstep_group *to)
{
    const bool onward = (from->stage + 1) % t->n_stages == to->stage;
    if (!is_blocking(t)) return 2 * (uint32_t)(from - t->lockstep_groups) + onward;
    return t->n_stages == 2 ? from->replica : (uint32_t)((onward ? from : to) - t->lockstep_groups);
}

/* Of the slowest member. */
static double latency_s(const struct dl_training *t, const struct dl_ways *ways, double message_bytes)
{
    double most_s = 0;
    for (int reach = 0; reach < DL_N_REACHES; reach++) {
        const struct dl_route longest = {.reach = (enum dl_reach)reach, .latency_s = ways->latency_s[reach]};
        if (longest.latency_s < 0) continue;
        const double one_s = t->send_pace.start_s + dl_pace_latency_s(&t->send_pace, &longest, message_bytes);
        most_s = fmax(most_s, t->request.step.send_messages * one_s);
    }
    return most_s;
}

/* The links of all members' routes, as these are now. */
static enum dl_status find_hops(struct dl_training *t, const struct lockstep_group *from,
                                const struct lockstep_group *to, struct channel *out)
{
    const double message_bytes = program_of(t, from)->send_bytes / t->n_members;
    const uint32_t *const senders = devices_from(t, from), *const receivers = devices_from(t, to);
    for (uint32_t i = 0; i < t->n_members; i++) {
        t->ends[i] = senders[t->members[i]];
        t->ends[t->n_members + i] = receivers[t->members[i]];
    }
    const struct dl_ways *const ways =
        dl_find_ways(t->request.estimator, t->ends, t->ends + t->n_members, t->n_members, t->err);
    if (!ways) return t->err->status;
    out->version = t->request.estimator->topology->condition->version;
    out->latency_s = latency_s(t, ways, message_bytes);
    out->hops = ways->hops;
    out->n_hops = ways->n_hops;
    out->way = 0;
    out->alone_bytes_per_s = dl_wire_alone(t->request.wire, out->hops, out->n_hops);
    const double rate = fmin(t->send_pace.rate_cap_bytes_per_s, out->alone_bytes_per_s);
    out->alone_s = out->bytes > 0 && !isinf(rate) ? out->bytes / rate : 0;
    return dl_wire_check(t->request.wire, out->hops, out->n_hops);
}

static enum dl_status open_channel(struct dl_training *t, const struct lockstep_group *from,
                                   const struct lockstep_group *to, struct channel *out)
{
    const double message_bytes = program_of(t, from)->send_bytes / t->n_members;
    out->to = (uint32_t)(to - t->lockstep_groups);
    out->line = line_between(t, from, to);
    out->bytes = message_bytes / dl_pace_fraction(&t->send_pace, message_bytes);
    return find_hops(t, from, to, out);
}

static void book_channel(struct dl_training *t, struct channel *c)
{
    if (c->n_sent) dl_wire_book_hops(t->request.wire, c->hops, c->n_hops, (double)c->n_sent * c->bytes);
    c->n_sent = 0;
}

/* Its links may have changed since it was opened. */
static void refresh_channel(struct dl_training *t, uint32_t from, struct channel *c)
{
    if (c->version == t->request.estimator->topology->condition->version) return;
    book_channel(t, c);
    find_hops(t, &t->lockstep_groups[from], &t->lockstep_groups[c->to], c);
}

/* The software of a plain message, chosen once: all stages send alike. */
static enum dl_status choose_send_pace(struct dl_training *t)
{
    const uint32_t pair[] = {device_of(t, &t->lockstep_groups[0], 0),
                             device_of(t, &t->lockstep_groups[t->n_played], 0)};
    const struct dl_wish wish = {.op = DL_SENDRECV,
                                 .algorithm = "auto",
                                 .protocol = "auto",
                                 .bytes = program_of(t, &t->lockstep_groups[0])->send_bytes / t->n_members};
    const struct dl_together *const chosen =
        dl_choose_together(t->request.estimator, &wish, pair, DL_COUNT(pair), 1, t->err);
    if (chosen) t->send_pace = chosen->choices[0].estimate.pace;
    return t->err->status;
}

static void open_lines(struct dl_training *t)
{
    t->lines = dl_alloc(2 * (size_t)t->n_lockstep_groups * sizeof *t->lines);
    for (size_t i = 0; i < 2 * (size_t)t->n_lockstep_groups; i++)
        t->lines[i] = (struct line){DL_NO_MESSAGE, DL_NO_MESSAGE};
}

enum dl_status dl_training_open_channels(struct dl_training *t)
{
    t->free_message = DL_NO_MESSAGE;
    if (t->n_stages == 1 || choose_send_pace(t)) return t->err->status;
    open_lines(t);
    for (uint32_t i = 0; i < t->n_lockstep_groups && !t->err->status; i++) {
        struct lockstep_group *const c = &t->lockstep_groups[i];
        const uint32_t next = (c->stage + 1) % t->n_stages, before = (c->stage + t->n_stages - 1) % t->n_stages;
        open_channel(t, c, &t->lockstep_groups[next * t->n_played + c->replica], &c->onward);
        open_channel(t, c, &t->lockstep_groups[before * t->n_played + c->replica], &c->back);
    }
    return t->err->status;
}

void dl_training_close_channels(struct dl_training *t)
{
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        book_channel(t, &t->lockstep_groups[i].onward);
        book_channel(t, &t->lockstep_groups[i].back);
    }
    dl_free(t->lines);
    dl_free(t->messages);
}

/* ---- messages ---- */

static void record_send(const struct dl_training *t, const struct message *p)
{
    const struct lockstep_group *const from = &t->lockstep_groups[p->sender];
    t->request.recorder->add(t->request.recorder->user,
                             &(struct dl_slice){.kind = DL_SLICE_SEND,
                                                .stage = from->stage,
                                                .replica = from->replica,
                                                .from_s = p->sent.begun_s,
                                                .to_s = now_s(t),
                                                .item = &p->item->item,
                                                .to_stage = t->lockstep_groups[p->receiver].stage});
}

/* It goes, or comes: both ends have one more, or less, in flight. */
static void change_in_flight(struct dl_training *t, const struct message *p, bool goes)
{
    struct lockstep_group *const ends[] = {&t->lockstep_groups[p->sender], &t->lockstep_groups[p->receiver]};
    for (size_t i = 0; i < DL_COUNT(ends); i++) {
        if (goes)
            ends[i]->n_in_flight++;
        else
            ends[i]->n_in_flight--;
        dl_training_retime(t, ends[i]);
    }
}

static void depart(struct dl_training *t, uint32_t id);

static void free_line(struct dl_training *t, const struct message *p)
{
    t->lines[p->channel->line].first = p->next;
    if (p->next != DL_NO_MESSAGE) depart(t, p->next);
}

static void tell_sender(struct dl_training *t, struct lockstep_group *from)
{
    if (--from->n_undelivered || !from->waits_for_sends || t->over) return;
    end_own_wait(t, from, DL_CAUSE_PIPELINE);
    dl_training_after_sends(t, from);
}

void dl_training_message_arrives(void *user, uint32_t id)
{
    struct dl_training *const t = user;
    struct message *const p = &t->messages[id]; /* until something is delivered: there may be more of them then */
    const uint32_t sender = p->sender;
    end_busy(t, &t->sending);
    if (t->request.recorder) record_send(t, p);
    p->item = NULL;
    change_in_flight(t, p, false);
    free_line(t, p);
    dl_training_deliver(t, p->receiver, p->tag, id);
    tell_sender(t, &t->lockstep_groups[sender]);
}

static void reroute(void *user, uint32_t id, struct dl_turn *turn)
{
    struct dl_training *const t = user;
    const struct message *const p = &t->messages[id];
    refresh_channel(t, p->sender, p->channel);
    if (!t->err->status) dl_wire_turn(t->request.wire, turn, p->channel->hops, p->channel->n_hops);
}

static void depart(struct dl_training *t, uint32_t id)
{
    struct channel *const channel = t->messages[id].channel;
    refresh_channel(t, t->messages[id].sender, channel);
    change_in_flight(t, &t->messages[id], true);
    channel->n_sent++;
    if (dl_wire_expects_changes(t->request.wire)) book_channel(t, channel);
    t->request.engine->kind->start(
        t->request.engine, &(struct dl_bundle){.hops = channel->hops,
                                               .n_hops = channel->n_hops,
                                               .way = &channel->way,
                                               .latency_s = dl_training_latency_left_s(t, &t->messages[id], now_s(t)),
                                               .bytes = channel->bytes,
                                               .rate_cap_bytes_per_s = t->send_pace.rate_cap_bytes_per_s,
                                               .alone_bytes_per_s = channel->alone_bytes_per_s,
                                               .done = dl_training_message_arrives,
                                               .reroute = reroute,
                                               .user = t,
                                               .tag = id});
}

/* Whether it is the first. */
static bool queue_up(struct dl_training *t, uint32_t id)
{
    struct line *const line = &t->lines[t->messages[id].channel->line];
    const bool first = line->first == DL_NO_MESSAGE;
    if (first)
        line->first = id;
    else
        t->messages[line->last].next = id;
    line->last = id;
    return first;
}

void dl_training_send(struct dl_training *t, struct lockstep_group *from, const struct dl_sequenced *item)
{
    const uint32_t id = dl_training_new_message(t, from, item);
    from->n_undelivered++;
    begin_busy(t, &t->sending);
    if (queue_up(t, id)) depart(t, id);
}
