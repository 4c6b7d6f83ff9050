/* svg.h - a small writer of SVG: text, rectangles, lines and shapes, in one font and one palette.
 *
 * The rule to remember: text may come from anywhere and is escaped here, so every picture is well-formed XML; fills and
 * classes come from the code and are not. A shape with a title shows it where the mouse points. */
#ifndef DL_DRAW_SVG_H
#define DL_DRAW_SVG_H

#include <stdio.h>

#include "sim/core/error.h"

/* Okabe and Ito's palette, which colour-blind people can tell apart (jfly.uni-koeln.de/color), and greys. */
#define DL_ORANGE "#e69f00"
#define DL_SKY "#56b4e9"
#define DL_GREEN "#009e73"
#define DL_YELLOW "#f0e442"
#define DL_BLUE "#0072b2"
#define DL_VERMILION "#d55e00"
#define DL_PURPLE "#cc79a7"
#define DL_INK "#333"
#define DL_GREY "#aaa"
#define DL_PALE "#e6e6e6"

struct dl_svg {
    FILE *to;
    char *text;
    size_t bytes;
    double width;
};

void dl_svg_begin(struct dl_svg *s, double width);
/* Write it, on white ground, to a file ("-" is standard output) and release it; nothing is written if err is set. */
enum dl_status dl_svg_end(struct dl_svg *s, double height, const char *path, struct dl_error *err);

struct dl_box {
    double x, y, width, height;
};
struct dl_look {
    const char *fill;  /* NULL: none */
    const char *style; /* classes: middle, end (where x is of the text), bold, light, faint, small, title; cell, edge,
                          box, crisp; NULL: none */
    const char *title; /* NULL: none */
};
void dl_svg_rect(struct dl_svg *s, struct dl_box box, struct dl_look look);
void dl_svg_circle(struct dl_svg *s, double x, double y, double radius, struct dl_look look);

void dl_svg_text(struct dl_svg *s, double x, double y, const char *style, const char *text);
void __attribute__((format(printf, 5, 6)))
dl_svg_format(struct dl_svg *s, double x, double y, const char *style, const char *format, ...);
/* About as wide as the usual size makes it; names of files may be any script, so this is a guess. */
double dl_svg_text_width(const char *text);

/* From a to b, coloured and as wide as told; title may be NULL. */
struct dl_drawn_line {
    double x1, y1, x2, y2, width;
    const char *colour, *title;
};
void dl_svg_line(struct dl_svg *s, const struct dl_drawn_line *line);
/* The same, bent aside by this part of its length; and with a head at its end. */
void dl_svg_curve(struct dl_svg *s, const struct dl_drawn_line *line, double bend);
void dl_svg_arrow(struct dl_svg *s, const struct dl_drawn_line *line, double bend);

/* An area, point by point. */
void dl_svg_area_begin(struct dl_svg *s, struct dl_look look);
void dl_svg_area_point(struct dl_svg *s, double x, double y);
/* The whole of it at once, to a tenth of a pixel: where there are many small ones. */
void dl_svg_area_box(struct dl_svg *s, struct dl_box box);
void dl_svg_area_end(struct dl_svg *s);

/* Colours for a share from 0 to 1. Heat maps: from light to dark in one hue. Loads: from yellow over red to dark. Both
 * darken all the way, so that they can be read in grey. */
enum { DL_COLOUR = 8 };
const char *dl_heat_colour(double share, char colour[DL_COLOUR]);
const char *dl_load_colour(double share, char colour[DL_COLOUR]);
/* A colour of the palette, mixed with this part of white. */
const char *dl_tint(const char *from, double white, char colour[DL_COLOUR]);

#endif
