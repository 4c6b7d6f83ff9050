/* sharing.c - who shares with whom; settling.c finds the flows that must be solved again, filling.c solves them. */
#include "sim/engine/sharing.h"

#include <assert.h>
#include <math.h>

#include "sim/engine/filling.h"

struct dl_sharing *dl_sharing_new(const struct dl_engine_link *links, size_t n_links)
{
    struct dl_sharing *const s = dl_alloc(sizeof *s);
    s->given = links;
    s->n_given = n_links;
    s->number_of = dl_alloc(n_links * sizeof *s->number_of);
    for (size_t c = 0; c < n_classes; c++) s->free_flow[c] = nobody;
    return s;
}

void dl_sharing_free(struct dl_sharing *s)
{
    if (!s) return;
    void *const blocks[] = {s->number_of, s->given_of, s->links, s->flows, s->members, s->fresh,
                            s->dirty,     s->set,      s->part,  s->heap,  s->capped,  s->wanted_of_whole};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    dl_free(s);
}

/* The number of a given link, which it gets when it is first crossed, or changes. */
static uint32_t know(struct dl_sharing *s, uint32_t given)
{
    assert(given < s->n_given);
    if (s->number_of[given]) return s->number_of[given] - 1;
    DL_GROW(s->links, s->n_links, s->links_capacity);
    DL_GROW(s->given_of, s->n_links, s->given_of_capacity);
    s->links[s->n_links] = (struct link){.capacity = s->given[given].bandwidth_bytes_per_s,
                                         .whole_capacity = s->given[given].bandwidth_bytes_per_s,
                                         .limit = INFINITY,
                                         .first = nobody,
                                         .fatpipe = s->given[given].fatpipe};
    s->given_of[s->n_links] = given;
    s->number_of[given] = (uint32_t)++s->n_links;
    return s->number_of[given] - 1;
}

static uint32_t first_member(const struct dl_sharing *s, uint32_t given)
{
    return s->number_of[given] ? s->links[s->number_of[given] - 1].first : nobody;
}

/* ---- joining and leaving ---- */

static uint32_t class_for(size_t n)
{
    uint32_t c = 0;
    while (((size_t)1 << c) < n) c++;
    return c;
}

static uint32_t new_flow(struct dl_sharing *s, size_t n_hops)
{
    const uint32_t c = class_for(n_hops);
    const uint32_t old = s->free_flow[c];
    if (old != nobody) {
        s->free_flow[c] = s->flows[old].next_free;
        return old;
    }
    DL_GROW(s->flows, s->n_flows, s->flows_capacity);
    const size_t needed = s->n_members + ((size_t)1 << c);
    s->members = dl_reserve(s->members, needed, &s->members_capacity, sizeof *s->members);
    s->flows[s->n_flows] = (struct flow){.first_member = (uint32_t)s->n_members, .size_class = c};
    s->n_members = needed;
    return (uint32_t)s->n_flows++;
}

static void find_limits(const struct dl_sharing *s, struct flow *f)
{
    double limit = f->cap, alone = INFINITY, whole = INFINITY;
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        const struct link *const l = &s->links[s->members[m].link];
        const double most = l->capacity / s->members[m].weight;
        if (l->fatpipe) limit = fmin(limit, most);
        alone = fmin(alone, most);
        whole = fmin(whole, l->whole_capacity / s->members[m].weight);
    }
    f->whole = fmin(whole * f->part, f->cap);
    f->limit = limit;
    f->alone = fmin(limit, alone);
}

static void mark_dirty(struct dl_sharing *s, uint32_t link)
{
    if (s->links[link].dirty) return;
    s->links[link].dirty = true;
    DL_GROW(s->dirty, s->n_dirty, s->dirty_capacity);
    s->dirty[s->n_dirty++] = link;
}

static void put_on_link(struct dl_sharing *s, uint32_t m)
{
    struct link *const l = &s->links[s->members[m].link];
    s->members[m].previous = nobody;
    s->members[m].next = l->first;
    if (l->first != nobody) s->members[l->first].previous = m;
    l->first = m;
}

static void take_off_link(struct dl_sharing *s, uint32_t m)
{
    const struct member *const at = &s->members[m];
    if (at->previous == nobody)
        s->links[at->link].first = at->next;
    else
        s->members[at->previous].next = at->next;
    if (at->next != nobody) s->members[at->next].previous = at->previous;
}

/* ---- what is wanted of whole links ---- */

/* What the sum rounds off is kept beside it, so that nothing is left of what was added when it is taken off again. */
static void add_exactly(struct sum *sum, double x)
{
    const double all = sum->all + x, part = all - sum->all;
    sum->rest += (sum->all - (all - part)) + (x - part);
    sum->all = all;
}

/* The flow joins, sign 1, or has left, sign -1. */
static void want_whole(struct dl_sharing *s, const struct flow *f, double sign)
{
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        const struct member *const at = &s->members[m];
        struct sum *const sum = &s->wanted_of_whole[s->given_of[at->link]];
        if (s->links[at->link].first == nobody)
            *sum = (struct sum){0};
        else
            add_exactly(sum, sign * f->whole * at->weight);
    }
}

/* Routing that adapts asks again and again; the others never do. */
static void begin_to_sum(struct dl_sharing *s)
{
    s->wanted_of_whole = dl_alloc(s->n_given * sizeof *s->wanted_of_whole);
    for (size_t i = 0; i < s->n_flows; i++)
        if (s->flows[i].live) want_whole(s, &s->flows[i], 1);
}

double dl_sharing_wanted_of_whole(struct dl_sharing *s, uint32_t link)
{
    if (!s->wanted_of_whole) begin_to_sum(s);
    return s->wanted_of_whole[link].all + s->wanted_of_whole[link].rest;
}

uint32_t dl_sharing_join(struct dl_sharing *s, const struct dl_hop *hops, size_t n_hops, double rate_cap)
{
    const uint32_t id = new_flow(s, n_hops);
    struct flow *const f = &s->flows[id];
    f->rate = 0;
    f->cap = rate_cap;
    f->part = 1;
    f->n_members = (uint32_t)n_hops;
    f->bottleneck = n_hops ? know(s, hops[0].link) : nobody;
    f->fresh = f->live = true;
    for (size_t i = 0; i < n_hops; i++) {
        const uint32_t m = f->first_member + (uint32_t)i;
        assert(hops[i].weight > 0);
        s->members[m] = (struct member){.flow = id, .link = know(s, hops[i].link), .weight = hops[i].weight};
        put_on_link(s, m);
    }
    find_limits(s, f);
    for (uint32_t m = f->first_member; m < f->first_member + n_hops; m++)
        s->links[s->members[m].link].wanted += f->alone * s->members[m].weight;
    if (s->wanted_of_whole) want_whole(s, f, 1);
    s->n_live++;
    DL_GROW(s->fresh, s->n_fresh, s->fresh_capacity);
    s->fresh[s->n_fresh++] = id;
    return id;
}

void dl_sharing_set_part(struct dl_sharing *s, uint32_t flow, double part)
{
    struct flow *const f = &s->flows[flow];
    if (s->wanted_of_whole) want_whole(s, f, -1);
    f->part = part;
    find_limits(s, f);
    if (s->wanted_of_whole) want_whole(s, f, 1);
}

void dl_sharing_leave(struct dl_sharing *s, uint32_t flow)
{
    struct flow *const f = &s->flows[flow];
    assert(f->live);
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        take_off_link(s, m);
        struct link *const l = &s->links[s->members[m].link];
        l->wanted = l->first == nobody ? 0 : l->wanted - f->alone * s->members[m].weight;
        if (l->first == nobody)
            l->limit = INFINITY;
        else if (l->limit < INFINITY) /* only where it was full does its leaving matter to others */
            mark_dirty(s, s->members[m].link);
    }
    if (s->wanted_of_whole) want_whole(s, f, -1);
    s->n_live--;
    f->live = f->fresh = false;
    f->next_free = s->free_flow[f->size_class];
    s->free_flow[f->size_class] = flow;
}

/* ---- what will be needed soon ---- */

static void fetch_member(const struct dl_sharing *s, uint32_t m)
{
    if (m != nobody) dl_fetch(&s->members[m], sizeof *s->members);
}

/* Its links, then who will be next to it there. */
void dl_sharing_fetch_to_join(const struct dl_sharing *s, const struct dl_hop *hops, size_t n_hops, size_t n_before)
{
    if (n_before == 2) dl_fetch(hops, n_hops * sizeof *hops);
    for (size_t i = 0; n_before < 2 && i < n_hops; i++) {
        const uint32_t number = s->number_of[hops[i].link];
        if (!number) continue;
        if (n_before == 1)
            dl_fetch(&s->links[number - 1], sizeof *s->links);
        else
            fetch_member(s, s->links[number - 1].first);
    }
}

/* Its members, then their links and who is next to it there. */
void dl_sharing_fetch_to_leave(const struct dl_sharing *s, uint32_t flow, size_t n_before)
{
    const struct flow *const f = &s->flows[flow];
    if (n_before == 2) dl_fetch(f, sizeof *f);
    if (n_before == 1) dl_fetch(&s->members[f->first_member], f->n_members * sizeof *s->members);
    for (uint32_t m = f->first_member; n_before == 0 && m < f->first_member + f->n_members; m++) {
        dl_fetch(&s->links[s->members[m].link], sizeof *s->links);
        fetch_member(s, s->members[m].previous);
        fetch_member(s, s->members[m].next);
    }
}

/* ---- links that change ---- */

/* By the members of a link from this one on. */
static double wanted_at(const struct dl_sharing *s, uint32_t first)
{
    double wanted = 0;
    for (uint32_t m = first; m != nobody; m = s->members[m].next)
        wanted += s->members[m].weight * s->flows[s->members[m].flow].alone;
    return wanted;
}

/* What it wants of its links is summed anew: the old sums were rounded to other capacities. */
static void want_again(struct dl_sharing *s, struct flow *f)
{
    find_limits(s, f);
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        struct link *const l = &s->links[s->members[m].link];
        l->wanted = wanted_at(s, l->first);
        if (is_slack(l) && l->limit < INFINITY) mark_dirty(s, s->members[m].link); /* was full, cannot be any more */
    }
}

void dl_sharing_set_bandwidth(struct dl_sharing *s, uint32_t link, double bytes_per_s)
{
    const uint32_t number = know(s, link);
    struct link *const l = &s->links[number];
    l->capacity = bytes_per_s;
    if (!l->fatpipe) l->limit = 0; /* every flow there is looked at again */
    mark_dirty(s, number);
    for (uint32_t m = l->first; m != nobody; m = s->members[m].next) want_again(s, &s->flows[s->members[m].flow]);
}

bool dl_sharing_is_crossed(const struct dl_sharing *s, uint32_t link) { return first_member(s, link) != nobody; }

bool dl_sharing_is_hit(const struct dl_sharing *s, uint32_t flow, uint32_t link)
{
    const struct flow *const f = &s->flows[flow];
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++)
        if (s->given_of[s->members[m].link] == link || s->links[s->members[m].link].capacity == 0) return true;
    return false;
}

bool dl_sharing_has_failed(const struct dl_sharing *s, uint32_t link)
{
    const uint32_t number = s->number_of[link];
    return (number ? s->links[number - 1].capacity : s->given[link].bandwidth_bytes_per_s) == 0;
}

size_t dl_sharing_hops(const struct dl_sharing *s, uint32_t flow, struct dl_hop *hops)
{
    const struct flow *const f = &s->flows[flow];
    for (uint32_t i = 0; i < f->n_members; i++) {
        const struct member *const m = &s->members[f->first_member + i];
        hops[i] = (struct dl_hop){s->given_of[m->link], m->weight};
    }
    return f->n_members;
}

double dl_sharing_used(const struct dl_sharing *s, uint32_t link)
{
    double used = 0;
    for (uint32_t m = first_member(s, link); m != nobody; m = s->members[m].next)
        used += s->members[m].weight * s->flows[s->members[m].flow].rate;
    return used;
}

double dl_sharing_wanted(const struct dl_sharing *s, uint32_t link) { return wanted_at(s, first_member(s, link)); }
