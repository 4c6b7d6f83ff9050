/* network_boxes.c - what is between nodes, as boxes: rows of switches, a circle of groups or nodes, a grid. */
#include <math.h>

#include "sim/core/memory.h"
#include "sim/draw/network_sites.h"

static void bend_to_circle(struct dl_boxes *out, struct dl_frame frame)
{
    const double n = (double)out->graph.n, radius = fmin(60 + 9 * n, 230), pi = acos(-1);
    for (size_t i = 0; i < out->graph.n; i++) {
        struct dl_glyph *const g = &out->graph.glyphs[i];
        const double angle = 2 * pi * (double)i / n - pi / 2;
        g->x = frame.x + frame.width / 2 + (n > 1 ? radius * cos(angle) : 0);
        g->y = frame.y + radius + 20 + (n > 1 ? radius * sin(angle) : 0);
        g->width = g->height = fmin(34, 1.5 * pi * radius / n);
        g->is_round = true;
    }
    out->height = 2 * radius + 40;
    out->n_rows = 0;
}

/* Rows were laid out from the bottom up, each as wide as it can be; columns must stand below each other. */
static void square(struct dl_boxes *out, const struct dl_site *sites, size_t n, const size_t *box,
                   struct dl_frame frame)
{
    const double pitch = fmin(56, frame.width / DL_MOST_ON_SIDE);
    double right = 0, bottom = 0;
    for (size_t i = 0; i < n; i++) {
        struct dl_glyph *const g = &out->graph.glyphs[box[i]];
        g->x = frame.x + (sites[i].number + 0.5) * pitch;
        g->y = frame.y + (sites[i].row + 0.5) * pitch;
        g->width = g->height = 0.45 * pitch;
        g->label[0] = '\0';
        right = fmax(right, g->x + pitch / 2);
        bottom = fmax(bottom, g->y + pitch / 2);
    }
    for (size_t i = 0; i < out->graph.n; i++) out->graph.glyphs[i].x += (frame.x + frame.width - right) / 2;
    out->height = bottom - frame.y;
    out->n_rows = 0;
}

static void join(const struct dl_network_use *w, const struct dl_site *sites, const size_t *box, struct dl_graph *g)
{
    size_t *const of = dl_alloc(w->n_vertices * sizeof *of);
    for (size_t i = 0; i < w->n_sites; i++) of[sites[i].vertex] = box[i];
    for (size_t i = 0; i < w->used->n; i++) {
        const struct dl_used_link *const u = &w->used->items[i];
        if (!dl_is_between_nodes(w, u->link)) continue;
        const struct dl_link_ends at = dl_ends_in_use(w, u->link);
        dl_graph_join(g, of[at.from], of[at.to], u->share);
    }
    dl_free(of);
}

/* What goes on inside of a node counts for the box that has it. */
static void join_insides(const struct dl_network_use *w, const struct dl_site *sites, const size_t *box,
                         struct dl_graph *g)
{
    const uint32_t links_per_node = 2 * (uint32_t)w->load->topology->node.n_edges;
    size_t *const of = dl_alloc(w->net->n_nodes * sizeof *of);
    for (size_t i = 0; i < w->n_sites; i++)
        if (sites[i].vertex < w->net->n_endpoints) of[dl_node_in_use(w, sites[i].vertex)] = box[i];
    for (size_t i = 0; i < w->used->n; i++) {
        const struct dl_used_link *const u = &w->used->items[i];
        if (dl_is_between_nodes(w, u->link)) continue;
        const size_t at = of[u->link / links_per_node];
        dl_graph_join(g, at, at, u->share);
    }
    dl_free(of);
}

static void tell(const struct dl_network *net, const struct dl_arrangement *how, uint32_t together,
                 struct dl_boxes *out)
{
    const size_t n = (size_t)snprintf(out->caption, sizeof out->caption, "Network: %s.", net->kind->name);
    char *const more = out->caption + n;
    const size_t room = sizeof out->caption - n;
    if (how->is_grid)
        snprintf(more, room, " Across and down: its first two dimensions. A box stands for %u switch%s.",
                 how->switches_each, how->switches_each == 1 ? "" : "es");
    else if (together > 1)
        snprintf(more, room, " A box stands for up to %u neighbours.", together);
    else if (how->circle_of)
        snprintf(more, room, " A circle is a %s with all that is in it.", how->circle_of);
}

void dl_boxes_of_network(const struct dl_machine_load *load, const struct dl_used_links *used, struct dl_frame frame,
                         struct dl_boxes *out)
{
    struct dl_network_use w;
    struct dl_arrangement how;
    *out = (struct dl_boxes){0};
    dl_graph_init(&out->graph, !load->unknown);
    if (!load->topology->network.kind) return;
    dl_network_use_find(&w, load, used);
    struct dl_site *const sites = dl_network_sites(&w, &how);
    size_t *const box = dl_alloc((w.n_sites + 1) * sizeof *box);
    const uint32_t together = dl_box_rows(sites, w.n_sites, frame, out, box);
    if (how.circle_of) bend_to_circle(out, frame);
    if (how.is_grid) square(out, sites, w.n_sites, box, frame);
    join(&w, sites, box, &out->graph);
    join_insides(&w, sites, box, &out->graph);
    dl_boxes_make_headroom(out);
    tell(w.net, &how, together, out);
    if (out->graph.n == 1) out->graph.n = 0; /* one node, whose inside says more */
    dl_free(sites);
    dl_free(box);
    dl_network_use_release(&w);
}
