#include "sim/engine/events.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/core/memory.h"

enum { nothing = 0xffffffffu };
enum { date_bits = 64, first_hash_bits = 7 };

struct event {
    uint32_t previous, next; /* within its instant */
    uint32_t instant;
    uint32_t payload;
};

struct instant {
    double date_s;
    uint32_t first, last; /* events */
    uint32_t heap_place;  /* `nothing`: open or free */
    uint32_t chain;       /* next of the same hash; next free one */
};

struct heap_entry {
    double date_s;
    uint32_t instant;
    uint32_t payload; /* of the event that it was made for */
};

struct dl_events {
    struct event *events;
    size_t n_events, events_capacity;
    uint32_t free_event;
    struct instant *instants;
    size_t n_instants, instants_capacity;
    uint32_t free_instant;
    struct heap_entry *heap; /* by date; dates are distinct, since equal ones share an instant */
    size_t n_heap, heap_capacity;
    uint32_t *hash;      /* date -> instant, by chains */
    size_t hash_size;    /* a power of 2 */
    unsigned hash_shift; /* date_bits less those of an index */
    uint32_t open;
};

struct dl_events *dl_events_new(void)
{
    struct dl_events *const q = dl_alloc(sizeof *q);
    q->free_event = q->free_instant = q->open = nothing;
    q->hash_shift = date_bits - first_hash_bits;
    q->hash_size = (size_t)1 << first_hash_bits;
    q->hash = dl_alloc(q->hash_size * sizeof *q->hash);
    memset(q->hash, 0xff, q->hash_size * sizeof *q->hash);
    return q;
}

void dl_events_free(struct dl_events *q)
{
    if (!q) return;
    dl_free(q->events);
    dl_free(q->instants);
    dl_free(q->heap);
    dl_free(q->hash);
    dl_free(q);
}

/* ---- the heap: four children a node, so that a level is one cache line ---- */

enum { arity = 4 };

static void heap_place(struct dl_events *q, size_t i, struct heap_entry entry)
{
    q->heap[i] = entry;
    q->instants[entry.instant].heap_place = (uint32_t)i;
}

static void heap_up(struct dl_events *q, size_t i, struct heap_entry entry)
{
    while (i > 0 && entry.date_s < q->heap[(i - 1) / arity].date_s) {
        heap_place(q, i, q->heap[(i - 1) / arity]);
        i = (i - 1) / arity;
    }
    heap_place(q, i, entry);
}

static size_t earliest_child(const struct dl_events *q, size_t i)
{
    const size_t first = arity * i + 1;
    const struct heap_entry *const child = &q->heap[first];
    size_t best = 0;
    if (first + arity <= q->n_heap) { /* which one it is cannot be foretold, so better no branches */
        const size_t a = child[1].date_s < child[0].date_s, b = 2 + (child[3].date_s < child[2].date_s);
        return first + (child[b].date_s < child[a].date_s ? b : a);
    }
    for (size_t c = 1; first + c < q->n_heap; c++)
        if (child[c].date_s < child[best].date_s) best = c;
    return first + best;
}

static void heap_down(struct dl_events *q, size_t i, struct heap_entry entry)
{
    while (arity * i + 1 < q->n_heap) {
        const size_t child = earliest_child(q, i);
        if (entry.date_s <= q->heap[child].date_s) break;
        heap_place(q, i, q->heap[child]);
        i = child;
    }
    heap_place(q, i, entry);
}

/* At this place, or where it belongs from there. */
static void heap_put(struct dl_events *q, size_t i, struct heap_entry entry)
{
    if (i > 0 && entry.date_s < q->heap[(i - 1) / arity].date_s)
        heap_up(q, i, entry);
    else
        heap_down(q, i, entry);
}

static void heap_remove(struct dl_events *q, size_t i)
{
    const struct heap_entry last = q->heap[--q->n_heap];
    if (i < q->n_heap) heap_put(q, i, last);
}

/* ---- instants by date ---- */

static uint32_t *bucket(const struct dl_events *q, double date_s)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* the golden ratio's bits: a product spreads low bits to all above */
    uint64_t bits;
    date_s += 0.0; /* -0 and 0 are the same date */
    memcpy(&bits, &date_s, sizeof bits);
    return &q->hash[bits * odd >> q->hash_shift];
}

/* From now on it has this date. */
static void hash(struct dl_events *q, uint32_t id, double date_s)
{
    uint32_t *const head = bucket(q, date_s);
    q->instants[id].date_s = date_s;
    q->instants[id].chain = *head;
    *head = id;
}

static void grow_hash(struct dl_events *q)
{
    q->hash_size *= 2;
    q->hash_shift--;
    q->hash = dl_realloc(q->hash, q->hash_size * sizeof *q->hash);
    memset(q->hash, 0xff, q->hash_size * sizeof *q->hash);
    for (size_t i = 0; i < q->n_heap; i++) hash(q, q->heap[i].instant, q->heap[i].date_s);
}

static uint32_t new_instant(struct dl_events *q, double date_s, uint32_t payload)
{
    if (q->n_heap >= q->hash_size) grow_hash(q);
    uint32_t id = q->free_instant;
    if (id == nothing) {
        DL_GROW(q->instants, q->n_instants, q->instants_capacity);
        id = (uint32_t)q->n_instants++;
    } else {
        q->free_instant = q->instants[id].chain;
    }
    q->instants[id] = (struct instant){.first = nothing, .last = nothing};
    hash(q, id, date_s);
    DL_GROW(q->heap, q->n_heap, q->heap_capacity);
    heap_up(q, q->n_heap++, (struct heap_entry){.date_s = date_s, .instant = id, .payload = payload});
    return id;
}

static void unhash(struct dl_events *q, uint32_t id)
{
    uint32_t *link = bucket(q, q->instants[id].date_s);
    while (*link != id) link = &q->instants[*link].chain;
    *link = q->instants[id].chain;
}

static void free_instant(struct dl_events *q, uint32_t id)
{
    q->instants[id].chain = q->free_instant;
    q->free_instant = id;
}

/* Or `nothing`. */
static uint32_t find_instant(const struct dl_events *q, double date_s)
{
    uint32_t id = *bucket(q, date_s);
    while (id != nothing && q->instants[id].date_s != date_s) id = q->instants[id].chain;
    return id;
}

/* To a date that no other has. */
static void move_instant(struct dl_events *q, uint32_t id, double date_s)
{
    struct heap_entry entry = q->heap[q->instants[id].heap_place];
    entry.date_s = date_s;
    unhash(q, id);
    hash(q, id, date_s);
    heap_put(q, q->instants[id].heap_place, entry);
}

/* ---- events ---- */

static void append(struct dl_events *q, uint32_t event, double date_s)
{
    uint32_t id = find_instant(q, date_s);
    if (id == nothing) id = new_instant(q, date_s, q->events[event].payload);
    struct instant *const at = &q->instants[id];
    q->events[event].instant = id;
    q->events[event].previous = at->last;
    q->events[event].next = nothing;
    if (at->last == nothing)
        at->first = event;
    else
        q->events[at->last].next = event;
    at->last = event;
}

/* Take the event out of its instant; an instant left empty goes too, unless it is open. */
static void detach(struct dl_events *q, uint32_t event)
{
    const struct event *const e = &q->events[event];
    struct instant *const at = &q->instants[e->instant];
    if (e->previous == nothing)
        at->first = e->next;
    else
        q->events[e->previous].next = e->next;
    if (e->next == nothing)
        at->last = e->previous;
    else
        q->events[e->next].previous = e->previous;
    if (at->first != nothing || e->instant == q->open) return;
    heap_remove(q, at->heap_place);
    unhash(q, e->instant);
    free_instant(q, e->instant);
}

uint32_t dl_events_add(struct dl_events *q, double date_s, uint32_t payload)
{
    assert(!isnan(date_s));
    uint32_t id = q->free_event;
    if (id == nothing) {
        DL_GROW(q->events, q->n_events, q->events_capacity);
        id = (uint32_t)q->n_events++;
    } else {
        q->free_event = q->events[id].next;
    }
    q->events[id].payload = payload;
    append(q, id, date_s);
    return id;
}

/* One that is alone takes its instant along: most moves are short, in the heap as well. */
void dl_events_move(struct dl_events *q, uint32_t event, double date_s)
{
    assert(!isnan(date_s));
    const struct event *const e = &q->events[event];
    const bool is_alone = e->previous == nothing && e->next == nothing && e->instant != q->open;
    if (is_alone && find_instant(q, date_s) == nothing) {
        move_instant(q, e->instant, date_s);
        return;
    }
    detach(q, event);
    append(q, event, date_s);
}

void dl_events_remove(struct dl_events *q, uint32_t event)
{
    detach(q, event);
    q->events[event].next = q->free_event;
    q->free_event = event;
}

double dl_events_next_s(const struct dl_events *q) { return q->n_heap ? q->heap[0].date_s : INFINITY; }

void dl_events_open(struct dl_events *q)
{
    assert(q->n_heap && q->open == nothing);
    q->open = q->heap[0].instant;
    heap_remove(q, 0);
    unhash(q, q->open);
}

bool dl_events_take(struct dl_events *q, uint32_t *payload)
{
    struct instant *const at = &q->instants[q->open];
    const uint32_t id = at->first;
    if (id == nothing) {
        free_instant(q, q->open);
        q->open = nothing;
        return false;
    }
    struct event *const event = &q->events[id];
    *payload = event->payload;
    at->first = event->next;
    if (event->next == nothing)
        at->last = nothing;
    else
        q->events[event->next].previous = nothing;
    event->next = q->free_event;
    q->free_event = id;
    return true;
}

/* ---- what comes next ---- */

/* So that it is there to be opened. */
static void fetch_instant(const struct dl_events *q, const struct heap_entry *entry, size_t n_before)
{
    const struct instant *const at = &q->instants[entry->instant];
    if (n_before >= 2) {
        dl_fetch(at, sizeof *at);
        dl_fetch(bucket(q, entry->date_s), sizeof *q->hash);
    } else {
        dl_fetch(&q->events[at->first], sizeof *q->events);
    }
}

/* The way by which the heap will close the place of the first: each of these goes up a level. */
size_t dl_events_coming(const struct dl_events *q, uint32_t payloads[DL_N_COMING])
{
    size_t n = 0;
    for (size_t i = 0; n < DL_N_COMING && arity * i + 1 < q->n_heap; n++) {
        i = earliest_child(q, i);
        payloads[n] = q->heap[i].payload;
        fetch_instant(q, &q->heap[i], n);
    }
    return n;
}
