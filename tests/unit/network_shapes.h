/* network_shapes.h - networks of every kind, and a way through the routes of all their pairs. A new kind needs a line
 * among the shapes. */
#ifndef DL_TESTS_NETWORK_SHAPES_H
#define DL_TESTS_NETWORK_SHAPES_H

#include <math.h>

#include "sim/core/random.h"
#include "tests/unit/network_text.h"

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
    {"fat_tree", 30, 2, "'children':[4,2,8],'parents':[2,4,2],'cables':[1,2,1],'routing':'ecmp','flows':5"},
    {"rails", 9, 8, "'children':[2,16,4],'parents':[1,2,8],'routing':'ecmp','flows':16"},
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

static inline void check_pair(struct network_fixture *n, const struct drawing *d, pair_check check, uint32_t from,
                              uint32_t to)
{
    if (!check(n, d, from, to)) ck_abort_msg("%s: %u to %u", n->net->kind->name, from, to);
}

/* Every ordered pair of endpoints, or 2,000 random ones. */
static inline void check_pairs(struct network_fixture *n, const struct drawing *d, pair_check check)
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
static inline void check_shapes(int kind, pair_check check)
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

#endif
