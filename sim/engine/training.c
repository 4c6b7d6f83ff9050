#include "sim/engine/training.h"

#include <assert.h>
#include <math.h>

#include "sim/engine/training_parts.h"

enum { none = 0xffffffffu };

static const struct dl_schedule *schedule_of(const struct dl_training *t) { return &t->request.lowered->schedule; }

static const struct dl_program *program_of(const struct dl_training *t, const struct crew *c)
{
    return &t->request.lowered->programs[c->stage];
}

static uint32_t place_of(const struct dl_training *t, enum dl_item_kind kind, uint32_t chunk, uint32_t micro)
{
    const struct dl_schedule *const s = schedule_of(t);
    return ((uint32_t)kind * s->chunks + chunk) * s->micros + micro;
}

/* ---- sends between stages ---- */

static enum dl_status open_channel(struct dl_training *t, const struct crew *from, const struct crew *to,
                                   struct dl_tally *tally, struct channel *out)
{
    struct dl_route route = {0};
    out->to = (uint32_t)(to - t->crews);
    out->bytes = program_of(t, from)->send_bytes / t->n_members / t->send_pace.bandwidth_fraction;
    dl_tally_clear(tally);
    for (uint32_t i = 0; i < t->n_members && !t->err->status; i++) {
        if (dl_topology_route(t->request.estimator->topology, device_of(t, from, i), device_of(t, to, i), 0, NULL,
                              &route, t->err))
            break;
        for (size_t h = 0; h < route.n_hops; h++) dl_tally_add(tally, route.hops[h].link, route.hops[h].weight);
        out->latency_s = fmax(out->latency_s, t->send_pace.start_s + dl_pace_latency_s(&t->send_pace, &route));
    }
    out->hops = dl_arena_alloc(t->request.arena, tally->n_touched * sizeof *out->hops);
    out->n_hops = tally->n_touched;
    for (size_t i = 0; i < tally->n_touched; i++)
        out->hops[i] = (struct dl_hop){.link = tally->touched[i], .weight = tally->sum[tally->touched[i]]};
    dl_route_release(&route);
    return t->err->status;
}

/* The software of a plain message, chosen once: all stages send alike. */
static enum dl_status choose_send_pace(struct dl_training *t)
{
    uint32_t pair[2] = {device_of(t, &t->crews[0], 0), device_of(t, &t->crews[t->n_played], 0)};
    struct dl_group group;
    struct dl_choice choice;
    dl_group_init(&group, t->request.estimator->topology, pair, 2, t->request.arena);
    const struct dl_wish wish = {.op = DL_SENDRECV,
                                 .algorithm = "auto",
                                 .protocol = "auto",
                                 .group = &group,
                                 .bytes = program_of(t, &t->crews[0])->send_bytes / t->n_members};
    if (dl_choose(t->request.estimator, &wish, t->request.arena, &choice, t->err)) return t->err->status;
    t->send_pace = choice.estimate.pace;
    return DL_OK;
}

static enum dl_status open_channels(struct dl_training *t)
{
    struct dl_tally tally;
    if (t->n_stages == 1 || choose_send_pace(t)) return t->err->status;
    dl_tally_init(&tally, t->request.estimator->topology->n_links);
    for (uint32_t i = 0; i < t->n_crews && !t->err->status; i++) {
        struct crew *const c = &t->crews[i];
        const uint32_t next = (c->stage + 1) % t->n_stages, before = (c->stage + t->n_stages - 1) % t->n_stages;
        open_channel(t, c, &t->crews[next * t->n_played + c->replica], &tally, &c->onward);
        open_channel(t, c, &t->crews[before * t->n_played + c->replica], &tally, &c->back);
    }
    dl_tally_release(&tally);
    return t->err->status;
}

static uint32_t new_parcel(struct dl_training *t)
{
    const uint32_t id = t->free_parcel;
    if (id != none) {
        t->free_parcel = t->parcels[id].next_free;
        return id;
    }
    DL_GROW(t->parcels, t->n_parcels, t->parcels_capacity);
    return (uint32_t)t->n_parcels++;
}

static bool has_inputs(const struct dl_training *t, const struct crew *c);

static void deliver(struct dl_training *t, uint32_t crew, uint32_t place, double sent_s)
{
    struct crew *const c = &t->crews[crew];
    assert(!c->arrived[place]); /* nobody is a whole iteration ahead of what it hands on */
    c->arrived[place] = true;
    if (!c->waits_for_input || !has_inputs(t, c) || t->over) return;
    dl_training_end_wait(t, c, sent_s, DL_CAUSE_PIPELINE);
    dl_training_work(t, c);
}

static void record_send(const struct dl_training *t, const struct parcel *p)
{
    const struct crew *const from = &t->crews[p->sender];
    t->request.recorder->add(t->request.recorder->user, &(struct dl_slice){.kind = DL_SLICE_SEND,
                                                                           .stage = from->stage,
                                                                           .replica = from->replica,
                                                                           .from_s = p->sent_s,
                                                                           .to_s = now_s(t),
                                                                           .item = p->item,
                                                                           .to_stage = t->crews[p->crew].stage});
}

static void parcel_arrives(void *user, uint32_t id)
{
    struct dl_training *const t = user;
    const struct parcel p = t->parcels[id];
    t->parcels[id].item = NULL;
    t->parcels[id].next_free = t->free_parcel;
    t->free_parcel = id;
    end_busy(t, &t->sending);
    if (t->request.recorder) record_send(t, &p);
    deliver(t, p.crew, p.place, p.sent_s);
}

static void send(struct dl_training *t, const struct crew *from, const struct dl_item *item,
                 const struct channel *channel, uint32_t place)
{
    const uint32_t id = new_parcel(t);
    t->parcels[id] = (struct parcel){
        .crew = channel->to, .place = place, .sender = (uint32_t)(from - t->crews), .item = item, .sent_s = now_s(t)};
    t->result.n_sends++;
    begin_busy(t, &t->sending);
    for (size_t i = 0; i < channel->n_hops; i++)
        dl_wire_book(t->request.wire, channel->hops[i].link, channel->bytes * channel->hops[i].weight);
    t->request.engine->kind->start(t->request.engine,
                                   &(struct dl_bundle){.hops = channel->hops,
                                                       .n_hops = channel->n_hops,
                                                       .latency_s = channel->latency_s,
                                                       .bytes = channel->bytes,
                                                       .rate_cap_bytes_per_s = t->send_pace.rate_cap_bytes_per_s,
                                                       .done = parcel_arrives,
                                                       .user = t,
                                                       .tag = id});
}

/* ---- items ---- */

static uint32_t position_of(const struct dl_training *t, const struct crew *c, uint32_t chunk)
{
    return schedule_of(t)->position_of[c->stage * schedule_of(t)->chunks + chunk];
}

/* Where its input arrives; none: what it needs was done here before, or is the input of the model itself. */
static uint32_t input_place(const struct dl_training *t, const struct crew *c, const struct dl_item *item)
{
    const uint32_t position = position_of(t, c, item->chunk), last = schedule_of(t)->n_positions - 1;
    if (item->kind == DL_ITEM_W || (item->kind == DL_ITEM_F && position == 0) ||
        (item->kind == DL_ITEM_B && position == last))
        return none;
    return place_of(t, item->kind, item->chunk, item->micro);
}

static bool has_input(const struct dl_training *t, const struct crew *c, const struct dl_item *item)
{
    const uint32_t place = input_place(t, c, item);
    return place == none || c->arrived[place];
}

/* Those of all items that make one step with the next. */
static bool has_inputs(const struct dl_training *t, const struct crew *c)
{
    const struct dl_item *item = &schedule_of(t)->items[c->stage][c->item];
    while (item->with_next && has_input(t, c, item)) item++;
    return has_input(t, c, item);
}

bool dl_training_lacks(const struct dl_training *t, const struct crew *c, uint32_t place)
{
    const struct dl_item *item = &schedule_of(t)->items[c->stage][c->item];
    while (item->with_next && input_place(t, c, item) != place) item++;
    return input_place(t, c, item) == place;
}

/* Activations go to the next position, gradients to the one before. */
static void pass_on_item(struct dl_training *t, struct crew *c, const struct dl_item *item)
{
    const struct dl_schedule *const s = schedule_of(t);
    const uint32_t position = position_of(t, c, item->chunk), last = s->n_positions - 1;
    if (item->kind == DL_ITEM_W || position == (item->kind == DL_ITEM_F ? last : 0)) return;
    const uint32_t next = item->kind == DL_ITEM_F ? position + 1 : position - 1;
    const uint32_t holder = item->micro % s->n_paths * s->n_positions + next;
    const uint32_t place = place_of(t, item->kind, s->chunk_of[holder], item->micro);
    const uint32_t stage = s->stage_of[holder];
    if (stage == c->stage)
        deliver(t, (uint32_t)(c - t->crews), place, now_s(t));
    else
        send(t, c, item, t->crews[c->onward.to].stage == stage ? &c->onward : &c->back, place);
}

/* Items that make one step hand on when all of it is done. */
static void pass_on(struct dl_training *t, struct crew *c, const struct dl_item *last)
{
    const struct dl_item *const items = schedule_of(t)->items[c->stage], *first = last;
    while (first > items && first[-1].with_next) first--;
    for (const struct dl_item *item = first; item <= last; item++) pass_on_item(t, c, item);
}

static void begin_item(struct dl_training *t, struct crew *c);

static void template_ends(struct dl_training *t, struct crew *c)
{
    if (c->running == &program_of(t, c)->end) {
        dl_training_crew_ends(t, c);
        return;
    }
    const struct dl_item *const item = &schedule_of(t)->items[c->stage][c->item++];
    if (item->with_next) {
        begin_item(t, c);
        return;
    }
    pass_on(t, c, item);
    dl_training_work(t, c);
}

static void part_ends(void *user, uint32_t index)
{
    struct dl_training *const t = user;
    if (t->over) return;
    dl_training_end_work(t, &t->crews[index]);
    dl_training_go_on(t, &t->crews[index]);
}

void dl_training_go_on(struct dl_training *t, struct crew *c)
{
    while (c->part < c->running->n_parts) {
        const struct dl_part *const part = &c->running->parts[c->part++];
        if (part->kind == DL_START) {
            dl_training_join(t, c, part->call);
        } else if (part->kind == DL_DO) {
            dl_training_begin_work(t, c, &part->segment);
            t->request.engine->kind->timer(t->request.engine, c->doing_until_s, part_ends, t, (uint32_t)(c - t->crews));
            return;
        } else if (!dl_training_may_pass(t, c, part->call)) {
            return;
        }
    }
    template_ends(t, c);
}

static const struct dl_template *template_of(const struct dl_training *t, const struct crew *c)
{
    const struct dl_schedule *const s = schedule_of(t);
    if (c->item == s->n_items[c->stage]) return &program_of(t, c)->end;
    const struct dl_item *const item = &s->items[c->stage][c->item];
    const bool last =
        t->request.setting->overlaps_gradients && t->last_item[c->stage * s->chunks + item->chunk] == c->item;
    return &program_of(t, c)->items[item->chunk * DL_N_TEMPLATES + (last ? DL_TEMPLATE_LAST : (int)item->kind)];
}

/* The same place will be used again in the next iteration. */
static void take_input(const struct dl_training *t, struct crew *c)
{
    const uint32_t place = input_place(t, c, &schedule_of(t)->items[c->stage][c->item]);
    if (place != none) c->arrived[place] = false;
}

static void begin_item(struct dl_training *t, struct crew *c)
{
    if (c->item < schedule_of(t)->n_items[c->stage]) take_input(t, c);
    c->running = template_of(t, c);
    c->part = 0;
    dl_training_go_on(t, c);
}

void dl_training_work(struct dl_training *t, struct crew *c)
{
    if (c->item == schedule_of(t)->n_items[c->stage] || has_inputs(t, c)) {
        begin_item(t, c);
        return;
    }
    c->waits_for_input = true;
    c->waits_since_s = now_s(t);
}

/* ---- from the outside ---- */

static void find_last_items(struct dl_training *t)
{
    const struct dl_schedule *const s = schedule_of(t);
    const enum dl_item_kind completes = s->splits_backward ? DL_ITEM_W : DL_ITEM_B;
    t->last_item = dl_alloc((size_t)s->stages * s->chunks * sizeof *t->last_item);
    for (uint32_t stage = 0; stage < s->stages; stage++)
        for (uint32_t i = 0; i < s->n_items[stage]; i++)
            if (s->items[stage][i].kind == completes) t->last_item[stage * s->chunks + s->items[stage][i].chunk] = i;
}

static void muster_crews(struct dl_training *t)
{
    const struct dl_schedule *const s = schedule_of(t);
    const size_t n_kinds_sent = 2; /* forwards and backwards */
    t->crews = dl_alloc(t->n_crews * sizeof *t->crews);
    for (uint32_t i = 0; i < t->n_crews; i++) {
        struct crew *const c = &t->crews[i];
        c->stage = i / t->n_played;
        c->replica = i % t->n_played;
        c->arrived = dl_alloc(n_kinds_sent * s->chunks * s->micros);
        c->latest = dl_alloc(t->request.lowered->n_calls * sizeof *c->latest);
        c->slowdown = 1;
    }
}

struct dl_training *dl_training_start(const struct dl_training_request *request, struct dl_error *err)
{
    struct dl_training *const t = dl_alloc(sizeof *t);
    t->request = *request;
    t->err = err;
    t->n_stages = request->setting->ways[DL_AXIS_PIPELINE];
    t->n_replicas = request->setting->ways[DL_AXIS_DATA];
    t->n_played = request->one_replica ? 1 : t->n_replicas;
    t->n_members = request->setting->ways[DL_AXIS_TENSOR] * request->setting->ways[DL_AXIS_CONTEXT];
    t->n_crews = t->n_stages * t->n_played;
    t->free_parcel = none;
    muster_crews(t);
    dl_training_open_iterations(t);
    find_last_items(t);
    dl_training_open_meetings(t);
    dl_training_open_queues(t);
    if (open_channels(t)) return t;
    for (uint32_t i = 0; i < t->n_crews; i++) dl_training_work(t, &t->crews[i]);
    return t;
}

static double segment_sum(const struct dl_training *t, uint32_t stage, enum dl_item_kind kind)
{
    const struct dl_schedule *const s = schedule_of(t);
    double sum = 0;
    for (uint32_t i = 0; i < s->n_items[stage]; i++) {
        const struct dl_item *const item = &s->items[stage][i];
        if (item->kind == kind)
            sum += t->request.lowered->programs[stage].items[item->chunk * DL_N_TEMPLATES + kind].total.seconds;
    }
    return sum;
}

/* Who waits for a partner first: exchanges that others wait for may be its fault. */
static void tell_who_waits(const struct dl_training *t, struct dl_error *err)
{
    for (uint32_t i = 0; i < t->n_crews && !err->status; i++)
        if (t->crews[i].waits_for_input)
            dl_fail(err, DL_STALLED, "run", "stage %u of replica %u waits for ever for the input of its item %u",
                    t->crews[i].stage, t->crews[i].replica, t->crews[i].item);
    for (uint32_t i = 0; i < t->n_crews && !err->status; i++)
        if (t->crews[i].waits_for)
            dl_fail(err, DL_STALLED, "run", "stage %u of replica %u waits for ever for its exchange %u",
                    t->crews[i].stage, t->crews[i].replica, t->crews[i].waits_for - 1);
    for (uint32_t i = 0; i < t->n_crews && !err->status; i++)
        if (t->crews[i].meets)
            dl_fail(err, DL_STALLED, "run", "stage %u of replica %u waits for ever for the stage that holds the same",
                    t->crews[i].stage, t->crews[i].replica);
}

struct dl_training_result dl_training_result(const struct dl_training *t, struct dl_error *err)
{
    struct dl_training_result r = t->result;
    if (!r.complete) {
        tell_who_waits(t, err);
        return r;
    }
    for (uint32_t i = 0; i < t->n_crews; i++)
        for (int cause = 0; cause < DL_N_CAUSES; cause++)
            r.exposed_s[cause] += t->crews[i].causes_s[cause] / t->n_crews;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) r.busy_s[cause] = r.exposed_s[cause];
    r.busy_s[DL_CAUSE_PIPELINE] = t->sending.total_s;
    /* Packing may go on beside exchanges or not; at least the longer of the two. */
    r.busy_s[DL_CAUSE_DATA] = fmax(t->exchanging.total_s, r.exposed_s[DL_CAUSE_DATA]);
    r.busy_s[DL_CAUSE_BUBBLE] = 0;
    for (uint32_t stage = 0; stage < t->n_stages; stage++) {
        r.forward_s = fmax(r.forward_s, segment_sum(t, stage, DL_ITEM_F));
        r.backward_s = fmax(r.backward_s, segment_sum(t, stage, DL_ITEM_B) + segment_sum(t, stage, DL_ITEM_W));
        const struct dl_segment *const end = &t->request.lowered->programs[stage].end.total;
        r.optimizer_s = fmax(r.optimizer_s, end->seconds - end->by_cause[DL_CAUSE_DATA]);
    }
    return r;
}

void dl_training_free(struct dl_training *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->n_crews; i++) {
        dl_free(t->crews[i].arrived);
        dl_free(t->crews[i].latest);
    }
    dl_training_close_queues(t);
    dl_training_close_meetings(t);
    dl_training_close_iterations(t);
    dl_free(t->last_item);
    dl_free(t->parcels);
    dl_free(t->crews);
    dl_free(t);
}
