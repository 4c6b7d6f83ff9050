#include "sim/draw/boxes.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/memory.h"

/* ---- the links that are used ---- */

static void use(struct dl_used_links *u, uint32_t link, double share)
{
    DL_GROW(u->items, u->n, u->capacity);
    u->items[u->n++] = (struct dl_used_link){link, share};
}

static int by_link(const void *a, const void *b)
{
    const struct dl_used_link *const x = a, *const y = b;
    return x->link < y->link ? -1 : x->link > y->link;
}

static void keep_each_once(struct dl_used_links *u)
{
    size_t n = 0;
    if (u->n) qsort(u->items, u->n, sizeof *u->items, by_link);
    for (size_t i = 0; i < u->n; i++)
        if (!n || u->items[n - 1].link != u->items[i].link) u->items[n++] = u->items[i];
    u->n = n;
}

static void use_routes(const struct dl_machine_load *load, struct dl_used_links *u)
{
    enum { most_routes = 4096 };
    struct dl_route route = {0};
    struct dl_error none = {0};
    for (uint32_t i = 0; i + 1 < load->n_devices && i < most_routes; i++) {
        const uint32_t far = (i + load->n_devices / 2) % load->n_devices, ends[] = {i + 1, far};
        for (size_t k = 0; k < 2; k++) {
            const uint32_t from = load->devices[i], to = load->devices[ends[k]];
            if (from == to || dl_topology_route(load->topology, from, to, 0, NULL, &route, &none)) continue;
            for (size_t hop = 0; hop < route.n_hops; hop++) use(u, route.hops[hop].link, 0);
        }
    }
    dl_route_release(&route);
}

struct dl_used_links dl_used_links(const struct dl_machine_load *load)
{
    struct dl_used_links u = {0};
    if (load->unknown || !(load->seconds > 0))
        use_routes(load, &u);
    else
        for (size_t i = 0; i < load->n_links; i++)
            if (!dl_is_storage_link(load->topology, load->links[i].link)) /* it is not drawn */
                use(&u, load->links[i].link, fmin(load->links[i].busy_s / load->seconds, 1));
    keep_each_once(&u);
    return u;
}

/* ---- rows of boxes ---- */

static int by_row_and_number(const void *a, const void *b)
{
    const struct dl_site *const x = a, *const y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->vertex < y->vertex ? -1 : x->vertex > y->vertex;
}

struct row {
    size_t first, end; /* sites */
    uint32_t n_numbers;
};

static struct row row_from(const struct dl_site *sites, size_t n, size_t first)
{
    struct row r = {first, first, 0};
    for (; r.end < n && sites[r.end].row == sites[first].row; r.end++)
        r.n_numbers += r.end == first || sites[r.end].number != sites[r.end - 1].number;
    return r;
}

/* "nodes 0 to 3", "leaf4"; 0-3, 4. */
static void name_box(const struct dl_site *first, const struct dl_site *last, struct dl_glyph *g)
{
    if (first->number == last->number) {
        snprintf(g->name, sizeof g->name, "%s", first->name);
        snprintf(g->label, sizeof g->label, "%u", first->number);
    } else {
        snprintf(g->name, sizeof g->name, "%.36s to %.36s", first->name, last->name);
        snprintf(g->label, sizeof g->label, "%u-%u", first->number, last->number);
    }
}

/* The name of the first of a row without its number. */
static void name_row(struct dl_boxes *out, const struct dl_site *first, double y)
{
    if (out->n_rows == DL_COUNT(out->rows)) return;
    char *const name = out->rows[out->n_rows].name;
    const char *const group = strrchr(first->name, '.'); /* "group0.switch3" */
    snprintf(name, DL_GLYPH_NAME, "%s", group ? group + 1 : first->name);
    for (size_t end = strlen(name); end > 1 && (isdigit((unsigned char)name[end - 1]) || name[end - 1] == ' '); end--)
        name[end - 1] = '\0';
    out->rows[out->n_rows++].y = y;
}

static uint32_t box_row(const struct dl_site *sites, struct row r, struct dl_frame frame, struct dl_boxes *out,
                        size_t *box)
{
    const uint32_t together = (r.n_numbers + DL_MOST_IN_ROW - 1) / DL_MOST_IN_ROW;
    const uint32_t n_boxes = (r.n_numbers + together - 1) / together;
    const double pitch = frame.width / n_boxes;
    uint32_t number = 0;
    for (size_t i = r.first, first = i; i < r.end; i++) {
        if (i > r.first && sites[i].number != sites[i - 1].number) number++;
        const bool opens = i == r.first || (number % together == 0 && sites[i].number != sites[i - 1].number);
        if (opens) {
            first = i;
            dl_graph_add(&out->graph, &(struct dl_glyph){.x = frame.x + (number / together + 0.5) * pitch,
                                                         .y = frame.y,
                                                         .width = fmin(0.8 * pitch, 64),
                                                         .height = 22});
        }
        box[i] = out->graph.n - 1;
        name_box(&sites[first], &sites[i], &out->graph.glyphs[box[i]]);
    }
    return together;
}

uint32_t dl_box_rows(struct dl_site *sites, size_t n, struct dl_frame frame, struct dl_boxes *out, size_t *box)
{
    const double row_height = 74;
    uint32_t most = 1;
    if (n) qsort(sites, n, sizeof *sites, by_row_and_number);
    uint32_t rows = 0;
    for (struct row r = {0}; r.end < n; rows++) r = row_from(sites, n, r.end);
    out->height = rows * row_height - 34;
    for (struct row r = {0}; r.end < n;) { /* the first row is at the bottom */
        r = row_from(sites, n, r.end);
        const struct dl_frame at = {frame.x, frame.y + --rows * row_height + 11, frame.width};
        const uint32_t together = box_row(sites, r, at, out, box);
        name_row(out, &sites[r.first], at.y);
        if (together > most) most = together;
    }
    return most;
}

void dl_boxes_make_headroom(struct dl_boxes *b)
{
    const double before = b->height;
    dl_graph_make_headroom(&b->graph, &b->height);
    for (size_t i = 0; i < b->n_rows; i++) b->rows[i].y += b->height - before;
}
