/* What every network must keep, whatever its kind. A new kind needs a line among the shapes. */
#include <math.h>

#include "sim/core/random.h"
#include "tests/unit/network_text.h"
#include "tests/unit/suite.h"

static const double tolerance = 1e-12; /* for sums of weights */

/* Routing that only takes shortest ways, and the same in both directions. */
static const struct shape minimal_shapes[] = {
    {"crossbar", 5, 2, ""},
    {"crossbar", 1, 3, ""},
    {"full_mesh", 6, 1, ""},
    {"full_mesh", 3, 2, ""},
    {"fat_tree", 8, 1, "'children':[8],'parents':[1]"},
    {"fat_tree", 16, 1, "'children':[4,4],'parents':[1,4]"},
    {"fat_tree", 7, 3, "'children':[4,8],'parents':[1,2],'cables':[1,2]"},
    {"fat_tree", 30, 1, "'children':[4,2,8],'parents':[1,4,2],'routing':'ecmp'"},
    {"fat_tree", 24, 2, "'children':[2,3,4,2],'parents':[2,2,3,1],'cables':[1,2,1,3],'routing':'ecmp'"},
    {"fat_tree", 50, 1, "'children':[8,8],'parents':[1,4],'routing':'spray','uplink_bandwidth_bytes_per_s':[50e9]"},
    {"fat_tree", 20, 2, "'children':[4,4,4],'parents':[2,2,2],'routing':'spray'"},
    {"rails", 10, 4, "'children':[4,12],'parents':[1,8]"},
    {"rails", 9, 8, "'children':[2,16,4],'parents':[1,2,8],'routing':'ecmp'"},
    {"rails", 64, 8, "'children':[32,16],'parents':[1,32],'routing':'spray'"},
    {"dragonfly", 24, 2,
     "'groups':4,'nodes_per_group':6,'switches_per_group':3,'links_per_group_pair':2,"
     "'routing':'minimal'"},
    {"dragonfly", 36, 2,
     "'groups':3,'nodes_per_group':12,'switches_per_group':12,'links_per_group_pair':5,"
     "'local':'grid','grid':[4,3],'nics_across_switches':true,'routing':'minimal'"},
    {"dragonfly", 30, 1,
     "'groups':3,'nodes_per_group':10,'switches_per_group':5,'links_per_group_pair':4,"
     "'local':'leaf_spine','spines':3,'routing':'minimal'"},
    {"dragonfly", 5, 3, "'groups':1,'nodes_per_group':5,'switches_per_group':2,'links_per_group_pair':1"},
    {"torus", 9, 1, "'dimensions':[9]"},
    {"torus", 24, 1, "'dimensions':[4,3,2]"},
    {"torus", 12, 2, "'dimensions':[3,4,1],'wrap':[false,true,true],'endpoints_per_switch':2"},
    {"torus", 32, 1, "'dimensions':[4,8],'twist':4"},
    {"torus", 36, 1, "'dimensions':[3,6,2],'twist':2"},
    {"torus", 32, 4, "'dimensions':[2,16,4],'twist':4"},
    {"graph", 4, 1, "'links':[[0,1],[1,2],[2,3],[3,0],[0,2]]"},
    {"graph", 3, 2, "'switches':3,'links':[[0,6],[1,6],[2,7],[3,7],[4,8],[5,8],[6,7],[6,7,1e9,2e-6],[7,8],[8,6]]"},
};

/* Routing that takes detours, or counts hops otherwise. */
static const struct shape other_shapes[] = {
    {"dragonfly", 24, 2,
     "'groups':4,'nodes_per_group':6,'switches_per_group':3,'links_per_group_pair':2,"
     "'routing':'valiant'"},
    {"dragonfly", 60, 4,
     "'groups':10,'nodes_per_group':6,'switches_per_group':8,'links_per_group_pair':3,"
     "'nics_across_switches':true,'routing':'valiant'"},
    {"dragonfly", 48, 1,
     "'groups':4,'nodes_per_group':12,'switches_per_group':12,'links_per_group_pair':5,"
     "'local':'grid','grid':[4,3],'routing':'valiant'"},
    {"dragonfly", 30, 1,
     "'groups':3,'nodes_per_group':10,'switches_per_group':5,'links_per_group_pair':4,"
     "'local':'leaf_spine','spines':3,'routing':'valiant'"},
    {"dragonfly", 30, 2,
     "'groups':5,'nodes_per_group':6,'switches_per_group':4,'links_per_group_pair':1,"
     "'routing':'adaptive'"},
    {"dragonfly", 48, 1,
     "'groups':4,'nodes_per_group':12,'switches_per_group':12,'links_per_group_pair':2,"
     "'local':'grid','grid':[4,3],'routing':'adaptive'"},
};

static const struct shape *shape_at(size_t i)
{
    if (i < DL_COUNT(minimal_shapes)) return &minimal_shapes[i];
    i -= DL_COUNT(minimal_shapes);
    return i < DL_COUNT(other_shapes) ? &other_shapes[i] : NULL;
}

/* A property of the route of one pair. Checks return false instead of asserting: Check writes a file at each assertion.
 */
typedef bool (*pair_check)(struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to);

static void check_pair(struct network_fixture *n, const struct drawing *d, pair_check check, uint32_t from, uint32_t to)
{
    if (!check(n, d, from, to)) ck_abort_msg("%s: %u to %u", n->net->kind->name, from, to);
}

/* Every ordered pair of endpoints, or 2,000 random ones. */
static void check_pairs(struct network_fixture *n, const struct drawing *d, pair_check check)
{
    enum { max_pairs = 2000 };
    const uint32_t n_endpoints = n->net->n_endpoints;
    if (n_endpoints * (n_endpoints - 1) <= max_pairs) {
        for (uint32_t from = 0; from < n_endpoints; from++)
            for (uint32_t to = 0; to < n_endpoints; to++)
                if (from != to) check_pair(n, d, check, from, to);
        return;
    }
    gsl_rng *const rng = dl_random_new(1, "pairs", 0);
    for (int i = 0; i < max_pairs; i++) {
        const uint32_t from = (uint32_t)gsl_rng_uniform_int(rng, n_endpoints);
        const uint32_t ahead = 1 + (uint32_t)gsl_rng_uniform_int(rng, n_endpoints - 1);
        check_pair(n, d, check, from, (from + ahead) % n_endpoints);
    }
    gsl_rng_free(rng);
}

/* All shapes of the kind that the loop test is at. */
static void check_shapes(int kind, pair_check check)
{
    int n_shapes = 0;
    for (size_t i = 0; shape_at(i); i++) {
        if (strcmp(shape_at(i)->kind, dl_network_get((size_t)kind)->name)) continue;
        struct network_fixture n;
        struct drawing d;
        network_open(&n, shape_at(i));
        draw(&d, n.net);
        check_pairs(&n, &d, check);
        drawing_release(&d);
        network_close(&n);
        n_shapes++;
    }
    ck_assert_msg(n_shapes > 0, "'%s' needs a shape in this file", dl_network_get((size_t)kind)->name);
}

/* An endpoint by name, or, in a torus whose switches are the endpoints, by coordinates. */
static uint32_t endpoint_vertex(const struct network_fixture *n, const struct drawing *d, uint32_t endpoint)
{
    char name[end_bytes] = "";
    snprintf(name, sizeof name, "node%u.device%u", endpoint / n->net->endpoints_per_node,
             endpoint % n->net->endpoints_per_node);
    const uint32_t named = vertex_of(d, name);
    if (named != UINT32_MAX || !n->net->kind->dimensions) return named;
    const int64_t *sizes;
    const size_t n_dimensions = n->net->kind->dimensions(n->net, &sizes);
    size_t used = 0;
    for (size_t i = 0; i < n_dimensions; endpoint /= (uint32_t)sizes[i++])
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%d", i ? "," : "(", (int)(endpoint % sizes[i]));
    snprintf(name + used, sizeof name - used, ")");
    return vertex_of(d, name);
}

/* What the route in the fixture carries. */
static bool flows_from_to(const struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    const struct dl_route *const r = &n->route;
    const uint32_t source = endpoint_vertex(n, d, from), target = endpoint_vertex(n, d, to);
    bool holds = source != UINT32_MAX && target != UINT32_MAX;
    double *const balance = dl_alloc(d->n_vertices * sizeof *balance);
    for (size_t i = 0; i < r->n_hops; i++) {
        const uint32_t link = r->hops[i].link - n->net->first_link;
        holds = holds && r->hops[i].weight > 0;
        balance[d->from[link]] -= r->hops[i].weight;
        balance[d->to[link]] += r->hops[i].weight;
    }
    for (uint32_t v = 0; v < d->n_vertices; v++) {
        const double wanted = v == target ? 1 : v == source ? -1 : 0;
        holds = holds && fabs(balance[v] - wanted) < tolerance;
    }
    dl_free(balance);
    return holds;
}

static bool conserves_flow(struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    find_route(n, from, to, 7, NULL);
    return flows_from_to(n, d, from, to);
}

START_TEST(what_flows_into_a_vertex_flows_out) { check_shapes(_i, conserves_flow); }
END_TEST

/* Where an endpoint is its own switch, several links may lead into it, in any order. */
static bool joins_the_ends(struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    const struct dl_route *const r = find_route(n, from, to, 7, NULL);
    const uint32_t target = endpoint_vertex(n, d, to);
    if (r->n_hops == 0 || d->from[r->hops[0].link - n->net->first_link] != endpoint_vertex(n, d, from)) return false;
    for (size_t i = r->n_hops; i-- > 0;) {
        if (d->to[r->hops[i].link - n->net->first_link] == target) return true;
        if (r->hops[i].weight == 1) return false;
    }
    return false;
}

START_TEST(routes_begin_at_the_source_and_end_at_the_destination) { check_shapes(_i, joins_the_ends); }
END_TEST

static bool sums_latencies(struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    (void)d;
    const struct dl_route *const r = find_route(n, from, to, 7, NULL);
    double latency_s = 0;
    for (size_t i = 0; i < r->n_hops; i++) latency_s += r->hops[i].weight * n->t->links[r->hops[i].link].latency_s;
    return fabs(r->latency_s - latency_s) <= tolerance * latency_s && r->reach == DL_REACH_NETWORK;
}

START_TEST(latency_is_the_weighted_sum_of_the_links) { check_shapes(_i, sums_latencies); }
END_TEST

static bool lists_links_once(struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    (void)d;
    const struct dl_route *const r = find_route(n, from, to, 7, NULL);
    for (size_t i = 0; i < r->n_hops; i++)
        for (size_t j = 0; j < i; j++)
            if (r->hops[i].link == r->hops[j].link) return false;
    return true;
}

START_TEST(a_route_lists_a_link_once) { check_shapes(_i, lists_links_once); }
END_TEST

static struct network_fixture twin; /* another build of the same */

static bool is_as_in_twin(struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    (void)d;
    const struct dl_route *const a = find_route(n, from, to, 7, NULL), *const b = find_route(&twin, from, to, 7, NULL);
    bool holds = a->n_hops == b->n_hops;
    for (size_t i = 0; holds && i < a->n_hops; i++)
        holds = a->hops[i].link == b->hops[i].link && a->hops[i].weight == b->hops[i].weight;
    return holds;
}

START_TEST(two_builds_route_alike)
{
    struct network_fixture n;
    network_open(&n, shape_at((size_t)_i));
    network_open(&twin, shape_at((size_t)_i));
    ck_assert_uint_eq(n.net->n_links, twin.net->n_links);
    check_pairs(&n, NULL, is_as_in_twin);
    network_close(&twin);
    network_close(&n);
}
END_TEST

START_TEST(names_of_links_are_distinct)
{
    enum { name_bytes = 2 * end_bytes };
    struct network_fixture n;
    network_open(&n, shape_at((size_t)_i));
    char(*const names)[name_bytes] = dl_alloc((size_t)n.net->n_links * name_bytes);
    for (uint32_t l = 0; l < n.net->n_links; l++) n.net->kind->name_link(n.net, l, names[l], name_bytes);
    qsort(names, n.net->n_links, name_bytes, compare_text);
    uint32_t n_distinct = n.net->n_links > 0;
    for (uint32_t l = 1; l < n.net->n_links; l++) n_distinct += strcmp(names[l - 1], names[l]) != 0;
    ck_assert_uint_gt(n.net->n_links, 0);
    ck_assert_uint_eq(n_distinct, n.net->n_links);
    dl_free(names);
    network_close(&n);
}
END_TEST

/* The graph that messages find their way around failed links in is the one that the names tell. */
START_TEST(ends_of_links_are_those_of_their_names)
{
    struct network_fixture n;
    struct drawing d;
    network_open(&n, shape_at((size_t)_i));
    draw(&d, n.net);
    uint32_t n_vertices = 0;
    uint32_t *const named = dl_alloc(2 * ((size_t)n.net->n_links + n.net->n_endpoints) * sizeof *named);
    for (uint32_t l = 0; l < n.net->n_links; l++) {
        const struct dl_link_ends at = n.net->kind->ends(n.net, l);
        const uint32_t vertex[] = {at.from, at.to}, wanted[] = {d.from[l], d.to[l]};
        for (int end = 0; end < 2; end++) {
            ck_assert_uint_lt(vertex[end], 2 * (n.net->n_links + n.net->n_endpoints));
            if (!named[vertex[end]]) n_vertices++;
            if (!named[vertex[end]]) named[vertex[end]] = wanted[end] + 1;
            if (named[vertex[end]] != wanted[end] + 1) ck_abort_msg("link %u of shape %d", l, _i);
        }
    }
    ck_assert_uint_eq(n_vertices, d.n_vertices);
    for (uint32_t e = 0; e < n.net->n_endpoints; e++) ck_assert_uint_eq(named[e], endpoint_vertex(&n, &d, e) + 1);
    dl_free(named);
    drawing_release(&d);
    network_close(&n);
}
END_TEST

/* By relaxing all links that work until nothing changes; an endpoint that is no switch does not pass anything on. */
static bool is_joined(const struct network_fixture *n, const struct drawing *d, uint32_t from, uint32_t to)
{
    const bool any = n->net->kind->endpoints_forward;
    bool *const reached = dl_alloc(d->n_vertices * sizeof *reached);
    bool *const is_endpoint = dl_alloc(d->n_vertices * sizeof *is_endpoint);
    for (uint32_t e = 0; !any && e < n->net->n_endpoints; e++) is_endpoint[endpoint_vertex(n, d, e)] = true;
    is_endpoint[endpoint_vertex(n, d, from)] = false;
    reached[endpoint_vertex(n, d, from)] = true;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t l = 0; l < d->n_links; l++) {
            if (dl_link_fraction(n->t->condition, n->net->first_link + l) == 0) continue;
            if (!reached[d->from[l]] || is_endpoint[d->from[l]] || reached[d->to[l]]) continue;
            reached[d->to[l]] = more = true;
        }
    }
    const bool joined = reached[endpoint_vertex(n, d, to)];
    dl_free(is_endpoint);
    dl_free(reached);
    return joined;
}

/* A few links of a shape fail at a time. Routes avoid them wherever that is possible, and keep to the graph. */
START_TEST(routes_go_around_failed_links_if_there_is_a_way)
{
    enum { n_trials = 6, n_pairs = 12 };
    struct network_fixture n;
    struct drawing d;
    network_open(&n, shape_at((size_t)_i));
    draw(&d, n.net);
    gsl_rng *const rng = dl_random_new(1, "failures", (uint64_t)_i);
    for (unsigned long trial = 0; trial < n_trials; trial++) {
        dl_condition_reset(n.t->condition);
        for (unsigned long k = 0; k <= n.net->n_links * trial / 32; k++)
            dl_condition_set(n.t->condition, n.t,
                             n.net->first_link + (uint32_t)gsl_rng_uniform_int(rng, n.net->n_links), 0);
        for (int pair = 0; pair < n_pairs; pair++) {
            const uint32_t n_endpoints = n.net->n_endpoints;
            const uint32_t from = (uint32_t)gsl_rng_uniform_int(rng, n_endpoints);
            const uint32_t to = (from + 1 + (uint32_t)gsl_rng_uniform_int(rng, n_endpoints - 1)) % n_endpoints;
            ck_assert(!dl_topology_route(n.t, from, to, 7, NULL, &n.route, &n.f.err));
            if (dl_crosses_failed(n.t->condition, &n.route) == is_joined(&n, &d, from, to))
                ck_abort_msg("shape %d, %u to %u", _i, from, to);
            if (!flows_from_to(&n, &d, from, to)) ck_abort_msg("shape %d, %u to %u is no way", _i, from, to);
        }
    }
    gsl_rng_free(rng);
    drawing_release(&d);
    network_close(&n);
}
END_TEST

/* The way back is as long, and no way is shorter; a dragonfly spreads over all global links of a pair of groups, near
 * ones and far ones. */
static bool is_shortest(struct network_fixture *n, const uint32_t *distance, const struct drawing *d, uint32_t from,
                        uint32_t to)
{
    enum { longest_dragonfly = 7 }; /* up, two in a grid, global, two in a grid, down */
    const double there = hops_of(find_route(n, from, to, 7, NULL)), back = hops_of(find_route(n, to, from, 7, NULL));
    const double least = distance[endpoint_vertex(n, d, to)],
                 most = n->net->kind == &dl_network_dragonfly ? longest_dragonfly : least;
    return fabs(there - back) < tolerance * there && there > least - tolerance * there &&
           there < most + tolerance * there;
}

START_TEST(minimal_routes_are_as_short_as_the_graph_allows)
{
    struct network_fixture n;
    struct drawing d;
    network_open(&n, &minimal_shapes[_i]);
    draw(&d, n.net);
    uint32_t *const distance = dl_alloc(d.n_vertices * sizeof *distance);
    for (uint32_t from = 0; from < n.net->n_endpoints; from += 1 + n.net->n_endpoints / 64) {
        distances_from(&d, endpoint_vertex(&n, &d, from), distance);
        for (uint32_t to = 0; to < n.net->n_endpoints; to++)
            if (from != to && !is_shortest(&n, distance, &d, from, to))
                ck_abort_msg("%s: %u to %u", n.net->kind->name, from, to);
    }
    ck_assert_uint_gt(d.n_vertices, 0);
    dl_free(distance);
    drawing_release(&d);
    network_close(&n);
}
END_TEST

static const struct {
    struct shape shape;
    const char *message;
} refused[] = {
    {{"full_mesh", 2049, 1, ""}, "/network: a full_mesh may have at most 2048 endpoints, here are 2049"},
    {{"fat_tree", 17, 1, "'children':[4,4],'parents':[1,4]"},
     "/network: has room for 16 endpoints, but 17 nodes with 1 each need 17; raise 'children'"},
    {{"fat_tree", 4, 1, "'children':[4,4],'parents':[1]"},
     "/network: 'parents' must have 2 items for the levels of 'children', got 1"},
    {{"fat_tree", 4, 1, "'children':[],'parents':[]"}, "/network: 'children' must have 1 to 16 levels, got 0"},
    {{"fat_tree", 4, 1, "'children':[4,4],'parents':[1,4],'uplink_bandwidth_bytes_per_s':[true]"},
     "/network/uplink_bandwidth_bytes_per_s/0: must be a number of at least 1 byte per second"},
    {{"fat_tree", 9, 1, "'children':[4,9],'parents':[1000000,1000000]"},
     "/network: would have 6000018000000 links, at most 67108864 are possible"},
    {{"rails", 9, 8, "'children':[4,16],'parents':[1,4]"},
     "/network: has room for 64 endpoints, but 9 nodes with 8 each need 96; raise 'children'"},
    {{"dragonfly", 9, 1, "'groups':2,'nodes_per_group':4,'switches_per_group':2,'links_per_group_pair':1"},
     "/network: has room for 8 endpoints, but 9 nodes with 1 each need 9; raise 'groups' or 'nodes_per_group'"},
    {{"dragonfly", 8, 1,
      "'groups':2,'nodes_per_group':4,'switches_per_group':6,'links_per_group_pair':1,"
      "'local':'grid','grid':[2,2]"},
     "/network: 'grid' must be [columns, rows] with 6 switches in all, as switches_per_group says"},
    {{"dragonfly", 8, 1, "'groups':2,'nodes_per_group':4,'switches_per_group':6,'links_per_group_pair':1,'spines':2"},
     "/network: 'spines' and local 'leaf_spine' go together: give both or neither"},
    {{"torus", 9, 1, "'dimensions':[2,4]"},
     "/network: has room for 8 endpoints, but 9 nodes with 1 each need 9; raise 'dimensions'"},
    {{"torus", 8, 1, "'dimensions':[2,4],'wrap':[true]"},
     "/network/wrap: must have 2 items, one for each of 'dimensions', got 1"},
    {{"torus", 8, 1, "'dimensions':[2,4],'slices':[{'dimensions':[2]}]"},
     "/network/slices/0: 'dimensions' must have 2 items, as the torus, got 1"},
    {{"torus", 8, 1, "'dimensions':[2,4],'slices':[{'dimensions':[2,2],'wrap':[true]}]"},
     "/network/slices/0/wrap: must have 2 items, one for each of 'dimensions', got 1"},
    {{"torus", 4, 2, "'dimensions':[2,4],'slices':[{'dimensions':[2,1]},{'dimensions':[1,3]}]"},
     "/network/slices/1: 3 devices are no whole number of nodes of 2"},
    {{"torus", 8, 1, "'dimensions':[2,4],'twist':1,'slices':[]"},
     "/network/slices: slices are for devices that are the torus themselves, without NICs, twist or other switches"},
    {{"torus", 8, 1, "'dimensions':[2,4],'twist':4"}, "/network: 'twist' must be less than dimension 1, 4, got 4"},
    {{"torus", 8, 1, "'dimensions':[8],'twist':1"}, "/network: 'twist' needs two dimensions of at least 2 that wrap"},
    {{"graph", 4000, 1, "'switches':97,'links':[]"}, "/network: a graph may have at most 4096 vertices, here are 4097"},
    {{"graph", 3, 1, "'links':[[0,1],[1,3]]"}, "/network/links/1: item 1 must be a vertex from 0 to 2"},
    {{"graph", 3, 1, "'links':[[0,1],[1,1]]"}, "/network/links/1: joins vertex 1 with itself"},
    {{"graph", 3, 1, "'links':[[0,1,1e9]]"},
     "/network/links/0: must be [a, b] or [a, b, bandwidth_bytes_per_s, latency_s]"},
    {{"graph", 3, 1, "'links':[[0,1,0,1e-6]]"}, "/network/links/0: item 2 must be a number in [1, 1e+18]"},
};

START_TEST(what_cannot_be_is_refused_by_place_and_remedy)
{
    struct network_fixture n;
    ck_assert(network_try_open(&n, &refused[_i].shape) != DL_OK);
    ck_assert_str_eq(strchr(n.f.err.text, '/'), refused[_i].message);
    network_close(&n);
}
END_TEST

START_TEST(an_unreachable_pair_is_named)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"graph", 4, 1, "'links':[[0,1],[2,3]]"});
    ck_assert_uint_eq(find_route(&n, 0, 1, 0, NULL)->n_hops, 1);
    ck_assert_int_eq(n.net->kind->route(n.net, 1, 2, 0, NULL, &n.route, &n.f.err), DL_IMPOSSIBLE);
    ck_assert_str_eq(strchr(n.f.err.text, '/'), "/network: no way from vertex 1 (node1.device0) to vertex 2 "
                                                "(node2.device0): 'links' must join them");
    network_close(&n);
}
END_TEST

START_TEST(equal_ways_of_a_graph_are_shared_by_hash)
{
    enum { n_keys = 4000, n_ways = 4 };
    struct network_fixture n;
    network_open(
        &n, &(struct shape){"graph", 2, 1, "'switches':4,'links':[[0,2],[0,3],[0,4],[0,5],[1,2],[1,3],[1,4],[1,5]]"});
    int taken[n_ways] = {0};
    for (uint64_t key = 0; key < n_keys; key++)
        taken[(find_route(&n, 0, 1, key, NULL)->hops[0].link - n.net->first_link) / 2]++;
    const double mean = (double)n_keys / n_ways, deviation = sqrt(mean * (1 - 1.0 / n_ways));
    for (int i = 0; i < n_ways; i++) ck_assert_double_lt(fabs(taken[i] - mean), 5 * deviation);
    network_close(&n);
}
END_TEST

START_TEST(links_of_a_graph_may_have_their_own_figures)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"graph", 3, 1, "'links':[[0,1],[1,2,5e9,3e-6]]"});
    const struct dl_route *const r = find_route(&n, 0, 2, 0, NULL);
    ck_assert_uint_eq(r->n_hops, 2);
    ck_assert_double_eq(n.t->links[r->hops[0].link].bandwidth_bytes_per_s, 25e9);
    ck_assert_double_eq(n.t->links[r->hops[1].link].bandwidth_bytes_per_s, 5e9);
    ck_assert_double_eq_tol(r->latency_s, 1e-6 + 3e-6, 1e-18);
    network_close(&n);
}
END_TEST

int main(void)
{
    const int n_kinds = (int)dl_network_count(), n_shapes = (int)(DL_COUNT(minimal_shapes) + DL_COUNT(other_shapes));
    TCase *const contract = tcase_create("contract"), *const own = tcase_create("own");
    tcase_add_loop_test(contract, what_flows_into_a_vertex_flows_out, 0, n_kinds);
    tcase_add_loop_test(contract, routes_begin_at_the_source_and_end_at_the_destination, 0, n_kinds);
    tcase_add_loop_test(contract, latency_is_the_weighted_sum_of_the_links, 0, n_kinds);
    tcase_add_loop_test(contract, a_route_lists_a_link_once, 0, n_kinds);
    tcase_add_loop_test(contract, names_of_links_are_distinct, 0, n_shapes);
    tcase_add_loop_test(contract, ends_of_links_are_those_of_their_names, 0, n_shapes);
    tcase_add_loop_test(contract, routes_go_around_failed_links_if_there_is_a_way, 0, n_shapes);
    tcase_add_loop_test(contract, two_builds_route_alike, 0, n_shapes);
    tcase_add_loop_test(contract, minimal_routes_are_as_short_as_the_graph_allows, 0, (int)DL_COUNT(minimal_shapes));
    tcase_add_loop_test(own, what_cannot_be_is_refused_by_place_and_remedy, 0, (int)DL_COUNT(refused));
    tcase_add_test(own, an_unreachable_pair_is_named);
    tcase_add_test(own, equal_ways_of_a_graph_are_shared_by_hash);
    tcase_add_test(own, links_of_a_graph_may_have_their_own_figures);
    Suite *const suite = suite_create("networks");
    suite_add_tcase(suite, contract);
    suite_add_tcase(suite, own);
    return run_suite(suite);
}
