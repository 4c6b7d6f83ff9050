#include "sim/draw/graph.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/memory.h"

static const char unused_colour[] = "#d0d0d0";

void dl_graph_init(struct dl_graph *g, bool is_known)
{
    const size_t n = (size_t)DL_GRAPH_GLYPHS * DL_GRAPH_GLYPHS;
    *g = (struct dl_graph){.is_known = is_known,
                           .glyphs = dl_alloc(DL_GRAPH_GLYPHS * sizeof *g->glyphs),
                           .share = dl_alloc(n * sizeof *g->share),
                           .links = dl_alloc(n * sizeof *g->links)};
    for (size_t i = 0; i < n; i++) g->share[i] = -1;
}

void dl_graph_release(struct dl_graph *g)
{
    dl_free(g->glyphs);
    dl_free(g->share);
    dl_free(g->links);
}

size_t dl_graph_add(struct dl_graph *g, const struct dl_glyph *glyph)
{
    assert(g->n < DL_GRAPH_GLYPHS);
    g->glyphs[g->n] = *glyph;
    return g->n++;
}

static size_t index_of(size_t a, size_t b) { return a < b ? a * DL_GRAPH_GLYPHS + b : b * DL_GRAPH_GLYPHS + a; }

void dl_graph_join(struct dl_graph *g, size_t a, size_t b, double share)
{
    const size_t i = index_of(a, b);
    g->share[i] = fmax(g->share[i], share);
    g->links[i]++;
}

double dl_graph_most(const struct dl_graph *g)
{
    double most = 0;
    for (size_t a = 0; a < g->n; a++)
        for (size_t b = a; b < g->n; b++) most = fmax(most, g->share[index_of(a, b)]);
    return most;
}

/* ---- drawing ---- */

struct edge {
    size_t a, b;
    double share;
};

static int busiest_last(const void *x, const void *y)
{
    const struct edge *const e = x, *const f = y;
    if (e->share != f->share) return e->share < f->share ? -1 : 1;
    return e->a != f->a ? (e->a < f->a ? -1 : 1) : e->b < f->b ? -1 : e->b > f->b;
}

/* Whether a box lies on the straight line between two others. One in the row of either end does not, unless they are of
 * one row: flat lines leave a row close to their neighbours. */
static bool is_blocked(const struct dl_graph *g, const struct dl_glyph *a, const struct dl_glyph *b)
{
    const double dx = b->x - a->x, dy = b->y - a->y, square = dx * dx + dy * dy;
    for (size_t i = 0; i < g->n; i++) {
        const struct dl_glyph *const c = &g->glyphs[i];
        if (c == a || c == b || (a->y != b->y && (c->y == a->y || c->y == b->y))) continue;
        const double along = ((c->x - a->x) * dx + (c->y - a->y) * dy) / square;
        const double aside = fabs((c->x - a->x) * dy - (c->y - a->y) * dx) / sqrt(square);
        if (along > 0 && along < 1 && aside < c->height / 3) return true;
    }
    return false;
}

void dl_graph_make_headroom(struct dl_graph *g, double *height)
{
    double top = INFINITY;
    bool is_arched = false;
    for (size_t i = 0; i < g->n; i++) top = fmin(top, g->glyphs[i].y);
    for (size_t a = 0; a < g->n && !is_arched; a++)
        for (size_t b = a + 1; b < g->n && !is_arched; b++)
            is_arched = g->share[index_of(a, b)] >= 0 && g->glyphs[a].y == top && g->glyphs[b].y == top &&
                        is_blocked(g, &g->glyphs[a], &g->glyphs[b]);
    if (!is_arched) return;
    for (size_t i = 0; i < g->n; i++) g->glyphs[i].y += DL_GRAPH_ARC;
    *height += DL_GRAPH_ARC;
}

/* `thickest`: lines are thinner where there are many. */
static void draw_edge(struct dl_svg *svg, const struct dl_graph *g, const struct edge *e, double most, double thickest)
{
    const struct dl_glyph *const a = &g->glyphs[e->a], *const b = &g->glyphs[e->b];
    const double part = most > 0 ? e->share / most : 0;
    const uint32_t n = g->links[index_of(e->a, e->b)];
    char colour[DL_COLOUR], title[3 * DL_GLYPH_NAME], busy[60] = "";
    if (g->is_known) snprintf(busy, sizeof busy, ", %sbusy %.1f %%", n > 2 ? "the busiest " : "", 100 * e->share);
    snprintf(title, sizeof title, "%s and %s%s", a->name, b->name, busy);
    const bool is_used = g->is_known && e->share > 0;
    const struct dl_drawn_line line = {a->x,
                                       a->y,
                                       b->x,
                                       b->y,
                                       .width = is_used ? thickest * (0.25 + 0.75 * part) : 0.7,
                                       .colour = is_used ? dl_load_colour(part, colour) : unused_colour,
                                       .title = title};
    if (is_blocked(g, a, b))
        dl_svg_curve(svg, &line, fmin(0.18, 2 * DL_GRAPH_ARC / hypot(b->x - a->x, b->y - a->y)));
    else
        dl_svg_line(svg, &line);
}

static void draw_glyph(struct dl_svg *svg, const struct dl_graph *g, size_t i, double most)
{
    const struct dl_glyph *const glyph = &g->glyphs[i];
    const double inside = g->share[index_of(i, i)], part = most > 0 ? inside / most : 0;
    char colour[DL_COLOUR], title[DL_GLYPH_NAME + 60];
    const bool is_used = g->is_known && inside > 0;
    snprintf(title, sizeof title, is_used ? "%s: the busiest link inside busy %.1f %%" : "%s", glyph->name,
             100 * inside);
    const struct dl_look look = {
        .fill = is_used ? dl_load_colour(part, colour) : "#fff", .style = "box", .title = title};
    if (glyph->is_round)
        dl_svg_circle(svg, glyph->x, glyph->y, glyph->width / 2, look);
    else
        dl_svg_rect(
            svg,
            (struct dl_box){glyph->x - glyph->width / 2, glyph->y - glyph->height / 2, glyph->width, glyph->height},
            look);
    char label[sizeof glyph->label];
    snprintf(label, sizeof label, "%s", glyph->label);
    if (dl_svg_text_width(label) > glyph->width + 4) label[strcspn(label, "-")] = '\0'; /* of several the first */
    if (*label && dl_svg_text_width(label) <= glyph->width + 4)
        dl_svg_text(svg, glyph->x, glyph->y + 3.5, is_used && part > 0.6 ? "middle small light" : "middle small",
                    label);
}

void dl_graph_draw(struct dl_svg *svg, const struct dl_graph *g, double most)
{
    struct edge *const edges = dl_alloc((g->n * g->n + 1) * sizeof *edges);
    size_t n = 0;
    for (size_t a = 0; a < g->n; a++)
        for (size_t b = a + 1; b < g->n; b++)
            if (g->share[index_of(a, b)] >= 0) edges[n++] = (struct edge){a, b, g->share[index_of(a, b)]};
    qsort(edges, n, sizeof *edges, busiest_last);
    for (size_t i = 0; i < n; i++) draw_edge(svg, g, &edges[i], most, n > 150 ? 2 : n > 40 ? 3 : 4);
    for (size_t i = 0; i < g->n; i++) draw_glyph(svg, g, i, most);
    dl_free(edges);
}
