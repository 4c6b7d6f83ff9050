#include "sim/engine/flows.h"

#include <assert.h>
#include <math.h>

#include "sim/core/memory.h"
#include "sim/engine/events.h"
#include "sim/engine/paths.h"
#include "sim/engine/sharing.h"

enum { none = 0xffffffffu };

enum state { TIMER, LATENCY, MOVING, FREE };

/* A bundle or a timer. */
struct task {
    dl_event_fn done;
    void (*reroute)(void *user, uint32_t tag, struct dl_turn *turn);
    void *user;
    uint32_t tag;
    enum state state;
    uint32_t event; /* none: at rate 0 */
    uint32_t flow;  /* MOVING: in the sharing; none: it is not there */
    uint32_t path;  /* MOVING: its way, where it is among those; none: it is not */
    double bytes;   /* left to move at `since_s` */
    double rate, since_s;
    double rate_cap;
    const struct dl_hop *hops; /* LATENCY: needed when it moves */
    struct dl_hop *copy;       /* of these, if they would not stay */
    size_t n_hops;
    uint32_t *way;     /* NULL: others do not take the same */
    uint32_t way_then; /* what stood there when it started; by the time that it moves, that is far away */
    uint32_t n_posted; /* by its source at once; 0: it is not */
    uint32_t next_free;
};

struct dl_flows {
    struct dl_events *events;
    struct dl_sharing *sharing;
    size_t n_sharing;        /* flows in it */
    size_t n_posted;         /* of these, those that were posted */
    double joined_s, left_s; /* when the last one joined; the first that has left since rates were settled */
    bool must_settle;        /* something else has changed since */
    struct dl_paths *paths;  /* flows that are not in the sharing; NULL: none were yet, or none may be */
    bool has_no_paths;
    uint32_t *task_of_path;
    size_t n_task_of_path, task_of_path_capacity;
    uint32_t *taken_out; /* tasks that go from the paths to the sharing */
    size_t n_taken_out, taken_out_capacity;
    const struct dl_engine_link *links;
    size_t n_links;
    struct task *tasks;
    size_t n_tasks, tasks_capacity;
    uint32_t free_task;
    uint32_t *task_of_flow;
    size_t n_task_of_flow, task_of_flow_capacity;
    double now_s;
    uint64_t n_events;
    size_t n_live;
};

struct dl_flows *dl_flows_new(const struct dl_engine_link *links, size_t n_links)
{
    struct dl_flows *const f = dl_alloc(sizeof *f);
    f->events = dl_events_new();
    f->free_task = none;
    f->sharing = dl_sharing_new(links, n_links);
    f->links = links;
    f->n_links = n_links;
    f->left_s = INFINITY;
    return f;
}

void dl_flows_free(struct dl_flows *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->n_tasks; i++)
        if (f->tasks[i].state == LATENCY) dl_free(f->tasks[i].copy);
    dl_events_free(f->events);
    dl_sharing_free(f->sharing);
    dl_paths_free(f->paths);
    dl_free(f->task_of_path);
    dl_free(f->taken_out);
    dl_free(f->tasks);
    dl_free(f->task_of_flow);
    dl_free(f);
}

static uint32_t new_task(struct dl_flows *f)
{
    const uint32_t id = f->free_task;
    if (id != none) {
        f->free_task = f->tasks[id].next_free;
        return id;
    }
    DL_GROW(f->tasks, f->n_tasks, f->tasks_capacity);
    return (uint32_t)f->n_tasks++;
}

static void free_task(struct dl_flows *f, uint32_t id)
{
    f->tasks[id].state = FREE;
    f->tasks[id].next_free = f->free_task;
    f->free_task = id;
}

void dl_flows_timer(struct dl_flows *f, double date_s, dl_event_fn fire, void *user, uint32_t tag)
{
    const uint32_t id = new_task(f);
    f->tasks[id] = (struct task){.done = fire, .user = user, .tag = tag, .state = TIMER};
    f->tasks[id].event = dl_events_add(f->events, fmax(date_s, f->now_s), id);
}

static void note_task(uint32_t **tasks, size_t *n, size_t *capacity, uint32_t of, uint32_t id)
{
    while (*n <= of) {
        DL_GROW(*tasks, *n, *capacity);
        (*tasks)[(*n)++] = none;
    }
    (*tasks)[of] = id;
}

static void join_sharing(struct dl_flows *f, uint32_t id, const struct dl_hop *hops, size_t n_hops)
{
    struct task *const t = &f->tasks[id];
    t->rate = 0;
    t->since_s = f->now_s;
    t->flow = dl_sharing_join(f->sharing, hops, n_hops, t->rate_cap);
    if (t->n_posted > 1) dl_sharing_set_part(f->sharing, t->flow, 1.0 / t->n_posted);
    f->n_sharing++;
    f->n_posted += t->n_posted > 0;
    f->joined_s = f->now_s;
    f->must_settle = true;
    note_task(&f->task_of_flow, &f->n_task_of_flow, &f->task_of_flow_capacity, t->flow, id);
}

static void leave_sharing(struct dl_flows *f, struct task *t)
{
    dl_sharing_leave(f->sharing, t->flow);
    f->n_sharing--;
    f->n_posted -= t->n_posted > 0;
    f->left_s = fmin(f->left_s, f->now_s);
    f->must_settle |= !t->n_posted;
    t->flow = none;
}

/* ---- flows over ways that come again and again ---- */

static bool are_free(const struct dl_flows *f, const struct dl_hop *hops, size_t n_hops)
{
    for (size_t i = 0; f->n_sharing && i < n_hops; i++)
        if (dl_sharing_is_crossed(f->sharing, hops[i].link)) return false;
    return true;
}

/* Whether it is among the paths now. */
static bool join_paths(struct dl_flows *f, uint32_t id, const struct dl_hop *hops, size_t n_hops)
{
    struct task *const t = &f->tasks[id];
    if (!t->way || f->has_no_paths) return false;
    if (!f->paths) f->paths = dl_paths_new(f->links, f->n_links);
    uint32_t *const way = t->way_then ? &t->way_then : t->way;
    const uint32_t path = dl_paths_find(f->paths, way, hops, n_hops, t->rate_cap);
    if (path == DL_NO_PATH || !are_free(f, hops, n_hops)) return false;
    dl_paths_join(f->paths, path);
    t->path = path;
    t->rate = 0;
    t->since_s = f->now_s;
    note_task(&f->task_of_path, &f->n_task_of_path, &f->task_of_path_capacity, path, id);
    return true;
}

static void set_rate(struct dl_flows *f, struct task *t, double rate);

static void take_out(struct dl_flows *f, uint32_t path)
{
    const uint32_t id = f->task_of_path[path];
    set_rate(f, &f->tasks[id], 0);
    dl_paths_leave(f->paths, path);
    f->tasks[id].path = none;
    DL_GROW(f->taken_out, f->n_taken_out, f->taken_out_capacity);
    f->taken_out[f->n_taken_out++] = id;
    size_t n_hops;
    const struct dl_hop *const hops = dl_paths_hops(f->paths, path, &n_hops);
    join_sharing(f, id, hops, n_hops);
}

static void take_out_crossing(struct dl_flows *f, const struct dl_hop *hops, size_t n_hops)
{
    for (size_t i = 0; i < n_hops && dl_paths_n_live(f->paths); i++)
        for (uint32_t path; (path = dl_paths_on(f->paths, hops[i].link)) != DL_NO_PATH;) take_out(f, path);
}

/* Who shares a link with one that is taken out goes with it. */
static void share(struct dl_flows *f, uint32_t id, const struct dl_hop *hops, size_t n_hops)
{
    join_sharing(f, id, hops, n_hops);
    if (!f->paths || !dl_paths_n_live(f->paths)) return;
    f->n_taken_out = 0;
    take_out_crossing(f, hops, n_hops);
    for (size_t i = 0; i < f->n_taken_out; i++) {
        const struct task *const t = &f->tasks[f->taken_out[i]];
        take_out_crossing(f, t->hops, t->n_hops);
    }
}

static void move(struct dl_flows *f, uint32_t id, const struct dl_hop *hops, size_t n_hops)
{
    f->tasks[id].state = MOVING;
    f->tasks[id].event = none;
    f->tasks[id].hops = f->tasks[id].way ? hops : NULL;
    f->tasks[id].n_hops = n_hops;
    if (!join_paths(f, id, hops, n_hops)) share(f, id, hops, n_hops);
}

static void copy_hops(struct task *t, const struct dl_hop *hops, size_t n_hops)
{
    struct dl_hop *const copy = dl_alloc(n_hops * sizeof *copy);
    for (size_t i = 0; i < n_hops; i++) copy[i] = hops[i];
    dl_free(t->copy);
    t->hops = t->copy = copy;
    t->n_hops = n_hops;
}

static void keep_hops(struct task *t, const struct dl_bundle *b)
{
    t->hops = b->hops;
    t->n_hops = b->n_hops;
    if (!b->way) copy_hops(t, b->hops, b->n_hops);
}

/* Nothing to move, or nothing to move over and no cap: only the latency counts. */
static bool is_instant(const struct dl_bundle *b)
{
    return b->bytes <= 0 || (b->n_hops == 0 && isinf(b->rate_cap_bytes_per_s));
}

void dl_flows_start(struct dl_flows *f, const struct dl_bundle *b)
{
    const uint32_t id = new_task(f);
    struct task *const t = &f->tasks[id];
    f->n_live++;
    *t = (struct task){.done = b->done,
                       .reroute = b->reroute,
                       .user = b->user,
                       .tag = b->tag,
                       .bytes = b->bytes,
                       .rate_cap = b->rate_cap_bytes_per_s,
                       .flow = none,
                       .path = none,
                       .way = b->way,
                       .way_then = b->way ? *b->way : 0,
                       .n_posted = b->n_posted};
    if (is_instant(b)) {
        t->state = MOVING;
        t->event = dl_events_add(f->events, f->now_s + b->latency_s, id);
    } else if (b->latency_s > 0) {
        t->state = LATENCY;
        keep_hops(t, b);
        t->event = dl_events_add(f->events, f->now_s + b->latency_s, id);
    } else {
        move(f, id, b->hops, b->n_hops);
    }
}

double dl_flows_wanted(const struct dl_flows *f, uint32_t link)
{
    const bool has_paths = f->paths && dl_paths_n_live(f->paths);
    return dl_sharing_wanted_of_whole(f->sharing, link) + (has_paths ? dl_paths_wanted(f->paths, link) : 0);
}

/* What it has moved at its old rate counts up to now. */
static void set_rate(struct dl_flows *f, struct task *t, double rate)
{
    t->bytes = fmax(t->bytes - t->rate * (f->now_s - t->since_s), 0);
    t->since_s = f->now_s;
    t->rate = rate;
    if (rate > 0) return;
    if (t->event != none) dl_events_remove(f->events, t->event);
    t->event = none;
}

static void change_rate_of(struct dl_flows *f, uint32_t id, double rate)
{
    struct task *const t = &f->tasks[id];
    set_rate(f, t, rate);
    if (rate <= 0) return;
    const double end_s = f->now_s + t->bytes / rate;
    if (t->event == none)
        t->event = dl_events_add(f->events, end_s, id);
    else
        dl_events_move(f->events, t->event, end_s);
}

static void change_rate(void *user, uint32_t flow, double rate)
{
    struct dl_flows *const f = user;
    change_rate_of(f, f->task_of_flow[flow], rate);
}

static void change_rate_of_path(void *user, uint32_t path, double rate)
{
    struct dl_flows *const f = user;
    change_rate_of(f, f->task_of_path[path], rate);
}

/* ---- links that change ---- */

/* It leaves its links first, so that routing does not see its own load on them. */
static void turn_moving(struct dl_flows *f, uint32_t id)
{
    struct task *t = &f->tasks[id];
    struct dl_hop *const old = dl_alloc(t->n_hops * sizeof *old);
    t->n_hops = dl_sharing_hops(f->sharing, t->flow, old);
    set_rate(f, t, 0);
    leave_sharing(f, t);
    struct dl_turn turn = {old, t->n_hops, t->bytes};
    t->reroute(t->user, t->tag, &turn);
    f->tasks[id].n_hops = turn.n_hops;
    share(f, id, turn.hops, turn.n_hops);
    dl_free(old);
}

/* What ends at this instant is not hit any more. */
static bool has_bytes_left(const struct dl_flows *f, const struct task *t)
{
    const double rounding = 1e-9;
    return t->bytes - t->rate * (f->now_s - t->since_s) > rounding * t->bytes;
}

static bool is_hit(const struct dl_flows *f, const struct task *t, uint32_t link)
{
    bool hit = false;
    if (t->state == MOVING)
        return t->flow != none && has_bytes_left(f, t) && dl_sharing_is_hit(f->sharing, t->flow, link);
    for (size_t i = 0; !hit && t->state == LATENCY && i < t->n_hops; i++)
        hit = t->hops[i].link == link || dl_sharing_has_failed(f->sharing, t->hops[i].link);
    return hit;
}

static void turn_waiting(struct task *t)
{
    struct dl_turn turn = {t->hops, t->n_hops, t->bytes};
    t->reroute(t->user, t->tag, &turn);
    if (turn.hops != t->hops) copy_hops(t, turn.hops, turn.n_hops);
}

/* What was solved before holds no longer. */
static void leave_paths_for_good(struct dl_flows *f)
{
    f->has_no_paths = true;
    f->n_taken_out = 0;
    for (uint32_t id = 0; f->paths && dl_paths_n_live(f->paths) && id < f->n_tasks; id++)
        if (f->tasks[id].state == MOVING && f->tasks[id].path != none) take_out(f, f->tasks[id].path);
}

/* In the order of their ids. None can start or end meanwhile. */
void dl_flows_set_bandwidth(struct dl_flows *f, uint32_t link, double bytes_per_s)
{
    leave_paths_for_good(f);
    f->must_settle = true;
    dl_sharing_set_bandwidth(f->sharing, link, bytes_per_s);
    for (uint32_t id = 0; id < f->n_tasks; id++) {
        if (!f->tasks[id].reroute || !is_hit(f, &f->tasks[id], link)) continue;
        if (f->tasks[id].state == MOVING)
            turn_moving(f, id);
        else
            turn_waiting(&f->tasks[id]);
    }
}

/* Of thousands that were posted at once each one that ends would change the rates of all others a little. They are told
 * together of all that end within a part of the time that they have had: none ends later by much more than that part.
 */
static bool may_wait(const struct dl_flows *f)
{
    const size_t crowd = 1024;
    const double part = 1. / 128;
    return f->n_posted > crowd && !f->must_settle &&
           dl_events_next_s(f->events) <= f->left_s + part * (f->left_s - f->joined_s);
}

static void settle(struct dl_flows *f)
{
    if (may_wait(f)) return;
    dl_sharing_settle(f->sharing, change_rate, f);
    f->left_s = INFINITY;
    f->must_settle = false;
}

double dl_flows_next_s(struct dl_flows *f)
{
    settle(f);
    if (f->paths) dl_paths_settle(f->paths, change_rate_of_path, f);
    return dl_events_next_s(f->events);
}

static void end(struct dl_flows *f, uint32_t id)
{
    struct task *const t = &f->tasks[id];
    const dl_event_fn done = t->done;
    void *const user = t->user;
    const uint32_t tag = t->tag;
    if (t->state == MOVING) {
        if (t->flow != none) leave_sharing(f, t);
        if (t->path != none) dl_paths_leave(f->paths, t->path);
        f->n_live--;
    }
    free_task(f, id);
    if (done) done(user, tag);
}

static uint32_t path_of(const struct task *t)
{
    return t->state == LATENCY ? t->way_then - 1 : t->state == MOVING ? t->path : DL_NO_PATH;
}

static void fetch_for(const struct dl_flows *f, const struct task *t, size_t n_before, dl_coming_fn coming)
{
    const uint32_t path = path_of(t);
    if (f->paths && path != DL_NO_PATH) dl_paths_fetch(f->paths, path, n_before);
    if (coming && t->done && (t->state == TIMER || t->state == MOVING)) coming(t->done, t->user, t->tag, n_before);
}

/* Between two events of a task come those of thousands of others, so that little of what it needs is still in the
 * cache. Where it is stands in what is fetched before it, so it goes by steps, the first of which is the task. */
void dl_flows_fetch(const struct dl_flows *f, dl_coming_fn coming)
{
    uint32_t ids[DL_N_COMING];
    const size_t n = dl_events_coming(f->events, ids);
    for (size_t i = 0; i < n; i++)
        if (i == DL_N_COMING - 1)
            dl_fetch(&f->tasks[ids[i]], sizeof *f->tasks);
        else
            fetch_for(f, &f->tasks[ids[i]], i, coming);
}

void dl_flows_advance(struct dl_flows *f)
{
    const double date_s = dl_events_next_s(f->events);
    assert(date_s >= f->now_s && isfinite(date_s));
    f->now_s = date_s;
    dl_events_open(f->events);
    for (uint32_t id; dl_events_take(f->events, &id); f->n_events++) {
        if (f->tasks[id].state != LATENCY) {
            end(f, id);
            continue;
        }
        struct dl_hop *const copy = f->tasks[id].copy;
        move(f, id, f->tasks[id].hops, f->tasks[id].n_hops);
        dl_free(copy);
    }
}

double dl_flows_now_s(const struct dl_flows *f) { return f->now_s; }

uint64_t dl_flows_n_events(const struct dl_flows *f) { return f->n_events; }

size_t dl_flows_n_live(const struct dl_flows *f) { return f->n_live; }
