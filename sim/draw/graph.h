/* graph.h - boxes and the links between them, coloured by load. A box may stand for many parts of a machine: it has the
 * colour of the busiest link inside of it, and a line that of the busiest link that it stands for. */
#ifndef DL_DRAW_GRAPH_H
#define DL_DRAW_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/draw/svg.h"

enum { DL_GRAPH_GLYPHS = 256, DL_GLYPH_NAME = 80, DL_GRAPH_ARC = 44 }; /* what lines are bent aside at most */

struct dl_glyph {
    double x, y, width, height; /* its middle, its size */
    char name[DL_GLYPH_NAME];   /* "nodes 0 to 3" */
    char label[16];             /* "0-3", where there is room */
    bool is_round;
};

struct dl_graph {
    struct dl_glyph *glyphs;
    size_t n;
    double *share;   /* [a * DL_GRAPH_GLYPHS + b], a <= b: of the busiest link, 0 to 1; negative: there is none */
    uint32_t *links; /* the same: how many */
    bool is_known;   /* loads are; else all lines are grey */
};

void dl_graph_init(struct dl_graph *g, bool is_known);
void dl_graph_release(struct dl_graph *g);

/* Returns its index. At most DL_GRAPH_GLYPHS. */
size_t dl_graph_add(struct dl_graph *g, const struct dl_glyph *glyph);
void dl_graph_join(struct dl_graph *g, size_t a, size_t b, double share);

/* Lower all boxes if lines of the top row are bent above it, and add that to the height. */
void dl_graph_make_headroom(struct dl_graph *g, double *height);

double dl_graph_most(const struct dl_graph *g);

/* The colours go up to `most`. Lines that pass over other boxes are bent. */
void dl_graph_draw(struct dl_svg *svg, const struct dl_graph *g, double most);

#endif
