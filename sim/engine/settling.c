/* settling.c - which flows must be solved again after some have come or gone, until all of them have a bottleneck. */
#include <math.h>

#include "sim/engine/filling.h"

/* Rates that differ by less are equal: far below what is reported, far above rounding. */
static const double tolerance = 1e-12;

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
