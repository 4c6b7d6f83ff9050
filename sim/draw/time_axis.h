/* time_axis.h - time from left to right, the same for all pictures of a sheet. */
#ifndef DL_DRAW_TIME_AXIS_H
#define DL_DRAW_TIME_AXIS_H

#include "sim/draw/svg.h"

struct dl_time_axis {
    double left, width;  /* of the plot */
    double from_s, to_s; /* on the clock of the timeline; told from 0 */
};

double dl_time_x(const struct dl_time_axis *a, double date_s);

/* Dates below a plot that begins at y and is so high, with thin lines through it. */
void dl_draw_time_axis(struct dl_svg *svg, const struct dl_time_axis *a, double y, double height);

#endif
