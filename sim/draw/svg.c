#define _GNU_SOURCE /* open_memstream */
#include "sim/draw/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/core/visible.h"

static const char style[] =
    "<style>.middle{text-anchor:middle}.end{text-anchor:end}.bold{font-weight:bold}.light{fill:#fff}.faint{fill:#666}"
    ".small{font-size:10px}.title{font-size:15px;font-weight:bold}.cell{stroke:#999;stroke-width:.5}"
    ".edge{stroke:#fff;stroke-width:.6}.box{stroke:#333;stroke-width:.8}.crisp{shape-rendering:crispEdges}</style>\n";

void dl_svg_begin(struct dl_svg *s, double width)
{
    *s = (struct dl_svg){.width = width};
    s->to = open_memstream(&s->text, &s->bytes);
}

enum dl_status dl_svg_end(struct dl_svg *s, double height, const char *path, struct dl_error *err)
{
    char *whole = NULL;
    size_t bytes = 0;
    FILE *const to = open_memstream(&whole, &bytes);
    fclose(s->to);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            s->width, ceil(height), s->width, ceil(height), style);
    fwrite(s->text, 1, s->bytes, to);
    fputs("</svg>\n", to);
    fclose(to);
    if (!err->status) dl_write_file(path, whole, bytes, err);
    free(whole);
    free(s->text);
    return err->status;
}

/* ---- text ---- */

/* XML has no way to write most controls, and none for bytes that are not UTF-8. */
static void put_escaped(FILE *to, const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        uint32_t code = DL_NO_CHARACTER;
        n = dl_character(text, left, &code);
        if (n == 0) n = left;
        if (dl_is_hidden(code) || code == DL_NO_CHARACTER || code == 0xFFFE || code == 0xFFFF)
            fputc('?', to);
        else if (code == '&')
            fputs("&amp;", to);
        else if (code == '<')
            fputs("&lt;", to);
        else if (code == '>')
            fputs("&gt;", to);
        else
            fwrite(text, 1, n, to);
    }
}

static void put_class(FILE *to, const char *classes)
{
    if (classes && *classes) fprintf(to, " class=\"%s\"", classes);
}

void dl_svg_text(struct dl_svg *s, double x, double y, const char *classes, const char *text)
{
    fprintf(s->to, "<text x=\"%.6g\" y=\"%.6g\"", x, y);
    put_class(s->to, classes);
    fputc('>', s->to);
    put_escaped(s->to, text);
    fputs("</text>\n", s->to);
}

void dl_svg_format(struct dl_svg *s, double x, double y, const char *classes, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dl_svg_text(s, x, y, classes, text);
}

double dl_svg_text_width(const char *text)
{
    double width = 0;
    for (; *text; text++) width += strchr("iljtfr.,:;' |", *text) ? 4.2 : strchr("mwMW%", *text) ? 11 : 7.4;
    return width;
}

/* ---- shapes ---- */

/* What ends an element that was begun. */
static void finish(FILE *to, const char *element, const char *title)
{
    if (!title) {
        fputs("/>\n", to);
        return;
    }
    fputs("><title>", to);
    put_escaped(to, title);
    fprintf(to, "</title></%s>\n", element);
}

static void put_look(FILE *to, struct dl_look look)
{
    put_class(to, look.style);
    fprintf(to, " fill=\"%s\"", look.fill ? look.fill : "none");
}

void dl_svg_rect(struct dl_svg *s, struct dl_box box, struct dl_look look)
{
    fprintf(s->to, "<rect x=\"%.7g\" y=\"%.6g\" width=\"%.7g\" height=\"%.6g\"", box.x, box.y, box.width, box.height);
    put_look(s->to, look);
    finish(s->to, "rect", look.title);
}

void dl_svg_circle(struct dl_svg *s, double x, double y, double radius, struct dl_look look)
{
    fprintf(s->to, "<circle cx=\"%.6g\" cy=\"%.6g\" r=\"%.4g\"", x, y, radius);
    put_look(s->to, look);
    finish(s->to, "circle", look.title);
}

void dl_svg_line(struct dl_svg *s, const struct dl_drawn_line *l)
{
    fprintf(s->to, "<path d=\"M%.6g %.6gL%.6g %.6g\" stroke=\"%s\" stroke-width=\"%.3g\"", l->x1, l->y1, l->x2, l->y2,
            l->colour, l->width);
    finish(s->to, "path", l->title);
}

/* The head is a triangle along the tangent of the end of the curve. */
static void put_head(struct dl_svg *s, const struct dl_drawn_line *l, double from_x, double from_y)
{
    const double length = hypot(l->x2 - from_x, l->y2 - from_y), size = 3 + 2 * l->width;
    const double ux = length > 0 ? (l->x2 - from_x) / length : 0, uy = length > 0 ? (l->y2 - from_y) / length : 0;
    const double back_x = l->x2 - size * ux, back_y = l->y2 - size * uy, half = size / 2.5;
    fprintf(s->to, "<path d=\"M%.6g %.6gL%.6g %.6gL%.6g %.6gz\" fill=\"%s\"/>\n", l->x2, l->y2, back_x - half * uy,
            back_y + half * ux, back_x + half * uy, back_y - half * ux, l->colour);
}

struct point {
    double x, y;
};

static struct point bent(const struct dl_drawn_line *l, double bend)
{
    return (struct point){(l->x1 + l->x2) / 2 + bend * (l->y2 - l->y1), (l->y1 + l->y2) / 2 - bend * (l->x2 - l->x1)};
}

void dl_svg_curve(struct dl_svg *s, const struct dl_drawn_line *l, double bend)
{
    const struct point middle = bent(l, bend);
    fprintf(s->to, "<path d=\"M%.6g %.6gQ%.6g %.6g %.6g %.6g\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.3g\"",
            l->x1, l->y1, middle.x, middle.y, l->x2, l->y2, l->colour, l->width);
    finish(s->to, "path", l->title);
}

void dl_svg_arrow(struct dl_svg *s, const struct dl_drawn_line *l, double bend)
{
    const struct point middle = bent(l, bend);
    dl_svg_curve(s, l, bend);
    put_head(s, l, middle.x, middle.y);
}

void dl_svg_area_begin(struct dl_svg *s, struct dl_look look)
{
    fputs("<path", s->to);
    put_look(s->to, look);
    fputs(" d=\"M", s->to);
}

void dl_svg_area_point(struct dl_svg *s, double x, double y) { fprintf(s->to, "%.6g %.6g ", x, y); }

void dl_svg_area_box(struct dl_svg *s, struct dl_box box)
{
    fprintf(s->to, "%.1f %.1fh%.1fv%.1fh%.1f", box.x, box.y, box.width, box.height, -box.width);
}

void dl_svg_area_end(struct dl_svg *s) { fputs("z\"/>\n", s->to); }

/* ---- colours ---- */

static const char *between(const double (*stops)[3], int n, double share, char colour[DL_COLOUR])
{
    const double at = fmin(fmax(share, 0), 1) * (n - 1);
    const int i = at >= n - 1 ? n - 2 : (int)at;
    unsigned c[3];
    for (int k = 0; k < 3; k++) c[k] = (unsigned)lround(stops[i][k] + (at - i) * (stops[i + 1][k] - stops[i][k]));
    snprintf(colour, DL_COLOUR, "#%02x%02x%02x", c[0] & 255, c[1] & 255, c[2] & 255);
    return colour;
}

const char *dl_heat_colour(double share, char colour[DL_COLOUR])
{
    static const double stops[][3] = {{236, 242, 248}, {12, 74, 128}};
    return between(stops, 2, share, colour);
}

/* ColorBrewer's YlOrRd (colorbrewer2.org), which is safe for colour-blind people, without its lightest. */
const char *dl_load_colour(double share, char colour[DL_COLOUR])
{
    static const double stops[][3] = {{254, 217, 118}, {254, 178, 76}, {253, 141, 60}, {240, 59, 32}, {150, 0, 32}};
    return between(stops, 5, share, colour);
}

const char *dl_tint(const char *from, double white, char colour[DL_COLOUR])
{
    const unsigned long rgb = strtoul(from + 1, NULL, 16);
    const double stops[][3] = {{(double)(rgb >> 16), (double)(rgb >> 8 & 255), (double)(rgb & 255)}, {255, 255, 255}};
    return between(stops, 2, white, colour);
}
