/* sharing.c - who shares with whom, and which flows must be solved again; the solving itself is in filling.c. */
#include "sim/engine/sharing.h"

#include <assert.h>
#include <math.h>

#include "sim/engine/filling.h"

/* Rates that differ by less are equal: far below what is reported, far above rounding. */
static const double tolerance = 1e-12;
/* Far above what rounding makes of a sum that flows join and leave. */
static const double slack = 1e-6;

struct dl_sharing *dl_sharing_new(const struct dl_engine_link *links, size_t n_links)
{
    struct dl_sharing *const s = dl_alloc(sizeof *s);
    s->given = links;
    s->links = dl_alloc(n_links * sizeof *s->links);
    s->n_links = n_links;
    for (size_t c = 0; c < n_classes; c++) s->free_flow[c] = nobody;
    return s;
}

void dl_sharing_free(struct dl_sharing *s)
{
    if (!s) return;
    void *const blocks[] = {s->links, s->flows, s->members, s->fresh,  s->dirty,
                            s->set,   s->part,  s->heap,    s->capped, s->wanted_of_whole};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    dl_free(s);
}

/* Most links of a large machine are never crossed: each is filled in when it first is, or changes. */
static struct link *know(struct dl_sharing *s, uint32_t link)
{
    struct link *const l = &s->links[link];
    if (!l->is_known)
        *l = (struct link){.capacity = s->given[link].bandwidth_bytes_per_s,
                           .whole_capacity = s->given[link].bandwidth_bytes_per_s,
                           .limit = INFINITY,
                           .first = nobody,
                           .fatpipe = s->given[link].fatpipe,
                           .is_known = true};
    return l;
}

static uint32_t first_member(const struct dl_sharing *s, uint32_t link)
{
    return s->links[link].is_known ? s->links[link].first : nobody;
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
    while (s->members_capacity < needed)
        s->members = dl_grow(s->members, s->members_capacity, &s->members_capacity, sizeof *s->members);
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

/* It cannot become anybody's bottleneck, whoever of its flows runs how fast: the solver need not look at it. */
static bool is_slack(const struct link *l) { return l->fatpipe || l->wanted < l->capacity * (1 - slack); }

static void mark_dirty(struct dl_sharing *s, uint32_t link)
{
    if (s->links[link].dirty) return;
    s->links[link].dirty = true;
    DL_GROW(s->dirty, s->n_dirty, s->dirty_capacity);
    s->dirty[s->n_dirty++] = link;
}

static void put_on_link(struct dl_sharing *s, uint32_t m)
{
    struct link *const l = know(s, s->members[m].link);
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
        struct sum *const sum = &s->wanted_of_whole[at->link];
        if (s->links[at->link].first == nobody)
            *sum = (struct sum){0};
        else
            add_exactly(sum, sign * f->whole * at->weight);
    }
}

/* Routing that adapts asks again and again; the others never do. */
static void begin_to_sum(struct dl_sharing *s)
{
    s->wanted_of_whole = dl_alloc(s->n_links * sizeof *s->wanted_of_whole);
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
    f->bottleneck = n_hops ? hops[0].link : nobody;
    f->fresh = f->live = true;
    for (size_t i = 0; i < n_hops; i++) {
        const uint32_t m = f->first_member + (uint32_t)i;
        assert(hops[i].link < s->n_links && hops[i].weight > 0);
        s->members[m] = (struct member){.flow = id, .link = hops[i].link, .weight = hops[i].weight};
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

/* ---- the solved set ---- */

static void touch(struct dl_sharing *s, uint32_t link)
{
    if (s->links[link].touched == s->epoch || is_slack(&s->links[link])) return;
    s->links[link].touched = s->epoch;
    DL_GROW(s->part, s->n_part, s->part_capacity);
    s->part[s->n_part++] = link;
}

static void add_to_set(struct dl_sharing *s, uint32_t flow)
{
    struct flow *const f = &s->flows[flow];
    if (f->solved == s->epoch) return;
    f->solved = s->epoch;
    DL_GROW(s->set, s->n_set, s->set_capacity);
    s->set[s->n_set++] = flow;
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) touch(s, s->members[m].link);
}

static double current_rate(const struct dl_sharing *s, const struct flow *f)
{
    return in_set(s, f) ? f->solved_rate : f->rate;
}

/* What it wants of its links is summed anew: the old sums were rounded to other capacities. */
static void want_again(struct dl_sharing *s, struct flow *f)
{
    find_limits(s, f);
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        struct link *const l = &s->links[s->members[m].link];
        l->wanted = dl_sharing_wanted(s, s->members[m].link);
        if (is_slack(l) && l->limit < INFINITY) mark_dirty(s, s->members[m].link); /* was full, cannot be any more */
    }
}

void dl_sharing_set_bandwidth(struct dl_sharing *s, uint32_t link, double bytes_per_s)
{
    struct link *const l = know(s, link);
    l->capacity = bytes_per_s;
    if (!l->fatpipe) l->limit = 0; /* every flow there is looked at again */
    mark_dirty(s, link);
    for (uint32_t m = l->first; m != nobody; m = s->members[m].next) want_again(s, &s->flows[s->members[m].flow]);
}

bool dl_sharing_is_crossed(const struct dl_sharing *s, uint32_t link) { return first_member(s, link) != nobody; }

bool dl_sharing_is_hit(const struct dl_sharing *s, uint32_t flow, uint32_t link)
{
    const struct flow *const f = &s->flows[flow];
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++)
        if (s->members[m].link == link || dl_sharing_has_failed(s, s->members[m].link)) return true;
    return false;
}

bool dl_sharing_has_failed(const struct dl_sharing *s, uint32_t link)
{
    return s->links[link].is_known ? s->links[link].capacity == 0 : s->given[link].bandwidth_bytes_per_s == 0;
}

size_t dl_sharing_hops(const struct dl_sharing *s, uint32_t flow, struct dl_hop *hops)
{
    const struct flow *const f = &s->flows[flow];
    for (uint32_t i = 0; i < f->n_members; i++) {
        const struct member *const m = &s->members[f->first_member + i];
        hops[i] = (struct dl_hop){m->link, m->weight};
    }
    return f->n_members;
}

/* Those whose bottleneck the link was may run faster, or must make room for a newcomer. */
static void add_bottlenecked(struct dl_sharing *s, uint32_t link)
{
    const struct link *const l = &s->links[link];
    if (l->limit == INFINITY) return;
    for (uint32_t m = l->first; m != nobody; m = s->members[m].next)
        if (s->flows[s->members[m].flow].rate >= l->limit * (1 - tolerance)) add_to_set(s, s->members[m].flow);
}

static bool is_alone(const struct dl_sharing *s, const struct flow *f)
{
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        const struct link *const l = &s->links[s->members[m].link];
        if (!is_slack(l) && (l->first != m || s->members[m].next != nobody || l->dirty)) return false;
    }
    return true;
}

/* The common case on an empty network: nobody to share with. */
static double lone_rate(struct dl_sharing *s, const struct flow *f)
{
    const double rate = f->alone;
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        struct link *const l = &s->links[s->members[m].link];
        l->limit = !is_slack(l) && rate * s->members[m].weight >= l->capacity * (1 - tolerance) ? rate : INFINITY;
    }
    return rate;
}

/* ---- does everyone near the change have a bottleneck? ---- */

static void measure_limit(struct dl_sharing *s, uint32_t link)
{
    struct link *const l = &s->links[link];
    double used = 0, fastest = 0;
    for (uint32_t m = l->first; m != nobody; m = s->members[m].next) {
        const double rate = current_rate(s, &s->flows[s->members[m].flow]);
        used += rate * s->members[m].weight;
        fastest = fmax(fastest, rate);
    }
    l->limit = l->first != nobody && used >= l->capacity * (1 - tolerance) ? fastest : INFINITY;
}

static void measure_limits(struct dl_sharing *s)
{
    for (size_t i = 0; i < s->n_part; i++) measure_limit(s, s->part[i]);
}

/* The same where all flows are in the set, flow by flow as in filling.c: what is used in the place of what remains, the
 * fastest in the place of the weight. */
static void measure_all_limits(struct dl_sharing *s)
{
    for (size_t i = 0; i < s->n_part; i++) s->links[s->part[i]].remaining = s->links[s->part[i]].weight_left = 0;
    for (size_t i = 0; i < s->n_set; i++) {
        const struct flow *const f = &s->flows[s->set[i]];
        for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
            struct link *const l = &s->links[s->members[m].link];
            l->remaining += f->solved_rate * s->members[m].weight;
            l->weight_left = fmax(l->weight_left, f->solved_rate);
        }
    }
    for (size_t i = 0; i < s->n_part; i++) {
        struct link *const l = &s->links[s->part[i]];
        l->limit = l->first != nobody && l->remaining >= l->capacity * (1 - tolerance) ? l->weight_left : INFINITY;
    }
}

/* Mostly it is the one that was found last. */
static bool has_bottleneck(const struct dl_sharing *s, struct flow *f)
{
    const double rate = current_rate(s, f) * (1 + tolerance);
    if (rate >= f->limit || f->n_members == 0 || rate >= s->links[f->bottleneck].limit) return true;
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        if (rate < s->links[s->members[m].link].limit) continue;
        f->bottleneck = s->members[m].link;
        return true;
    }
    return false;
}

/* A solved flow that others hold back: the faster ones on its full links must give way. */
static void add_faster(struct dl_sharing *s, const struct flow *f)
{
    for (uint32_t i = f->first_member; i < f->first_member + f->n_members; i++) {
        const struct link *const l = &s->links[s->members[i].link];
        if (l->limit == INFINITY) continue;
        for (uint32_t m = l->first; m != nobody; m = s->members[m].next) {
            const struct flow *const g = &s->flows[s->members[m].flow];
            if (!in_set(s, g) && g->rate > f->solved_rate * (1 + tolerance)) add_to_set(s, s->members[m].flow);
        }
    }
}

static bool grow_set(struct dl_sharing *s)
{
    const size_t n_set = s->n_set, n_part = s->n_part;
    measure_limits(s);
    for (size_t i = 0; i < n_part; i++)
        for (uint32_t m = s->links[s->part[i]].first; m != nobody; m = s->members[m].next) {
            struct flow *const f = &s->flows[s->members[m].flow];
            if (in_set(s, f) || has_bottleneck(s, f)) continue;
            f->solved_rate = f->rate; /* keeps counting as before until it is solved */
            add_to_set(s, s->members[m].flow);
        }
    for (size_t i = 0; i < n_set; i++)
        if (!has_bottleneck(s, &s->flows[s->set[i]])) add_faster(s, &s->flows[s->set[i]]);
    return s->n_set > n_set;
}

static void start_set(struct dl_sharing *s, dl_rate_fn changed, void *user)
{
    s->epoch++;
    s->n_set = s->n_part = 0;
    for (size_t i = 0; i < s->n_dirty; i++) {
        touch(s, s->dirty[i]);
        add_bottlenecked(s, s->dirty[i]);
        if (is_slack(&s->links[s->dirty[i]])) s->links[s->dirty[i]].limit = INFINITY;
        if (s->links[s->dirty[i]].fatpipe)
            for (uint32_t m = s->links[s->dirty[i]].first; m != nobody; m = s->members[m].next)
                add_to_set(s, s->members[m].flow);
    }
    for (size_t i = 0; i < s->n_fresh; i++) {
        struct flow *const f = &s->flows[s->fresh[i]];
        if (!f->fresh) continue;
        f->fresh = false;
        if (is_alone(s, f)) {
            f->rate = lone_rate(s, f);
            changed(user, s->fresh[i], f->rate);
            continue;
        }
        for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++)
            add_bottlenecked(s, s->members[m].link);
        add_to_set(s, s->fresh[i]);
    }
    for (size_t i = 0; i < s->n_dirty; i++) s->links[s->dirty[i]].dirty = false;
    s->n_dirty = s->n_fresh = 0;
}

/* Where many are found to have lost their bottleneck, to look who else did takes longer than solving all of them. */
static bool take_all(struct dl_sharing *s)
{
    const size_t many = 1024, part = 16;
    if (s->n_live <= many || part * s->n_set < s->n_live) return false;
    for (uint32_t flow = 0; flow < s->n_flows; flow++)
        if (s->flows[flow].live) add_to_set(s, flow);
    return true;
}

void dl_sharing_settle(struct dl_sharing *s, dl_rate_fn changed, void *user)
{
    if (!s->n_dirty && !s->n_fresh) return;
    start_set(s, changed, user);
    if (!s->n_set) {
        measure_limits(s);
        return;
    }
    s->has_all = take_all(s);
    if (s->has_all) {
        dl_fill(s);
        measure_all_limits(s);
    } else {
        do dl_fill(s);
        while (grow_set(s));
    }
    for (size_t i = 0; i < s->n_set; i++) {
        struct flow *const f = &s->flows[s->set[i]];
        if (fabs(f->solved_rate - f->rate) <= tolerance * f->rate) continue;
        f->rate = f->solved_rate;
        changed(user, s->set[i], f->rate);
    }
}

double dl_sharing_used(const struct dl_sharing *s, uint32_t link)
{
    double used = 0;
    for (uint32_t m = first_member(s, link); m != nobody; m = s->members[m].next)
        used += s->members[m].weight * s->flows[s->members[m].flow].rate;
    return used;
}

double dl_sharing_wanted(const struct dl_sharing *s, uint32_t link)
{
    double wanted = 0;
    for (uint32_t m = first_member(s, link); m != nobody; m = s->members[m].next)
        wanted += s->members[m].weight * s->flows[s->members[m].flow].alone;
    return wanted;
}
