/* training_steady_skip.c - periods of a steady step are left out, and what they would have added is added. */
#include <math.h>

#include "sim/engine/training_steady_parts.h"

/* Of a lockstep group that is about to do this item, or does it. */
static uint32_t periods_left(const struct course *course, uint32_t item)
{
    const uint32_t left = item < course->repeats.end ? (course->repeats.end - item) / course->repeats.period : 0;
    return left ? left - 1 : 0;
}

/* The item that a message is for, from the one on that the lockstep group is at. */
static uint32_t item_for(const struct dl_training *t, const struct lockstep_group *c, uint32_t tag)
{
    const struct dl_program *const p = program_of(t, c);
    uint32_t item = c->item;
    while (item < p->n_sequence && p->sequence[item].wants != tag) item++;
    return item;
}

static uint32_t fewer(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* As many as all lockstep groups have, and all that they will do with what is under way. */
static uint32_t count_periods(const struct dl_training *t)
{
    uint32_t n = UINT32_MAX;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        const struct lockstep_group *const c = &t->lockstep_groups[i];
        const struct course *const course = &t->steady->courses[i];
        const uint32_t end = dl_steady_inputs_end(t, c); /* checked before */
        n = fewer(n, periods_left(course, end > c->item ? end - 1 : c->item));
    }
    for (size_t i = 0; i < t->n_messages; i++) {
        const struct message *const m = &t->messages[i];
        if (m->item)
            n = fewer(n, periods_left(&t->steady->courses[m->receiver],
                                      item_for(t, &t->lockstep_groups[m->receiver], m->tag)));
    }
    return n;
}

/* All are as much later than in the undisturbed step. */
static void add_delays(struct delays *d, const struct one_period *one, double n)
{
    for (int i = 0; i < N_DELAYS; i++) d->by[i] += n * one->delays.by[i];
    d->total_s += n * one->delays.total_s;
}

/* Under way, or there and not yet worked on. */
static void skip_messages(struct dl_training *t, uint32_t n, const struct one_period *one)
{
    const struct course *const courses = t->steady->courses;
    for (size_t i = 0; i < t->n_messages; i++) {
        struct message *const m = &t->messages[i];
        add_delays(&m->sent.delays, one, n);
        m->sent.undisturbed_s -= n * one->delays.total_s;
        if (!m->item) continue;
        m->tag += n * courses[m->receiver].repeats.micros;
        m->item += (size_t)n * courses[m->sender].repeats.period;
    }
}

static void skip_items(struct dl_training *t, struct lockstep_group *c, const struct dl_repeats *r, uint32_t n)
{
    const struct dl_sequenced *const items = program_of(t, c)->sequence;
    const uint32_t shift = n * r->micros;
    for (uint32_t i = dl_steady_inputs_end(t, c); i-- > c->item;) {
        if (!has_come(c, &items[i])) continue;
        const uint32_t tag = items[i].wants;
        c->arrived[tag + shift] = c->arrived[tag];
        c->arrived[tag] = 0;
    }
    c->item += n * r->period;
}

static void add_sums(struct lockstep_group *c, const struct course *course, double n)
{
    struct sums more = {.owed_s = 0};
    for (size_t i = 0; i < n_sums; i++) ((double *)&more)[i] = n * dl_steady_last_sum_s(course, i);
    for (int i = 0; i < DL_N_CAUSES; i++) c->causes_s[i] += more.causes_s[i];
    for (int i = 0; i < DL_N_PHASES; i++) c->elapsed_s[i] += more.elapsed_s[i];
    c->owed_s += more.owed_s;
}

/* Items of all their kinds, and what they send. */
static void add_period(struct dl_training *t, struct lockstep_group *c, const struct course *course, uint32_t n)
{
    for (uint32_t i = course->n_items - course->repeats.period; i < course->n_items; i++) {
        const struct dl_sequenced *const item = &course->from[i];
        t->items_s[item->item.kind] += n * record_at(course, i)->item_s;
        t->n_items[item->item.kind] += n;
        if (item->gives == DL_NO_TAG || item->to == c->stage) continue;
        t->result.n_sends += n;
        (t->lockstep_groups[c->onward.to].stage == item->to ? &c->onward : &c->back)->n_sent += n;
    }
}

static void add_busy(struct busy *b, const double seconds[n_kept], uint32_t newest, double n)
{
    b->total_s += n * (seconds[newest % n_kept] - seconds[(newest - 1) % n_kept]);
}

void dl_steady_skip(struct dl_training *t, const struct one_period *one)
{
    const uint32_t n = count_periods(t);
    struct steady *const steady = t->steady;
    if (!n) return;
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        struct lockstep_group *const c = &t->lockstep_groups[i];
        const struct course *const course = &steady->courses[i];
        add_sums(c, course, n);
        add_delays(&c->delays, one, n);
        add_period(t, c, course, n);
        c->host_s += n * fmin(dl_steady_host_shift_s(course, course->n_items - 1) - one->seconds, 0);
        skip_items(t, c, &course->repeats, n);
    }
    skip_messages(t, n, one);
    add_busy(&t->sending, steady->sending_s, steady->n_periods - 1, n);
    add_busy(&t->exchanging, steady->exchanging_s, steady->n_periods - 1, n);
    steady->left_out_s += n * one->seconds;
}
