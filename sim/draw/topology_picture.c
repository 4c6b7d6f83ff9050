/* topology_picture.c - the machine with the load of its links as colour: what is between nodes, and the inside of the
 * busiest node. */
#include <math.h>

#include "sim/core/memory.h"
#include "sim/draw/boxes.h"

static void draw_boxes(struct dl_svg *svg, const struct dl_boxes *b, double most)
{
    for (size_t i = 0; i < b->n_rows; i++)
        dl_svg_text(svg, DL_SHEET_LEFT - 8, b->rows[i].y + 4, "end", b->rows[i].name);
    dl_graph_draw(svg, &b->graph, most);
}

static void draw_legend(struct dl_svg *svg, double y, double most)
{
    enum { n_steps = 20, width = 10 };
    const double left = DL_SHEET_WIDTH - DL_SHEET_RIGHT - n_steps * width - 44;
    char colour[DL_COLOUR];
    dl_svg_text(svg, left - 8, y + 11, "end", "time that a link is busy: 0 %");
    for (int i = 0; i < n_steps; i++)
        dl_svg_rect(svg, (struct dl_box){left + i * width, y, width, 13},
                    (struct dl_look){.fill = dl_load_colour((i + 0.5) / n_steps, colour)});
    dl_svg_format(svg, left + n_steps * width + 6, y + 11, NULL, "%.3g %%", 100 * most);
}

double dl_draw_topology(struct dl_svg *svg, double y, const struct dl_machine_load *load)
{
    struct dl_used_links used = dl_used_links(load);
    struct dl_boxes network, node;
    const double title_y = y, gap = 30;
    struct dl_frame frame = {DL_SHEET_LEFT, y = dl_draw_heading(svg, y, "Links of the machine"),
                             DL_SHEET_WIDTH - DL_SHEET_LEFT - DL_SHEET_RIGHT};
    dl_boxes_of_network(load, &used, frame, &network);
    if (network.graph.n) frame.y += network.height + gap + 14;
    dl_boxes_of_node(load, &used, frame, &node);
    const double most = fmax(dl_graph_most(&network.graph), dl_graph_most(&node.graph));
    if (network.graph.n) {
        draw_boxes(svg, &network, most);
        y = dl_draw_caption(svg, y + network.height + 10, network.caption);
    }
    if (node.graph.n) {
        draw_boxes(svg, &node, most);
        dl_draw_caption(svg, frame.y + node.height + 10, node.caption);
        y = frame.y + node.height + gap;
    }
    if (load->unknown)
        y = dl_draw_caption(svg, y + 4, load->unknown);
    else if (most > 0)
        draw_legend(svg, title_y, most);
    else
        y = dl_draw_caption(svg, y + 4, "Nothing was sent over links.");
    dl_graph_release(&network.graph);
    dl_graph_release(&node.graph);
    dl_free(used.items);
    return y + 12;
}
