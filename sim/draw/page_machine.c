/* page_machine.c - the machine for the page: the same boxes and links as in a picture of it (boxes.h), and a list of
 * the busiest links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/draw/boxes.h"
#include "sim/draw/run_page.h"

static json_t *glyph_json(const struct dl_graph *g, size_t i)
{
    const struct dl_glyph *const b = &g->glyphs[i];
    return dl_json_pack("{s:f, s:f, s:f, s:f, s:s, s:s, s:b}", "x", b->x, "y", b->y, "width", b->width, "height",
                        b->height, "name", b->name, "label", b->label, "is_round", b->is_round);
}

/* [a, b, share, how many]; a link from a box to itself is inside of it. */
static json_t *lines_json(const struct dl_graph *g)
{
    json_t *const list = json_array();
    for (size_t a = 0; a < g->n; a++)
        for (size_t b = a; b < g->n; b++) {
            const size_t i = a * DL_GRAPH_GLYPHS + b;
            if (g->share[i] >= 0)
                json_array_append_new(list, dl_json_pack("[I, I, f, I]", (json_int_t)a, (json_int_t)b, g->share[i],
                                                         (json_int_t)g->links[i]));
        }
    return list;
}

static json_t *boxes_json(const struct dl_boxes *b)
{
    json_t *const glyphs = json_array(), *const rows = json_array();
    for (size_t i = 0; i < b->graph.n; i++) json_array_append_new(glyphs, glyph_json(&b->graph, i));
    for (size_t i = 0; i < b->n_rows; i++)
        json_array_append_new(rows, dl_json_pack("{s:f, s:s}", "y", b->rows[i].y, "name", b->rows[i].name));
    return dl_json_pack("{s:f, s:s, s:o, s:o, s:o}", "height", b->height, "caption", b->caption, "rows", rows, "glyphs",
                        glyphs, "lines", lines_json(&b->graph));
}

typedef void (*boxes_fn)(const struct dl_machine_load *load, const struct dl_used_links *used, struct dl_frame frame,
                         struct dl_boxes *out);

/* null: there is nothing to draw. */
static json_t *picture_json(const struct dl_machine_load *load, const struct dl_used_links *used, boxes_fn find)
{
    const struct dl_frame frame = {.width = DL_PAGE_WIDTH};
    struct dl_boxes boxes;
    find(load, used, frame, &boxes);
    json_t *const json = boxes.graph.n ? boxes_json(&boxes) : json_null();
    dl_graph_release(&boxes.graph);
    return json;
}

/* ---- links by name ---- */

static int busiest_first(const void *a, const void *b)
{
    const struct dl_link_load *const x = a, *const y = b;
    if (x->busy_s != y->busy_s) return x->busy_s > y->busy_s ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

static json_t *link_json(const struct dl_machine_load *load, const struct dl_link_load *link)
{
    char name[DL_LINK_NAME];
    dl_topology_link_name(load->topology, link->link, name, sizeof name);
    return dl_json_pack("{s:s, s:f, s:f}", "name", name, "bytes", link->bytes, "busy_share",
                        fmin(link->busy_s / load->seconds, 1));
}

static json_t *links_json(const struct dl_machine_load *load)
{
    enum { most_links = 100 };
    struct dl_link_load *const links = dl_alloc((load->n_links + 1) * sizeof *links);
    json_t *const list = json_array();
    if (load->n_links) memcpy(links, load->links, load->n_links * sizeof *links);
    qsort(links, load->n_links, sizeof *links, busiest_first);
    for (size_t i = 0; i < load->n_links && i < most_links; i++)
        json_array_append_new(list, link_json(load, &links[i]));
    dl_free(links);
    return list;
}

json_t *dl_page_machine(const struct dl_machine_load *load)
{
    const bool is_known = !load->unknown && load->seconds > 0;
    struct dl_used_links used = dl_used_links(load);
    json_t *const json =
        dl_json_pack("{s:i, s:s?, s:I, s:o, s:o, s:o}", "width", DL_PAGE_WIDTH, "unknown", load->unknown, "used",
                     (json_int_t)used.n, "network", picture_json(load, &used, dl_boxes_of_network), "node",
                     picture_json(load, &used, dl_boxes_of_node), "links", is_known ? links_json(load) : json_array());
    dl_free(used.items);
    return json;
}
