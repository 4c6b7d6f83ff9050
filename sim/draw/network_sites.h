/* network_sites.h - the vertices of a network that a job uses, and which of them share a box. */
#ifndef DL_DRAW_NETWORK_SITES_H
#define DL_DRAW_NETWORK_SITES_H

#include "sim/draw/boxes.h"

struct dl_network_use {
    const struct dl_machine_load *load;
    const struct dl_network *net;
    const struct dl_used_links *used;
    uint32_t n_vertices;
    bool *is_used;     /* by vertex */
    uint32_t *link_of; /* by vertex: one that has it as an end, for its name; UINT32_MAX: none */
    size_t n_sites;
};

/* Links between nodes, and the nodes of the job; for dl_network_use_release. */
void dl_network_use_find(struct dl_network_use *w, const struct dl_machine_load *load,
                         const struct dl_used_links *used);
void dl_network_use_release(struct dl_network_use *w);

bool dl_is_between_nodes(const struct dl_network_use *w, uint32_t link);
struct dl_link_ends dl_ends_in_use(const struct dl_network_use *w, uint32_t link);
uint32_t dl_node_in_use(const struct dl_network_use *w, uint32_t endpoint);

/* How sites are arranged: in rows, on a circle of what has this name, or on a grid. */
enum { DL_MOST_ON_SIDE = 16 }; /* of a grid */
struct dl_arrangement {
    const char *circle_of; /* NULL: no circle */
    bool is_grid;
    uint32_t switches_each; /* GRID: that a box stands for, used or not */
};
/* w->n_sites of them, for dl_free. */
struct dl_site *dl_network_sites(const struct dl_network_use *w, struct dl_arrangement *how);

#endif
