/* network_fat_tree.c - extended generalised fat trees, XGFT(h; m1..mh; w1..wh) (Ohring, Ibel, Das, Kumar, IPPS 1995),
 * with parallel cables and any taper.
 *
 * Level 0 are the endpoints. A switch of level l has m_l children and w_(l+1) parents. The tree below level l falls
 * into subtrees of span m1 ... ml endpoints, each with w1 ... wl switches at its top:
 *
 *     subtree s, switch y of level l  --  subtree s / m_(l+1), switch y + (w1 ... wl) * b of level l+1, b < w_(l+1)
 *
 * so a switch is (s, y), and a way up is a choice of b and of the cable at each level; the way down is then fixed.
 *
 * Spraying: every flow is spread evenly over all ways, so all parallel links carry equal loads, and a subtree's links
 * upwards are represented exactly by one link of their summed bandwidth. */
#include "topologies/network_fat_tree.h"

#include <stdio.h>

#include "sim/core/random.h"

enum { max_levels = 16, max_degree = 1000000, max_flows = 256 };
enum { dmodk, ecmp, spray };

static const char *const routings[] = {"dmodk", "ecmp", "spray", NULL};

/* The subtrees that reach up to this level, and the links from their switches to those of the next level. */
struct level {
    uint64_t span; /* endpoints below a subtree */
    uint32_t n_subtrees;
    uint32_t n_switches; /* of this level in one subtree */
    uint32_t n_parents, n_cables;
    double bandwidth_bytes_per_s; /* of one link up or down */
    uint32_t first_link;          /* links come in pairs: up, down */
    bool is_folded;               /* for spraying: its switch stands for several */
};

struct fat_tree {
    struct level levels[max_levels + 1];
    size_t n_levels; /* the top is levels[n_levels] */
    uint32_t rail_nodes;
    int64_t routing, flows;
};

const struct dl_field dl_fat_tree_fields[DL_N_FAT_TREE_FIELDS] = {
    DL_CABLE_FIELDS(struct dl_fat_tree_options, cable),
    {"children", DL_INT_LIST, offsetof(struct dl_fat_tree_options, children), 1, max_degree, false, NULL,
     "m1, ..., mh: children of a switch of each level"},
    {"parents", DL_INT_LIST, offsetof(struct dl_fat_tree_options, parents), 1, max_degree, false, NULL,
     "w1, ..., wh: parents of an endpoint, of a leaf switch, ..."},
    {"cables", DL_INT_LIST, offsetof(struct dl_fat_tree_options, cables), 1, max_degree, true, NULL,
     "parallel cables to each parent, by level; 1 if absent"},
    {"uplink_bandwidth_bytes_per_s", DL_LIST, offsetof(struct dl_fat_tree_options, uplinks), 0, 0, true, NULL,
     "of a cable to level 2, ..., h; the endpoint's if absent"},
    {"routing", DL_CHOICE, offsetof(struct dl_fat_tree_options, routing), 0, 0, true, routings,
     "dmodk: one path by destination; ecmp: one by hash; spray: packets over all paths; dmodk if absent"},
    {"flows", DL_INT, offsetof(struct dl_fat_tree_options, flows), 1, max_flows, true, NULL,
     "of ecmp: parts that a message is sent in, each on the path of its own hash; 1 if absent"},
};

/* Place of an endpoint below the leaves. */
static uint64_t position(const struct dl_network *net, uint32_t rail_nodes, uint32_t endpoint)
{
    if (!rail_nodes) return endpoint;
    const uint64_t node = endpoint / net->endpoints_per_node, nic = endpoint % net->endpoints_per_node;
    const uint64_t leaf = node / rail_nodes * net->endpoints_per_node + nic;
    return leaf * rail_nodes + node % rail_nodes;
}

static uint64_t n_positions(const struct dl_network *net, uint32_t rail_nodes)
{
    if (!rail_nodes) return net->n_endpoints;
    const uint64_t pods = (net->n_nodes + rail_nodes - 1) / rail_nodes;
    return pods * net->endpoints_per_node * rail_nodes;
}

static enum dl_status check_length(const struct dl_network *net, const char *key, size_t n, size_t wanted,
                                   struct dl_error *err)
{
    if (n == wanted) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, net->where.where,
                   "'%s' must have %zu items for the levels of 'children', got %zu", key, wanted, n);
}

static enum dl_status check_shape(const struct dl_network *net, const struct dl_fat_tree_options *o,
                                  struct dl_error *err)
{
    const size_t h = o->children.n;
    if (h < 1 || h > max_levels)
        return dl_fail(err, DL_RANGE, net->where.where, "'children' must have 1 to %d levels, got %zu", max_levels, h);
    if (check_length(net, "parents", o->parents.n, h, err)) return err->status;
    if (o->cables.items && check_length(net, "cables", o->cables.n, h, err)) return err->status;
    if (o->flows && o->routing != ecmp)
        return dl_fail(err, DL_IMPOSSIBLE, net->where.where,
                       "'flows' are of routing ecmp, got %s; leave one of both out", routings[o->routing]);
    if (!o->uplinks.value) return DL_OK;
    return check_length(net, "uplink_bandwidth_bytes_per_s", json_array_size(o->uplinks.value), h - 1, err);
}

static enum dl_status read_bandwidths(const struct dl_fat_tree_options *o, struct fat_tree *tree,
                                      struct dl_arena *arena, struct dl_error *err)
{
    for (size_t l = 0; l < o->children.n; l++) {
        double *const bandwidth = &tree->levels[l].bandwidth_bytes_per_s;
        *bandwidth = o->cable.bandwidth_bytes_per_s;
        if (l == 0 || !o->uplinks.value) continue;
        const struct dl_json from = dl_json_element(o->uplinks, l - 1, arena);
        *bandwidth = json_number_value(from.value);
        if (!json_is_number(from.value) || !(*bandwidth >= 1))
            return dl_fail(err, DL_RANGE, from.where, "must be a number of at least 1 byte per second");
    }
    return DL_OK;
}

static enum dl_status check_capacity(const struct dl_network *net, const struct dl_fat_tree_options *o,
                                     uint32_t rail_nodes, struct dl_error *err)
{
    double n_places = 1;
    for (size_t l = 0; l < o->children.n; l++) n_places *= (double)o->children.items[l];
    return dl_network_check_places(net, n_places, (double)n_positions(net, rail_nodes), "'children'", err);
}

/* Spraying: one link stands for all those of a subtree. */
static void fold(struct level *at, double n_switches)
{
    at->bandwidth_bytes_per_s *= n_switches * at->n_parents * at->n_cables;
    at->n_parents = at->n_cables = 1;
    at->is_folded = n_switches > 1;
}

/* Only the subtrees that hold endpoints are built, and no level above the one where all endpoints meet. */
static enum dl_status describe_levels(const struct dl_network *net, const struct dl_fat_tree_options *o,
                                      struct fat_tree *tree, struct dl_error *err)
{
    const uint64_t n_places = n_positions(net, tree->rail_nodes);
    double n_links = 0, n_switches = 1; /* of this level in a subtree, before folding */
    struct level *at = tree->levels;
    at->span = at->n_switches = 1;
    at->n_subtrees = net->n_endpoints;
    for (size_t l = 0; l < o->children.n && (l == 0 || at->n_subtrees > 1); l++, at++) {
        at->n_parents = (uint32_t)o->parents.items[l];
        at->n_cables = o->cables.n ? (uint32_t)o->cables.items[l] : 1;
        const double n_parents = at->n_parents;
        if (tree->routing == spray) fold(at, n_switches);
        at->first_link = (uint32_t)n_links;
        n_links += 2.0 * at->n_subtrees * at->n_switches * at->n_parents * at->n_cables;
        if (dl_network_check_links(net, n_links, err)) return err->status; /* so that all of this fits into 32 bits */
        at[1].span = at->span * (uint64_t)o->children.items[l];
        at[1].n_subtrees = (uint32_t)((n_places + at[1].span - 1) / at[1].span);
        at[1].n_switches = at->n_switches * at->n_parents;
        n_switches *= n_parents;
    }
    at->is_folded = tree->routing == spray && n_switches > 1;
    tree->n_levels = (size_t)(at - tree->levels);
    return DL_OK;
}

static void add_links(struct dl_network *net, const struct fat_tree *tree, const struct dl_cable *cable)
{
    for (size_t l = 0; l < tree->n_levels; l++) {
        const struct level *const at = &tree->levels[l];
        const struct dl_link_spec spec = {at->bandwidth_bytes_per_s, cable->latency_s, cable->link_kind};
        const uint32_t n_links = 2 * at->n_subtrees * at->n_switches * at->n_parents * at->n_cables;
        dl_network_add_links(net, &spec, n_links);
    }
}

enum dl_status dl_fat_tree_build(struct dl_network *net, const struct dl_fat_tree_options *o, uint32_t rail_nodes,
                                 struct dl_arena *arena, struct dl_error *err)
{
    if (check_shape(net, o, err) || check_capacity(net, o, rail_nodes, err)) return err->status;
    struct fat_tree *const tree = dl_arena_alloc(arena, sizeof *tree);
    tree->rail_nodes = rail_nodes;
    tree->routing = o->routing;
    tree->flows = o->flows ? o->flows : 1;
    net->state = tree;
    if (read_bandwidths(o, tree, arena, err) || describe_levels(net, o, tree, err)) return err->status;
    add_links(net, tree, &o->cable);
    return DL_OK;
}

/* D-mod-K (Zahavi, D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees, 2010):
 * the port out of a switch of level l is floor(destination / (w1 ... wl)) modulo the number of ports. */
static uint32_t choose_port(const struct fat_tree *tree, size_t l, uint64_t destination, uint64_t hash)
{
    const struct level *const at = &tree->levels[l];
    const uint32_t n_ports = at->n_parents * at->n_cables;
    return (uint32_t)((tree->routing == ecmp ? hash : destination / at->n_switches) % n_ports);
}

/* The link up from a port of the y-th switch of a subtree; the link down the same cable has the next number. */
static uint32_t up_link(const struct level *at, uint64_t subtree, uint32_t y, uint32_t port)
{
    const uint64_t child = subtree * at->n_switches + y;
    return at->first_link + 2 * (uint32_t)(child * at->n_parents * at->n_cables + port);
}

/* One way of a message from endpoint to endpoint, with this share of it. */
struct way {
    uint32_t from, to;
    uint64_t source, target; /* their positions */
    uint64_t key;
    double weight;
};

/* A link may be crossed by several ways of a message, by each once. */
static void cross(const struct dl_network *net, uint32_t link, double weight, struct dl_route *out)
{
    (weight < 1 ? dl_network_share : dl_network_hop)(net, out, link, weight);
}

static void add_way(const struct dl_network *net, const struct way *w, struct dl_route *out)
{
    const struct fat_tree *const tree = net->state;
    const struct level *const levels = tree->levels;
    uint32_t y[max_levels + 1] = {0}, port[max_levels];
    size_t l = 0;
    do { /* up to the first level where one subtree holds both */
        port[l] = choose_port(tree, l, w->target, dl_network_hash(w->from, w->to, w->key, l));
        y[l + 1] = y[l] + levels[l].n_switches * (port[l] % levels[l].n_parents);
        const uint64_t subtree = l ? w->source / levels[l].span : w->from;
        cross(net, up_link(&levels[l], subtree, y[l], port[l]), w->weight, out);
        l++;
    } while (w->source / levels[l].span != w->target / levels[l].span);
    while (l-- > 0) {
        const uint64_t subtree = l ? w->target / levels[l].span : w->to;
        cross(net, up_link(&levels[l], subtree, y[l], port[l]) + 1, w->weight, out);
    }
}

enum dl_status dl_fat_tree_route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                                 const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    (void)load, (void)err;
    const struct fat_tree *const tree = net->state;
    struct way w = {.from = from,
                    .to = to,
                    .source = position(net, tree->rail_nodes, from),
                    .target = position(net, tree->rail_nodes, to),
                    .key = key,
                    .weight = 1 / (double)tree->flows};
    for (int64_t i = 0; i < tree->flows; i++, w.key = dl_mix(w.key)) add_way(net, &w, out);
    return DL_OK;
}

static void name_switch(const struct level *at, size_t l, uint64_t index, char *name, size_t bytes)
{
    static const char *const names[] = {"leaf", "spine", "core"};
    const char *const plural = at->is_folded ? "s" : "";
    if (l <= DL_COUNT(names))
        snprintf(name, bytes, "%s%s%llu", names[l - 1], plural, (unsigned long long)index);
    else
        snprintf(name, bytes, "level%zu-switch%s%llu", l, plural, (unsigned long long)index);
}

/* A cable: from the child, a switch of level l or, at level 0, an endpoint, to its parent; both counted in their level.
 */
struct cable {
    size_t l;
    uint32_t child, port;
    uint64_t parent;
    bool up;
};

static struct cable cable_of(const struct dl_network *net, uint32_t link)
{
    const struct fat_tree *const tree = net->state;
    size_t l = tree->n_levels - 1;
    while (tree->levels[l].first_link > link) l--;
    const struct level *const at = &tree->levels[l], *const above = at + 1;
    const uint32_t n_ports = at->n_parents * at->n_cables, cable = (link - at->first_link) / 2;
    const uint32_t child = cable / n_ports, port = cable % n_ports, y = child % at->n_switches;
    const uint64_t subtree = child / at->n_switches;
    const uint64_t first = l ? subtree * at->span : position(net, tree->rail_nodes, child);
    const uint64_t parent = first / above->span * above->n_switches + y + at->n_switches * (port % at->n_parents);
    return (struct cable){l, child, port, parent, (link - at->first_link) % 2 == 0};
}

void dl_fat_tree_name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes)
{
    const struct fat_tree *const tree = net->state;
    const struct cable c = cable_of(net, link);
    const struct level *const at = &tree->levels[c.l];
    char low[DL_MAX_NAME_BYTES], high[DL_MAX_NAME_BYTES];
    if (c.l)
        name_switch(at, c.l, c.child, low, sizeof low);
    else
        dl_network_endpoint_name(net, c.child, low, sizeof low);
    name_switch(at + 1, c.l + 1, c.parent, high, sizeof high);
    dl_network_cable_name(c.up ? low : high, c.up ? high : low, c.port / at->n_parents, at->n_cables, name, bytes);
}

static uint32_t n_below(const struct fat_tree *tree, size_t l)
{
    uint32_t n = 0;
    for (size_t i = 0; i < l; i++) n += tree->levels[i].n_subtrees * tree->levels[i].n_switches;
    return n;
}

struct dl_link_ends dl_fat_tree_ends(const struct dl_network *net, uint32_t link)
{
    const struct cable c = cable_of(net, link);
    const uint32_t low = n_below(net->state, c.l) + c.child, high = n_below(net->state, c.l + 1) + (uint32_t)c.parent;
    return c.up ? (struct dl_link_ends){low, high} : (struct dl_link_ends){high, low};
}

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    return dl_fat_tree_build(net, options, 0, arena, err);
}

static const struct dl_fat_tree_options defaults = {.routing = dmodk};

const struct dl_network_kind dl_network_fat_tree = {
    .name = "fat_tree",
    .doc = "XGFT of any levels with parallel cables and taper",
    .fields = dl_fat_tree_fields,
    .n_fields = DL_N_FAT_TREE_FIELDS,
    .options_size = sizeof(struct dl_fat_tree_options),
    .defaults = &defaults,
    .build = build,
    .route = dl_fat_tree_route,
    .name_link = dl_fat_tree_name_link,
    .ends = dl_fat_tree_ends,
};
