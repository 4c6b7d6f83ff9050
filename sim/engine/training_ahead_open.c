/* training_ahead_open.c - where items can be gone through ahead of the events, and what that needs. */
#include "sim/engine/training_ahead_parts.h"

static bool only_works(const struct dl_parts *parts)
{
    bool works = false;
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->items[i].kind != DL_DO && parts->items[i].kind != DL_DRAIN) return false;
        works |= parts->items[i].kind == DL_DO;
    }
    return works;
}

static bool all_only_work(const struct dl_program *p)
{
    uint32_t i = 0;
    while (i < p->n_blocks && only_works(&p->items[p->blocks[i]]->planned)) i++;
    return i == p->n_blocks;
}

static bool is_possible(const struct dl_training *t)
{
    const struct dl_training_request *const q = &t->request;
    bool possible = q->engine->kind->alone && t->n_played == 1 && !q->recorder && !q->by_events && !t->slows_work &&
                    (q->step.has_barrier || t->n_iterations == 1);
    for (uint32_t i = 0; i < t->n_stages; i++) possible = possible && all_only_work(&q->step.programs[i]);
    return possible;
}

void dl_ahead_open(struct dl_training *t)
{
    if (!is_possible(t)) return;
    struct ahead *const a = t->ahead = dl_alloc(sizeof *a);
    a->runners = dl_alloc(t->n_lockstep_groups * sizeof *a->runners);
    a->free_s = dl_alloc(2 * (size_t)t->n_lockstep_groups * sizeof *a->free_s);
    a->left = ALL_LEFT;
    if (t->request.device) dl_take(&a->left, &t->request.device->taken_by_sends);
    dl_tournament_open(&a->dates, t->n_lockstep_groups);
}

void dl_ahead_close(struct dl_training *t)
{
    if (!t->ahead) return;
    dl_free(t->ahead->runners);
    dl_tournament_close(&t->ahead->dates);
    dl_free(t->ahead->free_s);
    dl_free(t->ahead->episodes);
    dl_free(t->ahead);
    t->ahead = NULL;
}
