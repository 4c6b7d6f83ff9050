/* copies.c - which copies between devices, their hosts and storage are simulated: those on paths where they may meet
 * others. A path that a device has for itself gives what it gives, unless a scenario changes it. */
#include "sim/plan/copies.h"

#include "sim/plan/counts.h"
#include "topologies/copy_paths.h"

static bool changes(const struct dl_plan_request *request, const struct dl_route *route)
{
    for (size_t i = 0; i < route->n_hops; i++)
        for (size_t k = 0; k < request->n_changing; k++)
            if (route->hops[i].link == request->changing[k]) return true;
    return false;
}

/* Others are simulated in any case. */
static bool may_be_priced(const struct dl_comm *c) { return c->op == DL_COPY && dl_comm_may_be_priced(c); }

static bool path_changes(const struct dl_plan_request *request, enum dl_path path, bool inwards)
{
    struct dl_route route = {0};
    bool found = false;
    for (uint32_t rank = 0; rank < request->job->n_devices && !found; rank++)
        found = dl_copy_route(request->topology, path, request->device_of_rank[rank], inwards, &route) &&
                changes(request, &route);
    dl_route_release(&route);
    return found;
}

static bool cross_changes(const struct dl_plan_request *request, const struct dl_lowered *l)
{
    bool used[DL_N_PATHS][2] = {0}, found = false;
    for (size_t i = 0; request->n_changing && i < l->n_calls; i++)
        if (may_be_priced(&l->calls[i])) used[l->calls[i].path][l->calls[i].channel == DL_CHANNEL_COPIES_IN] = true;
    for (int i = 0; i < 2 * DL_N_PATHS && !found; i++)
        found = used[i / 2][i % 2] && path_changes(request, (enum dl_path)(i / 2), i % 2);
    return found;
}

/* Below a PCIe switch are other devices, and NICs; storage is of all that are on the node, or of all nodes. */
static bool share_paths(const struct dl_plan_request *request, const struct dl_lowered *l)
{
    const struct dl_node *const node = &request->topology->node;
    bool found = node->vertices[node->device_host[0]].kind != DL_HOST;
    for (size_t i = 0; i < l->n_calls; i++) found |= may_be_priced(&l->calls[i]) && l->calls[i].path != DL_PATH_HOST;
    return found;
}

static double count_in(const struct dl_lowered *l, const struct dl_template *t)
{
    double n = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].kind == DL_START && may_be_priced(&l->calls[t->instructions[i].call]))
            n += (double)dl_template_times(t, i);
    return n;
}

static double count_bundles(const struct dl_plan_request *request, const struct dl_lowered *l)
{
    const struct dl_setting *const setting = &request->job->setting;
    double n = 0;
    for (uint32_t stage = 0; stage < dl_n_stages(setting); stage++) {
        const struct dl_program *const p = &l->programs[stage];
        n += count_in(l, &p->end);
        for (uint32_t i = 0; i < p->n_chunks * DL_N_TEMPLATES; i++)
            if (p->uses[i]) n += p->uses[i] * count_in(l, p->items[i]);
    }
    return n * dl_n_replicas(setting);
}

void dl_plan_copies(const struct dl_plan_request *request, struct dl_lowered *l, bool *simulated)
{
    if (!dl_stack_on_host(request->job->stack) || request->most_played.collectives == 0) return;
    const bool must_be = cross_changes(request, l);
    if (!must_be && !share_paths(request, l)) return;
    const double n = count_bundles(request, l),
                 n_members = dl_ranks_count(&request->job->setting.ranks, dl_in_lockstep(&request->job->setting));
    const bool is_beyond = n > request->most_played.bundles, is_priced = !must_be && is_beyond;
    const struct dl_comm copy = {.op = DL_COPY, .cause = DL_CAUSE_OFFLOAD};
    if (n > 0) dl_plan_tell(l, &copy, n * n_members, is_priced ? n * n_members : 0);
    if (is_priced) return;
    l->plays_beyond |= is_beyond;
    for (size_t i = 0; i < l->n_calls; i++)
        simulated[i] = may_be_priced(&l->calls[i]) || (l->plan.calls && simulated[i]); /* or all others are priced */
    l->plan.calls = simulated;
}
