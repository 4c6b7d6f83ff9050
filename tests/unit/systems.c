/* Every shipped system file reads, says where each of its numbers comes from, and routes between any devices. */
#include <string.h>

#include "sim/core/facts.h"
#include "sim/core/random.h"
#include "tests/unit/shipped_system.h"

/* The files in the order of the alphabet, for tests that loop over them. */
static const char *shipped(int index)
{
    const char **names;
    ck_assert_int_lt(index, (int)dl_list_folder("topologies/systems", arena, &names));
    return names[index];
}

START_TEST(every_file_reads)
{
    const struct dl_topology *const t = open_system(shipped(_i));
    ck_assert_str_eq(t->name, shipped(_i));
    ck_assert_uint_eq(t->n_devices, t->n_nodes * t->node.n_devices);
}
END_TEST

START_TEST(every_default_transport_is_shipped)
{
    const char *const transport = open_system(shipped(_i))->transport;
    const char *path;
    ck_assert_msg(dl_find_file("topologies/transports", "transport", transport, arena, &path, &err) == DL_OK, "%s",
                  err.text);
    ck_assert_ptr_nonnull(strstr(path, "topologies/transports/"));
}
END_TEST

struct tally {
    size_t n_numbers, n_without_fact;
    const char *first;
};

static void count_fact(void *user, const struct dl_fact *fact)
{
    struct tally *const tally = user;
    tally->n_numbers++;
    if (fact->stated) return;
    if (!tally->n_without_fact++) tally->first = fact->where;
}

START_TEST(every_number_says_where_it_comes_from)
{
    open_system(shipped(_i));
    struct tally tally = {0};
    dl_json_facts(doc, arena, count_fact, &tally);
    ck_assert_uint_gt(tally.n_numbers, 0);
    ck_assert_msg(!tally.n_without_fact, "%zu numbers have no fact, the first is %s", tally.n_without_fact,
                  tally.first);
}
END_TEST

START_TEST(random_pairs_route)
{
    enum { n_pairs = 200 };
    const struct dl_topology *const t = open_system(shipped(_i));
    if (t->n_devices == 1) return; /* nowhere to go */
    gsl_rng *const random = dl_random_new(1, "pairs", 0);
    struct dl_route route = {0};
    for (int i = 0; i < n_pairs; i++) {
        const uint32_t from = (uint32_t)gsl_rng_uniform_int(random, t->n_devices);
        const uint32_t step = 1 + (uint32_t)gsl_rng_uniform_int(random, t->n_devices - 1);
        check_route(t, from, (from + step) % t->n_devices, &route);
    }
    dl_route_release(&route);
    gsl_rng_free(random);
}
END_TEST

START_TEST(neighbours_in_a_node_route)
{
    const struct dl_topology *const t = open_system(shipped(_i));
    struct dl_route route = {0};
    for (uint32_t from = 0; from < t->node.n_devices; from++)
        for (uint32_t to = 0; to < t->node.n_devices; to++)
            if (from != to) check_route(t, from, to, &route);
    dl_route_release(&route);
}
END_TEST

static int n_shipped(void)
{
    struct dl_arena *const names_arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder("topologies/systems", names_arena, &names);
    dl_arena_free(names_arena);
    return (int)n;
}

int main(void)
{
    TCase *const tests = tcase_create("systems");
    tcase_add_loop_test(tests, every_file_reads, 0, n_shipped());
    tcase_add_loop_test(tests, every_default_transport_is_shipped, 0, n_shipped());
    tcase_add_loop_test(tests, every_number_says_where_it_comes_from, 0, n_shipped());
    tcase_add_loop_test(tests, random_pairs_route, 0, n_shipped());
    tcase_add_loop_test(tests, neighbours_in_a_node_route, 0, n_shipped());
    return run_systems(tests, "systems");
}
