#include "strategies/played.h"

#include <string.h>

/* ---- how many ---- */

static double count_played(const struct dl_template *t, const bool axes[DL_N_GROUPS])
{
    double n = 0;
    for (size_t i = 0; i < t->n_parts; i++) n += t->parts[i].kind == DL_TOGETHER && axes[t->parts[i].in_step->axis];
    return n;
}

/* On a rank of the stage. */
static double count_of_stage(const struct dl_lowered *l, uint32_t stage, const bool axes[DL_N_GROUPS])
{
    const struct dl_program *const p = &l->programs[stage];
    double n = count_played(&p->end, axes);
    for (uint32_t i = 0; i < l->schedule.n_items[stage]; i++) {
        const struct dl_item *const item = &l->schedule.items[stage][i];
        n += count_played(&p->items[item->chunk * DL_N_TEMPLATES + (uint32_t)item->kind], axes);
    }
    return n;
}

static double count_crews(const struct dl_sink *s, uint32_t stage)
{
    const uint32_t n_replicas = s->request->job->setting.ways[DL_AXIS_DATA];
    double n = 0;
    for (uint32_t i = 0; i < n_replicas; i++) n += s->crossing[stage * n_replicas + i];
    return n;
}

/* On all ranks of the crews that cross links that change, or of the others. */
static double count(const struct dl_sink *s, const bool axes[DL_N_GROUPS], bool crossing)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const double n_members = setting->ways[DL_AXIS_TENSOR] * setting->ways[DL_AXIS_CONTEXT];
    double sum = 0;
    for (uint32_t stage = 0; stage < setting->ways[DL_AXIS_PIPELINE]; stage++) {
        const double n_crossing = count_crews(s, stage),
                     n_crews = crossing ? n_crossing : setting->ways[DL_AXIS_DATA] - n_crossing;
        sum += count_of_stage(s->out, stage, axes) * n_members * n_crews;
    }
    return sum;
}

/* ---- which of them ---- */

/* Templates are in positions and, by copies, in programs. */
static void change_templates(struct dl_lowered *l, void (*change)(struct dl_template *))
{
    for (uint32_t i = 0; i < l->n_positions; i++)
        for (int kind = 0; kind < DL_N_TEMPLATES; kind++) change(&l->positions[i].items[kind]);
    for (uint32_t stage = 0; stage < l->schedule.stages; stage++) {
        struct dl_program *const p = &l->programs[stage];
        for (uint32_t chunk = 0; chunk < p->n_chunks; chunk++)
            memcpy(&p->items[chunk * DL_N_TEMPLATES],
                   l->positions[l->schedule.position_of[stage * p->n_chunks + chunk]].items,
                   DL_N_TEMPLATES * sizeof *p->items);
        change(&p->end);
    }
}

void dl_lowered_time_all(struct dl_lowered *l)
{
    change_templates(l, dl_template_time_all);
    l->n_timed_alone += l->n_played;
    l->n_played = 0;
}

void dl_limit_played(struct dl_sink *s)
{
    struct dl_lowered *const l = s->out;
    bool all[DL_N_GROUPS];
    for (size_t i = 0; i < DL_N_GROUPS; i++) all[i] = true;
    const double n_crossing = count(s, all, true);
    l->n_played = n_crossing + count(s, all, false);
    if (l->n_played <= s->request->most_played) return;
    if (n_crossing == 0) {
        dl_lowered_time_all(l);
        return;
    }
    l->n_played = n_crossing;
    l->n_timed_alone = count(s, s->meets, false); /* of those that meet nobody the time is known */
    l->plays = s->crossing;
    change_templates(l, dl_template_add_timed);
}
