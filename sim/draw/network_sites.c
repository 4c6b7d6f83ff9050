#include "sim/draw/network_sites.h"

#include <string.h>

#include "sim/core/memory.h"
#include "topologies/network_dragonfly.h"

enum {
    few_switches = 8, /* of a dragonfly: these fit into a row */
    top_row = 5,      /* where what is further from the nodes is drawn, too */
};

bool dl_is_between_nodes(const struct dl_network_use *w, uint32_t link) { return link >= w->net->first_link; }

struct dl_link_ends dl_ends_in_use(const struct dl_network_use *w, uint32_t link)
{
    return w->net->kind->ends(w->net, link - w->net->first_link);
}

uint32_t dl_node_in_use(const struct dl_network_use *w, uint32_t endpoint)
{
    return endpoint / w->net->endpoints_per_node;
}

/* ---- what is used ---- */

static uint32_t endpoint_of_device(const struct dl_machine_load *load, uint32_t device)
{
    const struct dl_topology *const t = load->topology;
    const uint32_t node = dl_topology_node_of(t, device), slot = device % t->node.n_devices;
    const uint32_t nic = t->node.n_nics ? t->node.device_nic[slot] : slot;
    return nic < t->network.endpoints_per_node ? node * t->network.endpoints_per_node + nic : UINT32_MAX;
}

static void mark(struct dl_network_use *w, uint32_t vertex, uint32_t link)
{
    if (!w->is_used[vertex]) w->n_sites++;
    w->is_used[vertex] = true;
    if (w->link_of[vertex] == UINT32_MAX) w->link_of[vertex] = link;
}

void dl_network_use_find(struct dl_network_use *w, const struct dl_machine_load *load, const struct dl_used_links *used)
{
    *w = (struct dl_network_use){.load = load, .net = &load->topology->network, .used = used};
    w->n_vertices = w->net->n_endpoints;
    for (size_t i = 0; i < w->used->n; i++) {
        if (!dl_is_between_nodes(w, w->used->items[i].link)) continue;
        const struct dl_link_ends at = dl_ends_in_use(w, w->used->items[i].link);
        const uint32_t last = at.from > at.to ? at.from : at.to;
        if (last >= w->n_vertices) w->n_vertices = last + 1;
    }
    w->is_used = dl_alloc(w->n_vertices * sizeof *w->is_used);
    w->link_of = dl_alloc(w->n_vertices * sizeof *w->link_of);
    for (uint32_t i = 0; i < w->n_vertices; i++) w->link_of[i] = UINT32_MAX;
    for (size_t i = 0; i < w->used->n; i++) {
        const uint32_t link = w->used->items[i].link;
        if (!dl_is_between_nodes(w, link)) continue;
        mark(w, dl_ends_in_use(w, link).from, link);
        mark(w, dl_ends_in_use(w, link).to, link);
    }
    for (uint32_t i = 0; i < w->load->n_devices; i++) {
        const uint32_t endpoint = endpoint_of_device(w->load, w->load->devices[i]);
        if (endpoint != UINT32_MAX) mark(w, endpoint, UINT32_MAX);
    }
}

void dl_network_use_release(struct dl_network_use *w)
{
    dl_free(w->is_used);
    dl_free(w->link_of);
}

/* ---- rows ---- */

/* How far a vertex is from the endpoints: the row that it is drawn in. */
static void find_rows(const struct dl_network_use *w, uint32_t *row)
{
    bool goes_on = true;
    for (uint32_t i = 0; i < w->n_vertices; i++) row[i] = i < w->net->n_endpoints ? 0 : UINT32_MAX;
    for (uint32_t now = 0; goes_on; now++) {
        goes_on = false;
        for (size_t i = 0; i < w->used->n; i++) {
            if (!dl_is_between_nodes(w, w->used->items[i].link)) continue;
            const struct dl_link_ends at = dl_ends_in_use(w, w->used->items[i].link);
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
static void name_vertex(const struct dl_network_use *w, uint32_t vertex, char name[DL_GLYPH_NAME])
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
    snprintf(name, DL_GLYPH_NAME, "%.70s", dl_ends_in_use(w, link).from == vertex ? from : to);
}

static struct dl_site *list_rows(const struct dl_network_use *w)
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
        *s = (struct dl_site){i, row[i], row[i] ? i - first[row[i]] : dl_node_in_use(w, i), ""};
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
    uint32_t (*number)(const struct dl_network_use *w, uint32_t vertex);
};

static uint32_t group_number(const struct dl_network_use *w, uint32_t vertex)
{
    const struct dl_dragonfly *const d = w->net->state;
    if (vertex < w->net->n_endpoints) return dl_dragonfly_group(w->net, vertex);
    return (vertex - w->net->n_endpoints) / (d->n_switches + d->n_spines);
}

static uint32_t switch_number(const struct dl_network_use *w, uint32_t vertex)
{
    const struct dl_dragonfly *const d = w->net->state;
    if (vertex < w->net->n_endpoints) return dl_dragonfly_switch(w->net, vertex);
    return (vertex - w->net->n_endpoints) % (d->n_switches + d->n_spines);
}

static bool is_one_group(const struct dl_network_use *w)
{
    uint32_t group = UINT32_MAX;
    for (uint32_t i = 0; i < w->n_vertices; i++) {
        if (!w->is_used[i]) continue;
        if (group == UINT32_MAX) group = group_number(w, i);
        if (group_number(w, i) != group) return false;
    }
    return true;
}

static uint32_t count_switches(const struct dl_network_use *w)
{
    uint32_t n = 0;
    for (uint32_t i = w->net->n_endpoints; i < w->n_vertices; i++) n += w->is_used[i];
    return n;
}

static struct dl_site *list_numbers(const struct dl_network_use *w, const struct circle *c)
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

static bool is_dragonfly(const struct dl_network *net) { return net->kind == &dl_network_dragonfly; }

static const struct circle *circle_of(const struct dl_network_use *w)
{
    static const struct circle groups = {"group", group_number}, switches = {"switch", switch_number},
                               nodes = {"node", dl_node_in_use};
    if (is_dragonfly(w->net) && !is_one_group(w)) return &groups;
    if (is_dragonfly(w->net)) return count_switches(w) <= few_switches ? NULL : &switches;
    return w->net->kind == &dl_network_full_mesh ? &nodes : NULL;
}

/* ---- grids ---- */

struct grid {
    uint32_t size[2], block[2], before, n_each; /* endpoints of a switch; switches along the other dimensions */
};

static struct grid grid_of(const struct dl_network_use *w)
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
    for (int d = 0; d < 2; d++) g.block[d] = (g.size[d] + DL_MOST_ON_SIDE - 1) / DL_MOST_ON_SIDE;
    return g;
}

static struct dl_site *list_grid(const struct dl_network_use *w, const struct grid *g)
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

struct dl_site *dl_network_sites(const struct dl_network_use *w, struct dl_arrangement *how)
{
    const struct circle *const circle = circle_of(w);
    *how = (struct dl_arrangement){.circle_of = circle ? circle->what : NULL};
    if (circle) return list_numbers(w, circle);
    if (!w->net->kind->dimensions) return list_rows(w);
    const struct grid grid = grid_of(w);
    how->is_grid = true;
    how->switches_each = grid.block[0] * grid.block[1] * grid.n_each;
    return list_grid(w, &grid);
}
