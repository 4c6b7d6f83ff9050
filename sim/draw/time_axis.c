#include "sim/draw/time_axis.h"

#include <math.h>

#include "sim/report/units.h"

double dl_time_x(const struct dl_time_axis *a, double date_s)
{
    const double share = (date_s - a->from_s) / (a->to_s - a->from_s);
    return a->left + a->width * fmin(fmax(share, 0), 1);
}

/* 1, 2 or 5 times a power of ten, so that there are 5 to 10 of them. */
static double step_of(double length_s)
{
    const double power = pow(10, floor(log10(length_s / 5))), at_least = length_s / 10;
    return power >= at_least ? power : 2 * power >= at_least ? 2 * power : 5 * power;
}

void dl_draw_time_axis(struct dl_svg *svg, const struct dl_time_axis *a, double y, double height)
{
    const double length_s = a->to_s - a->from_s, step_s = step_of(length_s), rounding = 1e-9;
    char text[DL_QUANTITY];
    for (double at_s = 0; at_s <= length_s * (1 + rounding); at_s += step_s) {
        const double x = dl_time_x(a, a->from_s + at_s);
        dl_svg_line(svg, &(struct dl_drawn_line){x, y, x, y + height + 4, .width = 0.5, .colour = "#ccc"});
        dl_svg_text(svg, x, y + height + 16, "middle small faint", at_s > 0 ? dl_format_seconds(at_s, text) : "0");
    }
}
