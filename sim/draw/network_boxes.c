/* network_boxes.c - what is between nodes, as boxes: rows of switches, a circle of groups or nodes, a grid. */
#include <math.h>
#include <string.h>

#include "sim/core/memory.h"
#include "sim/draw/boxes.h"
#include "topologies/network_dragonfly.h"

enum {
    few_switches = 8,  /* of a dragonfly: these fit into a row */
    most_on_side = 16, /* of a grid */
    top_row = 5,       /* where what is further from the nodes is drawn, too */
};

struct world {
    const struct dl_machine_load *load;
    const struct dl_network *net;
    const struct dl_used_links *used;
    uint32_t n_vertices;
    bool *is_used;     /* by vertex */
    uint32_t *link_of; /* by vertex: one that has it as an end, for its name; UINT32_MAX: none */
    size_t n_sites;
};

static bool is_between_nodes(const struct world *w, uint32_t link) { return link >= w->net->first_link; }

static struct dl_link_ends ends_of(const struct world *w, uint32_t link)
{
    return w->net->kind->ends(w->net, link - w->net->first_link);
}

static uint32_t endpoint_of_device(const struct dl_machine_load *load, uint32_t device)
{
    const struct dl_topology *const t = load->topology;
    const uint32_t node = dl_topology_node_of(t, device), slot = device % t->node.n_devices;
    const uint32_t nic = t->node.n_nics ? t->node.device_nic[slot] : slot;
    return nic < t->network.endpoints_per_node ? node * t->network.endpoints_per_node + nic : UINT32_MAX;
}

static void mark(struct world *w, uint32_t vertex, uint32_t link)
{
    if (!w->is_used[vertex]) w->n_sites++;
    w->is_used[vertex] = true;
    if (w->link_of[vertex] == UINT32_MAX) w->link_of[vertex] = link;
}

static void find_used(struct world *w)
{
    w->n_vertices = w->net->n_endpoints;
    for (size_t i = 0; i < w->used->n; i++) {
        if (!is_between_nodes(w, w->used->items[i].link)) continue;
        const struct dl_link_ends at = ends_of(w, w->used->items[i].link);
        const uint32_t last = at.from > at.to ? at.from : at.to;
        if (last >= w->n_vertices) w->n_vertices = last + 1;
    }
    w->is_used = dl_alloc(w->n_vertices * sizeof *w->is_used);
    w->link_of = dl_alloc(w->n_vertices * sizeof *w->link_of);
    for (uint32_t i = 0; i < w->n_vertices; i++) w->link_of[i] = UINT32_MAX;
    for (size_t i = 0; i < w->used->n; i++) {
        const uint32_t link = w->used->items[i].link;
        if (!is_between_nodes(w, link)) continue;
        mark(w, ends_of(w, link).from, link);
        mark(w, ends_of(w, link).to, link);
    }
    for (uint32_t i = 0; i < w->load->n_devices; i++) {
        const uint32_t endpoint = endpoint_of_device(w->load, w->load->devices[i]);
        if (endpoint != UINT32_MAX) mark(w, endpoint, UINT32_MAX);
    }
}

/* ---- which box a vertex belongs to ---- */

static uint32_t node_of(const struct world *w, uint32_t endpoint) { return endpoint / w->net->endpoints_per_node; }

/* How far a vertex is from the endpoints: the row that it is drawn in. */
static void find_rows(const struct world *w, uint32_t *row)
{
    bool goes_on = true;
    for (uint32_t i = 0; i < w->n_vertices; i++) row[i] = i < w->net->n_endpoints ? 0 : UINT32_MAX;
    for (uint32_t now = 0; goes_on; now++) {
        goes_on = false;
        for (size_t i = 0; i < w->used->n; i++) {
            if (!is_between_nodes(w, w->used->items[i].link)) continue;
            const struct dl_link_ends at = ends_of(w, w->used->items[i].link);
            const uint32_t near = row[at.from] == now ? at.from : at.to, far = near == at.from ? at.to : at.from;
            if (row[near] != now || row[far] <= now + 1) continue;
            row[far] = now + 1;
            goes_on = true;
        }
    }
    for (uint32_t i = 0; i < w->n_vertices; i++)
        if (row[i] > top_row) row[i] = top_row;
}

/* The end of a link's name that is this vertex: "leaf3". */
static void name_vertex(const struct world *w, uint32_t vertex, char name[DL_GLYPH_NAME])
{
    char both[160];
    const uint32_t link = w->link_of[vertex];
    dl_topology_link_name(w->load->topology, link, both, sizeof both);
    char *const arrow = strstr(both, " -> ");
    if (!arrow) return;
    char *const from = both, *const to = arrow + strlen(" -> ");
    *arrow = '\0';
    char *const cable = strstr(to, " #");
    if (cable) *cable = '\0';
    snprintf(name, DL_GLYPH_NAME, "%.70s", ends_of(w, link).from == vertex ? from : to);
}

static struct dl_site *list_rows(const struct world *w)
{
    struct dl_site *const sites = dl_alloc((w->n_sites + 1) * sizeof *sites);
    uint32_t *const row = dl_alloc(w->n_vertices * sizeof *row);
    uint32_t *const first = dl_alloc(w->n_vertices * sizeof *first); /* by row: its first vertex */
    size_t n = 0;
    find_rows(w, row);
    for (uint32_t i = w->n_vertices; i-- > 0;)
        if (row[i] < w->n_vertices) first[row[i]] = i;
    for (uint32_t i = 0; i < w->n_vertices; i++) {
        if (!w->is_used[i]) continue;
        struct dl_site *const s = &sites[n++];
        *s = (struct dl_site){i, row[i], row[i] ? i - first[row[i]] : node_of(w, i), ""};
        if (row[i])
            name_vertex(w, i, s->name);
        else
            snprintf(s->name, sizeof s->name, "node %u", s->number);
    }
    dl_free(row);
    dl_free(first);
    return sites;
}

/* ---- circles ---- */

struct circle {
    const char *what;
    uint32_t (*number)(const struct world *w, uint32_t vertex);
};

static uint32_t group_number(const struct world *w, uint32_t vertex)
{
    const struct dl_dragonfly *const d = w->net->state;
    if (vertex < w->net->n_endpoints) return dl_dragonfly_group(w->net, vertex);
    return (vertex - w->net->n_endpoints) / (d->n_switches + d->n_spines);
}

static uint32_t switch_number(const struct world *w, uint32_t vertex)
{
    const struct dl_dragonfly *const d = w->net->state;
    if (vertex < w->net->n_endpoints) return dl_dragonfly_switch(w->net, vertex);
    return (vertex - w->net->n_endpoints) % (d->n_switches + d->n_spines);
}

static bool is_one_group(const struct world *w)
{
    uint32_t group = UINT32_MAX;
    for (uint32_t i = 0; i < w->n_vertices; i++) {
        if (!w->is_used[i]) continue;
        if (group == UINT32_MAX) group = group_number(w, i);
        if (group_number(w, i) != group) return false;
    }
    return true;
}

static uint32_t count_switches(const struct world *w)
{
    uint32_t n = 0;
    for (uint32_t i = w->net->n_endpoints; i < w->n_vertices; i++) n += w->is_used[i];
    return n;
}

static struct dl_site *list_numbers(const struct world *w, const struct circle *c)
{
    struct dl_site *const sites = dl_alloc((w->n_sites + 1) * sizeof *sites);
    size_t n = 0;
    for (uint32_t i = 0; i < w->n_vertices; i++) {
        if (!w->is_used[i]) continue;
        sites[n] = (struct dl_site){i, 0, c->number(w, i), ""};
        snprintf(sites[n].name, DL_GLYPH_NAME, "%s %u", c->what, sites[n].number);
        n++;
    }
    return sites;
}

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

/* ---- grids ---- */

struct grid {
    uint32_t size[2], block[2], before, n_each; /* endpoints of a switch; switches along the other dimensions */
};

static struct grid grid_of(const struct world *w)
{
    const int64_t *sizes;
    const size_t n = w->net->kind->dimensions(w->net, &sizes);
    const bool has_switches = w->n_vertices > w->net->n_endpoints;
    const size_t first = has_switches && n > 1;
    struct grid g = {{1, 1}, {1, 1}, first ? (uint32_t)sizes[0] : 1, 1};
    for (size_t d = first; d < n; d++) {
        if (d < first + 2)
            g.size[d - first] = (uint32_t)sizes[d];
        else
            g.n_each *= (uint32_t)sizes[d];
    }
    for (int d = 0; d < 2; d++) g.block[d] = (g.size[d] + most_on_side - 1) / most_on_side;
    return g;
}

static struct dl_site *list_grid(const struct world *w, const struct grid *g)
{
    struct dl_site *const sites = dl_alloc((w->n_sites + 1) * sizeof *sites);
    size_t n = 0;
    for (uint32_t i = 0; i < w->n_vertices; i++) {
        if (!w->is_used[i]) continue;
        const uint32_t at = i < w->net->n_endpoints ? i / g->before : i - w->net->n_endpoints;
        const uint32_t x = at % g->size[0] / g->block[0], y = at / g->size[0] % g->size[1] / g->block[1];
        sites[n] = (struct dl_site){i, y, x, ""};
        snprintf(sites[n].name, DL_GLYPH_NAME, "(%u, %u)", x * g->block[0], y * g->block[1]);
        n++;
    }
    return sites;
}

/* Rows were laid out from the bottom up, each as wide as it can be; columns must stand below each other. */
static void square(struct dl_boxes *out, const struct dl_site *sites, size_t n, const size_t *box,
                   struct dl_frame frame)
{
    const double pitch = fmin(56, frame.width / most_on_side);
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

/* ---- all of it ---- */

static void join(const struct world *w, const struct dl_site *sites, const size_t *box, struct dl_graph *g)
{
    size_t *const of = dl_alloc(w->n_vertices * sizeof *of);
    for (size_t i = 0; i < w->n_sites; i++) of[sites[i].vertex] = box[i];
    for (size_t i = 0; i < w->used->n; i++) {
        const struct dl_used_link *const u = &w->used->items[i];
        if (!is_between_nodes(w, u->link)) continue;
        const struct dl_link_ends at = ends_of(w, u->link);
        dl_graph_join(g, of[at.from], of[at.to], u->share);
    }
    dl_free(of);
}

/* What goes on inside of a node counts for the box that has it. */
static void join_insides(const struct world *w, const struct dl_site *sites, const size_t *box, struct dl_graph *g)
{
    const uint32_t links_per_node = 2 * (uint32_t)w->load->topology->node.n_edges;
    size_t *const of = dl_alloc(w->net->n_nodes * sizeof *of);
    for (size_t i = 0; i < w->n_sites; i++)
        if (sites[i].vertex < w->net->n_endpoints) of[node_of(w, sites[i].vertex)] = box[i];
    for (size_t i = 0; i < w->used->n; i++) {
        const struct dl_used_link *const u = &w->used->items[i];
        if (is_between_nodes(w, u->link)) continue;
        const size_t at = of[u->link / links_per_node];
        dl_graph_join(g, at, at, u->share);
    }
    dl_free(of);
}

static bool is_dragonfly(const struct dl_network *net) { return net->kind == &dl_network_dragonfly; }

static const struct circle *circle_of(const struct world *w)
{
    static const struct circle groups = {"group", group_number}, switches = {"switch", switch_number},
                               nodes = {"node", node_of};
    if (is_dragonfly(w->net) && !is_one_group(w)) return &groups;
    if (is_dragonfly(w->net)) return count_switches(w) <= few_switches ? NULL : &switches;
    return w->net->kind == &dl_network_full_mesh ? &nodes : NULL;
}

static void tell(const struct world *w, const struct circle *circle, const struct grid *grid, uint32_t together,
                 struct dl_boxes *out)
{
    const char *const name = w->net->kind->name;
    if (grid && grid->block[0] * grid->block[1] * grid->n_each > 1)
        snprintf(out->caption, sizeof out->caption,
                 "Network: %s. Across and down: its first two dimensions. A box stands for %u switches.", name,
                 grid->block[0] * grid->block[1] * grid->n_each);
    else if (together > 1)
        snprintf(out->caption, sizeof out->caption, "Network: %s. A box stands for up to %u %s.", name, together,
                 circle ? "neighbours" : "parts of its row");
    else if (circle)
        snprintf(out->caption, sizeof out->caption, "Network: %s. A circle is a %s with all that is in it.", name,
                 circle->what);
    else
        snprintf(out->caption, sizeof out->caption, "Network: %s.", name);
}

void dl_boxes_of_network(const struct dl_machine_load *load, const struct dl_used_links *used, struct dl_frame frame,
                         struct dl_boxes *out)
{
    struct world w = {.load = load, .net = &load->topology->network, .used = used};
    *out = (struct dl_boxes){0};
    dl_graph_init(&out->graph, !load->unknown);
    if (!w.net->kind) return;
    find_used(&w);
    const struct circle *const circle = circle_of(&w);
    const bool is_torus = w.net->kind->dimensions != NULL;
    const struct grid grid = is_torus ? grid_of(&w) : (struct grid){0};
    struct dl_site *const sites = circle ? list_numbers(&w, circle) : is_torus ? list_grid(&w, &grid) : list_rows(&w);
    size_t *const box = dl_alloc((w.n_sites + 1) * sizeof *box);
    const uint32_t together = dl_box_rows(sites, w.n_sites, frame, out, box);
    if (circle) bend_to_circle(out, frame);
    if (is_torus) square(out, sites, w.n_sites, box, frame);
    join(&w, sites, box, &out->graph);
    join_insides(&w, sites, box, &out->graph);
    dl_boxes_make_headroom(out);
    tell(&w, circle, is_torus ? &grid : NULL, together, out);
    dl_free(sites);
    dl_free(box);
    dl_free(w.is_used);
    dl_free(w.link_of);
}
