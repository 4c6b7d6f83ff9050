#include "strategies/played.h"

#include <string.h>

/* ---- how many ---- */

static void add(struct dl_played *sum, const struct dl_played *more, double times)
{
    sum->collectives += times * more->collectives;
    sum->bundles += times * more->bundles;
}

/* Those of a crew: each of its members is in one group of the axis. */
static void add_template(const struct dl_template *t, const struct dl_setting *s, const bool axes[DL_N_GROUPS],
                         struct dl_played *sum)
{
    const double n_members = s->ways[DL_AXIS_TENSOR] * s->ways[DL_AXIS_CONTEXT];
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct dl_in_step *const what = t->parts[i].in_step;
        if (t->parts[i].kind != DL_TOGETHER || !axes[what->axis]) continue;
        sum->collectives += n_members;
        sum->bundles += n_members / dl_in_step_ranks(s, what->axis).n * what->n_bundles;
    }
}

static struct dl_played count_of_crew(const struct dl_sink *s, uint32_t stage, const bool axes[DL_N_GROUPS])
{
    const struct dl_lowered *const l = s->out;
    const struct dl_program *const p = &l->programs[stage];
    struct dl_played sum = {0};
    add_template(&p->end, &s->request->job->setting, axes, &sum);
    for (uint32_t i = 0; i < l->schedule.n_items[stage]; i++) {
        const struct dl_item *const item = &l->schedule.items[stage][i];
        add_template(&p->items[item->chunk * DL_N_TEMPLATES + (uint32_t)item->kind], &s->request->job->setting, axes,
                     &sum);
    }
    return sum;
}

static double count_crossing(const struct dl_sink *s, uint32_t stage)
{
    const uint32_t n_replicas = s->request->job->setting.ways[DL_AXIS_DATA];
    double n = 0;
    for (uint32_t i = 0; i < n_replicas; i++) n += s->crossing[stage * n_replicas + i];
    return n;
}

/* Of all crews that cross links that change, or of the others. */
static struct dl_played count(const struct dl_sink *s, const bool axes[DL_N_GROUPS], bool crossing)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    struct dl_played sum = {0};
    for (uint32_t stage = 0; stage < setting->ways[DL_AXIS_PIPELINE]; stage++) {
        const double n_crossing = count_crossing(s, stage);
        const struct dl_played of_crew = count_of_crew(s, stage, axes);
        add(&sum, &of_crew, crossing ? n_crossing : setting->ways[DL_AXIS_DATA] - n_crossing);
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
    l->n_timed_alone += l->played.collectives;
    l->played = (struct dl_played){0};
}

static bool is_within(const struct dl_played *played, const struct dl_played *most)
{
    return played->collectives <= most->collectives && played->bundles <= most->bundles;
}

void dl_limit_played(struct dl_sink *s)
{
    struct dl_lowered *const l = s->out;
    bool every_axis[DL_N_GROUPS];
    for (size_t i = 0; i < DL_N_GROUPS; i++) every_axis[i] = true;
    const struct dl_played crossing = count(s, every_axis, true);
    l->played = count(s, every_axis, false);
    add(&l->played, &crossing, 1);
    if (is_within(&l->played, &s->request->most_played)) return;
    if (crossing.collectives == 0) {
        dl_lowered_time_all(l);
        return;
    }
    l->played = crossing;
    l->plays_beyond = !is_within(&crossing, &s->request->most_played);
    l->n_timed_alone = count(s, s->meets, false).collectives; /* of those that meet nobody the time is known */
    l->plays = s->crossing;
    change_templates(l, dl_template_add_timed);
}
