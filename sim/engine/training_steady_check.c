/* training_steady_check.c - whether two consecutive periods were alike on all lockstep groups.
 *
 * Dates must differ by the same seconds everywhere, and all that is carried on must agree: how far hosts are ahead,
 * when messages came, how late everybody is. What then repeats itself does so until the sequence of some stage changes.
 */
#include <math.h>

#include "sim/engine/training_steady_parts.h"

/* How far two periods may differ: of a period, so that all that are left out are within as much of the step. */
static const double agreement = 1e-12;

static bool agree(double a, double b, const struct one_period *one) { return fabs(a - b) <= agreement * one->seconds; }

/* A host that falls behind its device is never waited for again; one that runs ahead of it may be. */
static bool has_shifted(const struct record *a, const struct record *b, const struct one_period *one)
{
    return agree(b->end_s - a->end_s, one->seconds, one) && agree(b->item_s, a->item_s, one) &&
           (a->input_s == 0 || agree(b->input_s - a->input_s, one->seconds, one)) &&
           agree(b->delay_s - a->delay_s, one->delays.total_s, one) &&
           b->host_s - a->host_s <= one->seconds * (1 + agreement);
}

/* The newest is 0. */
static const double *sums_at(const struct course *course, uint32_t age)
{
    const uint32_t newest = (course->n_items - 1) / course->repeats.period;
    return (const double *)&course->sums[(newest - age) % n_kept];
}

double dl_steady_last_sum_s(const struct course *course, size_t i)
{
    return sums_at(course, 0)[i] - sums_at(course, 1)[i];
}

static bool sums_agree(const struct course *course, const struct one_period *one)
{
    const size_t owed = offsetof(struct sums, owed_s) / sizeof(double);
    const size_t delays = offsetof(struct sums, delays_s) / sizeof(double);
    const double *const newest = sums_at(course, 0), *const before = sums_at(course, 1),
                        *const oldest = sums_at(course, 2);
    for (size_t i = 0; i < n_sums; i++)
        if (!agree(newest[i] - before[i], before[i] - oldest[i], one)) return false;
    for (size_t i = 0; i < N_DELAYS; i++)
        if (!agree(newest[delays + i] - before[delays + i], one->delays.by[i], one)) return false;
    return newest[owed] - before[owed] >= -agreement * one->seconds;
}

double dl_steady_host_shift_s(const struct course *course, uint32_t item)
{
    return record_at(course, item)->host_s - record_at(course, item - course->repeats.period)->host_s;
}

static bool repeats_itself(const struct course *course, const struct one_period *one, double now_s)
{
    const uint32_t period = course->repeats.period, n = course->n_items;
    if (n <= n_kept * period || record_at(course, n - 1)->end_s <= now_s - one->seconds) return false;
    for (uint32_t i = n - 1; i >= n - 2 * period; i--)
        if (!has_shifted(record_at(course, i - period), record_at(course, i), one)) return false;
    return agree(dl_steady_host_shift_s(course, n - 1), dl_steady_host_shift_s(course, n - 1 - period), one) &&
           sums_agree(course, one);
}

uint32_t dl_steady_inputs_end(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct dl_program *const p = program_of(t, c);
    uint32_t left = c->n_arrived, item = c->item;
    for (; left && item < p->n_sequence; item++) left -= has_come(c, &p->sequence[item]);
    return left ? UINT32_MAX : item;
}

/* When the input of an item came, from the last one on that was noted: it is done, its input lies there, or it is
 * worked on. NAN: that is not known. */
static double input_date_s(const struct dl_training *t, const struct lockstep_group *c, const struct course *course,
                           uint32_t i)
{
    const struct dl_sequenced *const item = &program_of(t, c)->sequence[i];
    if (item < course->from) return NAN;
    if (item < course->from + course->n_items) return record_at(course, (uint32_t)(item - course->from))->input_s;
    if (has_come(c, item)) return t->messages[c->arrived[item->wants] - 1].arrives_s;
    return i == c->item && !c->waits_for_input ? c->input_s : NAN;
}

/* What lies there for later has come as regularly. */
static bool inputs_repeat(const struct dl_training *t, const struct lockstep_group *c, const struct course *course,
                          const struct one_period *one)
{
    const struct dl_sequenced *const items = program_of(t, c)->sequence;
    const uint32_t period = course->repeats.period, end = dl_steady_inputs_end(t, c);
    if (end == UINT32_MAX) return false;
    for (uint32_t i = c->item; i < end; i++) {
        if (!has_come(c, &items[i]) || c->arrived[items[i].wants] == DL_OWN_MESSAGE + 1) continue;
        const double before_s = i < period ? NAN : input_date_s(t, c, course, i - period);
        if (!agree(input_date_s(t, c, course, i) - before_s, one->seconds, one)) return false;
    }
    return true;
}

static bool busy_repeats(const double seconds[n_kept], uint32_t n, const struct one_period *one)
{
    return agree(seconds[n % n_kept] - seconds[(n - 1) % n_kept], seconds[(n - 1) % n_kept] - seconds[(n - 2) % n_kept],
                 one);
}

bool dl_steady_has_come(const struct dl_training *t, struct one_period *one)
{
    const struct steady *const steady = t->steady;
    const struct course *const first = &steady->courses[0];
    const uint32_t n = first->n_items, period = first->repeats.period;
    if (n <= n_kept * period || steady->n_periods < n_kept) return false;
    const struct record *const newest = record_at(first, n - 1), *const old = record_at(first, n - 1 - 2 * period);
    *one = (struct one_period){.seconds = (newest->end_s - old->end_s) / 2,
                               .delays.total_s = (newest->delay_s - old->delay_s) / 2};
    for (size_t i = 0; i < N_DELAYS; i++)
        one->delays.by[i] = dl_steady_last_sum_s(first, offsetof(struct sums, delays_s) / sizeof(double) + i);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        const struct course *const course = &steady->courses[i];
        if (course->iteration != first->iteration || !repeats_itself(course, one, now_s(t))) return false;
    }
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++)
        if (!inputs_repeat(t, &t->lockstep_groups[i], &steady->courses[i], one)) return false;
    return busy_repeats(steady->sending_s, steady->n_periods - 1, one) &&
           busy_repeats(steady->exchanging_s, steady->n_periods - 1, one);
}
