/* explain_counts.c - messages counted by their latency, rounds by their most loaded link. */
#include <math.h>

#include "sim/report/explain_parts.h"

bool dl_alpha_of(struct dl_counted *x, uint32_t from, uint32_t to, double payload, const struct dl_load *load,
                 struct dl_alpha *out)
{
    const uint32_t *const device = x->collective->group->device;
    if (dl_topology_route(x->of->estimator->topology, device[from], device[to], 0, load, &x->route, x->err))
        return false;
    *out = (struct dl_alpha){.seconds = dl_pace_latency_s(x->pace, &x->route, payload),
                             .wire_s = x->pace->wire_latency_factor * x->route.latency_s,
                             .reach = x->route.reach,
                             .is_above = dl_pace_is_above(x->pace, payload),
                             .from = device[from],
                             .to = device[to]};
    return true;
}

void dl_count_alpha(struct dl_counted *x, const struct dl_alpha *alpha, double n)
{
    if (n <= 0) return;
    for (size_t i = 0; i < x->n_alphas; i++) {
        struct dl_alpha *const known = &x->alphas[i];
        if (known->seconds != alpha->seconds || known->reach != alpha->reach || known->is_mean != alpha->is_mean)
            continue;
        known->n += n;
        return;
    }
    DL_GROW(x->alphas, x->n_alphas, x->alphas_capacity);
    x->alphas[x->n_alphas] = *alpha;
    x->alphas[x->n_alphas++].n = n;
}

static double load_s(const struct dl_counted *x, const struct dl_loaded *load)
{
    return load->bytes / x->of->estimator->bytes_per_s[load->link];
}

struct dl_loaded dl_most_loaded(const struct dl_counted *x, const struct dl_tally *tally, double n)
{
    struct dl_loaded most = {.n = n};
    for (size_t i = 0; i < tally->n_touched; i++) {
        const struct dl_loaded one = {tally->touched[i].link, tally->touched[i].weight / n, n};
        if (most.bytes <= 0 || load_s(x, &one) > load_s(x, &most)) most = one;
    }
    return most;
}

void dl_count_load(struct dl_counted *x, const struct dl_tally *tally, double n)
{
    const struct dl_link *const links = x->of->estimator->topology->links;
    const struct dl_loaded most = dl_most_loaded(x, tally, n);
    if (most.bytes <= 0) return;
    if (x->longest.bytes <= 0 || load_s(x, &most) > load_s(x, &x->longest)) x->longest = most;
    for (size_t i = 0; i < x->n_loads; i++) {
        struct dl_loaded *const known = &x->loads[i];
        const struct dl_link *const a = &links[known->link], *const b = &links[most.link];
        if (known->bytes != most.bytes || a->kind != b->kind || a->bandwidth_bytes_per_s != b->bandwidth_bytes_per_s)
            continue;
        known->n += n;
        return;
    }
    DL_GROW(x->loads, x->n_loads, x->loads_capacity);
    x->loads[x->n_loads++] = most;
}

/* ---- of a round ---- */

static double dense_bytes(const struct dl_counted *x, uint32_t lane, const struct dl_round *round)
{
    return round->blocks * dl_collective_block_bytes(x->collective, lane);
}

double dl_round_payload_bytes(const struct dl_counted *x, uint32_t lane, const struct dl_round *round)
{
    return dl_payload_bytes(&x->collective->payload, dense_bytes(x, lane, round), round->merged);
}

struct dl_round_work dl_round_work(const struct dl_counted *x, uint32_t lane, const struct dl_round *round)
{
    const double fan_in = fmax(round->fan_in, 1);
    const bool packs = dl_payload_packs(&x->collective->payload);
    return (struct dl_round_work){round->reduce ? fan_in * dl_round_payload_bytes(x, lane, round) : 0,
                                  packs ? (1 + fan_in) * dense_bytes(x, lane, round) : 0};
}
