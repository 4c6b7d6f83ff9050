#include "strategies/played.h"

#include <string.h>

/* ---- how many ---- */

static void add(struct dl_played *sum, const struct dl_played *more, double times)
{
    sum->collectives += times * more->collectives;
    sum->bundles += times * more->bundles;
}

/* All that are played, or those that meet others on their links. */
enum which { EVERY, MEETING };

/* Those of a lockstep group: each of its members is in one group of a kind. */
static void add_template(const struct dl_template *t, struct dl_sink *s, enum which which, struct dl_played *sum)
{
    const struct dl_ranks *const ranks = &s->request->job->setting.ranks;
    const double n_members = dl_ranks_count(ranks, DL_IN_LOCKSTEP);
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct dl_comm *const what = t->parts[i].in_step;
        if (t->parts[i].kind != DL_TOGETHER || (which == MEETING && !dl_sink_groups(s, what->members.digits)->meets))
            continue;
        sum->collectives += n_members;
        sum->bundles += n_members / dl_ranks_count(ranks, what->members.digits) * what->n_bundles;
    }
}

static struct dl_played count_of_group(struct dl_sink *s, uint32_t stage, enum which which)
{
    const struct dl_program *const p = &s->out->programs[stage];
    struct dl_played sum = {0};
    add_template(&p->end, s, which, &sum);
    for (uint32_t i = 0; i < p->n_sequence; i++) add_template(p->sequence[i].block, s, which, &sum);
    return sum;
}

static double count_crossing(const struct dl_sink *s, uint32_t stage)
{
    const uint32_t n_replicas = s->request->job->setting.ways[DL_AXIS_DATA];
    double n = 0;
    for (uint32_t i = 0; i < n_replicas; i++) n += s->crossing[stage * n_replicas + i];
    return n;
}

/* Of all lockstep groups that cross links that change, or of the others. */
static struct dl_played count(struct dl_sink *s, enum which which, bool crossing)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    struct dl_played sum = {0};
    for (uint32_t stage = 0; stage < setting->ways[DL_AXIS_PIPELINE]; stage++) {
        const double n_crossing = count_crossing(s, stage);
        const struct dl_played of_group = count_of_group(s, stage, which);
        add(&sum, &of_group, crossing ? n_crossing : setting->ways[DL_AXIS_DATA] - n_crossing);
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
    const struct dl_played crossing = count(s, EVERY, true);
    l->played = count(s, EVERY, false);
    add(&l->played, &crossing, 1);
    if (is_within(&l->played, &s->request->most_played)) return;
    if (crossing.collectives == 0) {
        dl_lowered_time_all(l);
        return;
    }
    l->played = crossing;
    l->plays_beyond = !is_within(&crossing, &s->request->most_played);
    l->n_timed_alone = count(s, MEETING, false).collectives; /* of those that meet nobody the time is known */
    l->plays = s->crossing;
    change_templates(l, dl_template_add_timed);
}
