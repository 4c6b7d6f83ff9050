#include "sim/engine/training.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "sim/engine/training_parts.h"

enum { none = 0xffffffffu };

static uint32_t place_of(const struct dl_training *t, enum dl_item_kind kind, uint32_t chunk, uint32_t micro)
{
    const struct dl_schedule *const s = schedule_of(t);
    return ((uint32_t)kind * s->chunks + chunk) * s->micros + micro;
}

static void begin_item(struct dl_training *t, struct crew *c);

/* ---- items ---- */

static uint32_t position_of(const struct dl_training *t, const struct crew *c, uint32_t chunk)
{
    return schedule_of(t)->position_of[c->stage * schedule_of(t)->chunks + chunk];
}

/* Where its input comes from, or its result goes to: an index into stage_of; none: it was done here before, or is the
 * input or result of the model itself. */
static uint32_t neighbour(const struct dl_training *t, const struct crew *c, const struct dl_item *item, bool source)
{
    const struct dl_schedule *const s = schedule_of(t);
    const uint32_t position = position_of(t, c, item->chunk);
    const bool above = (item->kind == DL_ITEM_F) != source; /* activations go up, gradients come down */
    if (item->kind == DL_ITEM_W || position == (above ? s->n_positions - 1 : 0)) return none;
    return item->micro % s->n_paths * s->n_positions + (above ? position + 1 : position - 1);
}

static uint32_t input_place(const struct dl_training *t, const struct crew *c, const struct dl_item *item)
{
    return neighbour(t, c, item, true) == none ? none : place_of(t, item->kind, item->chunk, item->micro);
}

static bool crosses(const struct dl_training *t, const struct crew *c, uint32_t holder)
{
    return holder != none && schedule_of(t)->stage_of[holder] != c->stage;
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

/* The first that the crew lacks. */
struct crew *dl_training_source(struct dl_training *t, const struct crew *c)
{
    const struct dl_item *item = &schedule_of(t)->items[c->stage][c->item];
    while (item->with_next && has_input(t, c, item)) item++;
    return &t->crews[schedule_of(t)->stage_of[neighbour(t, c, item, true)] * t->n_played + c->replica];
}

/* Of the inputs of all items that make one step; `last` is the one that came last, NULL: before they were wanted. */
static void meet_inputs(struct dl_training *t, struct crew *c, const struct start *last)
{
    struct start start = last ? *last : (struct start){.undisturbed_s = -INFINITY};
    const struct dl_item *item = &schedule_of(t)->items[c->stage][c->item];
    for (bool more = true; more; item++) {
        const uint32_t place = input_place(t, c, item), parcel = place == none ? 0 : c->arrived[place];
        if (parcel && parcel != DL_OWN_PARCEL + 1)
            start.undisturbed_s = fmax(start.undisturbed_s, t->parcels[parcel - 1].sent.undisturbed_s);
        more = item->with_next;
    }
    if (last)
        dl_training_end_wait(t, c, &start, DL_CAUSE_PIPELINE, 0);
    else
        dl_training_pass(t, c, &start);
}

void dl_training_deliver(struct dl_training *t, uint32_t crew, uint32_t place, uint32_t parcel)
{
    struct crew *const c = &t->crews[crew];
    assert(!c->arrived[place]); /* nobody is a whole iteration ahead of what it hands on */
    c->arrived[place] = parcel + 1;
    if (!c->waits_for_input || !has_inputs(t, c) || t->over) return;
    meet_inputs(t, c, &t->parcels[parcel].sent);
    begin_item(t, c);
}

/* ---- handing on ---- */

static void pass_on(struct dl_training *t, struct crew *c, const struct dl_item *item)
{
    const struct dl_schedule *const s = schedule_of(t);
    const uint32_t holder = neighbour(t, c, item, false);
    if (holder == none) return;
    const uint32_t place = place_of(t, item->kind, s->chunk_of[holder], item->micro);
    if (crosses(t, c, holder))
        dl_training_send(t, c, item, s->stage_of[holder], place);
    else
        dl_training_deliver(t, (uint32_t)(c - t->crews), place, DL_OWN_PARCEL);
}

/* Items that make one step hand on when all of it is done. */
static const struct dl_item *first_of_step(const struct dl_training *t, const struct crew *c)
{
    const struct dl_item *const items = schedule_of(t)->items[c->stage], *first = &items[c->item];
    while (first > items && first[-1].with_next) first--;
    return first;
}

static uint32_t count_sends(const struct dl_training *t, const struct crew *c)
{
    const struct dl_item *const last = &schedule_of(t)->items[c->stage][c->item];
    uint32_t n = 0;
    for (const struct dl_item *item = first_of_step(t, c); item <= last; item++)
        n += crosses(t, c, neighbour(t, c, item, false));
    return n;
}

static void meet_device(const struct dl_training *t, struct crew *c)
{
    if (software_of(t)->drains_at_sends) c->host_s = fmax(c->host_s, now_s(t));
}

void dl_training_after_sends(struct dl_training *t, struct crew *c)
{
    meet_device(t, c);
    dl_training_work(t, c);
}

static void hand_on(struct dl_training *t, struct crew *c)
{
    const struct dl_item *const last = &schedule_of(t)->items[c->stage][c->item];
    const uint32_t n_sends = count_sends(t, c);
    for (const struct dl_item *item = first_of_step(t, c); item <= last; item++) pass_on(t, c, item);
    c->item++;
    if (!n_sends) {
        dl_training_work(t, c);
    } else if (software_of(t)->sends == DL_SENDS_ASYNCHRONOUS) {
        dl_training_after_sends(t, c);
    } else {
        c->waits_for_sends = true;
        c->waits_since_s = now_s(t);
    }
}

/* ---- programs ---- */

static void book_item(struct dl_training *t, struct crew *c)
{
    if (c->item == schedule_of(t)->n_items[c->stage]) return;
    const enum dl_item_kind kind = schedule_of(t)->items[c->stage][c->item].kind;
    t->items_s[kind] += c->item_s;
    t->n_items[kind]++;
}

static void template_ends(struct dl_training *t, struct crew *c)
{
    book_item(t, c);
    if (c->item == schedule_of(t)->n_items[c->stage]) {
        dl_training_crew_ends(t, c);
    } else if (schedule_of(t)->items[c->stage][c->item].with_next) {
        c->item++;
        begin_item(t, c);
    } else {
        const uint32_t n_sends = count_sends(t, c);
        c->host_s += n_sends * software_of(t)->send_host_s * c->slowdown;
        if (!n_sends || !dl_training_awaits_host(t, c, hand_on)) hand_on(t, c);
    }
}

/* What the part starts or waits for; NULL: all that was started. */
static const struct dl_comm *comm_of(const struct dl_training *t, const struct dl_part *part)
{
    if (part->in_step) return part->in_step;
    return part->call == DL_EVERY_CALL ? NULL : &t->request.lowered->calls[part->call];
}

static void join_late(struct dl_training *t, struct crew *c)
{
    dl_training_join(t, c, comm_of(t, &c->running->parts[c->part - 1]));
    dl_training_go_on(t, c);
}

/* Whether the crew goes on at once; if not it will be called. */
static bool passes(struct dl_training *t, struct crew *c, const struct dl_part *part)
{
    if (part->kind == DL_DO) {
        dl_training_begin_work(t, c, part);
        return false;
    }
    c->host_s += part->host_s * c->slowdown;
    switch (part->kind) {
    case DL_DO: break;
    case DL_WAIT:
    case DL_TOGETHER_DONE: return dl_training_may_pass(t, c, comm_of(t, part));
    case DL_DRAIN: c->host_s = fmax(c->host_s, now_s(t)); break;
    case DL_START:
    case DL_TOGETHER:
        if (dl_training_awaits_host(t, c, join_late)) return false;
        dl_training_join(t, c, comm_of(t, part));
    }
    return true;
}

void dl_training_go_on(struct dl_training *t, struct crew *c)
{
    while (c->part < c->running->n_parts)
        if (!passes(t, c, &c->running->parts[c->part++])) return;
    template_ends(t, c);
}

const struct dl_template *dl_training_template(const struct dl_training *t, uint32_t stage, uint32_t item)
{
    const struct dl_schedule *const s = schedule_of(t);
    const struct dl_program *const program = &t->request.lowered->programs[stage];
    if (item == s->n_items[stage]) return &program->end;
    const struct dl_item *const at = &s->items[stage][item];
    const bool last = t->request.setting->last_backward_differs && t->completing[stage][item];
    return &program->items[at->chunk * DL_N_TEMPLATES + (last ? DL_TEMPLATE_LAST : (int)at->kind)];
}

/* The same place will be used again in the next iteration. */
static void take_input(struct dl_training *t, struct crew *c)
{
    const struct dl_item *const item = &schedule_of(t)->items[c->stage][c->item];
    const uint32_t place = input_place(t, c, item);
    if (place != none) {
        if (c->arrived[place] != DL_OWN_PARCEL + 1) dl_training_free_parcel(t, c->arrived[place] - 1);
        c->arrived[place] = 0;
    }
    if (!crosses(t, c, neighbour(t, c, item, true))) return;
    c->host_s += software_of(t)->send_host_s * c->slowdown;
    meet_device(t, c);
}

static bool plays(const struct dl_training *t, const struct crew *c)
{
    return !t->request.lowered->plays || t->request.lowered->plays[c - t->crews];
}

static void begin_item(struct dl_training *t, struct crew *c)
{
    if (c->item < schedule_of(t)->n_items[c->stage]) take_input(t, c);
    c->running = dl_training_template(t, c->stage, c->item);
    if (c->running->timed && !plays(t, c)) c->running = c->running->timed;
    c->part = 0;
    c->item_s = 0;
    dl_training_go_on(t, c);
}

void dl_training_work(struct dl_training *t, struct crew *c)
{
    const bool is_end = c->item == schedule_of(t)->n_items[c->stage];
    if (is_end || has_inputs(t, c)) {
        if (!is_end) meet_inputs(t, c, NULL);
        begin_item(t, c);
        return;
    }
    c->waits_for_input = true;
    c->waits_since_s = now_s(t);
}

/* ---- from the outside ---- */

static void find_completing(struct dl_training *t)
{
    const struct dl_schedule *const s = schedule_of(t);
    const bool by_runs = dl_accumulated(t->request.setting) == DL_ACCUMULATES_CHUNK;
    if (!t->request.setting->last_backward_differs) return;
    t->completing = dl_alloc(s->stages * sizeof *t->completing);
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        t->completing[stage] = dl_alloc((s->n_items[stage] + 1) * sizeof **t->completing);
        dl_schedule_completing(s, stage, by_runs, t->completing[stage]);
    }
}

static void muster_crews(struct dl_training *t)
{
    const struct dl_schedule *const s = schedule_of(t);
    const size_t n_kinds_sent = 2; /* forwards and backwards */
    t->crews = dl_alloc(t->n_crews * sizeof *t->crews);
    for (uint32_t i = 0; i < t->n_crews; i++) {
        struct crew *const c = &t->crews[i];
        c->training = t;
        c->stage = i / t->n_played;
        c->replica = i % t->n_played;
        c->arrived = dl_alloc(n_kinds_sent * s->chunks * s->micros * sizeof *c->arrived);
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
    muster_crews(t);
    dl_training_open_iterations(t);
    dl_training_open_communicators(t);
    if (dl_training_open_channels(t) || dl_training_check_items(t, err)) return t;
    find_completing(t);
    if (dl_training_check_exchanges(t, err) || dl_training_check_meetings(t, err)) return t;
    if (request->most_effort > 0) dl_training_limit_effort(t);
    if (err->status) return t;
    for (uint32_t i = 0; i < t->n_crews; i++) dl_training_work(t, &t->crews[i]);
    return t;
}

static bool waits_for_partner(const struct crew *c) { return c->waits_for_input || c->waits_for_sends; }

static void describe_wait(const struct crew *c, char *out, size_t bytes)
{
    const int n = snprintf(out, bytes, "stage %u of replica %u for ", c->stage, c->replica);
    out += n;
    bytes -= (size_t)n;
    if (c->waits_for_input)
        snprintf(out, bytes, "the input of its item %u", c->item);
    else if (c->waits_for_sends)
        snprintf(out, bytes, "the delivery of its item %u", c->item - 1);
    else if (c->waits_at->channel == DL_CHANNEL_STAGES)
        snprintf(out, bytes, "the stage that holds the same");
    else if (c->waits_at->channel == DL_CHANNEL_LOCKSTEP)
        snprintf(out, bytes, "those that go in step with it");
    else
        snprintf(out, bytes, "its exchange %u", c->waits_for);
}

/* Who waits for a partner comes first: exchanges that others wait for may be its fault. */
static void tell_who_waits(const struct dl_training *t, struct dl_error *err)
{
    enum { most_told = 4 };
    char told[most_told][100] = {""};
    uint32_t n = 0;
    for (int for_partner = 1; for_partner >= 0; for_partner--)
        for (uint32_t i = 0; i < t->n_crews; i++) {
            const struct crew *const c = &t->crews[i];
            if (for_partner ? !waits_for_partner(c) : !c->waits_at) continue;
            if (n < most_told) describe_wait(c, told[n], sizeof told[n]);
            n++;
        }
    if (n)
        dl_fail(err, DL_STALLED, "run", "%u of %u crews wait for ever: %s%s%s%s%s%s%s%s", n, t->n_crews, told[0],
                n > 1 ? ", " : "", told[1], n > 2 ? ", " : "", told[2], n > 3 ? ", " : "", told[3],
                n > most_told ? ", ..." : "");
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
    r.busy_s[DL_CAUSE_BUBBLE] = r.busy_s[DL_CAUSE_STRAGGLER] = 0;
    r.schedule_bubble_s = fmin(dl_training_schedule_bubble_s(t, r.item_s), r.exposed_s[DL_CAUSE_BUBBLE]);
    for (uint32_t i = 0; i < t->n_crews; i++)
        for (int phase = 0; phase < DL_N_PHASES; phase++)
            r.elapsed_s[phase] = fmax(r.elapsed_s[phase], t->crews[i].elapsed_s[phase]);
    return r;
}

struct dl_stage_causes dl_training_stage_causes(const struct dl_training *t, uint32_t stage)
{
    struct dl_stage_causes mean = {0};
    for (uint32_t i = 0; i < t->n_played; i++)
        for (int cause = 0; cause < DL_N_CAUSES; cause++)
            mean.exposed_s[cause] += t->crews[stage * t->n_played + i].causes_s[cause] / t->n_played;
    return mean;
}

void dl_training_free(struct dl_training *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->n_crews; i++) {
        dl_free(t->crews[i].arrived);
        dl_free(t->crews[i].latest);
    }
    dl_training_close_communicators(t);
    dl_training_close_iterations(t);
    for (uint32_t i = 0; t->completing && i < schedule_of(t)->stages; i++) dl_free(t->completing[i]);
    dl_free(t->completing);
    dl_training_close_channels(t);
    dl_free(t->crews);
    dl_free(t);
}
