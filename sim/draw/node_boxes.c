/* node_boxes.c - the inside of a node as boxes: its devices, switches that only they are on above them, and below them
 * the way to the network: PCIe switches, sockets, NICs. */
#include <math.h>
#include <string.h>

#include "sim/core/memory.h"
#include "sim/draw/boxes.h"

static uint32_t links_per_node(const struct dl_topology *t) { return 2 * (uint32_t)t->node.n_edges; }

static bool is_inside(const struct dl_topology *t, uint32_t link)
{
    return !t->network.kind || link < t->network.first_link;
}

/* That of the busiest link inside of one; UINT32_MAX: none is used. */
static uint32_t busiest_node(const struct dl_machine_load *load, const struct dl_used_links *used)
{
    uint32_t node = UINT32_MAX;
    double most = -1;
    for (size_t i = 0; i < used->n; i++) {
        if (!is_inside(load->topology, used->items[i].link) || used->items[i].share <= most) continue;
        most = used->items[i].share;
        node = used->items[i].link / links_per_node(load->topology);
    }
    return node;
}

/* Of all edges, those that lead from hub to hub or NIC: steps of a hub to the network or to the host; UINT32_MAX: there
 * is no way but through devices. */
static void find_ways_out(const struct dl_node *node, uint32_t *steps)
{
    bool goes_on = true;
    for (size_t i = 0; i < node->n_vertices; i++)
        steps[i] = node->vertices[i].kind == DL_NIC || node->vertices[i].is_host ? 0 : UINT32_MAX;
    while (goes_on) {
        goes_on = false;
        for (size_t i = 0; i < 2 * node->n_edges; i++) {
            const struct dl_edge *const e = &node->edges[i / 2];
            const uint32_t from = i % 2 ? e->b : e->a, to = i % 2 ? e->a : e->b;
            if (node->vertices[from].kind == DL_DEVICE || node->vertices[to].kind == DL_DEVICE) continue;
            if (steps[from] == UINT32_MAX || steps[to] <= steps[from] + 1) continue;
            steps[to] = steps[from] + 1;
            goes_on = true;
        }
    }
}

/* Rows from the bottom up. */
enum row { row_hosts, row_nics, row_ways_out, row_devices, row_switches };

static enum row row_of(const struct dl_vertex *v, uint32_t steps_out)
{
    if (v->kind == DL_DEVICE) return row_devices;
    if (v->kind == DL_NIC) return row_nics;
    if (v->is_host) return row_hosts;
    return steps_out == UINT32_MAX ? row_switches : row_ways_out;
}

static void list_sites(const struct dl_node *node, struct dl_site *sites)
{
    uint32_t *const steps = dl_alloc(node->n_vertices * sizeof *steps);
    uint32_t in_row[row_switches + 1] = {0};
    find_ways_out(node, steps);
    for (uint32_t i = 0; i < node->n_vertices; i++) {
        const struct dl_vertex *const v = &node->vertices[i];
        const enum row row = row_of(v, steps[i]);
        sites[i] = (struct dl_site){i, row, in_row[row]++, ""};
        snprintf(sites[i].name, DL_GLYPH_NAME, "%.70s", v->name);
    }
    dl_free(steps);
}

static void join(const struct dl_machine_load *load, const struct dl_used_links *used, uint32_t node, const size_t *of,
                 struct dl_graph *g)
{
    const struct dl_topology *const t = load->topology;
    for (size_t i = 0; i < t->node.n_edges; i++) dl_graph_join(g, of[t->node.edges[i].a], of[t->node.edges[i].b], 0);
    for (size_t i = 0; i < used->n; i++) {
        const uint32_t link = used->items[i].link;
        if (!is_inside(t, link) || link / links_per_node(t) != node) continue;
        const struct dl_edge *const e = &t->node.edges[link % links_per_node(t) / 2];
        dl_graph_join(g, of[e->a], of[e->b], used->items[i].share);
    }
}

void dl_boxes_of_node(const struct dl_machine_load *load, const struct dl_used_links *used, struct dl_frame frame,
                      struct dl_boxes *out)
{
    const struct dl_node *const node = &load->topology->node;
    const uint32_t which = busiest_node(load, used);
    *out = (struct dl_boxes){0};
    dl_graph_init(&out->graph, !load->unknown);
    if (which == UINT32_MAX) return;
    struct dl_site *const sites = dl_alloc(node->n_vertices * sizeof *sites);
    size_t *const box = dl_alloc(node->n_vertices * sizeof *box), *const of = dl_alloc(node->n_vertices * sizeof *of);
    list_sites(node, sites);
    const uint32_t together = dl_box_rows(sites, node->n_vertices, frame, out, box);
    for (size_t i = 0; i < node->n_vertices; i++) of[sites[i].vertex] = box[i];
    join(load, used, which, of, &out->graph);
    dl_boxes_make_headroom(out);
    snprintf(out->caption, sizeof out->caption, "Inside of node %u%s.", which,
             load->unknown ? "" : ", where the busiest link inside of a node is");
    if (together > 1) {
        const size_t length = strlen(out->caption);
        snprintf(out->caption + length, sizeof out->caption - length, " A box stands for up to %u.", together);
    }
    dl_free(sites);
    dl_free(box);
    dl_free(of);
}
