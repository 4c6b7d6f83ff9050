/* gantt.h - the schedule of the pipeline stages as lines of text: one for what each stage does, one below it for its
 * collectives over replicas.
 *
 * A column is an equal part of the step and shows what takes most of it. An item is its letter and its micro-batch (F3,
 * B12), then its filling; in narrow ones the letter alone is left. */
#ifndef DL_DRAW_GANTT_H
#define DL_DRAW_GANTT_H

#include <stdio.h>

#include "sim/draw/blocks.h"
#include "sim/draw/terminal.h"

enum { DL_GANTT_STAGES = 64 }; /* shown at most */

struct dl_gantt {
    const struct dl_timeline *timeline;
    double from_s, to_s; /* the part of it that is drawn: a step */
    struct dl_terminal terminal;
};

void dl_gantt_write(const struct dl_gantt *g, FILE *to);
/* On standard output, of which the filter for hidden characters (visible.h) lets no colours through. */
void dl_gantt_print(const struct dl_gantt *g);

#endif
