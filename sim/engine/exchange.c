#include "sim/engine/exchange.h"

#include <math.h>

#include "sim/core/memory.h"
#include "sim/collective/fold.h"
#include "sim/engine/folded.h"
#include "sim/engine/matching.h"

enum { none = 0xffffffffu };

/* One rank's run through one lane's program (lanes times chunks of them a rank). */
struct lane {
    uint32_t rank, lane;
    uint32_t step;         /* next action */
    uint32_t pending;      /* receives that have not come, or are not yet reduced */
    uint32_t early;        /* messages that came before their receive */
    uint32_t expected;     /* the sender, where one receive waits and the matching knows nothing of this lane */
    uint32_t awaited_rank; /* the rank with which it waits to do something synchronous */
    uint32_t partner;      /* index of the lane that goes on when the receive here is done */
    struct dl_causes causes, latest;
    struct dl_way way;
};

/* A message that is being packed before it can go. */
struct outgoing {
    struct dl_wire_message message;
    uint32_t next_free;
};

struct dl_exchange {
    struct dl_exchange_spec spec;
    struct dl_folded *folded;     /* NULL: message by message */
    struct dl_matching *matching; /* message by message */
    struct lane *lanes;
    uint32_t n_lanes; /* of one rank */
    uint32_t n_ranks, n_running;
    double *block_bytes;     /* by lane of the algorithm */
    double *cap_bytes_per_s; /* of messages that are posted together, by lane of the algorithm */
    double *unit_free_s;     /* by rank: when what reduces and packs is free */
    struct outgoing *outgoing;
    size_t n_outgoing, outgoing_capacity;
    uint32_t free_outgoing;
    double start_s;
    struct dl_exchange_result result;
};

static double now_s(const struct dl_exchange *x) { return x->spec.engine->kind->now_s(x->spec.engine); }

static void go_on(struct dl_exchange *x, struct lane *at);

static uint32_t index_of(const struct dl_exchange *x, const struct lane *at) { return (uint32_t)(at - x->lanes); }

/* ---- the unit of a rank that reduces, packs and unpacks, one after the other ---- */

static double occupy_unit(struct dl_exchange *x, uint32_t rank, double seconds)
{
    x->unit_free_s[rank] = fmax(now_s(x), x->unit_free_s[rank]) + seconds;
    return x->unit_free_s[rank];
}

static void received(void *user, uint32_t index)
{
    struct dl_exchange *const x = user;
    struct lane *const at = &x->lanes[index];
    if (--at->pending) return;
    at->causes = at->latest;
    const uint32_t partner = at->partner;
    at->partner = none;
    go_on(x, at);
    if (partner == none) return;
    x->lanes[partner].causes = x->lanes[index].latest;
    x->lanes[partner].pending = 0;
    go_on(x, &x->lanes[partner]);
}

/* The message is here and its receive is posted; `causes` is the history of whichever came last. */
static void absorb(struct dl_exchange *x, struct lane *at, const struct dl_causes *causes, double work_s)
{
    at->latest = *causes;
    if (work_s <= 0) {
        received(x, index_of(x, at));
        return;
    }
    const double end_s = occupy_unit(x, at->rank, work_s);
    at->latest.reduction_s += end_s - now_s(x);
    x->spec.engine->kind->timer(x->spec.engine, end_s, received, x, index_of(x, at));
}

static void on_arrival(void *user, const struct dl_wire_message *message)
{
    struct dl_exchange *const x = user;
    struct lane *const at = &x->lanes[message->receiver];
    if (at->expected == message->sender)
        at->expected = DL_NOBODY;
    else if (!dl_matching_deliver(x->matching, message->receiver, message)) {
        at->early++;
        return;
    }
    absorb(x, at, &message->causes, message->work_s);
}

static void receive_early(struct dl_exchange *x, struct lane *at, const struct dl_wire_message *message)
{
    at->early--;
    if (message->work_s <= 0) return;
    at->pending++;
    absorb(x, at, &at->causes, message->work_s);
}

static void post_receive(struct dl_exchange *x, struct lane *at, uint32_t sender)
{
    struct dl_wire_message message;
    if (!at->pending && !at->early) {
        at->expected = sender;
        at->pending = 1;
        return;
    }
    if (at->expected != DL_NOBODY) { /* now there are several: they wait in the matching */
        dl_matching_receive(x->matching, index_of(x, at), at->expected, &message);
        at->expected = DL_NOBODY;
    }
    if (dl_matching_receive(x->matching, index_of(x, at), sender, &message))
        receive_early(x, at, &message);
    else
        at->pending++;
}

/* ---- sending ---- */

static void pack_done(void *user, uint32_t id)
{
    struct dl_exchange *const x = user;
    const struct dl_wire_message message = x->outgoing[id].message;
    x->outgoing[id].next_free = x->free_outgoing;
    x->free_outgoing = id;
    dl_wire_send(x->spec.wire, &message, on_arrival, x);
}

static void pack_then_send(struct dl_exchange *x, const struct dl_wire_message *message, uint32_t rank, double pack_s)
{
    uint32_t id = x->free_outgoing;
    if (id == none) {
        DL_GROW(x->outgoing, x->n_outgoing, x->outgoing_capacity);
        id = (uint32_t)x->n_outgoing++;
    } else {
        x->free_outgoing = x->outgoing[id].next_free;
    }
    x->outgoing[id].message = *message;
    const double end_s = occupy_unit(x, rank, pack_s);
    x->outgoing[id].message.causes.reduction_s += end_s - now_s(x);
    x->spec.engine->kind->timer(x->spec.engine, end_s, pack_done, x, id);
}

static void send(struct dl_exchange *x, struct lane *at, const struct dl_action *action)
{
    const struct dl_collective *const c = x->spec.collective;
    const struct dl_pace *const pace = x->spec.pace;
    const double dense = action->blocks.count * x->block_bytes[at->lane];
    const double payload = dl_payload_bytes(&c->payload, dense, action->merged);
    const bool packs = dl_payload_packs(&c->payload);
    const uint32_t most_posted = pace->holds_ports ? 1 : dl_most_posted(c->group->n);
    const uint32_t n_posted = action->posted < most_posted ? action->posted : most_posted;
    const bool is_crowd = (double)c->group->n * n_posted > 1024; /* of a few each is routed as if it were alone */
    const struct dl_wire_message message = {
        .from = c->group->device[at->rank],
        .to = c->group->device[action->peer],
        .way = &at->way,
        .bytes = payload,
        .pace = pace,
        .lane = 2 * at->lane + x->spec.is_in_step,
        .queue = c->algorithm->queue,
        .most_posted = most_posted,
        .n_posted = is_crowd ? n_posted : 1,
        .rate_cap_bytes_per_s = x->cap_bytes_per_s[at->lane] / (n_posted ? n_posted : 1),
        .causes = at->causes,
        .sender = at->rank,
        .receiver = action->peer * x->n_lanes + (index_of(x, at) - at->rank * x->n_lanes),
        .work_s =
            (action->reduce ? payload * pace->reduction_s_per_byte : 0) + (packs ? dense * pace->pack_s_per_byte : 0),
    };
    x->result.messages++;
    x->result.bundles++;
    const double pack_s = packs ? dense * pace->pack_s_per_byte : 0;
    if (pack_s > 0)
        pack_then_send(x, &message, at->rank, pack_s);
    else
        dl_wire_send(x->spec.wire, &message, on_arrival, x);
}

/* ---- programs ---- */

static void finish(void *user, const struct dl_causes *causes)
{
    struct dl_exchange *const x = user;
    x->result.complete = true;
    x->result.time_s = now_s(x) - x->start_s;
    x->result.causes = *causes;
    if (x->spec.done) x->spec.done(x->spec.user, x->spec.tag);
}

static struct lane *other_lane(const struct dl_exchange *x, const struct lane *at, uint32_t rank)
{
    return &x->lanes[index_of(x, at) + (rank - at->rank) * x->n_lanes]; /* wraps as unsigned numbers do */
}

/* Both are here and idle: the message goes, and both wait until it is received. */
static void exchange_synchronously(struct dl_exchange *x, struct lane *sender, struct lane *receiver)
{
    struct dl_action action;
    x->spec.collective->algorithm->next(x->spec.collective, sender->lane, sender->rank, sender->step, &action);
    sender->awaited_rank = receiver->awaited_rank = DL_NOBODY;
    sender->step++;
    receiver->step++;
    sender->pending = 1;
    post_receive(x, receiver, sender->rank);
    receiver->partner = index_of(x, sender);
    send(x, sender, &action);
}

static void meet(struct dl_exchange *x, struct lane *at, const struct dl_action *action)
{
    struct lane *const other = other_lane(x, at, action->peer);
    at->awaited_rank = action->peer;
    if (other->awaited_rank != at->rank) return;
    other->causes = at->causes; /* it waited for us */
    if (action->kind == DL_SEND)
        exchange_synchronously(x, at, other);
    else
        exchange_synchronously(x, other, at);
}

static void go_on(struct dl_exchange *x, struct lane *at)
{
    const struct dl_collective *const c = x->spec.collective;
    struct dl_action action;
    while (c->algorithm->next(c, at->lane, at->rank, at->step, &action)) {
        if (action.synchronous) {
            if (!at->pending) meet(x, at, &action);
            return;
        }
        if (action.kind == DL_SEND) {
            if (at->pending) return;
            at->step++;
            send(x, at, &action);
            continue;
        }
        at->step++;
        post_receive(x, at, action.peer);
    }
    if (!at->pending && --x->n_running == 0) finish(x, &at->causes);
}

static void begin_folded(struct dl_exchange *x)
{
    x->result.folded = true;
    x->folded = dl_folded_start(&x->spec, dl_wire_error(x->spec.wire), finish, x);
}

/* Of what a rank's kernels send at once. All streams of a tree flow alike, each with the lane's bytes. */
static double cap_of(const struct dl_exchange *x, uint32_t lane)
{
    const struct dl_pace *const pace = x->spec.pace;
    const struct dl_collective *const c = x->spec.collective;
    if (c->algorithm->queue != DL_QUEUE_PEER || pace->pump_s <= 0) return pace->rate_cap_bytes_per_s;
    return c->chunks * dl_payload_bytes(&c->payload, x->block_bytes[lane], 1) / pace->bandwidth_fraction / pace->pump_s;
}

static void make_lanes(struct dl_exchange *x)
{
    const struct dl_collective *const c = x->spec.collective;
    const uint32_t lanes = dl_collective_lanes(c);
    x->matching = dl_matching_new();
    x->n_ranks = dl_collective_ranks(c);
    x->n_lanes = lanes * c->chunks;
    x->n_running = x->n_ranks * x->n_lanes;
    x->unit_free_s = dl_alloc(x->n_ranks * sizeof *x->unit_free_s);
    x->block_bytes = dl_alloc(lanes * sizeof *x->block_bytes);
    x->cap_bytes_per_s = dl_alloc(lanes * sizeof *x->cap_bytes_per_s);
    for (uint32_t i = 0; i < lanes; i++) {
        x->block_bytes[i] = dl_collective_block_bytes(c, i);
        x->cap_bytes_per_s[i] = cap_of(x, i);
    }
    x->lanes = dl_alloc((size_t)x->n_running * sizeof *x->lanes);
    for (uint32_t i = 0; i < x->n_running; i++)
        x->lanes[i] = (struct lane){.rank = i / x->n_lanes,
                                    .lane = i % lanes,
                                    .expected = DL_NOBODY,
                                    .awaited_rank = DL_NOBODY,
                                    .partner = none,
                                    .causes = {.start_s = x->spec.pace->start_s}};
}

static void begin(void *user, uint32_t tag)
{
    (void)tag;
    struct dl_exchange *const x = user;
    x->result.folded = x->spec.fluid; /* also where a lone rank has nothing to do */
    if (dl_folds(x->spec.collective, x->spec.fluid)) {
        begin_folded(x);
        return;
    }
    make_lanes(x);
    for (uint32_t i = 0; i < x->n_ranks * x->n_lanes; i++) go_on(x, &x->lanes[i]);
}

struct dl_exchange *dl_exchange_start(const struct dl_exchange_spec *spec)
{
    struct dl_exchange *const x = dl_alloc(sizeof *x);
    x->spec = *spec;
    x->free_outgoing = none;
    x->start_s = now_s(x);
    spec->engine->kind->timer(spec->engine, x->start_s + spec->pace->start_s, begin, x, 0);
    return x;
}

struct dl_exchange_result dl_exchange_result(const struct dl_exchange *x)
{
    struct dl_exchange_result r = x->result;
    if (x->folded) r.bundles = dl_folded_bundles(x->folded);
    if (x->folded) r.messages = (uint64_t)dl_count_messages(x->spec.collective);
    return r;
}

void dl_exchange_free(struct dl_exchange *x)
{
    if (!x) return;
    for (uint32_t i = 0; i < x->n_ranks * x->n_lanes; i++) dl_wire_release_way(x->spec.wire, &x->lanes[i].way);
    dl_folded_free(x->folded);
    dl_matching_free(x->matching);
    dl_free(x->lanes);
    dl_free(x->unit_free_s);
    dl_free(x->block_bytes);
    dl_free(x->cap_bytes_per_s);
    dl_free(x->outgoing);
    dl_free(x);
}
