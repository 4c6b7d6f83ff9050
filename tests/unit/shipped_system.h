/* shipped_system.h - a shipped system file, opened for a test, and what must hold of any route in it. */
#ifndef DL_TESTS_SHIPPED_SYSTEM_H
#define DL_TESTS_SHIPPED_SYSTEM_H

#include <check.h>
#include <stdlib.h>

#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "tests/unit/suite.h"
#include "topologies/topology.h"

static struct dl_arena *arena;
static struct dl_error err;
static struct dl_json doc;
static struct dl_topology *topology;

static void set_up(void)
{
    arena = dl_arena_new();
    err = (struct dl_error){0};
    doc = (struct dl_json){0};
    topology = NULL;
}

static void close_system(void)
{
    dl_topology_free(topology);
    json_decref(doc.value);
    topology = NULL;
    doc.value = NULL;
}

static void tear_down(void)
{
    close_system();
    dl_arena_free(arena);
}

static const struct dl_topology *open_system(const char *name)
{
    close_system();
    const char *path;
    ck_assert_msg(dl_find_file("topologies/systems", "topology", name, arena, &path, &err) == DL_OK, "%s", err.text);
    ck_assert_msg(dl_json_load(path, arena, &doc, &err) == DL_OK, "%s", err.text);
    ck_assert_msg(dl_json_inherit(doc, "topologies/systems", "topology", arena, &err) == DL_OK, "%s", err.text);
    ck_assert_msg(dl_topology_read(doc, arena, &topology, &err) == DL_OK, "%s", err.text);
    return topology;
}

static inline void check_route(const struct dl_topology *t, uint32_t from, uint32_t to, struct dl_route *route)
{
    ck_assert_msg(dl_topology_route(t, from, to, 0, NULL, route, &err) == DL_OK, "%s", err.text);
    ck_assert_uint_gt(route->n_hops, 0);
    double latency_s = 0;
    for (size_t i = 0; i < route->n_hops; i++) {
        ck_assert_uint_lt(route->hops[i].link, t->n_links);
        ck_assert_double_gt(route->hops[i].weight, 0);
        latency_s += route->hops[i].weight * t->links[route->hops[i].link].latency_s;
    }
    ck_assert_double_eq_tol(route->latency_s, latency_s, 1e-9 * latency_s);
    const bool leaves_node = dl_topology_node_of(t, from) != dl_topology_node_of(t, to);
    if (leaves_node || !t->node.n_edges) ck_assert_int_eq(route->reach, DL_REACH_NETWORK);
    if (!leaves_node && t->node.n_edges) ck_assert_int_ne(route->reach, DL_REACH_NETWORK);
}

static inline int run_systems(TCase *tests, const char *name)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    Suite *const suite = suite_create(name);
    suite_add_tcase(suite, tests);
    return run_without_forking(suite);
}

#endif
