/* network_dragonfly_routing.c - minimal, Valiant and adaptive routing as shares of a flow over paths.
 *
 * Packets of a minimal route spread evenly over the global links of the pair of groups. A detour (Valiant, SIAM J.
 * Comput. 11, 1982) goes over a few other groups in equal parts, chosen by hash so that all groups are equally likely;
 * inside a group, over a few other switches. */
#include "topologies/network_dragonfly.h"

#include <math.h>

enum { max_detours = 4 };

/* What the paths of one route have in common. */
struct plan {
    const struct dl_network *net;
    const struct dl_dragonfly *d;
    struct dl_route *out;
    const struct dl_load *load;
    uint32_t from_group, from_switch, to_group, to_switch;
    uint32_t n_detours, detours[max_detours]; /* groups, or switches if the groups are the same */
};

/* Paths of one route may meet in a group. */
static void hop_local(const struct plan *p, uint32_t group, uint32_t from, uint32_t to, double weight)
{
    dl_network_share(p->net, p->out, dl_dragonfly_local_link(p->d, group, from, to), weight);
}

/* Where switches are not joined: the switches that are one hop from both. In a grid the two corners, between leaves all
 * spines, between spines all leaves. */
static uint32_t n_between(const struct dl_dragonfly *d, uint32_t from)
{
    if (d->local == DL_LOCAL_GRID) return 2;
    return from < d->n_switches ? d->n_spines : d->n_switches;
}

static uint32_t between(const struct dl_dragonfly *d, uint32_t from, uint32_t to, uint32_t i)
{
    if (d->local == DL_LOCAL_GRID) {
        const uint32_t row_of = i ? to : from, column_of = i ? from : to;
        return row_of / d->n_columns * d->n_columns + column_of % d->n_columns;
    }
    return from < d->n_switches ? d->n_switches + i : i;
}

static void walk_local(const struct plan *p, uint32_t group, uint32_t from, uint32_t to, double weight)
{
    if (from == to) return;
    if (dl_dragonfly_joined(p->d, from, to)) {
        hop_local(p, group, from, to, weight);
        return;
    }
    const uint32_t n = n_between(p->d, from);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t middle = between(p->d, from, to, i);
        hop_local(p, group, from, middle, weight / n);
        hop_local(p, group, middle, to, weight / n);
    }
}

static void cross(const struct plan *p, uint32_t from_group, uint32_t to_group, uint32_t j, double weight)
{
    dl_network_hop(p->net, p->out, dl_dragonfly_global_link(p->d, from_group, to_group, j), weight);
}

static void go_minimal(const struct plan *p, double weight)
{
    const uint32_t a = p->from_group, b = p->to_group, n = p->d->links_per_pair;
    if (a == b) {
        walk_local(p, a, p->from_switch, p->to_switch, weight);
        return;
    }
    for (uint32_t j = 0; j < n; j++) {
        walk_local(p, a, p->from_switch, dl_dragonfly_gateway(p->d, a, b, j), weight / n);
        cross(p, a, b, j, weight / n);
        walk_local(p, b, dl_dragonfly_gateway(p->d, b, a, j), p->to_switch, weight / n);
    }
}

/* What arrives over link j leaves over link j: no less even than all with all, and fewer hops to keep. */
static void go_over_group(const struct plan *p, uint32_t c, double weight)
{
    const uint32_t a = p->from_group, b = p->to_group, n = p->d->links_per_pair;
    for (uint32_t j = 0; j < n; j++) {
        walk_local(p, a, p->from_switch, dl_dragonfly_gateway(p->d, a, c, j), weight / n);
        cross(p, a, c, j, weight / n);
        walk_local(p, c, dl_dragonfly_gateway(p->d, c, a, j), dl_dragonfly_gateway(p->d, c, b, j), weight / n);
        cross(p, c, b, j, weight / n);
        walk_local(p, b, dl_dragonfly_gateway(p->d, b, c, j), p->to_switch, weight / n);
    }
}

static void go_detours(const struct plan *p, double weight)
{
    for (uint32_t i = 0; i < p->n_detours; i++) {
        const double share = weight / p->n_detours;
        if (p->from_group != p->to_group) {
            go_over_group(p, p->detours[i], share);
        } else {
            walk_local(p, p->from_group, p->from_switch, p->detours[i], share);
            walk_local(p, p->from_group, p->detours[i], p->to_switch, share);
        }
    }
}

/* Evenly spaced from a hashed start among the n - 2 that are neither a nor b. Between leaves there is nothing to
 * choose: their minimal route takes all spines. */
static void choose_detours(struct plan *p, uint64_t hash)
{
    const bool same_group = p->from_group == p->to_group;
    if (same_group && (p->d->local == DL_LOCAL_LEAF_SPINE || p->from_switch == p->to_switch)) return;
    const uint32_t a = same_group ? p->from_switch : p->from_group, b = same_group ? p->to_switch : p->to_group;
    const uint32_t n_all = same_group ? p->d->n_switches : p->d->n_groups;
    const uint32_t low = a < b ? a : b, high = a < b ? b : a, n_others = n_all - 2;
    p->n_detours = n_others < max_detours ? n_others : max_detours;
    for (uint32_t i = 0; i < p->n_detours; i++) {
        const uint64_t spaced = (uint64_t)i * n_others / p->n_detours;
        uint32_t other = (uint32_t)((hash % n_others + spaced) % n_others);
        if (other >= low) other++;
        if (other >= high) other++;
        p->detours[i] = other;
    }
}

static double used_share(const struct plan *p, uint32_t link, double bandwidth_bytes_per_s)
{
    return p->load->wanted_bytes_per_s(p->load->user, p->net->first_link + link) / bandwidth_bytes_per_s;
}

static double local_use(const struct plan *p, uint32_t from, uint32_t to)
{
    const struct dl_dragonfly *const d = p->d;
    const double bandwidth = d->local_bandwidth_bytes_per_s;
    if (from == to) return 0;
    if (dl_dragonfly_joined(d, from, to))
        return used_share(p, dl_dragonfly_local_link(d, p->from_group, from, to), bandwidth);
    const uint32_t n = n_between(d, from);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t middle = between(d, from, to, i);
        sum += fmax(used_share(p, dl_dragonfly_local_link(d, p->from_group, from, middle), bandwidth),
                    used_share(p, dl_dragonfly_local_link(d, p->from_group, middle, to), bandwidth));
    }
    return sum / n;
}

static double global_use(const struct plan *p, uint32_t from_group, uint32_t to_group)
{
    double sum = 0;
    for (uint32_t j = 0; j < p->d->links_per_pair; j++)
        sum +=
            used_share(p, dl_dragonfly_global_link(p->d, from_group, to_group, j), p->d->global_bandwidth_bytes_per_s);
    return sum / p->d->links_per_pair;
}

static double minimal_use(const struct plan *p)
{
    if (p->from_group != p->to_group) return global_use(p, p->from_group, p->to_group);
    return local_use(p, p->from_switch, p->to_switch);
}

static double detour_use(const struct plan *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n_detours; i++) {
        const uint32_t c = p->detours[i];
        sum += p->from_group != p->to_group ? fmax(global_use(p, p->from_group, c), global_use(p, c, p->to_group))
                                            : fmax(local_use(p, p->from_switch, c), local_use(p, c, p->to_switch));
    }
    return sum / p->n_detours;
}

/* As UGAL (Singh 2005) does it packet by packet: a detour where the queue on the minimal way, times its hops, is the
 * longer one. As shares of a flow that wants one more link's worth: nothing goes round while the minimal way can take
 * it; beyond that, as much as makes both ways equally full, counting the hops. */
static double detour_share(const struct plan *p)
{
    const double hops_of_detour = 2; /* links of the scarce kind (global; local inside a group), 1 on the minimal way */
    if (!p->load || p->n_detours == 0) return 0;
    const double minimal = minimal_use(p), detour = detour_use(p);
    const double too_much = minimal; /* with its own share of 1 the minimal way is full at minimal = 0 */
    const double even = (minimal + 1 - hops_of_detour * detour) / (1 + hops_of_detour / p->n_detours);
    return fmax(fmin(fmin(too_much, even), 1), 0);
}

enum dl_status dl_dragonfly_route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                                  const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    (void)err;
    const struct dl_dragonfly *const d = net->state;
    struct plan p = {
        .net = net,
        .d = d,
        .out = out,
        .load = load,
        .from_group = dl_dragonfly_group(net, from),
        .from_switch = dl_dragonfly_switch(net, from),
        .to_group = dl_dragonfly_group(net, to),
        .to_switch = dl_dragonfly_switch(net, to),
    };
    double detoured = 0;
    if (d->routing != DL_DRAGONFLY_MINIMAL) {
        choose_detours(&p, dl_network_hash(from, to, key, 0));
        if (d->routing == DL_DRAGONFLY_ADAPTIVE)
            detoured = detour_share(&p);
        else
            detoured = p.n_detours ? 1 : 0;
    }
    dl_network_hop(net, out, 2 * from, 1);
    if (detoured < 1) go_minimal(&p, 1 - detoured);
    if (detoured > 0) go_detours(&p, detoured);
    dl_network_hop(net, out, 2 * to + 1, 1);
    return DL_OK;
}
