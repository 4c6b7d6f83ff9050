/* training_steady_parts.h - what the files share that find the steady part of a step and leave periods of it out. */
#ifndef DL_ENGINE_TRAINING_STEADY_PARTS_H
#define DL_ENGINE_TRAINING_STEADY_PARTS_H

#include "sim/engine/training_steady.h"
#include "sim/program/repeats.h"

enum { n_kept = 3 }; /* differences of two consecutive periods */

/* When an item ended, and what its lockstep group carries on to the next one. */
struct record {
    double end_s, host_s, item_s;
    double input_s; /* its input came; 0: it needs none from others */
    double delay_s;
};

/* Sums that grow from period to period, once in each of them. */
struct sums {
    double causes_s[DL_N_CAUSES], elapsed_s[DL_N_PHASES], delays_s[N_DELAYS], owed_s;
};
enum { n_sums = sizeof(struct sums) / sizeof(double) };

/* Of one lockstep group. */
struct course {
    struct dl_repeats repeats;
    const struct dl_sequenced *first, *end; /* of these */
    const struct dl_sequenced *from;        /* that was noted first, in that iteration */
    uint32_t iteration, n_items;            /* that have ended since it began to repeat itself, in that iteration */
    uint32_t n_until_sums;                  /* items, in this period */
    struct record *records;                 /* the last ones, round about */
    uint32_t n_records, next;               /* all of them, and the place of the next one */
    struct sums sums[n_kept];               /* likewise */
};

struct steady {
    struct course *courses; /* by lockstep group */
    struct record *records; /* of all of them */
    double sending_s[n_kept], exchanging_s[n_kept];
    uint32_t n_periods;               /* of the first lockstep group, in this iteration */
    bool is_due;                      /* one has just ended: whether two were alike is to be looked at */
    uint32_t n_iterations;            /* that have had periods left out, or cannot have */
    double left_out_s, before_last_s; /* of all iterations, and of those before the last */
};

/* What one period adds. */
struct one_period {
    double seconds;
    struct delays delays;
};

static inline struct record *record_at(const struct course *course, uint32_t item)
{
    return &course->records[item % course->n_records];
}

/* training_steady.c: items are noted from this one on; sums are to be noted. */
void dl_steady_begin_course(struct dl_training *t, const struct lockstep_group *c, struct course *course,
                            const struct dl_sequenced *from);
void dl_steady_note_period(struct dl_training *t, const struct lockstep_group *c, struct course *course);

/* An item has ended, in an iteration in which periods may be left out. Whether sums are to be noted. */
static inline bool note_item(struct dl_training *t, const struct lockstep_group *c, struct course *course,
                             const struct dl_sequenced *item, struct record done)
{
    if (item < course->first || item >= course->end) return false;
    if (item == course->first) dl_steady_begin_course(t, c, course, item);
    course->records[course->next] = done;
    course->next = course->next + 1 < course->n_records ? course->next + 1 : 0;
    course->n_items++;
    return course->n_until_sums-- == 0;
}

/* What the last period has added to the i-th of its sums. */
double dl_steady_last_sum_s(const struct course *course, size_t i);
/* By how much the host has come on in the period before this item. */
double dl_steady_host_shift_s(const struct course *course, uint32_t item);

/* Whether what the item needs is there, and waits for it. */
static inline bool has_come(const struct lockstep_group *c, const struct dl_sequenced *item)
{
    return item->wants != DL_NO_TAG && c->arrived[item->wants];
}

/* The item after the last one whose input has come; UINT32_MAX: there are inputs of another iteration. */
uint32_t dl_steady_inputs_end(const struct dl_training *t, const struct lockstep_group *c);

/* training_steady_check.c: whether two consecutive periods were alike on all lockstep groups. */
bool dl_steady_has_come(const struct dl_training *t, struct one_period *out);
/* training_steady_skip.c: leave out all periods that can be. */
void dl_steady_skip(struct dl_training *t, const struct one_period *one);

#endif
