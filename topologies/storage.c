#include "topologies/storage.h"

#include <stdio.h>

#include "topologies/topology.h"

static const struct dl_field fields[] = {
    {"write_bytes_per_s", DL_NUMBER, offsetof(struct dl_storage, write_bytes_per_s), 1, 1e18, false, NULL,
     "that it takes from all devices that use it together"},
    {"read_bytes_per_s", DL_NUMBER, offsetof(struct dl_storage, read_bytes_per_s), 1, 1e18, true, NULL,
     "that it gives to all of them together; as it takes if absent"},
    {"latency_s", DL_NUMBER, offsetof(struct dl_storage, latency_s), 0, 10, true, NULL,
     "until the first byte of a copy comes; 0 if absent"},
};

enum dl_status dl_storage_read(struct dl_json object, struct dl_storage *out, struct dl_arena *arena,
                               struct dl_error *err)
{
    *out = (struct dl_storage){0};
    if (!object.value) return DL_OK;
    if (dl_read(object, fields, DL_COUNT(fields), out, arena, err)) return err->status;
    if (out->read_bytes_per_s == 0) out->read_bytes_per_s = out->write_bytes_per_s;
    return DL_OK;
}

/* ---- links ---- */

enum { links_each = 2 }; /* out of it, which reads; into it, which writes */

static bool is_there(const struct dl_storage *s) { return s->write_bytes_per_s > 0; }

uint32_t dl_node_storage_links(const struct dl_storage *s) { return is_there(s) ? links_each : 0; }

static void add_links(struct dl_topology *t, const struct dl_storage *s)
{
    for (int i = 0; i < links_each; i++)
        t->links[t->n_links++] =
            (struct dl_link){.bandwidth_bytes_per_s = i ? s->write_bytes_per_s : s->read_bytes_per_s,
                             .latency_s = s->latency_s,
                             .kind = t->storage_link_kind};
}

void dl_topology_add_storage(struct dl_topology *t)
{
    const size_t of_nodes = is_there(&t->node.storage) ? t->n_nodes : 0, shared = is_there(&t->storage);
    t->first_storage_link = (uint32_t)t->n_links;
    t->storage_link_kind = DL_MAX_LINK_KINDS;
    if (of_nodes + shared == 0) return;
    t->storage_link_kind = dl_topology_link_kind(t, "storage");
    t->links_capacity = t->n_links + links_each * (shared + of_nodes);
    t->links = dl_realloc(t->links, t->links_capacity * sizeof *t->links);
    if (shared) add_links(t, &t->storage);
    for (size_t node = 0; node < of_nodes; node++) add_links(t, &t->node.storage);
}

static uint32_t first_of_nodes(const struct dl_topology *t)
{
    return t->first_storage_link + (is_there(&t->storage) ? links_each : 0);
}

uint32_t dl_storage_link(const struct dl_topology *t, bool out_of_it)
{
    return is_there(&t->storage) ? t->first_storage_link + !out_of_it : UINT32_MAX;
}

uint32_t dl_node_storage_link(const struct dl_topology *t, uint32_t node, bool out_of_it)
{
    return is_there(&t->node.storage) ? first_of_nodes(t) + links_each * node + !out_of_it : UINT32_MAX;
}

bool dl_is_storage_link(const struct dl_topology *t, uint32_t link) { return link >= t->first_storage_link; }

void dl_storage_link_name(const struct dl_topology *t, uint32_t link, char *name, size_t bytes)
{
    const uint32_t first = first_of_nodes(t);
    if (link < first)
        snprintf(name, bytes, link == dl_storage_link(t, true) ? "storage -> network" : "network -> storage");
    else
        snprintf(name, bytes, "node%u: %s", (link - first) / links_each,
                 (link - first) % links_each ? "host -> storage" : "storage -> host");
}
