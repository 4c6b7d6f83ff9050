#include "sim/plan/survey.h"

struct survey {
    const struct dl_plan_request *request;
    const bool *changes; /* by link, where these are looked for; NULL: others are */
    bool *crossing;      /* by lockstep group, where links that change are looked for */
    uint32_t *sets;      /* by replica, where sets of them are looked for: an earlier one of its set, or itself */
    uint32_t *owner;     /* by link: a lockstep group whose exchanges cross it, + 1; 0: nobody's do */
    uint32_t replicas;   /* that go in step in what is looked at; 0: none do */
    bool takes;          /* what is looked at is the exchange itself */
    bool beside_layers;  /* lockstep groups have several exchanges at once */
    bool meets;
    struct dl_route route;
    struct dl_error *err;
};

static const struct dl_setting *setting_of(const struct survey *v) { return &v->request->job->setting; }

static uint32_t lockstep_group_of(const struct survey *v, uint32_t rank)
{
    const struct dl_setting *const s = setting_of(v);
    return dl_ranks_index(&s->ranks, dl_along_replicas(s) | DL_ALONG_PIPELINE, rank);
}

/* The first lockstep group of those that go in step with it. */
static uint32_t first_with(const struct survey *v, uint32_t lockstep_group)
{
    return lockstep_group - lockstep_group % dl_n_replicas(setting_of(v)) % v->replicas;
}

static uint32_t first_of_set(const uint32_t *sets, uint32_t replica)
{
    while (sets[replica] != replica) replica = sets[replica];
    return replica;
}

static void join_sets(struct survey *v, uint32_t lockstep_group)
{
    const uint32_t n_replicas = dl_n_replicas(setting_of(v));
    for (size_t i = 0; i < v->route.n_hops; i++) {
        uint32_t *const owner = &v->owner[v->route.hops[i].link];
        const uint32_t a = first_of_set(v->sets, lockstep_group % n_replicas),
                       b = *owner ? first_of_set(v->sets, (*owner - 1) % n_replicas) : a;
        v->sets[a > b ? a : b] = a > b ? b : a;
        *owner = lockstep_group + 1;
    }
}

static void look_at_owners(struct survey *v, uint32_t lockstep_group)
{
    for (size_t i = 0; i < v->route.n_hops; i++) {
        uint32_t *const owner = &v->owner[v->route.hops[i].link];
        v->meets |= *owner && (!v->replicas || first_with(v, *owner - 1) != first_with(v, lockstep_group));
        if (v->takes) *owner = lockstep_group + 1;
    }
}

static void look_at_changes(struct survey *v, uint32_t lockstep_group)
{
    const uint32_t first = first_with(v, lockstep_group);
    bool changes = false;
    for (size_t i = 0; i < v->route.n_hops; i++) changes |= v->changes[v->route.hops[i].link];
    for (uint32_t i = 0; i < v->replicas && changes; i++) v->crossing[first + i] = true;
    v->meets |= changes;
}

static void follow(struct survey *v, dl_digits along, uint32_t rank, uint32_t places)
{
    const struct dl_topology *const t = v->request->topology;
    const uint32_t to = dl_ranks_further(&setting_of(v)->ranks, along, rank, places), *at = v->request->device_of_rank;
    if (dl_topology_route(t, at[rank], at[to], 0, NULL, &v->route, v->err)) return;
    if (v->changes)
        look_at_changes(v, lockstep_group_of(v, rank));
    else if (v->sets)
        join_sets(v, lockstep_group_of(v, rank));
    else
        look_at_owners(v, lockstep_group_of(v, rank));
}

static bool goes_on(const struct survey *v) { return (!v->meets || v->crossing || v->sets) && !v->err->status; }

/* Stages send to the next and to the one before only. */
static void look_at_stages(struct survey *v, uint32_t rank)
{
    const uint32_t n = dl_n_stages(setting_of(v));
    if (n == 1) return;
    if (goes_on(v)) follow(v, DL_ALONG_PIPELINE, rank, 1);
    if (goes_on(v)) follow(v, DL_ALONG_PIPELINE, rank, n - 1);
}

static void look_at(struct survey *v, dl_digits along)
{
    const struct dl_ranks *const ranks = &setting_of(v)->ranks;
    const dl_digits all = dl_ranks_all(ranks);
    const uint32_t n = dl_ranks_count(ranks, along), n_ranks = dl_ranks_count(ranks, all);
    for (uint32_t i = 0; i < n_ranks && goes_on(v); i++) {
        const uint32_t rank = dl_ranks_offset(ranks, all, i);
        if (along == DL_ALONG_PIPELINE)
            look_at_stages(v, rank);
        else
            for (uint32_t places = 1; places < n && goes_on(v); places += v->changes ? 1 : places)
                follow(v, along, rank, places);
    }
}

/* Those that are not of the lockstep group, or, beside exchanges of a window, of none of its lockstep groups. */
static void look_at_others_in_step(struct survey *v, dl_digits along)
{
    const struct dl_setting *const s = setting_of(v);
    const dl_digits others[] = {DL_ALONG_TENSOR, DL_ALONG_CONTEXT, dl_along_experts(s)};
    for (size_t i = 0; i < DL_COUNT(others); i++)
        if (others[i] != along && goes_on(v)) look_at(v, others[i]);
    for (uint32_t i = 0; i < s->n_brought; i++)
        if (dl_along_own(s, s->brought[i]) != along && goes_on(v)) look_at(v, dl_along_own(s, s->brought[i]));
}

static void look_at_all(struct survey *v, dl_digits along)
{
    const struct dl_setting *const s = setting_of(v);
    v->takes = true;
    v->replicas = dl_ranks_count(&s->ranks, along & dl_along_replicas(s));
    look_at(v, along);
    v->takes = false;
    v->replicas = v->beside_layers ? 0 : s->expert_ways;
    look_at_others_in_step(v, along);
    v->replicas = 0;
    look_at(v, DL_ALONG_PIPELINE);
    if (!s->exchanges_beside_work && dl_n_stages(s) == 1) return;
    look_at(v, dl_along_replicas(s));
    look_at(v, DL_ALONG_CONTEXT | dl_along_brought(s));
}

enum dl_status dl_survey_meets(const struct dl_plan_request *request, dl_digits along, bool beside_layers, bool *out,
                               struct dl_error *err)
{
    struct survey v = {.request = request, .beside_layers = beside_layers, .err = err};
    v.owner = dl_alloc(request->topology->n_links * sizeof *v.owner);
    look_at_all(&v, along);
    *out = v.meets;
    dl_route_release(&v.route);
    dl_free(v.owner);
    return err->status;
}

enum dl_status dl_survey_sets(const struct dl_plan_request *request, const dl_digits *along, size_t n, uint32_t *sets,
                              struct dl_error *err)
{
    const struct dl_setting *const s = &request->job->setting;
    struct survey v = {.request = request, .sets = sets, .err = err};
    v.owner = dl_alloc(request->topology->n_links * sizeof *v.owner);
    for (uint32_t i = 0; i < dl_n_replicas(s); i++) sets[i] = i - i % s->expert_ways;
    for (size_t i = 0; i < n; i++) look_at(&v, along[i]);
    for (uint32_t i = 0; i < dl_n_replicas(s); i++) sets[i] = first_of_set(sets, i);
    dl_route_release(&v.route);
    dl_free(v.owner);
    return err->status;
}

/* Where routes depend on load a way through the network that is looked at is one of many. */
static void mark_changing(const struct dl_plan_request *r, bool *changes)
{
    const struct dl_topology *const t = r->topology;
    const bool any_way = dl_network_reads_load(&t->network);
    const size_t first_of_any = any_way ? t->network.first_link : t->n_links;
    bool all_change = false;
    for (size_t i = 0; i < r->n_changing; i++) {
        changes[r->changing[i]] = true;
        all_change |= r->changing[i] >= first_of_any && !dl_is_storage_link(t, r->changing[i]);
    }
    for (size_t link = first_of_any; all_change && link < t->first_storage_link; link++) changes[link] = true;
}

enum dl_status dl_survey_crosses(const struct dl_plan_request *request, dl_digits along, bool *lockstep_groups,
                                 bool *out, struct dl_error *err)
{
    bool *const changes = dl_alloc(request->topology->n_links * sizeof *changes);
    struct survey v = {.request = request,
                       .changes = changes,
                       .crossing = lockstep_groups,
                       .replicas = request->job->setting.expert_ways,
                       .err = err};
    mark_changing(request, changes);
    look_at(&v, along);
    *out = v.meets;
    dl_route_release(&v.route);
    dl_free(changes);
    return err->status;
}
