#include "sim/engine/training.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "sim/engine/training_ahead.h"
#include "sim/engine/training_messages.h"
#include "sim/engine/training_steady.h"
#include "sim/engine/training_waits.h"

static const struct dl_sequenced *item_at(const struct dl_training *t, const struct lockstep_group *c)
{
    return &program_of(t, c)->sequence[c->item];
}

static void begin_item(struct dl_training *t, struct lockstep_group *c);

/* ---- items ---- */

static bool has_input(const struct lockstep_group *c, const struct dl_sequenced *item)
{
    return item->wants == DL_NO_TAG || c->arrived[item->wants];
}

static bool crosses(const struct lockstep_group *c, uint32_t tag, uint32_t stage)
{
    return tag != DL_NO_TAG && stage != c->stage;
}

/* Those of all items that make one step with the next. */
static bool has_inputs(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct dl_sequenced *item = item_at(t, c);
    while (item->item.with_next && has_input(c, item)) item++;
    return has_input(c, item);
}

bool dl_training_lacks(const struct dl_training *t, const struct lockstep_group *c, uint32_t tag)
{
    const struct dl_sequenced *item = item_at(t, c);
    while (item->item.with_next && item->wants != tag) item++;
    return item->wants == tag;
}

/* The first that the lockstep group lacks. */
struct lockstep_group *dl_training_source(struct dl_training *t, const struct lockstep_group *c)
{
    const struct dl_sequenced *item = item_at(t, c);
    while (item->item.with_next && has_input(c, item)) item++;
    return &t->lockstep_groups[item->from * t->n_played + c->replica];
}

static void meet_inputs(struct dl_training *t, struct lockstep_group *c, const struct start *last)
{
    struct start start = last ? *last : (struct start){.undisturbed_s = -INFINITY};
    const struct dl_sequenced *item = item_at(t, c);
    for (bool more = true; more; item++) {
        const uint32_t message = item->wants == DL_NO_TAG ? 0 : c->arrived[item->wants];
        if (message && message != DL_OWN_MESSAGE + 1)
            start.undisturbed_s = fmax(start.undisturbed_s, t->messages[message - 1].sent.undisturbed_s);
        more = item->item.with_next;
    }
    if (last)
        end_wait(t, c, &start, DL_CAUSE_PIPELINE, 0);
    else
        dl_training_pass(t, c, start.undisturbed_s);
}

void dl_training_deliver(struct dl_training *t, uint32_t lockstep_group, uint32_t tag, uint32_t message)
{
    struct lockstep_group *const c = &t->lockstep_groups[lockstep_group];
    assert(!c->arrived[tag]); /* nobody is a whole iteration ahead of what it hands on */
    c->arrived[tag] = message + 1;
    c->n_arrived++;
    if (message != DL_OWN_MESSAGE) t->messages[message].arrives_s = now_s(t);
    if (!c->waits_for_input || !has_inputs(t, c) || t->over) return;
    meet_inputs(t, c, &t->messages[message].sent);
    begin_item(t, c);
}

/* ---- handing on ---- */

static void pass_on(struct dl_training *t, struct lockstep_group *c, const struct dl_sequenced *item)
{
    if (item->gives == DL_NO_TAG) return;
    if (crosses(c, item->gives, item->to))
        dl_training_send(t, c, item);
    else
        dl_training_deliver(t, (uint32_t)(c - t->lockstep_groups), item->gives, DL_OWN_MESSAGE);
}

/* Items that make one step hand on when all of it is done. */
static const struct dl_sequenced *first_of_step(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct dl_sequenced *const items = program_of(t, c)->sequence, *first = &items[c->item];
    while (first > items && first[-1].item.with_next) first--;
    return first;
}

static uint32_t count_sends(const struct dl_training *t, const struct lockstep_group *c)
{
    uint32_t n = 0;
    for (const struct dl_sequenced *item = first_of_step(t, c); item <= item_at(t, c); item++)
        n += crosses(c, item->gives, item->to);
    return n;
}

static void meet_device(const struct dl_training *t, struct lockstep_group *c, bool drains)
{
    if (drains) c->host_s = fmax(c->host_s, now_s(t));
}

void dl_training_after_sends(struct dl_training *t, struct lockstep_group *c)
{
    meet_device(t, c, t->request.step.drains_at_sends);
    dl_training_work(t, c);
}

static void hand_on(struct dl_training *t, struct lockstep_group *c)
{
    const struct dl_sequenced *const last = item_at(t, c);
    for (const struct dl_sequenced *item = first_of_step(t, c); item <= last; item++) pass_on(t, c, item);
    c->item++;
    c->input_s = NAN;
    if (!c->n_sends) {
        dl_training_work(t, c);
    } else if (t->request.step.sends == DL_SENDS_ASYNCHRONOUS) {
        dl_training_after_sends(t, c);
    } else {
        c->waits_for_sends = true;
        c->waits_since_s = now_s(t);
    }
}

/* ---- programs ---- */

static void book_item(struct dl_training *t, struct lockstep_group *c)
{
    if (is_at_end(t, c)) return;
    const enum dl_item_kind kind = item_at(t, c)->item.kind;
    t->items_s[kind] += c->item_s;
    t->n_items[kind]++;
    if (t->steady) dl_steady_note_item(t, c);
}

static void template_ends(struct dl_training *t, struct lockstep_group *c)
{
    book_item(t, c);
    if (is_at_end(t, c)) {
        dl_training_end_iteration(t, c);
    } else if (item_at(t, c)->item.with_next) {
        c->item++;
        begin_item(t, c);
    } else {
        c->n_sends = count_sends(t, c);
        c->host_s += c->n_sends * t->request.step.send_host_s * c->slowdown;
        if (!c->n_sends || !dl_training_awaits_host(t, c, hand_on)) hand_on(t, c);
    }
}

/* What the part starts or waits for; NULL: all that was started. */
static const struct dl_comm *comm_of(const struct dl_training *t, const struct dl_part *part)
{
    return part->call == DL_EVERY_CALL ? NULL : &t->request.step.calls[part->call];
}

static void join_late(struct dl_training *t, struct lockstep_group *c)
{
    dl_training_join(t, c, comm_of(t, &c->parts->items[c->part - 1]));
    dl_training_go_on(t, c);
}

/* Of a collective that others do in other iterations: it is neither started nor waited for. */
static bool is_left_out(const struct dl_training *t, const struct lockstep_group *c, const struct dl_part *part)
{
    const bool of_call = (part->kind == DL_START || part->kind == DL_WAIT) && part->call != DL_EVERY_CALL;
    return of_call && !dl_comm_has_turn(&t->request.step.calls[part->call], c->iteration);
}

/* Whether the lockstep group goes on at once; if not it will be called. */
static bool passes(struct dl_training *t, struct lockstep_group *c, const struct dl_part *part)
{
    if (part->kind == DL_DO) {
        dl_training_begin_work(t, c, part);
        return false;
    }
    if (is_left_out(t, c, part)) return true;
    c->host_s += part->host_s * c->slowdown;
    switch (part->kind) {
    case DL_DO: break;
    case DL_WAIT: return dl_training_may_pass(t, c, comm_of(t, part));
    case DL_DRAIN: c->host_s = fmax(c->host_s, now_s(t)); break;
    case DL_START:
        if (dl_training_awaits_host(t, c, join_late)) return false;
        dl_training_join(t, c, comm_of(t, part));
    }
    return true;
}

void dl_training_go_on(struct dl_training *t, struct lockstep_group *c)
{
    while (c->part < c->parts->n)
        if (!passes(t, c, &c->parts->items[c->part++])) return;
    template_ends(t, c);
}

/* The same tag comes again in the next iteration. */
static void take_input(struct dl_training *t, struct lockstep_group *c)
{
    const struct dl_sequenced *const item = item_at(t, c);
    c->input_s = 0;
    if (item->wants != DL_NO_TAG) {
        const uint32_t message = c->arrived[item->wants];
        if (message != DL_OWN_MESSAGE + 1) {
            c->input_s = t->messages[message - 1].arrives_s;
            dl_training_free_message(t, message - 1);
        }
        c->arrived[item->wants] = 0;
        c->n_arrived--;
    }
    if (!crosses(c, item->wants, item->from)) return;
    c->host_s += t->request.step.send_host_s * c->slowdown;
    meet_device(t, c, t->request.step.drains_at_receives);
}

static const struct dl_parts *parts_for(const struct dl_training *t, const struct lockstep_group *c)
{
    const bool *const planned = t->request.step.plan.lockstep_groups;
    const bool is_planned = !planned || planned[c - t->lockstep_groups] || !c->running->priced.n;
    return is_planned ? &c->running->planned : &c->running->priced;
}

static void begin_item(struct dl_training *t, struct lockstep_group *c)
{
    if (!is_at_end(t, c)) take_input(t, c);
    c->running = is_at_end(t, c) ? &program_of(t, c)->end : dl_item_block(program_of(t, c), item_at(t, c));
    c->parts = parts_for(t, c);
    c->part = 0;
    c->item_s = 0;
    dl_training_go_on(t, c);
}

void dl_training_work(struct dl_training *t, struct lockstep_group *c)
{
    if (is_at_end(t, c) || has_inputs(t, c)) {
        if (!is_at_end(t, c)) meet_inputs(t, c, NULL);
        begin_item(t, c);
        return;
    }
    c->waits_for_input = true;
    c->waits_since_s = now_s(t);
}

/* ---- from the outside ---- */

static void open_lockstep_groups(struct dl_training *t)
{
    size_t n_tags = 0;
    for (uint32_t stage = 0; stage < t->n_stages; stage++)
        n_tags += (size_t)t->n_played * t->request.step.programs[stage].n_tags;
    t->lockstep_groups = dl_alloc_dense(t->n_lockstep_groups * sizeof *t->lockstep_groups);
    t->arrived = dl_alloc_dense(n_tags * sizeof *t->arrived);
    uint32_t *arrived = t->arrived;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        struct lockstep_group *const c = &t->lockstep_groups[i];
        c->training = t;
        c->stage = i / t->n_played;
        c->replica = i % t->n_played;
        c->first_rank = dl_step_rank(&t->request.step, c->stage, c->replica);
        c->arrived = arrived;
        arrived += program_of(t, c)->n_tags;
        c->slowdown = 1;
    }
}

struct dl_training *dl_training_start(const struct dl_training_request *request, struct dl_error *err)
{
    struct dl_training *const t = dl_alloc(sizeof *t);
    t->request = *request;
    t->err = err;
    t->n_stages = dl_ranks_count(request->step.ranks, request->step.stages);
    t->n_replicas = dl_ranks_count(request->step.ranks, request->step.replicas);
    t->n_played = request->one_replica ? 1 : t->n_replicas;
    t->n_members = dl_ranks_count(request->step.ranks, request->step.in_lockstep);
    t->n_lockstep_groups = t->n_stages * t->n_played;
    t->members = dl_alloc(t->n_members * sizeof *t->members);
    t->ends = dl_alloc(2 * (size_t)t->n_members * sizeof *t->ends);
    for (uint32_t i = 0; i < t->n_members; i++)
        t->members[i] = dl_ranks_offset(request->step.ranks, request->step.in_lockstep, i);
    open_lockstep_groups(t);
    dl_training_open_iterations(t);
    dl_training_open_communicators(t);
    if (dl_training_open_channels(t) || dl_training_check_exchanges(t, err) || dl_training_check_stages(t, err) ||
        dl_training_check_copies(t, err))
        return t;
    if (request->most_effort > 0) dl_training_limit_effort(t);
    if (err->status) return t;
    dl_steady_open(t);
    dl_ahead_open(t);
    request->engine->coming = dl_training_coming;
    dl_training_begin_all(t);
    return t;
}

void dl_training_begin_all(struct dl_training *t)
{
    if (t->ahead) {
        dl_ahead_run(t);
        return;
    }
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) dl_training_work(t, &t->lockstep_groups[i]);
}

static bool waits_for_partner(const struct lockstep_group *c) { return c->waits_for_input || c->waits_for_sends; }

static void describe_wait(const struct lockstep_group *c, char *out, size_t bytes)
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
    else if (is_in_lockstep(c->waits_at))
        snprintf(out, bytes, "those that go in step with it");
    else if (is_for_copies(c->waits_at))
        snprintf(out, bytes, "its copy to or from the host");
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
        for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
            const struct lockstep_group *const c = &t->lockstep_groups[i];
            if (for_partner ? !waits_for_partner(c) : !c->waits_at) continue;
            if (n < most_told) describe_wait(c, told[n], sizeof told[n]);
            n++;
        }
    if (n)
        dl_fail(err, DL_STALLED, "run", "%u of %u lockstep groups wait for ever: %s%s%s%s%s%s%s%s", n,
                t->n_lockstep_groups, told[0], n > 1 ? ", " : "", told[1], n > 2 ? ", " : "", told[2],
                n > 3 ? ", " : "", told[3], n > most_told ? ", ..." : "");
}

struct dl_training_result dl_training_result(const struct dl_training *t, struct dl_error *err)
{
    struct dl_training_result r = t->result;
    if (!r.complete) {
        tell_who_waits(t, err);
        return r;
    }
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++)
        for (int cause = 0; cause < DL_N_CAUSES; cause++)
            r.exposed_s[cause] += t->lockstep_groups[i].causes_s[cause] / t->n_lockstep_groups;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) r.busy_s[cause] = r.exposed_s[cause];
    r.busy_s[DL_CAUSE_PIPELINE] = t->sending.total_s;
    /* Packing may go on beside exchanges or not; at least the longer of the two. */
    r.busy_s[DL_CAUSE_DATA] = fmax(t->exchanging.total_s, r.exposed_s[DL_CAUSE_DATA]);
    r.busy_s[DL_CAUSE_BUBBLE] = r.busy_s[DL_CAUSE_STRAGGLER] = 0;
    for (int kind = 0; kind <= DL_ITEM_W; kind++)
        r.item_s[kind] = t->n_items[kind] ? t->items_s[kind] / (double)t->n_items[kind] : 0;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++)
        for (int phase = 0; phase < DL_N_PHASES; phase++)
            r.elapsed_s[phase] = fmax(r.elapsed_s[phase], t->lockstep_groups[i].elapsed_s[phase]);
    return r;
}

struct dl_stage_causes dl_training_stage_causes(const struct dl_training *t, uint32_t stage)
{
    struct dl_stage_causes mean = {0};
    for (uint32_t i = 0; i < t->n_played; i++)
        for (int cause = 0; cause < DL_N_CAUSES; cause++)
            mean.exposed_s[cause] += t->lockstep_groups[stage * t->n_played + i].causes_s[cause] / t->n_played;
    return mean;
}

void dl_training_free(struct dl_training *t)
{
    if (!t) return;
    dl_steady_close(t);
    dl_ahead_close(t);
    dl_training_close_communicators(t);
    dl_training_close_iterations(t);
    dl_training_close_channels(t);
    dl_free(t->lockstep_groups);
    dl_free(t->members);
    dl_free(t->ends);
    dl_free(t->offsets.ranks);
    dl_free(t->arrived);
    dl_free(t);
}
