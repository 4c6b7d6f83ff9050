/* boxes.h - the parts of a machine that a job uses as a graph of at most some hundred boxes.
 *
 * The rule to remember: networks are drawn as what they are. A torus is a grid over its first two dimensions, a
 * dragonfly a circle of its groups (of its switches, if many of one group are used), a full mesh a circle of its nodes,
 * all others rows of switches above a row of nodes. Where there are too many parts, neighbours share a box. */
#ifndef DL_DRAW_BOXES_H
#define DL_DRAW_BOXES_H

#include "sim/draw/graph.h"
#include "sim/draw/pictures.h"

/* A link that the job uses, by its number in the topology. */
struct dl_used_link {
    uint32_t link;
    double share; /* of the time that it was busy */
};

struct dl_used_links {
    struct dl_used_link *items;
    size_t n, capacity;
};

/* Those that carried something; or, where that is not known, those of the routes between ranks that follow each other.
 * For dl_free. */
struct dl_used_links dl_used_links(const struct dl_machine_load *load);

struct dl_frame {
    double x, y, width;
};
/* The boxes of a picture, for dl_graph_release; how high it is, and what a box stands for. */
struct dl_boxes {
    struct dl_graph graph;
    double height;
    char caption[300];
    struct { /* left of the rows, if it has any */
        double y;
        char name[DL_GLYPH_NAME];
    } rows[8];
    size_t n_rows;
};

/* Between nodes; graph.n is 0 if the job is on one node. */
void dl_boxes_of_network(const struct dl_machine_load *load, const struct dl_used_links *used, struct dl_frame frame,
                         struct dl_boxes *out);
/* Inside of the node whose links were busiest; graph.n is 0 if nothing is joined there. */
void dl_boxes_of_node(const struct dl_machine_load *load, const struct dl_used_links *used, struct dl_frame frame,
                      struct dl_boxes *out);

/* ---- what the two share ---- */

/* Room for lines that are bent above the top row. */
void dl_boxes_make_headroom(struct dl_boxes *b);

/* A part of the machine: its row, and its number there; parts of the same number share a box. */
struct dl_site {
    uint32_t vertex, row, number;
    char name[DL_GLYPH_NAME]; /* "leaf3"; empty: that of the row with its number */
};
/* Puts sites into boxes, row by row, neighbours together where there are more than `most` in a row. box[i] is that of
 * sites[i], which are sorted for it; returns how many parts share a box at most. */
enum { DL_MOST_IN_ROW = 40 };
uint32_t dl_box_rows(struct dl_site *sites, size_t n, struct dl_frame frame, struct dl_boxes *out, size_t *box);

#endif
