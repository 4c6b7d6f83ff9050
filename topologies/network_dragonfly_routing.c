/* network_dragonfly_routing.c - minimal, Valiant and adaptive routing as shares of a flow over paths.
 *
 * Packets of a minimal route spread over the global links of the pair of groups: evenly, or, if routing adapts, as the
 * links' bandwidth is now. A detour (Valiant, SIAM J. Comput. 11, 1982) goes over a few other groups in equal parts,
 * chosen by hash so that all groups are equally likely; inside a group, over a few other switches. Paths over a link
 * that has failed are left out. */
#include "topologies/network_dragonfly.h"

#include <math.h>

#include "topologies/topology.h"

enum { max_detours = 4 };

/* What the paths of one route have in common. */
struct plan {
    const struct dl_network *net;
    const struct dl_dragonfly *d;
    struct dl_route *out;
    const struct dl_load *load;
    uint32_t from_group, from_switch, to_group, to_switch;
    uint32_t n_detours, detours[max_detours];  /* groups, or switches if the groups are the same */
    double capacity[max_detours], all_detours; /* what each can carry, and their sum */
};

/* ---- links as they are now ---- */

static double fraction_of(const struct plan *p, uint32_t link)
{
    return dl_link_fraction(p->net->topology->condition, p->net->first_link + link);
}

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

/* The least fraction of the links of walk_local: 0 if one of them has failed. */
static double local_fraction(const struct plan *p, uint32_t group, uint32_t from, uint32_t to)
{
    if (from == to || !p->net->topology->condition->fraction) return 1;
    if (dl_dragonfly_joined(p->d, from, to)) return fraction_of(p, dl_dragonfly_local_link(p->d, group, from, to));
    const uint32_t n = n_between(p->d, from);
    double least = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t middle = between(p->d, from, to, i);
        least = fmin(least, fraction_of(p, dl_dragonfly_local_link(p->d, group, from, middle)));
        least = fmin(least, fraction_of(p, dl_dragonfly_local_link(p->d, group, middle, to)));
    }
    return least;
}

static void cross(const struct plan *p, uint32_t from_group, uint32_t to_group, uint32_t j, double weight)
{
    dl_network_hop(p->net, p->out, dl_dragonfly_global_link(p->d, from_group, to_group, j), weight);
}

/* Path j of a route from group to group: over the j-th global link of each pair on its way. What arrives over link j
 * leaves over link j: no less even than all with all, and fewer hops to keep. */
struct leg {
    uint32_t groups[3];
    uint32_t n_groups; /* 2: the minimal way; 3: a detour */
};

static struct leg leg_over(const struct plan *p, uint32_t detour)
{
    return (struct leg){{p->from_group, detour, p->to_group}, 3};
}

static struct leg minimal_leg(const struct plan *p) { return (struct leg){{p->from_group, p->to_group}, 2}; }

static uint32_t entry_of(const struct plan *p, const struct leg *leg, uint32_t i, uint32_t j)
{
    return i ? dl_dragonfly_gateway(p->d, leg->groups[i], leg->groups[i - 1], j) : p->from_switch;
}

static uint32_t exit_of(const struct plan *p, const struct leg *leg, uint32_t i, uint32_t j)
{
    if (i + 1 == leg->n_groups) return p->to_switch;
    return dl_dragonfly_gateway(p->d, leg->groups[i], leg->groups[i + 1], j);
}

/* What a path can carry, as a share of what it could if all of its links were whole. */
static double path_fraction(const struct plan *p, const struct leg *leg, uint32_t j)
{
    double least = 1;
    if (!p->net->topology->condition->fraction) return 1;
    for (uint32_t i = 0; i < leg->n_groups; i++) {
        least = fmin(least, local_fraction(p, leg->groups[i], entry_of(p, leg, i, j), exit_of(p, leg, i, j)));
        if (i + 1 < leg->n_groups)
            least = fmin(least, fraction_of(p, dl_dragonfly_global_link(p->d, leg->groups[i], leg->groups[i + 1], j)));
    }
    /* Only routing that adapts sees that a link is slow. */
    return p->d->routing == DL_DRAGONFLY_ADAPTIVE || least == 0 ? least : 1;
}

static double leg_fraction(const struct plan *p, const struct leg *leg)
{
    double sum = 0;
    for (uint32_t j = 0; j < p->d->links_per_pair; j++) sum += path_fraction(p, leg, j);
    return sum;
}

/* Where no path is left: as if all of them were. */
static void go_leg(const struct plan *p, const struct leg *leg, double weight)
{
    const double all = leg_fraction(p, leg);
    for (uint32_t j = 0; j < p->d->links_per_pair; j++) {
        const double share = all > 0 ? weight * path_fraction(p, leg, j) / all : weight / p->d->links_per_pair;
        if (share <= 0) continue;
        for (uint32_t i = 0; i < leg->n_groups; i++) {
            walk_local(p, leg->groups[i], entry_of(p, leg, i, j), exit_of(p, leg, i, j), share);
            if (i + 1 < leg->n_groups) cross(p, leg->groups[i], leg->groups[i + 1], j, share);
        }
    }
}

static void go_minimal(const struct plan *p, double weight)
{
    const struct leg leg = minimal_leg(p);
    if (p->from_group == p->to_group)
        walk_local(p, p->from_group, p->from_switch, p->to_switch, weight);
    else
        go_leg(p, &leg, weight);
}

static void go_detours(const struct plan *p, double weight)
{
    for (uint32_t i = 0; i < p->n_detours; i++) {
        const double share = weight * p->capacity[i] / p->all_detours;
        if (p->from_group != p->to_group) {
            const struct leg leg = leg_over(p, p->detours[i]);
            go_leg(p, &leg, share);
        } else {
            walk_local(p, p->from_group, p->from_switch, p->detours[i], share);
            walk_local(p, p->from_group, p->detours[i], p->to_switch, share);
        }
    }
}

/* What a way can carry, in the bandwidth of one global link (local, inside a group); 0: a link of it has failed. */
static double minimal_capacity(const struct plan *p)
{
    const struct leg leg = minimal_leg(p);
    if (p->from_group != p->to_group) return leg_fraction(p, &leg);
    return local_fraction(p, p->from_group, p->from_switch, p->to_switch);
}

static double detour_capacity(const struct plan *p, uint32_t over)
{
    const struct leg leg = leg_over(p, over);
    if (p->from_group != p->to_group) return leg_fraction(p, &leg);
    return fmin(local_fraction(p, p->from_group, p->from_switch, over),
                local_fraction(p, p->from_group, over, p->to_switch));
}

/* Evenly spaced from a hashed start among the n - 2 that are neither a nor b, but for those behind a link that has
 * failed. Between leaves there is nothing to choose: their minimal route takes all spines. */
static void choose_detours(struct plan *p, uint64_t hash)
{
    const bool same_group = p->from_group == p->to_group;
    if (same_group && (p->d->local == DL_LOCAL_LEAF_SPINE || p->from_switch == p->to_switch)) return;
    const uint32_t a = same_group ? p->from_switch : p->from_group, b = same_group ? p->to_switch : p->to_group;
    const uint32_t n_all = same_group ? p->d->n_switches : p->d->n_groups;
    const uint32_t low = a < b ? a : b, high = a < b ? b : a, n_others = n_all - 2;
    const uint32_t n_wanted = n_others < max_detours ? n_others : max_detours;
    for (uint32_t i = 0; i < n_wanted; i++) {
        const uint64_t spaced = (uint64_t)i * n_others / n_wanted;
        uint32_t other = (uint32_t)((hash % n_others + spaced) % n_others);
        if (other >= low) other++;
        if (other >= high) other++;
        const double capacity = detour_capacity(p, other);
        if (capacity == 0) continue;
        p->capacity[p->n_detours] = capacity;
        p->all_detours += capacity;
        p->detours[p->n_detours++] = other;
    }
}

/* ---- loads, in the bandwidth of one whole link ---- */

static double wanted(const struct plan *p, uint32_t link)
{
    const uint32_t id = p->net->first_link + link;
    return p->load->wanted_bytes_per_s(p->load->user, id) / p->net->topology->links[id].bandwidth_bytes_per_s;
}

static double local_wanted(const struct plan *p, uint32_t from, uint32_t to)
{
    const struct dl_dragonfly *const d = p->d;
    if (from == to) return 0;
    if (dl_dragonfly_joined(d, from, to)) return wanted(p, dl_dragonfly_local_link(d, p->from_group, from, to));
    const uint32_t n = n_between(d, from);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t middle = between(d, from, to, i);
        sum += fmax(wanted(p, dl_dragonfly_local_link(d, p->from_group, from, middle)),
                    wanted(p, dl_dragonfly_local_link(d, p->from_group, middle, to)));
    }
    return sum / n;
}

static double global_wanted(const struct plan *p, uint32_t from_group, uint32_t to_group)
{
    double sum = 0;
    for (uint32_t j = 0; j < p->d->links_per_pair; j++)
        sum += wanted(p, dl_dragonfly_global_link(p->d, from_group, to_group, j));
    return sum;
}

static double minimal_wanted(const struct plan *p)
{
    if (p->from_group != p->to_group) return global_wanted(p, p->from_group, p->to_group);
    return local_wanted(p, p->from_switch, p->to_switch);
}

static double detour_wanted(const struct plan *p, uint32_t c)
{
    if (p->from_group != p->to_group) return fmax(global_wanted(p, p->from_group, c), global_wanted(p, c, p->to_group));
    return fmax(local_wanted(p, p->from_switch, c), local_wanted(p, c, p->to_switch));
}

/* What the message takes of an endpoint that sends as fast as it can, in the bandwidth of one whole link. */
static double own_demand(const struct plan *p)
{
    const double share = p->load && p->load->own_share > 0 ? p->load->own_share : 1;
    const double of_endpoint = p->net->topology->links[p->net->first_link].bandwidth_bytes_per_s;
    const bool same_group = p->from_group == p->to_group;
    return share * of_endpoint / (same_group ? p->d->local_bandwidth_bytes_per_s : p->d->global_bandwidth_bytes_per_s);
}

/* As UGAL (Singh 2005) does it packet by packet: a detour where the queue on the minimal way, times its hops, is the
 * longer one. As the share x of a flow that goes round, with w wanted of a way already and c what it can carry, the
 * minimal way and the detours are filled to
 *
 *     m(x) = (w_m + (1 - x) own) / c_m        d(x) = mean of w_d / c_d + x own / sum of c_d
 *
 * and queues grow with what is above 1. Nothing goes round while the minimal way can take it, m(0) <= 1. Beyond that,
 * what is too much for it, m(x) = 1, while detours have room; then as much as makes m(x) - 1 = 2 (d(x) - 1). */
static double detour_share(const struct plan *p)
{
    const double hops_of_detour = 2; /* links of the scarce kind (global; local inside a group), 1 on the minimal way */
    const double own = own_demand(p), minimal = minimal_capacity(p);
    if (p->n_detours == 0) return 0;
    if (minimal == 0) return 1;
    if (!p->load && minimal >= own) return 0;
    const double wanted_of_minimal = p->load ? minimal_wanted(p) : 0;
    double full = 0;
    for (uint32_t i = 0; p->load && i < p->n_detours; i++)
        full += detour_wanted(p, p->detours[i]) / p->capacity[i] / p->n_detours;
    const double too_much = (wanted_of_minimal + own - minimal) / own;
    const double even = ((wanted_of_minimal + own) / minimal - 1 - hops_of_detour * (full - 1)) /
                        (own / minimal + hops_of_detour * own / p->all_detours);
    return fmax(fmin(fmin(too_much, even), 1), 0);
}

static double detoured(struct plan *p, uint64_t hash)
{
    if (p->d->routing == DL_DRAGONFLY_MINIMAL) return 0;
    choose_detours(p, hash);
    if (p->d->routing == DL_DRAGONFLY_ADAPTIVE) return detour_share(p);
    return p->n_detours ? 1 : 0;
}

/* Where no path is left, the minimal one as it would be if all links worked. */
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
    const double round = detoured(&p, dl_network_hash(from, to, key, 0));
    dl_network_hop(net, out, 2 * from, 1);
    if (round < 1) go_minimal(&p, 1 - round);
    if (round > 0) go_detours(&p, round);
    dl_network_hop(net, out, 2 * to + 1, 1);
    return DL_OK;
}
