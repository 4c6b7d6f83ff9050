/* node.h - the inside of a node as a small graph: devices, hubs (NVSwitch, PCIe switch, socket), NICs and the host.
 *
 * All nodes of a system are alike, so one graph serves them all. A system file lists the parts of the node; each part
 * (one file, one line in the table of interiors.c) adds vertices and edges. Paths stay on the links between devices
 * where these lead to the target; else, and among those, the cheapest by latency + 1 MB / bandwidth is taken. Hubs
 * forward, devices only where a part says so, NICs and the host never. */
#ifndef DL_TOPOLOGIES_NODE_H
#define DL_TOPOLOGIES_NODE_H

#include "sim/core/json.h"
#include "topologies/route.h"
#include "topologies/storage.h"

enum dl_vertex_kind { DL_DEVICE, DL_HUB, DL_NIC, DL_HOST };

struct dl_vertex {
    enum dl_vertex_kind kind;
    const char *name; /* device0, nvswitch0, pcie2, socket1, nic3, host */
    bool forwards;
    bool reduces; /* a hub that can add what passes through it (NVLS) */
    bool is_host; /* the host, or a socket of it: its memory is behind it */
};

/* Full duplex: two directed links, each with this bandwidth and latency. */
struct dl_edge {
    uint32_t a, b; /* vertices */
    uint32_t lanes;
    double bandwidth_bytes_per_s; /* of all lanes together, per direction */
    double latency_s;
    const char *link_kind; /* nvlink3, xgmi, pcie4, ...: transports know efficiencies by it */
    enum dl_reach reach;
};

/* The computer that the devices of a node are in; 0: not known. */
struct dl_node_host {
    double link_bandwidth_bytes_per_s, link_latency_s; /* of each device to the host, per direction */
    double memory_bytes, memory_bytes_per_s;           /* of the whole host; what it sustains */
    double slowdown; /* what software takes of a host takes so many times as long as its file says */
};

struct dl_node {
    uint32_t n_devices, n_nics;
    const char *device; /* name of the device file */
    struct dl_node_host host;
    struct dl_storage storage; /* its own */
    struct dl_vertex *vertices;
    size_t n_vertices, vertices_capacity; /* the first n_devices are the devices */
    struct dl_edge *edges;
    size_t n_edges, edges_capacity; /* edge e has the links 2e (a to b) and 2e+1 (b to a) */
    struct dl_int_list torus;       /* devices along each dimension of one; n = 0: they are no torus */
    uint32_t *nic_vertex;           /* per NIC */
    uint32_t *device_nic;           /* which NIC serves a device; UINT32_MAX: it reaches none */
    uint32_t *device_host;          /* the vertex of its host; UINT32_MAX: the file tells of none */
    uint16_t *first_edge;           /* [from * n_vertices + to]: directed link to take first; DL_NO_LINK if none */
};

enum { DL_NO_LINK = 0xffff, DL_MAX_NODE_VERTICES = 1024 };

/* One kind of part; the key "kind" of the part chooses it, the other keys are its fields. */
struct dl_interior {
    const char *name, *doc;
    const struct dl_field *fields; /* REQUIRED */
    size_t n_fields, options_size;
    const void *defaults; /* REQUIRED */
    /* REQUIRED: add vertices and edges. */
    enum dl_status (*build)(const void *options, struct dl_json part, struct dl_node *node, struct dl_arena *arena,
                            struct dl_error *err);
};
size_t dl_interior_count(void);
const struct dl_interior *dl_interior_get(size_t index);

/* Read the "node" object of a system file. All memory is the arena's except what dl_node_release frees. */
enum dl_status dl_node_read(struct dl_json object, struct dl_node *node, struct dl_arena *arena, struct dl_error *err);
void dl_node_release(struct dl_node *node);

/* For parts. add_vertex returns its index; find looks a name up ("device3", "pcie0"), or UINT32_MAX. */
uint32_t dl_node_add_vertex(struct dl_node *node, struct dl_vertex vertex);
void dl_node_add_edge(struct dl_node *node, struct dl_edge edge);
uint32_t dl_node_find(const struct dl_node *node, const char *name);

/* What a link costs a path: the time of a message of 1 MB. */
double dl_link_cost(double latency_s, double bandwidth_bytes_per_s);

/* Append one link of the node, by its number in it, under its number in the machine. */
void dl_node_take_link(const struct dl_node *node, uint32_t link, uint32_t id, struct dl_route *out);

/* Append the links from vertex to vertex, as first_link + local id; false (and nothing appended) if there is no way. */
bool dl_node_route(const struct dl_node *node, uint32_t from, uint32_t to, uint32_t first_link, struct dl_route *out);

#endif
