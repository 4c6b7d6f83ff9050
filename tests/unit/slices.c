/* slices.c - the parts of a torus that jobs get: their shape, their wires, and what collectives make of them. */
#include <math.h>

#include "sim/collective/choose.h"
#include "sim/session/inputs.h"
#include "tests/unit/suite.h"
#include "topologies/placement.h"

static const char *const pods[] = {"tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p"};
static const struct dl_texts nothing_set = {0};

struct fixture {
    struct dl_arena *arena;
    struct dl_machine machine;
    struct dl_error err;
};

static void set_up(struct fixture *f, const char *system)
{
    *f = (struct fixture){.arena = dl_arena_new()};
    dl_machine_open((struct dl_input){.name = system}, &nothing_set, f->arena, &f->machine, &f->err);
    ck_assert_msg(!f->err.status, "%s", f->err.text);
}

static void tear_down(struct fixture *f)
{
    dl_machine_close(&f->machine);
    dl_arena_free(f->arena);
}

static size_t n_hops(const struct dl_topology *t, uint32_t from, uint32_t to)
{
    struct dl_route route = {0};
    struct dl_error err = {0};
    ck_assert_msg(!dl_topology_route(t, from, to, 0, NULL, &route, &err), "%s", err.text);
    const size_t n = route.n_hops;
    dl_route_release(&route);
    return n;
}

/* The way from the first device to the last along a dimension is one hop where the slice wraps, else all of the line.
 */
static void check_ends(const struct dl_topology *t)
{
    const struct dl_pod_slice *const shape = &t->network.shape;
    uint32_t stride = 1;
    for (size_t d = 0; d < shape->n_dimensions; d++) {
        const uint32_t size = (uint32_t)shape->size[d], last = stride * (size - 1);
        if (size > 2) ck_assert_uint_eq(n_hops(t, 0, last), shape->wrap[d] ? 1 : size - 1);
        stride *= size;
    }
    ck_assert_uint_eq(stride, t->n_devices);
}

START_TEST(each_slice_is_a_machine_of_its_shape)
{
    struct fixture f;
    set_up(&f, pods[_i]);
    const struct dl_slices slices = f.machine.topology->network.slices;
    ck_assert_uint_gt(slices.n, 0);
    for (size_t i = 0; i < slices.n; i++) {
        struct dl_topology *t;
        ck_assert(!dl_topology_slice(f.machine.topology, slices.items[i].n_devices, &t, &f.err));
        ck_assert_uint_eq(t->n_devices, slices.items[i].n_devices);
        ck_assert_uint_eq(t->n_nodes * t->node.n_devices, t->n_devices);
        ck_assert_uint_eq(t->n_whole_devices, f.machine.topology->n_devices);
        check_ends(t);
        dl_topology_free(t);
    }
    tear_down(&f);
}
END_TEST

/* Cubes of 4 x 4 x 4 are joined by optical switches; the others are cut out of a plane or out of a cube. */
START_TEST(what_wraps_is_as_published)
{
    for (size_t pod = 0; pod < DL_COUNT(pods); pod++) {
        struct fixture f;
        set_up(&f, pods[pod]);
        const struct dl_network *const net = &f.machine.topology->network;
        for (size_t i = 0; i < net->slices.n; i++) {
            const struct dl_pod_slice *const slice = &net->slices.items[i];
            for (size_t d = 0; d < slice->n_dimensions; d++) {
                const bool of_cubes = slice->n_dimensions == 3 && slice->n_devices >= 64;
                ck_assert_int_eq(slice->wrap[d], of_cubes || slice->size[d] == net->shape.size[d]);
            }
        }
        tear_down(&f);
    }
}
END_TEST

static const struct {
    const char *system;
    uint32_t wanted, got;
    const char *shape;
} jobs[] = {
    {"tpu-v4", 64, 64, "4x4x4 torus"},    {"tpu-v4", 1, 4, "2x2x1 mesh"},
    {"tpu-v4", 48, 64, "4x4x4 torus"},    {"tpu-v4", 2049, 4096, "16x16x16 torus"},
    {"tpu-v5e", 4, 4, "2x2 mesh"},        {"tpu-v5e", 128, 128, "8x16, wraps in dimension 1"},
    {"tpu-v5e", 256, 256, "16x16 torus"}, {"tpu-v5p", 6144, 6144, "24x16x16 torus"},
};

START_TEST(a_job_gets_the_smallest_slice_that_holds_it)
{
    struct fixture f;
    char text[DL_SLICE_TEXT];
    set_up(&f, jobs[_i].system);
    const uint32_t whole = f.machine.topology->n_devices;
    ck_assert(!dl_machine_slice(&f.machine, jobs[_i].wanted, "list:0", &f.err));
    ck_assert_uint_eq(f.machine.topology->n_devices, whole);
    ck_assert(!dl_machine_slice(&f.machine, jobs[_i].wanted, "packed", &f.err));
    ck_assert_uint_eq(f.machine.topology->n_devices, jobs[_i].got);
    ck_assert_str_eq(dl_slice_text(&f.machine.topology->network.shape, text), jobs[_i].shape);
    ck_assert(!dl_machine_slice(&f.machine, whole, "packed", &f.err)); /* and from a slice to all */
    ck_assert_uint_eq(f.machine.topology->n_devices, whole);
    tear_down(&f);
}
END_TEST

static void open_slice(struct fixture *f, const char *system, uint32_t n_devices)
{
    set_up(f, system);
    ck_assert(!dl_machine_slice(&f->machine, n_devices, "packed", &f->err));
    ck_assert(!dl_machine_use_transport(&f->machine, NULL, n_devices, &nothing_set, f->arena, &f->err));
}

/* Among n devices, one of each stride. */
static double allreduce_s(struct fixture *f, uint32_t n, uint32_t stride, double bytes)
{
    uint32_t *const device = dl_arena_alloc(f->arena, n * sizeof *device);
    for (uint32_t rank = 0; rank < n; rank++) device[rank] = rank * stride;
    struct dl_group group;
    struct dl_estimator e;
    struct dl_choice choice;
    dl_group_init(&group, f->machine.topology, device, n, f->arena);
    dl_estimator_init(&e, f->machine.topology, &f->machine.transport, f->machine.bytes_per_s);
    const struct dl_wish wish = {
        .op = DL_ALLREDUCE, .algorithm = "torus", .protocol = "auto", .group = &group, .bytes = bytes};
    ck_assert_msg(!dl_choose(&e, &wish, f->arena, &choice, &f->err), "%s", f->err.text);
    dl_estimator_release(&e);
    return choice.estimate.wire_s;
}

/* An all-reduce sends and gets 2 (n - 1) / n of its bytes. In a cube they leave over all six links of a device. In a
 * plane of it, every fourth device, over the four links within the plane; in a row over two. */
START_TEST(rings_use_all_links_of_the_box_that_ranks_fill)
{
    enum { side = 4, cube = side * side * side };
    const double bytes = 1e9;
    struct fixture f;
    open_slice(&f, "tpu-v4", cube);
    const double link_bytes_per_s = f.machine.bytes_per_s[0];
    for (uint32_t n = cube, n_links = 6, stride = 1; n > 1; n /= side, n_links -= 2, stride *= side) {
        const double sent = 2.0 * (n - 1) / n * bytes;
        ck_assert_double_eq_tol(allreduce_s(&f, n, stride, bytes), sent / (n_links * link_bytes_per_s), 1e-9);
    }
    tear_down(&f);
}
END_TEST

/* A mesh of 16 replicas of 48 shards of 8 ways, as MaxText has on the slice: each ring of replicas is a line. */
START_TEST(replicas_of_shards_fill_lines)
{
    enum { n_replicas = 16, stride = 8 * 48 };
    const double bytes = 1e9, sent = 2.0 * (n_replicas - 1) / n_replicas * bytes;
    struct fixture f;
    open_slice(&f, "tpu-v5p", n_replicas * stride);
    ck_assert_double_eq_tol(allreduce_s(&f, n_replicas, stride, bytes), sent / (2 * f.machine.bytes_per_s[0]), 1e-9);
    tear_down(&f);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("slices");
    TCase *const tests = tcase_create("slices");
    tcase_add_loop_test(tests, each_slice_is_a_machine_of_its_shape, 0, DL_COUNT(pods));
    tcase_add_test(tests, what_wraps_is_as_published);
    tcase_add_loop_test(tests, a_job_gets_the_smallest_slice_that_holds_it, 0, DL_COUNT(jobs));
    tcase_add_test(tests, rings_use_all_links_of_the_box_that_ranks_fill);
    tcase_add_test(tests, replicas_of_shards_fill_lines);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
