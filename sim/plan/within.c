#include "sim/plan/within.h"

#include <math.h>

#include "sim/plan/survey.h"

struct chooser {
    const struct dl_plan_choice *of;
    struct dl_plan_counts counts;
    uint32_t n_replicas;
    uint32_t *first_of_set; /* by replica */
    double *n_in_set;       /* by first of its set and stage: lockstep groups that are not chosen */
    double *n_all;          /* by stage: lockstep groups */
    double *n_chosen;
    bool *may_be;          /* by call: simulated */
    struct dl_played most; /* that is */
};

static bool is_within(const struct chooser *c, const struct dl_played *played)
{
    return played->collectives <= c->most.collectives && played->bundles <= c->most.bundles;
}

static struct dl_played count(const struct chooser *c, const double *n_groups)
{
    return dl_plan_of_calls(&c->counts, c->of->calls, n_groups);
}

static uint32_t n_groups(const struct chooser *c) { return c->counts.n_stages * c->n_replicas; }

static double *in_set(const struct chooser *c, uint32_t first, uint32_t stage)
{
    return &c->n_in_set[first * c->counts.n_stages + stage];
}

/* ---- replicas ---- */

/* Along the digits of those that may be simulated. */
static enum dl_status look_for_sets(const struct chooser *c, struct dl_error *err)
{
    const struct dl_lowered *const l = c->of->lowered;
    dl_digits *const along = dl_alloc((l->n_calls + 1) * sizeof *along);
    size_t n = 0;
    for (size_t i = 0; i < l->n_calls; i++) {
        size_t k = 0;
        while (k < n && along[k] != l->calls[i].members.digits) k++;
        if (c->of->calls[i] && k == n) along[n++] = l->calls[i].members.digits;
    }
    dl_survey_sets(c->of->request, along, n, c->first_of_set, err);
    for (uint32_t i = 0; i < n_groups(c); i++)
        *in_set(c, c->first_of_set[i % c->n_replicas], i / c->n_replicas) += !c->of->lockstep_groups[i];
    dl_free(along);
    return err->status;
}

static void choose_set(struct chooser *c, uint32_t first)
{
    for (uint32_t stage = 0; stage < c->counts.n_stages; stage++) {
        c->n_chosen[stage] += *in_set(c, first, stage);
        *in_set(c, first, stage) = 0;
        for (uint32_t i = first; i < c->n_replicas; i++)
            if (c->first_of_set[i] == first) c->of->lockstep_groups[stage * c->n_replicas + i] = true;
    }
}

/* Set by set, while that is within the limits. */
static void choose_sets(struct chooser *c)
{
    struct dl_played sum = count(c, c->n_chosen);
    for (uint32_t i = 0; i < c->n_replicas; i++) {
        if (c->first_of_set[i] != i) continue;
        const struct dl_played more = count(c, in_set(c, i, 0));
        dl_played_add(&sum, &more, 1);
        if (!is_within(c, &sum)) return;
        choose_set(c, i);
    }
}

/* ---- kinds ---- */

/* Its time, which others on its links make longer, for a share of what may be simulated. */
static double worth(const struct chooser *c, size_t call)
{
    const struct dl_played effort = dl_plan_of_call(&c->counts, call, c->n_chosen), *const most = &c->most;
    const double n = effort.collectives / dl_plan_of_start(&c->counts, call).collectives;
    const double share = fmax(effort.collectives / most->collectives, effort.bundles / most->bundles);
    return n > 0 ? n * c->of->lowered->calls[call].alone_s / share : 0;
}

/* As many as calls: there is no other. */
static size_t best_of(const struct chooser *c, const bool *tried)
{
    const size_t n_calls = c->of->lowered->n_calls;
    size_t best = n_calls;
    double most = -1;
    for (size_t i = 0; i < n_calls; i++) {
        if (!c->may_be[i] || tried[i]) continue;
        const double of_it = worth(c, i);
        if (of_it > most) best = i, most = of_it;
    }
    return best;
}

/* Those that are worth most, while that is within the limits. */
static void choose_kinds(struct chooser *c)
{
    const size_t n_calls = c->of->lowered->n_calls;
    bool *const tried = dl_alloc((n_calls + 1) * sizeof *tried);
    for (size_t i = 0; i < n_calls; i++) c->of->calls[i] = false;
    struct dl_played sum = {0};
    for (size_t i = best_of(c, tried); i < n_calls; i = best_of(c, tried)) {
        struct dl_played with = dl_plan_of_call(&c->counts, i, c->n_chosen);
        dl_played_add(&with, &sum, 1);
        tried[i] = true;
        c->of->calls[i] = is_within(c, &with);
        if (c->of->calls[i]) sum = with;
    }
    dl_free(tried);
}

/* ---- both ---- */

static bool any_chosen(const struct chooser *c)
{
    bool any = false;
    for (uint32_t stage = 0; stage < c->counts.n_stages; stage++) any |= c->n_chosen[stage] > 0;
    return any;
}

/* Messages between stages, which are simulated in any case: one for all ranks of a lockstep group. */
static double count_sends(const struct chooser *c)
{
    double n = 0;
    for (uint32_t stage = 0; stage < c->counts.n_stages; stage++) {
        const struct dl_program *const p = &c->of->lowered->programs[stage];
        for (uint32_t i = 0; i < p->n_sequence; i++)
            n += p->sequence[i].gives != DL_NO_TAG && p->sequence[i].to != stage;
    }
    return n * c->n_replicas;
}

static enum dl_status choose(struct chooser *c, struct dl_error *err)
{
    const bool must = any_chosen(c);
    const struct dl_played all = count(c, c->n_all);
    if (is_within(c, &all)) {
        for (uint32_t i = 0; i < n_groups(c); i++) c->of->lockstep_groups[i] = true;
        for (uint32_t stage = 0; stage < c->counts.n_stages; stage++) c->n_chosen[stage] = c->n_all[stage];
        return DL_OK;
    }
    c->most.bundles = fmin(c->most.bundles, c->of->request->most_in_part - count_sends(c));
    if (c->most.bundles <= 0 || look_for_sets(c, err)) return err->status;
    choose_sets(c);
    if (must || any_chosen(c)) return DL_OK;
    choose_set(c, 0);
    choose_kinds(c);
    choose_sets(c);
    return DL_OK;
}

/* ---- what is told of it ---- */

/* Of those that meet nobody the time is known. */
static void tell(const struct chooser *c)
{
    struct dl_lowered *const l = c->of->lowered;
    for (size_t i = 0; i < l->n_calls; i++) {
        if (!c->may_be[i] || !c->of->meets[i]) continue;
        const double n = dl_plan_of_call(&c->counts, i, c->n_all).collectives;
        const double n_played = c->of->calls[i] ? dl_plan_of_call(&c->counts, i, c->n_chosen).collectives : 0;
        dl_plan_tell(l, &l->calls[i], n, n - n_played);
    }
}

static bool is_every_group_chosen(const struct chooser *c)
{
    bool all = true;
    for (uint32_t i = 0; i < n_groups(c); i++) all &= c->of->lockstep_groups[i];
    return all;
}

static void make_plan(const struct chooser *c)
{
    struct dl_lowered *const l = c->of->lowered;
    l->played = count(c, c->n_chosen);
    const struct dl_played *const most = &c->of->request->most_played;
    l->plays_beyond = l->played.collectives > most->collectives || l->played.bundles > most->bundles;
    l->plan = (struct dl_plan){0};
    if (l->played.collectives == 0) return;
    l->plan.calls = c->of->calls;
    if (!is_every_group_chosen(c)) l->plan.lockstep_groups = c->of->lockstep_groups;
}

static void open_chooser(struct chooser *c, const struct dl_plan_choice *choice)
{
    const struct dl_setting *const setting = &choice->request->job->setting;
    *c = (struct chooser){.of = choice, .n_replicas = dl_n_replicas(setting), .most = choice->request->most_played};
    dl_plan_count(choice->lowered, setting, &c->counts);
    c->first_of_set = dl_alloc(c->n_replicas * sizeof *c->first_of_set);
    c->n_in_set = dl_alloc(n_groups(c) * sizeof *c->n_in_set);
    c->n_all = dl_alloc(c->counts.n_stages * sizeof *c->n_all);
    c->n_chosen = dl_alloc(c->counts.n_stages * sizeof *c->n_chosen);
    c->may_be = dl_alloc((choice->lowered->n_calls + 1) * sizeof *c->may_be);
    for (uint32_t i = 0; i < c->counts.n_stages; i++) c->n_all[i] = c->n_replicas;
    for (uint32_t i = 0; i < n_groups(c); i++) c->n_chosen[i / c->n_replicas] += choice->lockstep_groups[i];
    for (size_t i = 0; i < choice->lowered->n_calls; i++) c->may_be[i] = choice->calls[i];
}

static void close_chooser(struct chooser *c)
{
    void *const blocks[] = {c->first_of_set, c->n_in_set, c->n_all, c->n_chosen, c->may_be};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    dl_plan_counts_release(&c->counts);
}

enum dl_status dl_plan_within(const struct dl_plan_choice *choice, struct dl_error *err)
{
    struct chooser c;
    open_chooser(&c, choice);
    if (!choose(&c, err)) {
        make_plan(&c);
        tell(&c);
    }
    close_chooser(&c);
    return err->status;
}
