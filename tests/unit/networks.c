/* networks.c - what every network must keep, whatever its kind. */
#include "tests/unit/network_shapes.h"
#include "tests/unit/suite.h"

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

int main(void)
{
    const int n_kinds = (int)dl_network_count(), n_shapes = (int)(DL_COUNT(minimal_shapes) + DL_COUNT(other_shapes));
    TCase *const contract = tcase_create("contract");
    tcase_add_loop_test(contract, what_flows_into_a_vertex_flows_out, 0, n_kinds);
    tcase_add_loop_test(contract, routes_begin_at_the_source_and_end_at_the_destination, 0, n_kinds);
    tcase_add_loop_test(contract, latency_is_the_weighted_sum_of_the_links, 0, n_kinds);
    tcase_add_loop_test(contract, a_route_lists_a_link_once, 0, n_kinds);
    tcase_add_loop_test(contract, names_of_links_are_distinct, 0, n_shapes);
    tcase_add_loop_test(contract, ends_of_links_are_those_of_their_names, 0, n_shapes);
    tcase_add_loop_test(contract, routes_go_around_failed_links_if_there_is_a_way, 0, n_shapes);
    tcase_add_loop_test(contract, two_builds_route_alike, 0, n_shapes);
    tcase_add_loop_test(contract, minimal_routes_are_as_short_as_the_graph_allows, 0, (int)DL_COUNT(minimal_shapes));
    Suite *const suite = suite_create("networks");
    suite_add_tcase(suite, contract);
    return run_suite(suite);
}
