#include "sim/draw/validation_picture.h"

#include <math.h>

#include "sim/draw/svg.h"
#include "sim/report/units.h"

enum { sheet_width = 960, left = 76, top = 64, side = 560, legend_left = left + side + 44, legend_row = 21 };

static const double band = 0.1; /* of the measured, to both sides */

struct plot {
    struct dl_svg svg;
    const struct dl_validation *v;
    size_t least_steps;   /* of a family with a mark of its own */
    double low_s, high_s; /* of both axes */
    size_t n_steps, n_within;
};

static bool is_step(const struct dl_compared *r)
{
    return !r->failure && r->quantity == DL_STEP && r->measured_s > 0 && r->predicted_s > 0;
}

static void look_at_rows(struct plot *p)
{
    p->low_s = INFINITY;
    p->high_s = 0;
    for (size_t i = 0; i < p->v->n_rows; i++) {
        const struct dl_compared *const r = &p->v->rows[i];
        if (!is_step(r)) continue;
        p->low_s = fmin(p->low_s, fmin(r->measured_s, r->predicted_s) / 1.3);
        p->high_s = fmax(p->high_s, fmax(r->measured_s, r->predicted_s) * 1.3);
        p->n_steps++;
        p->n_within += fabs(dl_compared_error(r)) <= band;
    }
}

/* ---- axes ---- */

static double share(const struct plot *p, double seconds)
{
    return fmin(fmax(log(seconds / p->low_s) / log(p->high_s / p->low_s), 0), 1);
}

static double at_x(const struct plot *p, double measured_s) { return left + side * share(p, measured_s); }

static double at_y(const struct plot *p, double predicted_s) { return top + side * (1 - share(p, predicted_s)); }

static void draw_line(struct plot *p, double x1, double y1, double x2, double y2, const char *colour)
{
    dl_svg_line(&p->svg, &(struct dl_drawn_line){x1, y1, x2, y2, 1, colour, NULL});
}

static void draw_axes(struct plot *p)
{
    char text[DL_QUANTITY];
    for (int power = (int)ceil(log10(p->low_s)); power <= (int)floor(log10(p->high_s)); power++) {
        const double seconds = pow(10, power), x = at_x(p, seconds), y = at_y(p, seconds);
        draw_line(p, x, top, x, top + side, DL_PALE);
        draw_line(p, left, y, left + side, y, DL_PALE);
        dl_svg_text(&p->svg, x, top + side + 18, "middle", dl_format_seconds(seconds, text));
        dl_svg_text(&p->svg, left - 8, y + 4, "end", text);
    }
    dl_svg_text(&p->svg, left + side, top + side + 38, "end", "measured step");
    dl_svg_text(&p->svg, 16, top - 12, NULL, "predicted step");
}

static void draw_diagonal(struct plot *p)
{
    const double ends[][2] = {{p->low_s, 1 + band}, {p->high_s, 1 + band}, {p->high_s, 1 - band}, {p->low_s, 1 - band}};
    dl_svg_area_begin(&p->svg, (struct dl_look){.fill = "#e6e3d6"});
    for (size_t i = 0; i < DL_COUNT(ends); i++)
        dl_svg_area_point(&p->svg, at_x(p, ends[i][0]), at_y(p, ends[i][0] * ends[i][1]));
    dl_svg_area_end(&p->svg);
    draw_line(p, left, top + side, left + side, top, DL_INK);
}

/* ---- marks ---- */

static const double triangle[] = {0, -5, 4.5, 4, -4.5, 4}, upside_down[] = {0, 5, 4.5, -4, -4.5, -4},
                    diamond[] = {0, -5.5, 4, 0, 0, 5.5, -4, 0},
                    cross[] = {-1.5, -5, 1.5,  -5, 1.5,  -1.5, 5,  -1.5, 5,  1.5,  1.5,  1.5,
                               1.5,  5,  -1.5, 5,  -1.5, 1.5,  -5, 1.5,  -5, -1.5, -1.5, -1.5},
                    square[] = {-4, -4, 4, -4, 4, 4, -4, 4};
static const struct shape {
    const double *points; /* x, y, ...; NULL: a circle */
    size_t n;
} shapes[] = {{NULL, 0},
              {square, DL_COUNT(square) / 2},
              {triangle, DL_COUNT(triangle) / 2},
              {diamond, DL_COUNT(diamond) / 2},
              {cross, DL_COUNT(cross) / 2},
              {upside_down, DL_COUNT(upside_down) / 2}};
static const char colour_of_others[] = "#8a8a8a";
static const char *const colours[] = {DL_BLUE, DL_VERMILION, DL_GREEN, DL_PURPLE, DL_ORANGE, DL_SKY, DL_INK};

static size_t count_steps(const struct dl_row_family *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_rows; i++) n += is_step(f->rows[i]);
    return n;
}

static bool has_own_mark(const struct plot *p, size_t family)
{
    return count_steps(&p->v->families[family]) >= p->least_steps;
}

static size_t count_own_marks(const struct plot *p, size_t n_families)
{
    size_t n = 0;
    for (size_t i = 0; i < n_families; i++) n += has_own_mark(p, i);
    return n;
}

/* The largest families have marks of their own, as many as the legend has room for beside the axes. */
static void choose_marked_families(struct plot *p)
{
    for (p->least_steps = 1; count_own_marks(p, p->v->n_families) >= side / legend_row;) p->least_steps++;
}

static void draw_other_mark(struct plot *p, double x, double y, const char *title)
{
    dl_svg_circle(&p->svg, x, y, 2.5, (struct dl_look){.fill = colour_of_others, .title = title});
}

/* Colour and shape both change from one mark to the next; no two of 42 have the same pair. */
static void draw_mark(struct plot *p, double x, double y, size_t family, const char *title)
{
    if (!has_own_mark(p, family)) {
        draw_other_mark(p, x, y, title);
        return;
    }
    const size_t mark = count_own_marks(p, family);
    const struct shape *const shape = &shapes[mark % DL_COUNT(shapes)];
    const struct dl_look look = {.fill = colours[mark % DL_COUNT(colours)], .title = title};
    if (!shape->points) {
        dl_svg_circle(&p->svg, x, y, 4.2, look);
        return;
    }
    dl_svg_area_begin(&p->svg, look);
    for (size_t i = 0; i < shape->n; i++)
        dl_svg_area_point(&p->svg, x + shape->points[2 * i], y + shape->points[2 * i + 1]);
    dl_svg_area_end(&p->svg);
}

static void draw_rows(struct plot *p)
{
    for (size_t i = 0; i < p->v->n_rows; i++) {
        const struct dl_compared *const r = &p->v->rows[i];
        char title[300], measured[DL_QUANTITY], predicted[DL_QUANTITY];
        if (!is_step(r)) continue;
        snprintf(title, sizeof title, "%.120s: measured %s, predicted %s, %+.1f %%", r->id,
                 dl_format_seconds(r->measured_s, measured), dl_format_seconds(r->predicted_s, predicted),
                 100 * dl_compared_error(r));
        draw_mark(p, at_x(p, r->measured_s), at_y(p, r->predicted_s), p->v->family_of[i], title);
    }
}

static double legend_y(size_t line) { return top + 12 + (double)line * legend_row; }

static void draw_legend_text(struct plot *p, size_t line, const char *name, double mean_error)
{
    dl_svg_text(&p->svg, legend_left + 14, legend_y(line), NULL, name);
    dl_svg_format(&p->svg, sheet_width - 20, legend_y(line), "end", "%.1f %%", 100 * mean_error);
}

/* Families that are on it, with the mean of their errors: those with marks of their own, then all others together. */
static size_t draw_legend(struct plot *p)
{
    size_t n = 0, n_others = 0, n_rows = 0;
    double errors = 0;
    dl_svg_text(&p->svg, legend_left - 6, top - 12, NULL, "family, mean error");
    for (size_t i = 0; i < p->v->n_families; i++) {
        const struct dl_row_family *const f = &p->v->families[i];
        const double mean_error = dl_sum_errors(f->rows, f->n_rows).mape;
        if (has_own_mark(p, i)) {
            draw_mark(p, legend_left, legend_y(n) - 4, i, NULL);
            draw_legend_text(p, n++, f->name, mean_error);
        } else if (count_steps(f)) {
            n_others++;
            n_rows += f->n_rows;
            errors += mean_error * (double)f->n_rows;
        }
    }
    if (!n_others) return n;
    char name[60];
    snprintf(name, sizeof name, "%zu with fewer than %zu steps", n_others, p->least_steps);
    draw_other_mark(p, legend_left, legend_y(n) - 4, NULL);
    draw_legend_text(p, n, name, errors / (double)n_rows);
    return n + 1;
}

enum dl_status dl_draw_validation(const struct dl_validation *v, const char *path, struct dl_error *err)
{
    struct plot p = {.v = v};
    look_at_rows(&p);
    if (!p.n_steps) return dl_fail(err, DL_IMPOSSIBLE, "--svg", "no row has a measured step that was predicted");
    choose_marked_families(&p);
    dl_svg_begin(&p.svg, sheet_width);
    dl_svg_format(&p.svg, 16, 30, "title", "%zu of %zu predicted steps are within %.0f %% of the measured", p.n_within,
                  p.n_steps, 100 * band);
    draw_axes(&p);
    draw_diagonal(&p);
    draw_rows(&p);
    const double legend_bottom = top + 24 + (double)draw_legend(&p) * legend_row;
    return dl_svg_end(&p.svg, fmax(top + side + 54, legend_bottom), path, err);
}
