#include "sim/engine/training_steady.h"

#include <string.h>

#include "sim/engine/training_ahead.h"
#include "sim/engine/training_steady_parts.h"

/* ---- where it is possible ---- */

/* Only the lockstep group itself knows when it goes on. */
static bool is_quiet(const struct dl_template *block)
{
    for (size_t i = 0; i < block->planned.n; i++)
        if (block->planned.items[i].kind != DL_DO && block->planned.items[i].kind != DL_DRAIN) return false;
    return true;
}

static bool is_quiet_period(const struct dl_program *p)
{
    for (uint32_t i = p->repeats.first; i < p->repeats.first + p->repeats.period; i++)
        if (!is_quiet(dl_item_block(p, &p->sequence[i]))) return false;
    return p->repeats.period > 0;
}

static bool is_possible(const struct dl_training *t)
{
    const struct dl_scenario *const s = t->request.scenario;
    bool possible = t->request.extrapolates && t->request.engine->kind->alone && t->n_played == 1 &&
                    !t->request.recorder && !(s && (s->jitter_fraction > 0 || s->n_changes));
    for (uint32_t i = 0; possible && i < t->n_stages; i++) possible = is_quiet_period(&t->request.step.programs[i]);
    return possible;
}

static void open_course(const struct dl_program *p, struct course *course)
{
    course->repeats = p->repeats;
    course->first = p->sequence + p->repeats.first;
    course->end = p->sequence + p->repeats.end;
    course->n_records = (n_kept + 1) * p->repeats.period;
}

void dl_steady_open(struct dl_training *t)
{
    if (!is_possible(t)) return;
    struct steady *const steady = t->steady = dl_alloc(sizeof *steady);
    struct course *const courses = steady->courses = dl_alloc(t->n_lockstep_groups * sizeof *courses);
    size_t n_records = 0;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        open_course(&t->request.step.programs[i], &courses[i]);
        n_records += courses[i].n_records;
    }
    struct record *records = steady->records = dl_alloc(n_records * sizeof *records);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        courses[i].records = records;
        records += courses[i].n_records;
    }
}

void dl_steady_close(struct dl_training *t)
{
    if (!t->steady) return;
    dl_free(t->steady->records);
    dl_free(t->steady->courses);
    dl_free(t->steady);
    t->steady = NULL;
}

/* ---- what is noted ---- */

/* When nobody is in the middle of an event. */
void dl_steady_try(void *user, uint32_t iteration)
{
    struct dl_training *const t = user;
    struct one_period one;
    t->steady->is_due = false;
    if (t->over || t->steady->n_iterations > iteration || !dl_steady_has_come(t, &one)) return;
    dl_steady_skip(t, &one);
    t->steady->n_iterations = iteration + 1;
}

static double busy_until(const struct busy *b, double now) { return b->total_s + (b->n ? now - b->since_s : 0); }

static void end_period(struct dl_training *t, uint32_t iteration)
{
    struct steady *const steady = t->steady;
    const uint32_t i = steady->n_periods++ % n_kept;
    if (t->is_ahead) dl_ahead_pass_sending(t);
    steady->sending_s[i] = busy_until(&t->sending, now_s(t));
    steady->exchanging_s[i] = busy_until(&t->exchanging, now_s(t));
    t->steady->is_due = true;
    if (!t->is_ahead) t->request.engine->kind->timer(t->request.engine, now_s(t), dl_steady_try, t, iteration);
}

static void note_sums(const struct lockstep_group *c, struct sums *out)
{
    memcpy(out->causes_s, c->causes_s, sizeof out->causes_s);
    memcpy(out->elapsed_s, c->elapsed_s, sizeof out->elapsed_s);
    memcpy(out->delays_s, c->delays.by, sizeof out->delays_s);
    out->owed_s = c->owed_s;
}

void dl_steady_begin_course(struct dl_training *t, const struct lockstep_group *c, struct course *course,
                            const struct dl_sequenced *from)
{
    course->from = from;
    course->iteration = c->iteration;
    course->n_items = course->next = course->n_until_sums = 0;
    if (c == t->lockstep_groups) t->steady->n_periods = 0;
}

void dl_steady_note_period(struct dl_training *t, const struct lockstep_group *c, struct course *course)
{
    const uint32_t period = course->repeats.period;
    course->n_until_sums = period - 1;
    note_sums(c, &course->sums[(course->n_items - 1) / period % n_kept]);
    if (c == t->lockstep_groups) end_period(t, c->iteration);
}

void dl_steady_note_item(struct dl_training *t, const struct lockstep_group *c)
{
    if (!dl_steady_watches(t, c->iteration)) return;
    struct course *const course = dl_steady_course(t, c);
    const struct record done = {.end_s = now_s(t),
                                .host_s = c->host_s,
                                .item_s = c->item_s,
                                .input_s = c->input_s,
                                .delay_s = c->delays.total_s};
    if (note_item(t, c, course, &program_of(t, c)->sequence[c->item], done)) dl_steady_note_period(t, c, course);
}

struct course *dl_steady_course(const struct dl_training *t, const struct lockstep_group *c)
{
    return &t->steady->courses[c - t->lockstep_groups];
}

bool dl_steady_watches(const struct dl_training *t, uint32_t iteration)
{
    return t->steady && iteration >= t->steady->n_iterations;
}

const bool *dl_steady_due(const struct dl_training *t) { return t->steady ? &t->steady->is_due : NULL; }

/* ---- what it comes to ---- */

void dl_steady_open_books(struct dl_training *t) { t->steady->before_last_s = t->steady->left_out_s; }

struct dl_skipped dl_steady_skipped(const struct dl_training *t)
{
    if (!t->steady) return (struct dl_skipped){0};
    return (struct dl_skipped){t->steady->left_out_s, t->steady->left_out_s - t->steady->before_last_s};
}
